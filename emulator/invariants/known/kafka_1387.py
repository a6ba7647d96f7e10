"""Up to 0.8.2 a broker may wait for its own registration to disappear (KAFKA-1387)."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard, lacks, missing_members
from emulator.kafka.profiles.guards.controller import OWN_EPHEMERAL_CHECKED
from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.state.znodes import Znodes
from zk import paths
from zk.errors import Code


class WaitsForItself(Hazard):
    """createEphemeralPathExpectConflictHandleZKBug@0.8.2.2 assumes that a znode with the data that
    it is about to write belongs to an earlier session, and waits for its deletion. But the owner
    may be its own session, if the state listener has registered the broker in the meantime."""

    name = "KAFKA-1387"
    about = (
        "A session ends while a broker's start waits for its old registration to disappear. The "
        "listener registers it in the new session, and the start waits for that node for ever."
    )
    breaks = ("brokers are registered", "metadata converges", "replicas return to isr")

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """The broker, or each missing ISR member, waits for the deletion of a znode that it wrote
        itself."""
        waiting = _waiting(events)
        return violation.broker in waiting or missing_members(violation) <= waiting


def _waiting(events: Sequence[AnyEvent]) -> set[int]:
    """Brokers that wait for a registration of their own process and have not restarted since."""
    znodes, wrote, waiting = Znodes(), dict[int, int](), set[int]()
    for event in events:
        mine = paths.broker_id(event.broker)
        match event:
            case e.ZkTransaction():
                znodes.on_zk_transaction(event)
                if mine in znodes.all and znodes.all[mine].seq == event.seq:
                    wrote[event.broker] = event.seq
            case e.BrokerStarting() | e.BrokerStarted() | e.BrokerExited():
                waiting.discard(event.broker)
                if isinstance(event, e.BrokerStarting):
                    wrote.pop(event.broker, None)
            case e.ZkReply(op="create", code=Code.NODE_EXISTS, path=at) if at == mine:
                registration = znodes.all.get(mine)
                held = registration is not None and registration.seq == wrote.get(event.broker)
                if held and lacks(OWN_EPHEMERAL_CHECKED, event, events):
                    waiting.add(event.broker)
    return waiting
