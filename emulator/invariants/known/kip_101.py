"""Up to 0.10 a follower truncates to its high watermark, which may remove committed records
(KIP-101)."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard, lacks
from emulator.kafka.profiles.guards.following import TRUNCATION_BY_EPOCH
from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.state import CoreState
from emulator.trace.state.logs import missing
from emulator.trace.state.replica_log import ReplicaLog
from emulator.trace.values import TopicPartition


class TruncatedToHighWatermark(Hazard):
    """ReplicaManager.scala@0.10.2.2 makeFollowers: truncateTo(highWatermark) (H17)."""

    name = "KIP-101"
    about = (
        "A follower learns the high watermark one fetch late. Under a new leader it truncates to "
        "its own high watermark, below what is committed, and is elected before it has fetched "
        "again."
    )
    breaks = ("committed records survive", "hw within isr", "logs agree", "reads are consistent")

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """A truncation of this partition removed committed records."""
        return violation.partition is not None and any(
            lacks(TRUNCATION_BY_EPOCH, event, events)
            for event in _losses(violation.partition, events[: violation.facts[1] + 1])
        )


def _losses(partition: TopicPartition, events: Sequence[AnyEvent]) -> list[AnyEvent]:
    """Truncations that removed records which were committed then, or which a deposed leader has
    committed since, due to an earlier fetch."""
    state, truncations = CoreState(), list[tuple[AnyEvent, ReplicaLog]]()
    for event in events:
        state(event)
        if isinstance(event, e.LogTruncated) and event.partition == partition:
            truncations.append((event, state.logs.removed))
    committed = state.committed.of(partition)
    if committed is None:
        return []
    nothing = ReplicaLog()
    return [
        event
        for event, lost in truncations
        if missing(lost, committed.log) < missing(lost, nothing)
    ]
