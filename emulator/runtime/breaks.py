"""A connection that is to break, and at which request.

A struct, and so in a file of its own: `network`, where connections break, may be compiled
(`emulator.compiled`).
"""

from __future__ import annotations

import msgspec

from emulator.protocol.messages import Request
from zk.wire import When


class Break(msgspec.Struct, frozen=True):
    """A connection that is to break at a request: `before` it arrives, or `after` it was served, in
    the place of its answer. With `late_us` it breaks at once, and the request arrives that much
    later than it would have: a copy of it may be there before."""

    when: When
    request: str | None = None
    late_us: int = 0

    def strikes(self, request: Request) -> bool:
        return self.request in (None, kind_of(request))


def kind_of(request: Request) -> str:
    """Kafka's name of the API: `LeaderAndIsr`."""
    return type(request).__name__.removesuffix("Request")
