"""Up to 3.0 the death of a broker may be told to nobody (KAFKA-13225)."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard
from emulator.kafka.profiles.base import profiles
from emulator.kafka.profiles.guards.controller import EVERY_DEATH_IS_TOLD
from emulator.trace import events as e
from emulator.trace.events import AnyEvent


class UntoldDeath(Hazard):
    """KafkaController.scala@2.6.3 onReplicasBecomeOffline sends UpdateMetadata itself only where no
    partition has lost its leader; else the election is to do it."""

    name = "untold death"
    about = (
        "A broker dies that hosts nothing, while some partition has no leader: the controller"
        " leaves telling it to the election, which changes nothing (KAFKA-13225)."
    )
    breaks = ("the dead are known",)

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """The controller that saw it die runs such a version, and something was leaderless then."""
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
