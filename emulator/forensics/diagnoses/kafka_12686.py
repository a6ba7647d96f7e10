"""A leader's proposal that was never sent and stays pending (KAFKA-12686)."""

from __future__ import annotations

from emulator.forensics.diagnoses.pending import PendingProposal
from emulator.trace import events as e
from emulator.trace.values import TopicPartition


class ProposalNeverSent(PendingProposal):
    """A late response to an earlier proposal removes the new one from the map of unsent proposals,
    and nothing else ends it."""

    error = ""

    def prepare(self) -> None:
        super().prepare()
        self._dropped: set[tuple[int, TopicPartition]] = set()

    def on_becomes_leader(self, event: e.BecomesLeader) -> None:
        """A proposal with an outstanding response: only that can remove the next one."""
        key = event.broker, event.partition
        if key in self._answer:
            self._dropped.add(key)
            self.forget(key)
        super().on_becomes_leader(event)

    def on_isr_updated(self, event: e.IsrUpdated) -> None:
        self._dropped.discard((event.broker, event.partition))
        super().on_isr_updated(event)

    def on_alter_isr_proposed(self, event: e.AlterIsrProposed) -> None:
        super().on_alter_isr_proposed(event)
        if (event.broker, event.partition) not in self._dropped:
            self.forget((event.broker, event.partition))

    cure = (
        "restart the leader, or move the leadership: a LeaderAndIsr ends what is pending; fixed in"
        " 2.8.1 and 3.0, where a response ends only its own proposal"
    )
