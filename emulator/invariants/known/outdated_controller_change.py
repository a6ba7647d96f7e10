"""In 0.11 and 1.0 a new controller may resign when it learns who was controller before it."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard, profile_of
from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.state.znodes import Znodes


class OutdatedControllerChange(Hazard):
    """ZkClient passes the data of `/controller` with its event, and the event waits in the
    controller's queue (KafkaController.scala@1.0.2 ControllerChangeListener.handleDataChange,
    ControllerChange.process). An election that ran before it is undone, although `/controller`
    names this broker. From 1.1 on the event reads the znode again. No ticket found."""

    name = "outdated controller change"
    about = (
        "A broker is elected while the news of its predecessor waits in its queue. It takes that "
        "for its own end and resigns. `/controller` keeps naming it, so nobody else is elected."
    )
    breaks = (
        "a controller is there",
        "brokers are registered",
        "controller knows states",
        "metadata converges",
        "notifications are read",
        "nothing is left to do",
        "replicas return to isr",
    )

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """Who resigned last is the broker that `/controller` names since, it named another one
        before, and nobody has been elected again."""
        znodes, holders, resigned = Znodes(), set[int](), 0
        for event in events:
            match event:
                case e.ZkTransaction():
                    znodes.on_zk_transaction(event)
                    holders |= {znodes.controller or 0}
                    if znodes.controller != resigned:
                        resigned = 0
                case e.ControllerElected():
                    resigned = 0
                case e.ControllerResigned(broker=broker) if znodes.controller == broker:
                    others = holders - {0, broker}
                    resigned = broker if others and _passes_data(event, events) else 0
        return resigned > 0


def _passes_data(event: AnyEvent, events: Sequence[AnyEvent]) -> bool:
    """Whether the broker's client passes a znode's data with its event, and the event is queued."""
    profile = profile_of(event, events)
    return (
        profile is not None
        and profile.zookeeper_client == "zkclient"
        and profile.controller_threads == "event-queue"
    )
