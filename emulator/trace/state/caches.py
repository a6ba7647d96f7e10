"""What brokers' metadata caches and the controller's cache hold, and held: which version of a
partition from when to when.

A process that has ended has no cache. Real Kafka does not tell of its controller's cache: where a
trace has no word of it, it is unknown. The history is kept where somebody asks for it (`keeps`);
while schedules are searched nobody does.
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
    """All brokers' metadata caches. `entries`: what each has now (or had when its process ended),
    and the event that put it there."""

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
        """What the process that runs has."""
        lost_seq = self._lost_seq.get(broker, -1)
        entries = self.entries.get(broker, {}).items()
        return {name: state for name, (state, seq) in entries if seq > lost_seq}

    def live_brokers(self, broker: int) -> tuple[int, ...]:
        """The brokers that the process that runs knows of."""
        brokers, seq = self.live.get(broker, ((), -1))
        return brokers if seq > self._lost_seq.get(broker, -1) else ()

    def spans(self, broker: int, name: TopicPartition) -> list[Known]:
        """What the cache of `broker` showed of the partition, in order."""
        return self.history.get(name, {}).get(broker, [])


class Term(msgspec.Struct):
    """`broker` is controller during [from_us, to_us)."""

    broker: int
    epoch: int
    from_us: int
    to_us: int = OPEN


class ControllerCache:
    """Who is controller; `seq`: the event that made it so. `epochs`: all that think they are, one
    that was replaced and does not know it yet among them, with the epoch of each; `caches`: their
    states of partitions. `terms` and `history` are those of all controllers, one after the other.
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
        """The cache of the one elected last, unless it has resigned."""
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
    """A new interval, unless what is learnt is what was known. The same state of a topic that was
    deleted and created again in between is another one."""
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
