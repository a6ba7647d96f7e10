"""Notification znodes: creator, partitions and deletion of each; and how long leaders held changes
back."""

from __future__ import annotations

import msgspec

from emulator.trace import events as e
from emulator.trace.state.partitions import applied_ops
from emulator.trace.state.spans import OPEN
from emulator.trace.untrusted_json import decode_untrusted
from emulator.trace.values import TopicPartition
from zk.paths import ISR_CHANGE_NOTIFICATION


class Notification(msgspec.Struct):
    """One znode below `/isr_change_notification`, from its creation to its deletion. `sent`: the
    leader's own event for it."""

    path: str
    by: int
    partitions: tuple[TopicPartition, ...]
    seq: int
    from_us: int
    to_us: int = OPEN
    cleared_by: int = 0
    sent: e.IsrChangeNotified | None = None


class Notifications:
    """All notification znodes in order. `held`: by broker, the propagation runs that sent
    nothing."""

    def __init__(self) -> None:
        self.all: list[Notification] = []
        self.held: dict[int, list[e.IsrChangeHeld]] = {}
        self._present: dict[str, Notification] = {}
        self._sent: dict[str, e.IsrChangeNotified] = {}

    def on_zk_transaction(self, event: e.ZkTransaction) -> None:
        for op in event.ops or (event,):
            if (op.path or "").startswith(f"{ISR_CHANGE_NOTIFICATION}/"):
                self._applied(event)
                return

    def _applied(self, event: e.ZkTransaction) -> None:
        for op in applied_ops(event):
            path = op.path or ""
            if not path.startswith(f"{ISR_CHANGE_NOTIFICATION}/"):
                continue
            if op.op == "create":
                names = notified_partitions(op.data)
                node = Notification(path, event.broker, names, event.seq, event.t)
                node.sent = self._sent.pop(path, None)
                self._present[path] = node
                self.all.append(node)
            elif op.op == "delete" and path in self._present:
                node = self._present.pop(path)
                node.to_us, node.cleared_by = event.t, event.broker

    def on_isr_change_notified(self, event: e.IsrChangeNotified) -> None:
        node = self._present.get(event.path)
        if node is not None:
            node.sent = event
        else:  # the leader's event follows the controller's deletion, or precedes the log
            self._sent[event.path] = event
            for one in reversed(self.all):
                if one.path == event.path:
                    one.sent = event
                    return

    def on_isr_change_held(self, event: e.IsrChangeHeld) -> None:
        self.held.setdefault(event.broker, []).append(event)


class _NamedPartition(msgspec.Struct):
    topic: str
    partition: int


class _NotificationData(msgspec.Struct):
    partitions: list[_NamedPartition]


_NOTIFICATION = msgspec.json.Decoder(_NotificationData)


def notified_partitions(data: str | None) -> tuple[TopicPartition, ...]:
    """The partitions that a notification znode names; none if its data is malformed."""
    try:
        payload = decode_untrusted(data or "", _NOTIFICATION)
    except msgspec.DecodeError:
        return ()
    return tuple(TopicPartition(p.topic, p.partition) for p in payload.partitions)
