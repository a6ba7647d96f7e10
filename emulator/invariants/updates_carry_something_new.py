"""Deleting a notification does not make the controller send its whole cache to every broker
again."""

from __future__ import annotations

from emulator.invariants.base import Invariant, Violation
from emulator.trace import events as e
from emulator.trace.state.notifications import notified_partitions
from emulator.trace.values import TopicPartition
from zk.paths import ISR_CHANGE_NOTIFICATION

MANY = 12
SOON_US = 1_000_000
SETTLED_US = 1_000_000
"""A starting broker receives all metadata, and once more when its replicas go online
(KafkaController.scala@2.6.3 onBrokerStartup)."""


class NothingNew(Violation, frozen=True):
    partitions: int

    sentence = "broker {broker} receives {partitions} partitions, and knew them all"


class UpdatesCarrySomethingNew(Invariant):
    """After a controller has deleted notifications (which wakes it up again) it does not send a
    broker metadata of twelve or more partitions that the broker already has (L11). What a
    notification names it sends again, even if nothing in it is new."""

    def begin(self) -> None:
        self._live: dict[int, tuple[int, tuple[int, ...]]] = {}
        self._known: dict[int, dict[object, tuple[object, int]]] = {}
        self._copies: set[int] = set()
        self._queued_by: dict[int, int] = {}
        """For each request of a send thread: the event that queued it."""
        self._deleted: dict[int, e.ZkTransaction] = {}
        self._listed: dict[int, int] = {}
        """When each broker last asked for the list of notifications."""
        self._pending: dict[str, tuple[TopicPartition, ...]] = {}
        self._changed: dict[int, int] = {}

    def on_broker_change(self, event: e.BrokerChange) -> None:
        self._changed[event.broker] = event.t

    def on_controller_elected(self, event: e.ControllerElected) -> None:
        """A fail-over sends all metadata twice (KafkaController.scala@0.9.0.1 onControllerFailover:
        with the replicas' roles, and at its end). What this broker deleted as controller before
        wakes up nobody any more."""
        self._deleted.pop(event.broker, None)

    def on_broker_registered(self, event: e.BrokerRegistered) -> None:
        """A new broker receives all metadata."""
        self._known.pop(event.broker, None)
        self._live.pop(event.broker, None)

    def on_control_request_sent(self, event: e.ControlRequestSent) -> None:
        if event.request == "UpdateMetadata":
            self._queued_by[event.seq] = event.cause
            if event.attempt > 1:
                self._copies.add(event.to)

    def on_zk_request(self, event: e.ZkRequest) -> None:
        if event.op.startswith("getChildren") and event.path == ISR_CHANGE_NOTIFICATION:
            self._listed[event.broker] = event.seq

    def on_zk_transaction(self, event: e.ZkTransaction) -> None:
        for op in event.ops or (event,):
            path = op.path or ""
            if op.code or not path.startswith(f"{ISR_CHANGE_NOTIFICATION}/"):
                continue
            if op.op == "create":
                self._pending[path] = notified_partitions(op.data)
            elif op.op == "delete":
                self._pending.pop(path, None)
                self._deleted[event.broker] = event

    def on_metadata_cache_updated(self, event: e.MetadataCacheUpdated) -> None:
        known = self._known.setdefault(event.broker, {})
        queued_by = self._queued_by.pop(event.cause, event.cause)
        brokers = event.sender_epoch, tuple(sorted(event.live_brokers))
        same = self._live.get(event.broker) == brokers
        new = [s for s in event.states if known.get(s.partition, (None, -1))[0] != s]
        if event.broker in self._copies:
            self._copies.discard(event.broker)
        elif (
            same
            and len(event.states) >= MANY
            and not new
            and self._woken(event, queued_by)
            and not self._is_notified(event)
        ):
            facts = max(known[s.partition][1] for s in event.states), event.seq
            self.violated(NothingNew(len(event.states), facts=facts, broker=event.broker))
        self._live[event.broker] = brokers
        known.update({s.partition: (s, event.seq) for s in event.states})

    def _woken(self, event: e.MetadataCacheUpdated, queued_by: int) -> bool:
        """Whether the controller looked at the notifications again after the deletion, and queued
        the update then. An election deletes notifications, too, before it sends all metadata. The
        time of sending is irrelevant: a send thread may wait seconds for the previous response."""
        settled = event.t - self._changed.get(event.sender, -SETTLED_US) >= SETTLED_US
        deleted = self._deleted.get(event.sender)
        if deleted is None or not settled:
            return False
        listed = self._listed.get(event.sender, -1)
        return event.t - deleted.t < SOON_US and queued_by > listed > deleted.seq

    def _is_notified(self, event: e.MetadataCacheUpdated) -> bool:
        """Whether notifications that still exist name all its partitions. The controller deletes
        them only after it has queued the updates (KafkaController.scala@2.6.3
        processIsrChangeNotification). It knows their states already if it changed the ISRs itself
        after the leaders did: it read the leaders' ISRs from ZooKeeper then."""
        named = {name for names in self._pending.values() for name in names}
        return all(state.partition in named for state in event.states)
