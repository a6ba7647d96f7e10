"""Up to 3.2.0 a proposal that is resubmitted in the response handler is refused as a duplicate
(KAFKA-14010)."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard, lacks
from emulator.kafka.profiles.guards.alter_isr import CLEAR_BEFORE_CALLBACK
from emulator.trace import events as e
from emulator.trace.events import AnyEvent


class RefusesItsOwnRepetition(Hazard):
    """AlterIsrManager.scala@2.8.2 handleAlterIsrResponse runs the callback before it removes the
    entry, so a resubmission finds the entry and is refused. Then the entry is removed, and nothing
    is sent (H19). The refusal is an exception that leaves onComplete before
    maybePropagateIsrChanges: proposals that wait for this response stay, too, until the next
    one."""

    name = "KAFKA-14010"
    about = (
        "A leader repeats its proposal after an error, while the first one is still in the map. "
        "The repetition is refused as a duplicate, and the partition stays pending for ever. "
        "So do others that wait for the same response, until the broker proposes again."
    )
    breaks = ("replicas return to isr",)

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """The leader's resubmission was refused, and the leader has not changed since; or its
        proposal waited for that response, and was never sent."""
        name = violation.partition
        leader, repeated = 0, -1
        refused = waits = stranded = False
        for event in events:
            match event:
                case e.BecomesLeader(partition=at) if at == name:
                    leader = event.broker
                    refused = waits = stranded = False
                # A leader that does not know yet that it was replaced may propose later than this
                # one.
                case e.AlterIsrProposed(partition=at, broker=proposer) if (
                    at == name and proposer == leader
                ):
                    waits, stranded = True, False
                case e.AlterIsrSent(broker=sender, partitions=sent) if sender == leader:
                    if name in sent:
                        waits = stranded = False
                case e.AlterIsrFailed(outcome="resubmitted"):
                    repeated = event.seq
                case e.AlterIsrFailed(error="OPERATION_NOT_ATTEMPTED", outcome="stays pending"):
                    if event.cause == repeated and lacks(CLEAR_BEFORE_CALLBACK, event, events):
                        refused = refused or event.partition == name
                        stranded = stranded or (waits and event.broker == leader)
        return refused or stranded
