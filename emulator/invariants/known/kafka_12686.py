"""Up to 2.8 the response to one AlterIsr removes a proposal that was never sent (KAFKA-12686)."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard, lacks
from emulator.kafka.profiles.guards.alter_isr import KEEP_IN_FLIGHT
from emulator.trace import events as e
from emulator.trace.events import AnyEvent


class RemovesTheNextProposal(Hazard):
    """AlterIsrManager.scala@2.7.2 clearPending removes a proposal that is in flight, so the next
    one can be enqueued. The response to the first one then removes the entry of the second
    (B29)."""

    name = "KAFKA-12686"
    about = (
        "A leader forgets a proposal in flight when LeaderAndIsr brings a new epoch, and makes the "
        "next one. The response to the first removes the next, which is pending for ever."
    )
    breaks = ("replicas return to isr",)

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """The response to an older proposal arrived after the leader's last one, which cannot have
        been sent: there is one request at a time, and one entry per partition."""
        name = violation.partition
        proposer, removed = 0, False
        for event in events:
            match event:
                case e.BecomesLeader(partition=at) if at == name:
                    proposer, removed = 0, False
                case e.AlterIsrProposed(partition=at) if at == name:
                    proposer, removed = event.broker, False
                case e.AlterIsrFailed(partition=at, outcome="ignored") if at == name:
                    if proposer == event.broker:
                        removed = lacks(KEEP_IN_FLIGHT, event, events)
        return removed
