"""An election for an offline partition informs the online replicas, and a broker that is shutting
down is not online."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard
from emulator.trace import events as e
from emulator.trace.events import AnyEvent


class NotToldWhileShuttingDown(Hazard):
    """Election.scala@2.6.3 leaderForOffline returns the online replicas as recipients, where
    leaderForControlledShutdown returns those that are shutting down as well (spec §6.7)."""

    name = "not told while shutting down"
    about = (
        "A broker is shutting down but cannot hand over a partition, because no other replica is "
        "alive. The partition becomes offline when another broker dies. When its other replica is "
        "back, that one is elected, and the broker that is shutting down is not told."
    )
    breaks = ("demoted leaders are informed",)

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """Since it led, the broker was stopping, another leader was elected for the offline
        partition, and no LeaderAndIsr was sent to it since."""
        since, until = violation.facts
        is_stopping = was_elected = False
        for event in events[:until]:
            match event:
                case e.ProcessStateChanged(broker=violation.broker):
                    is_stopping, was_elected = event.state == "stopping", False
                case e.PartitionStateChanged(partition=violation.partition) if is_stopping:
                    change = event.from_state, event.to_state
                    was_elected |= event.seq > since and change == _ELECTED
                case e.ControlRequestSent(request="LeaderAndIsr", to=violation.broker):
                    was_elected &= violation.partition not in event.partitions
        return was_elected


_ELECTED = "OfflinePartition", "OnlinePartition"
