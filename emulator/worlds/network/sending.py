"""How a thread sends a request and blocks: the same on a drawn network and on sockets.

Owns the wait and its timeout; a connection decides what it writes and when it breaks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from emulator.kafka.protocol.messages import Request
from emulator.kafka.protocol.transport import Disconnected
from emulator.kernel.scheduler import Kernel, Lane
from emulator.kernel.sync import Promise
from zk.wire import labelled

BROKEN = object()
"""The answer to what was in flight when its connection broke."""


class Submitting(Protocol):
    """A connection that takes a request without waiting; `on_answer` gets the response, or
    BROKEN."""

    def submit(self, request: Request, on_answer: Callable[[Any], None]) -> None: ...

    def close(self) -> None: ...


async def send(
    connection: Submitting, kernel: Kernel, lane: Lane, request: Request, timeout_ms: int
) -> Any:
    """`emulator.kafka.protocol.transport.Connection.send`."""
    answer: Promise[Any] = Promise(kernel)
    connection.submit(request, answer.resolve)
    timer = lane.call_later(timeout_ms * 1000, partial(_timed_out, connection, answer))
    value = await answer.wait()
    timer.cancel()
    if value is BROKEN:
        raise Disconnected("the connection broke")
    return value


@labelled("timed_out")
def _timed_out(connection: Submitting, answer: Promise[Any]) -> None:
    if not answer.done:
        answer.resolve(BROKEN)
        # Kafka's clients close a connection whose request has timed out, and with it all its
        # requests in flight (NetworkClient.java@2.6.3 handleTimedOutRequests).
        connection.close()
