"""Up to 3.0 a controller may not announce the death of a broker (KAFKA-13225)."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard
from emulator.kafka.profiles.base import profiles
from emulator.kafka.profiles.guards.controller import EVERY_DEATH_IS_TOLD
from emulator.trace import events as e
from emulator.trace.events import AnyEvent


class DeadBrokerNotAnnounced(Hazard):
    """KafkaController.scala@2.6.3 onReplicasBecomeOffline sends UpdateMetadata itself only if no
    partition has lost its leader. Otherwise it relies on the election."""

    name = "dead broker not announced"
    about = (
        "A broker without replicas dies while some partition has no leader. The controller leaves"
        " the announcement to the election, which sends nothing (KAFKA-13225)."
    )
    breaks = ("dead brokers are announced",)

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """The controller that noticed the death runs such a version, and a partition was
        leaderless."""
        saw = events[violation.facts[0]]
        running = ""
        leaderless = False
        for event in events[: violation.facts[0]]:
            if isinstance(event, e.BrokerStarting) and event.broker == saw.broker:
                running = event.profile
            elif isinstance(event, e.PartitionStateChanged):
                leaderless = leaderless or event.to_state == "OfflinePartition"
            elif isinstance(event, e.ControllerCacheUpdated):
                leaderless = leaderless or event.leader < 0
        return leaderless and EVERY_DEATH_IS_TOLD not in profiles()[running].guards
