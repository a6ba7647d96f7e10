"""A notification is deleted only after the controller has read the states that it names."""

from __future__ import annotations

from emulator.invariants.base import Invariant, Violation
from emulator.trace import events as e
from emulator.trace.state.notifications import notified_partitions
from emulator.trace.values import TopicPartition

_PREFIX = "/isr_change_notification/"


class DeletedUnread(Violation, frozen=True):
    path: str

    sentence = "{path} is deleted, but the controller has not read {partition} since"


class NotificationsAreRead(Invariant):
    """A notification is deleted only after the controller has read the states that it names (L4).
    A newly elected controller deletes notifications unread, because it reads every state."""

    def begin(self) -> None:
        self._pending: dict[str, tuple[tuple[TopicPartition, ...], int]] = {}
        self._fresh = True

    def on_controller_elected(self, event: e.ControllerElected) -> None:
        self._fresh = True

    def on_controller_event_processed(self, event: e.ControllerEventProcessed) -> None:
        """A controller that is elected during this event has read all states."""
        if event.broker == self.state.controller.broker:
            self._fresh = False

    def on_zk_transaction(self, event: e.ZkTransaction) -> None:
        for op in event.ops or (event,):
            path = op.path or ""
            if op.code or not path.startswith(_PREFIX):
                continue
            if op.op == "create":
                self._pending[path] = notified_partitions(op.data), event.seq
            elif op.op == "delete" and path in self._pending:
                self._deleted(path, event)

    def _deleted(self, path: str, event: e.ZkTransaction) -> None:
        named, created = self._pending.pop(path)
        if self._fresh:
            return
        for name in named:
            known = self.state.controller.states.get(name)
            exists = self.state.partitions.of(name).now is not None
            if exists and (known is None or known.seq < created):
                facts = created, event.seq
                self.violated(DeletedUnread(path, facts=facts, partition=name, broker=event.broker))
