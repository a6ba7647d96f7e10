"""The contents and the history of the brokers' metadata caches and of the controller's cache.

A process that has ended has no cache. Real Kafka does not log its controller's cache: without such
events its content is unknown. The history is kept only with `processes`; searches over schedules do
without.
"""

from __future__ import annotations

import msgspec

from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.state.partitions import Partitions
from emulator.trace.state.processes import Processes
from emulator.trace.state.spans import OPEN, Known, close
from emulator.trace.values import PartitionState, TopicPartition


class MetadataCaches:
    """All brokers' metadata caches. `entries`: each cache's current content (or its last, if the
    process ended), with the event that set it."""

    def __init__(self, partitions: Partitions, processes: Processes | None = None) -> None:
        """Without `processes` no history is kept."""
        self._partitions = partitions
        self.started: dict[int, int] = {}
        self.entries: dict[int, dict[TopicPartition, tuple[PartitionState, int]]] = {}
        self.live: dict[int, tuple[tuple[int, ...], int]] = {}
        self.history: dict[TopicPartition, dict[int, list[Known]]] = {}
        self._lost_seq: dict[int, int] = {}
        self._keeps = processes is not None
        if processes is not None:
            processes.listen_to_losses(self._lose)

    def on_broker_starting(self, event: e.BrokerStarting) -> None:
        self.started[event.broker] = event.seq
        self.entries[event.broker] = {}
        self.live[event.broker] = (), -1

    def on_metadata_cache_updated(self, event: e.MetadataCacheUpdated) -> None:
        cache = self.entries.setdefault(event.broker, {})
        for state in event.states:
            cache[state.partition] = state, event.seq
        for name in event.removed:
            cache.pop(name, None)
        self.live[event.broker] = event.live_brokers, event.seq
        if not self._keeps:
            return
        for name in event.removed:
            close(self.spans(event.broker, name), event)
        for state in event.states:
            spans = self.history.setdefault(state.partition, {}).setdefault(event.broker, [])
            _learn(spans, event, state, event.sender, self._partitions)

    def _lose(self, event: e.ProcessStateChanged) -> None:
        self._lost_seq[event.broker] = event.seq
        for brokers in self.history.values():
            close(brokers.get(event.broker, []), event)

    def shown(self, broker: int) -> dict[TopicPartition, PartitionState]:
        """The cache of the running process."""
        lost_seq = self._lost_seq.get(broker, -1)
        entries = self.entries.get(broker, {}).items()
        return {name: state for name, (state, seq) in entries if seq > lost_seq}

    def live_brokers(self, broker: int) -> tuple[int, ...]:
        """The live brokers in the cache of the running process."""
        brokers, seq = self.live.get(broker, ((), -1))
        return brokers if seq > self._lost_seq.get(broker, -1) else ()

    def spans(self, broker: int, name: TopicPartition) -> list[Known]:
        """The history of the partition in the cache of `broker`, in order."""
        return self.history.get(name, {}).get(broker, [])


class Term(msgspec.Struct):
    """`broker` is controller during [from_us, to_us)."""

    broker: int
    epoch: int
    from_us: int
    to_us: int = OPEN


class ControllerCache:
    """The active controller; `seq` is its election. `epochs`: every broker that believes it is the
    controller, with its epoch, including a replaced one that does not know it yet. `caches`: their
    partition states. `terms` and `history` cover all controllers in turn.
    """

    def __init__(self, partitions: Partitions, processes: Processes | None = None) -> None:
        self._partitions = partitions
        self.broker, self.seq = 0, -1
        self.epochs: dict[int, int] = {}
        self.caches: dict[int, dict[TopicPartition, e.ControllerCacheUpdated]] = {}
        self.terms: list[Term] = []
        self.history: dict[TopicPartition, list[Known]] = {}
        if processes is not None:
            processes.listen_to_losses(lambda event: self.epochs.pop(event.broker, None))

    @property
    def states(self) -> dict[TopicPartition, e.ControllerCacheUpdated]:
        """The cache of the most recently elected controller, unless it has resigned."""
        return self.caches.get(self.broker, {})

    def on_controller_elected(self, event: e.ControllerElected) -> None:
        self._end_term(event)
        self.broker, self.seq = event.broker, event.seq
        self.epochs[event.broker] = event.controller_epoch
        self.caches[event.broker] = {}
        self.terms.append(Term(event.broker, event.controller_epoch, event.t))

    def on_controller_resigned(self, event: e.ControllerResigned) -> None:
        self.epochs.pop(event.broker, None)
        self.caches.pop(event.broker, None)
        if event.broker == self.broker:
            self._end_term(event)
            self.broker, self.seq = 0, event.seq

    def _end_term(self, event: AnyEvent) -> None:
        if self.terms and self.terms[-1].to_us == OPEN:
            self.terms[-1].to_us = event.t
        for spans in self.history.values():
            close(spans, event)

    def on_controller_cache_updated(self, event: e.ControllerCacheUpdated) -> None:
        self.caches.setdefault(event.broker, {})[event.partition] = event
        spans = self.history.setdefault(event.partition, [])
        _learn(spans, event, event, event.broker, self._partitions)


def _learn(
    spans: list[Known],
    event: AnyEvent,
    state: PartitionState | e.ControllerCacheUpdated,
    by: int,
    partitions: Partitions,
) -> None:
    """Begin a new interval if the state differs from the last one. The same state of a topic that
    was deleted and recreated in between counts as different."""
    last = spans[-1] if spans and spans[-1].to_us == OPEN else None
    facts = state.zk_version, state.leader, state.leader_epoch, state.isr
    partition = partitions.all.get(state.partition)
    znode = None if partition is None else partition.now
    if (
        last is None
        or facts != (last.version, last.leader, last.leader_epoch, last.isr)
        or (znode is not None and last.from_us < znode.created_us)
    ):
        close(spans, event)
        spans.append(Known(state.partition, *facts, by, event.seq, event.t))
