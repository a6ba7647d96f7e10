"""Up to 0.8.2 leaders do not notify the controller of ISR changes (KAFKA-1367)."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard
from emulator.kafka.profiles.base import profiles
from emulator.kafka.profiles.guards.isr import ISR_CHANGE_NOTIFICATIONS
from emulator.trace import events as e
from emulator.trace.events import AnyEvent


class IsrChangeNotAnnounced(Hazard):
    """ReplicaManager.scala@0.8.2.2 has no isr-change-propagation."""

    name = "ISR change not announced"
    about = (
        "A leader changes the ISR in ZooKeeper without a notification. The controller and all "
        "metadata keep the old ISR until the controller reads the state for another reason."
    )
    breaks = ("controller knows states", "metadata converges")

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """The last leader that changed the ISR runs a version without notifications."""
        versions: dict[int, str] = {}
        silent = False
        for event in events:
            if isinstance(event, e.BrokerStarting):
                versions[event.broker] = event.profile
            elif isinstance(event, e.IsrUpdated) and event.partition == violation.partition:
                profile = profiles()[versions[event.broker]]
                silent = ISR_CHANGE_NOTIFICATIONS not in profile.guards
        return silent
