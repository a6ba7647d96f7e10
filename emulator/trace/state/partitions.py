"""The state of every partition: the history of its state znode, version by version.

Owns who leads and who is in sync, as ZooKeeper has it. Sources are the transactions themselves and,
where a trace has none, the events of those who wrote (`isr_updated`, `controller_cache_updated`);
a version counts once, from the earliest of them. It knows nothing of metadata caches.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from emulator.trace import events as e
from emulator.trace.values import TopicPartition

_STATE = re.compile(r"/brokers/topics/([^/]+)/partitions/(\d+)/state")


class State(msgspec.Struct):
    """One version of a state znode, from `t_us` on. `by_leader`: a leader wrote it itself;
    `isr_change`: a leader's decision, whoever wrote it, and no election (which raises the leader
    epoch); `seq` is the event that told it, `writer` its broker, `controller_epoch` -1 where the
    event does not say."""

    version: int
    t_us: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    by_leader: bool
    seq: int = -1
    writer: int = 0
    controller_epoch: int = -1
    isr_change: bool = False


class Partition(msgspec.Struct):
    """A partition with all its states so far, oldest first; `replicas` as assigned. `deleted`: its
    znode is gone."""

    name: TopicPartition
    replicas: tuple[int, ...] = ()
    states: list[State] = []
    deleted: bool = False

    @property
    def now(self) -> State | None:
        return self.states[-1] if self.states and not self.deleted else None

    @property
    def isr_history(self) -> list[tuple[int, ...]]:
        """The ISRs in order; a version that changed only the leader is no new one."""
        found: list[tuple[int, ...]] = []
        for state in self.states:
            if not found or found[-1] != state.isr:
                found.append(state.isr)
        return found

    @property
    def leader_history(self) -> list[int]:
        """The leaders in order (-1: none); a version that changed only the ISR is no new one."""
        found: list[int] = []
        for state in self.states:
            if not found or found[-1] != state.leader:
                found.append(state.leader)
        return found


Listener = Callable[[Partition, State], None]


class _Data(msgspec.Struct):
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int = -1


class Partitions:
    """All partitions by name."""

    def __init__(self) -> None:
        self.all: dict[TopicPartition, Partition] = {}
        self._listeners: list[Listener] = []
        self._gone_listeners: list[Callable[[Partition], None]] = []

    def listen_to_deletions(self, listener: Callable[[Partition], None]) -> None:
        """Call `listener` with each partition whose state znode was deleted."""
        self._gone_listeners.append(listener)

    def listen(self, listener: Listener) -> None:
        """Call `listener` with each new state."""
        self._listeners.append(listener)

    def of(self, name: TopicPartition) -> Partition:
        """The partition; an empty one if nothing is known of it."""
        partition = self.all.get(name)
        if partition is None:
            partition = self.all[name] = Partition(name)
        return partition

    def of_topic(self, topic: str) -> list[Partition]:
        return [p for name, p in sorted(self.all.items()) if name.topic == topic]

    def on_zk_transaction(self, event: e.ZkTransaction) -> None:
        for op in event.ops or (event,):
            found = _STATE.fullmatch(op.path or "")
            if found is None or op.code:
                continue
            if op.op == "delete":
                self._gone(TopicPartition(found[1], int(found[2])))
            if op.op not in ("create", "setData"):
                continue
            try:
                data = msgspec.json.decode(op.data or "", type=_Data)
            except msgspec.DecodeError:
                continue
            version = 0 if op.op == "create" else op.version or 0
            by_leader = op.op == "setData" and not event.ops
            name = TopicPartition(found[1], int(found[2]))
            facts = data.leader, data.leader_epoch, data.isr
            told = event.seq, event.broker, data.controller_epoch
            self._learn(name, State(version, event.t, *facts, by_leader, *told))

    def on_isr_updated(self, event: e.IsrUpdated) -> None:
        facts = event.broker, event.leader_epoch, event.isr
        self._learn(event.partition, State(event.zk_version, event.t, *facts, True, event.seq))

    def on_controller_cache_updated(self, event: e.ControllerCacheUpdated) -> None:
        facts = event.leader, event.leader_epoch, event.isr
        self._learn(event.partition, State(event.zk_version, event.t, *facts, False, event.seq))

    def on_leader_and_isr(self, event: e.LeaderAndIsr) -> None:
        self.of(event.state.partition).replicas = event.state.replicas

    def on_metadata_cache_updated(self, event: e.MetadataCacheUpdated) -> None:
        for state in event.states:
            partition = self.of(state.partition)
            if not partition.replicas:
                partition.replicas = state.replicas

    def _gone(self, name: TopicPartition) -> None:
        """Deleted, as far as is known; what was is kept."""
        partition = self.of(name)
        partition.deleted = True
        for listener in self._gone_listeners:
            listener(partition)

    def _learn(self, name: TopicPartition, state: State) -> None:
        partition = self.of(name)
        last = partition.states[-1] if partition.states else None
        if last is not None and partition.deleted and state.version == 0:
            partition.states.clear()
            partition.deleted = False
        elif last is not None and state.version == 0 < last.version and state.t_us > last.t_us:
            partition.states.clear()  # deleted, and created anew: a trace without transactions
        elif last is not None and state.version <= last.version:
            _know_earlier(partition.states, state)
            return
        state.isr_change = state.by_leader or _is_isr_change(last, state)
        partition.states.append(state)
        for listener in self._listeners:
            listener(partition, state)


def _is_isr_change(last: State | None, state: State) -> bool:
    """The same leadership goes on."""
    return last is not None and state.version > 0 and not elects(last, state)


def elects(before: State, state: State) -> bool:
    """Whether a version has another leader or leader epoch than the one before it."""
    return (before.leader, before.leader_epoch) != (state.leader, state.leader_epoch)


def _know_earlier(states: list[State], again: State) -> None:
    """A version that is known already, from another source: the earlier moment counts."""
    for known in reversed(states):
        if known.version == again.version:
            known.t_us = min(known.t_us, again.t_us)
            known.by_leader = known.by_leader or again.by_leader
            known.isr_change = known.isr_change or again.by_leader
            return
