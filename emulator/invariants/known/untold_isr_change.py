"""Up to 0.8.2 nobody tells the controller of an ISR change (KAFKA-1367)."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard
from emulator.kafka.profiles.base import profiles
from emulator.kafka.profiles.guards.isr import ISR_CHANGE_NOTIFICATIONS
from emulator.trace import events as e
from emulator.trace.events import AnyEvent


class NobodyIsTold(Hazard):
    """ReplicaManager.scala@0.8.2.2 has no isr-change-propagation."""

    name = "untold ISR change"
    about = (
        "A leader changes the ISR in ZooKeeper and tells nobody: the controller and all metadata "
        "have the old one until the controller reads the state for a reason of its own."
    )
    breaks = ("controller knows states", "metadata converges")

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """The last who changed it runs a version without notifications."""
        versions: dict[int, str] = {}
        silent = False
        for event in events:
            if isinstance(event, e.BrokerStarting):
                versions[event.broker] = event.profile
            elif isinstance(event, e.IsrUpdated) and event.partition == violation.partition:
                profile = profiles()[versions[event.broker]]
                silent = ISR_CHANGE_NOTIFICATIONS not in profile.guards
        return silent
