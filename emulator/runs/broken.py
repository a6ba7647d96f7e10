"""A violated invariant, as every command reports it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from emulator.invariants.base import Violation, chain_of
from emulator.invariants.known.base import recognise
from emulator.trace.events import AnyEvent
from emulator.trace.values import TopicPartition


class Broken(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One violated invariant. `hazard`: the known failure of Kafka that explains it (empty: none,
    so the emulator is wrong). `facts`: the `seq` of the two contradicting events, the earlier first
    (-1: none). `chain`: the events that led to the later one.
    """

    invariant: str
    text: str
    hazard: str = ""
    partition: str | None = None
    broker: int = 0
    facts: tuple[int, int] = (-1, -1)
    chain: tuple[int, ...] = ()

    @property
    def topic_partition(self) -> TopicPartition | None:
        topic, _, number = (self.partition or "").rpartition("-")
        return TopicPartition(topic, int(number)) if number.isdecimal() else None


def explain(violation: Violation, events: Sequence[AnyEvent]) -> Broken:
    """A violation with the hazard behind it and its chain of causes."""
    return Broken(
        violation.invariant,
        violation.text,
        recognise(violation, events),
        None if violation.partition is None else str(violation.partition),
        violation.broker,
        violation.facts,
        tuple(event.seq for event in chain_of(events, violation.facts[1])),
    )
