"""The cost of ISR changes in ZooKeeper: reads, writes, watches and bytes, of leaders and the
controller.

A leader's share is its writes of states, its read-backs and its notification znodes. The
controller's share is what it does while it processes an event that ISR changes queued; its requests
belong to the event that ends next on its thread. Elections, registrations and commands are left out
because both propagation paths have them alike. Bytes are those of the requests on the wire.
"""

from __future__ import annotations

import msgspec

from emulator.trace import events as e
from zk.paths import ISR_CHANGE_NOTIFICATION, partition_of_state_path
from zk.sizes import request_bytes

CONTROLLER_THREAD = "controller-event-thread"
ISR_EVENTS = frozenset({"IsrChangeNotification", "AlterIsrReceived"})
_READS = frozenset({"getData", "exists", "getChildren2"})


class Load(msgspec.Struct):
    """Requests, fired watches, and bytes of requests."""

    writes: int = 0
    reads: int = 0
    watches: int = 0
    bytes: int = 0

    def sent(self, event: e.ZkSent) -> None:
        if event.op in _READS:
            self.reads += 1
        else:
            self.writes += 1
        self.bytes += request_bytes(event.op, event.path, event.detail.encode())


class ZooKeeperLoad:
    """The load of leaders and of the controller in one run."""

    def __init__(self) -> None:
        self.leader = Load()
        self.controller = Load()
        self._begun: dict[int, list[e.ZkSent]] = {}

    def on_zk_sent(self, event: e.ZkSent) -> None:
        if event.thread.startswith(CONTROLLER_THREAD):
            self._begun.setdefault(event.broker, []).append(event)
        elif event.broker and _is_about_isr(event.path):
            self.leader.sent(event)

    def on_controller_event_processed(self, event: e.ControllerEventProcessed) -> None:
        begun = self._begun.pop(event.broker, [])
        for sent in begun if event.event in ISR_EVENTS else ():
            self.controller.sent(sent)

    def on_zk_watch_fired(self, event: e.ZkWatchFired) -> None:
        if event.path == ISR_CHANGE_NOTIFICATION:
            self.controller.watches += 1

    def on_broker_starting(self, event: e.BrokerStarting) -> None:
        """The previous process may have died in the middle of an event."""
        self._begun.pop(event.broker, None)


def _is_about_isr(path: str) -> bool:
    notification = path.startswith(f"{ISR_CHANGE_NOTIFICATION}/")
    return notification or partition_of_state_path(path) is not None
