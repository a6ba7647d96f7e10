"""Up to 1.0 a new controller ignores existing notifications (KAFKA-5879)."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard
from emulator.invariants.nothing_is_left_to_do import StillThere
from emulator.kafka.profiles.base import profiles
from emulator.trace import events as e
from emulator.trace.events import AnyEvent

_NOTIFICATIONS = "/isr_change_notification/"


class LeftNotification(Hazard):
    """KafkaController.scala@1.0.2 onControllerFailover watches the parent but does not list its
    children; 1.1.0 deletes them. ZkClient reports children only when one is created or deleted."""

    name = "left notification"
    about = (
        "A leader creates a notification while there is no controller. The new controller reads "
        "every state, but leaves the notification until the next one comes."
    )
    breaks = ("nothing is left to do",)

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """The notification existed when the last controller was elected, none was created since,
        and that controller uses ZkClient."""
        is_left = isinstance(violation, StillThere) and violation.path.startswith(_NOTIFICATIONS)
        if not is_left:
            return False
        versions: dict[int, str] = {}
        left = False
        for event in events:
            if isinstance(event, e.BrokerStarting):
                versions[event.broker] = event.profile
            elif isinstance(event, e.ControllerElected):
                client = profiles()[versions[event.broker]].zookeeper_client
                left = event.seq > violation.facts[1] and client == "zkclient"
            elif isinstance(event, e.ZkTransaction) and (event.path or "").startswith(
                _NOTIFICATIONS
            ):
                left = left and event.op != "create"
        return left
