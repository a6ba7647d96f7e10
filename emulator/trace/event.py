"""The base class of all events.

Owns the common fields and how a kind's name is derived from its class name. The kinds themselves
are in `events`.
"""

from __future__ import annotations

import re

import msgspec


def _kind(class_name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", class_name).lower()


class Event(msgspec.Struct, frozen=True, gc=False, tag_field="kind", tag=_kind, omit_defaults=True):
    """The common fields."""

    seq: int
    t: int
    broker: int
    thread: str
    cause: int

    @property
    def kind(self) -> str:
        """The event's name in the trace, such as `isr_updated`."""
        return str(type(self).__struct_config__.tag)
