"""The state of every partition: the history of its state znode, version by version.

Owns leader and ISR as stored in ZooKeeper. The sources are the transactions and, in traces without
them, the writers' own events (`isr_updated`, `controller_cache_updated`). A version counts once,
from its earliest source. Knows nothing about metadata caches.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.state.spans import OPEN, Known, close
from emulator.trace.untrusted_json import decode_untrusted
from emulator.trace.values import LoggedOp, TopicPartition

_TOPICS = "/brokers/topics/"
_STATE = re.compile(r"/brokers/topics/([^/]+)/partitions/(\d+)/state")


class State(Known):
    """One version of a state znode. `by_leader`: the leader wrote it. `isr_change`: a leader
    decided it, no matter who wrote it; not an election, which raises the leader epoch.
    `by_controller`: its multi was fenced by `/controller_epoch`, or (before 2.1) it has another
    leader epoch. `controller_epoch` is -1 if the event has none; `cause` is the write's.
    `created_us` is when the topic was created, which differs after it was deleted and recreated.
    """

    by_leader: bool = False
    controller_epoch: int = -1
    isr_change: bool = False
    by_controller: bool = False
    cause: int = -1
    created_us: int = 0


class Partition(msgspec.Struct):
    """A partition with all its states so far, oldest first. `replicas` is the assignment, `adding`
    those that a reassignment adds. `deleted`: the znode is gone. `history` also has the versions of
    deleted topics and unreadable ones (leader -1, no ISR)."""

    name: TopicPartition
    replicas: tuple[int, ...] = ()
    states: list[State] = []
    deleted: bool = False
    adding: tuple[int, ...] = ()
    history: list[State] = []

    @property
    def now(self) -> State | None:
        return self.states[-1] if self.states and not self.deleted else None

    @property
    def in_zookeeper(self) -> State | None:
        """The znode's current version, even if unreadable."""
        return self.history[-1] if self.history and self.history[-1].to_us == OPEN else None

    @property
    def is_unclean(self) -> bool:
        """Whether the leader of the last state was not in the ISR before it."""
        if len(self.states) < 2:
            return False
        before, now = self.states[-2:]
        return now.leader >= 0 and now.leader not in before.isr

    @property
    def isr_history(self) -> list[tuple[int, ...]]:
        """The ISRs in order, without versions that changed only the leader."""
        history: list[tuple[int, ...]] = []
        for state in self.states:
            if not history or history[-1] != state.isr:
                history.append(state.isr)
        return history

    @property
    def leader_history(self) -> list[int]:
        """The leaders in order (-1: none), without versions that changed only the ISR."""
        history: list[int] = []
        for state in self.states:
            if not history or history[-1] != state.leader:
                history.append(state.leader)
        return history


Listener = Callable[[Partition, State], None]


class _Data(msgspec.Struct):
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int = -1


_DATA = msgspec.json.Decoder(_Data)


class Partitions:
    """All partitions by name."""

    def __init__(self) -> None:
        self.all: dict[TopicPartition, Partition] = {}
        self._has_transactions = False
        self._listeners: list[Listener] = []
        self._deletion_listeners: list[Callable[[Partition], None]] = []

    def listen_to_deletions(self, listener: Callable[[Partition], None]) -> None:
        """Call `listener` with each partition whose state znode is deleted."""
        self._deletion_listeners.append(listener)

    def listen(self, listener: Listener) -> None:
        """Call `listener` with each new state."""
        self._listeners.append(listener)

    def of(self, name: TopicPartition) -> Partition:
        """The partition; empty if unknown."""
        partition = self.all.get(name)
        if partition is None:
            partition = self.all[name] = Partition(name)
        return partition

    def of_topic(self, topic: str) -> list[Partition]:
        return [p for name, p in sorted(self.all.items()) if name.topic == topic]

    def on_zk_transaction(self, event: e.ZkTransaction) -> None:
        self._has_transactions = True
        if any(op.op == "error" for op in event.ops):
            return  # a failed multi changes nothing
        for op in event.ops or (event,):
            path = op.path
            if path is None or op.code or not path.startswith(_TOPICS):
                continue
            match = _STATE.fullmatch(path)
            if match is None:
                continue
            name = TopicPartition(match[1], int(match[2]))
            if op.op == "delete":
                self._delete(name, event)
            elif op.op in ("create", "setData"):
                self._write(name, event, op)

    def _write(
        self, name: TopicPartition, event: e.ZkTransaction, op: LoggedOp | e.ZkTransaction
    ) -> None:
        partition = self.of(name)
        last = partition.history[-1] if partition.history else None
        version = 0
        if op.op == "setData":
            before = -1 if last is None or last.to_us != OPEN else last.version
            version = before + 1 if op.version is None else op.version
        try:
            data = decode_untrusted(op.data or "", _DATA)
        except msgspec.DecodeError:
            close(partition.history, event)
            garbage = State(name, version, -1, -1, (), event.broker, event.seq, event.t)
            garbage.cause = event.cause
            garbage.created_us = 0 if last is None else last.created_us
            partition.history.append(garbage)
            return
        facts = data.leader, data.leader_epoch, data.isr, event.broker, event.seq, event.t
        state = State(name, version, *facts, controller_epoch=data.controller_epoch)
        state.by_leader = op.op == "setData" and not event.ops
        state.by_controller, state.cause = is_fenced(event), event.cause
        self._learn(partition, state, event)

    def on_isr_updated(self, event: e.IsrUpdated) -> None:
        facts = event.broker, event.leader_epoch, event.isr, 0, event.seq, event.t
        state = State(event.partition, event.zk_version, *facts, by_leader=True)
        self._learn(self.of(event.partition), state, event)

    def on_controller_cache_updated(self, event: e.ControllerCacheUpdated) -> None:
        facts = event.leader, event.leader_epoch, event.isr, 0, event.seq, event.t
        state = State(event.partition, event.zk_version, *facts)
        self._learn(self.of(event.partition), state, event)

    def on_leader_and_isr(self, event: e.LeaderAndIsr) -> None:
        partition = self.of(event.state.partition)
        partition.replicas = event.state.replicas
        partition.adding = event.state.adding_replicas

    def on_metadata_cache_updated(self, event: e.MetadataCacheUpdated) -> None:
        for state in event.states:
            partition = self.of(state.partition)
            if not partition.replicas:
                partition.replicas = state.replicas

    def _delete(self, name: TopicPartition, event: AnyEvent) -> None:
        """Keep the partition's history."""
        partition = self.of(name)
        partition.deleted = True
        close(partition.history, event)
        for listener in self._deletion_listeners:
            listener(partition)

    def _learn(self, partition: Partition, state: State, event: AnyEvent) -> None:
        last = partition.states[-1] if partition.states else None
        if partition.deleted and state.version > 0:
            return  # a late report: the znode is already deleted
        if last is not None and partition.deleted:
            partition.states.clear()
            partition.deleted = False
        elif (
            not self._has_transactions  # with them: an old read, reported late by a controller
            and last is not None
            and state.version == 0 < last.version
            and state.from_us > last.from_us
        ):
            partition.states.clear()  # deleted and recreated
        elif last is not None and state.version <= last.version:
            _merge_earlier(partition, state)
            return
        begins = state.version == 0
        state.created_us = state.from_us if begins else last.created_us if last is not None else 0
        state.isr_change = state.by_leader or _is_isr_change(last, state)
        before = partition.history[-1] if partition.history else None
        if before is not None and before.to_us != OPEN:
            before = None
        state.by_controller |= before is None or before.leader_epoch != state.leader_epoch
        close(partition.history, event)
        partition.states.append(state)
        partition.history.append(state)
        for listener in self._listeners:
            listener(partition, state)


def _is_isr_change(last: State | None, state: State) -> bool:
    """Whether leader and leader epoch are the same."""
    return last is not None and state.version > 0 and not elects(last, state)


def elects(before: State, state: State) -> bool:
    """Whether leader or leader epoch changed."""
    return (before.leader, before.leader_epoch) != (state.leader, state.leader_epoch)


def _merge_earlier(partition: Partition, again: State) -> None:
    """A known version, from another source: the earlier time counts."""
    for known in reversed(partition.states):
        if known.version != again.version:
            continue
        known.by_leader = known.by_leader or again.by_leader
        known.isr_change = known.isr_change or again.by_leader
        if again.from_us < known.from_us:
            known.from_us = again.from_us
            for state in partition.history:
                if state.seq_to == known.seq:
                    state.to_us = min(state.to_us, known.from_us)
                if known.version == 0 and state.created_us > known.from_us:
                    state.created_us = known.from_us
        return


def applied_ops(event: e.ZkTransaction) -> tuple[LoggedOp, ...]:
    """The operations that the transaction applied: those of a multi (none if it failed), or its
    own.
    """
    if event.op != "multi":
        one = LoggedOp(event.op, event.path, event.data, event.version, event.ephemeral, event.code)
        return () if event.op == "error" else (one,)
    return () if any(op.op == "error" for op in event.ops) else event.ops


def is_fenced(event: e.ZkTransaction) -> bool:
    """Whether the transaction checks `/controller_epoch`, as a controller's does."""
    return any(op.op == "check" and op.path == "/controller_epoch" for op in event.ops)


def state_partition(path: str | None) -> TopicPartition | None:
    """The partition whose state znode `path` is."""
    match = _STATE.fullmatch(path or "")
    return TopicPartition(match[1], int(match[2])) if match else None
