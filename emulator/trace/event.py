"""What every event has, whatever its kind: the head of the vocabulary.

Owns the common fields and how a kind's name is made from its class. Knows no kind of event; they
are in `events` and, for AlterIsr, in `alter_isr`.
"""

from __future__ import annotations

import re

import msgspec


def _kind(class_name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", class_name).lower()


class Event(msgspec.Struct, frozen=True, gc=False, tag_field="kind", tag=_kind, omit_defaults=True):
    """What all events have."""

    seq: int
    t: int
    broker: int
    thread: str
    cause: int

    @property
    def kind(self) -> str:
        """The event's name in the trace, such as `isr_updated`."""
        return str(type(self).__struct_config__.tag)
