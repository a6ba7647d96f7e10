"""Up to 0.10.1 a controller may resign in the session in which it was elected (KAFKA-4229)."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard, lacks
from emulator.kafka.profiles.guards.controller import OWN_CONTROLLER_ZNODE_KEPT
from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.state.znodes import Znodes


class ResignsInItsOwnSession(Hazard):
    """KafkaController.scala@0.9.0.1 SessionExpirationListener.handleNewSession resigns and runs for
    election without reading `/controller` first (H27, B8)."""

    name = "KAFKA-4229"
    about = (
        "A session expires while the news that `/controller` is gone waits for the client's event"
        " thread. The broker is elected in its new session, and only then hears that it is new:"
        " it resigns, finds its own id in `/controller`, and takes itself for the controller."
        " Nobody else is elected."
    )
    breaks = (
        "a controller is there",
        "brokers are registered",
        "controller knows states",
        "followers fetch",
        "metadata converges",
        "notifications are read",
        "nothing is left to do",
        "replicas return to isr",
    )

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """Who resigned last is the broker that `/controller` names since, it had been elected in
        the session that it still has, and nobody has been elected again."""
        znodes, elected_in_session, resigned = Znodes(), set[int](), False
        for event in events:
            match event:
                case e.ZkTransaction():
                    before = znodes.controller
                    znodes.on_zk_transaction(event)
                    resigned &= znodes.controller == before
                case e.ZkSessionState(state="Expired"):
                    elected_in_session.discard(event.broker)
                case e.ControllerElected():
                    elected_in_session.add(event.broker)
                    resigned = False
                case e.ControllerResigned(broker=broker) if znodes.controller == broker:
                    resigned = broker in elected_in_session and lacks(
                        OWN_CONTROLLER_ZNODE_KEPT, event, events
                    )
        return resigned
