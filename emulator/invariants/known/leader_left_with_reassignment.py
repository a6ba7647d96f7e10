"""A leader shrinks its ISR after the controller has seen a reassignment's target in it: the leader
is removed, and nobody is elected."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard
from emulator.invariants.replicas_return_to_isr import NoLeader
from emulator.trace import events as e
from emulator.trace.events import AnyEvent


class LeaderLeftWithReassignment(Hazard):
    """KafkaController.scala@0.8.2.2 onPartitionReassignment asks ZooKeeper whether the new replicas
    are in the ISR, and elects one of them later. If the leader has removed them meanwhile, the
    election fails, PartitionStateMachine.handleStateChange logs that and returns, and the old
    replicas go all the same, the leader among them (read from the bytecode of 0.8.2.2)."""

    name = "leader left with its reassignment"
    about = (
        "A leader removes a reassignment's new replicas from the ISR just after the controller has"
        " seen them there. None of them can be elected, and the old replicas are removed with the"
        " leader."
    )
    breaks = ("replicas return to isr",)

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """The controller removed a replica last; it left no leader, and an ISR without any of the
        new replicas, which an earlier ISR had all contained."""
        if not isinstance(violation, NoLeader):
            return False
        removed: e.ControllerCacheUpdated | None = None
        for event in reversed(events):
            match event:
                case e.ControllerCacheUpdated(partition=violation.partition) if removed is None:
                    is_alone = set(event.isr).isdisjoint(event.replicas)
                    if event.leader >= 0 or event.why != "replica removed" or not is_alone:
                        return False
                    removed = event
                case e.IsrUpdated(partition=violation.partition) if removed is not None:
                    if set(removed.replicas) <= set(event.isr):
                        return True
        return False
