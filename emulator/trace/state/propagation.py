"""Propagation of ISR changes to the leader, the controller and the brokers' metadata.

Combines attempts, partition states, the controller's cache, metadata caches and process states. A
broker knows a change once it has that version or a later one. There are two measures:

- `decided`: from the leader's decision, no matter who writes it. Brokers that were paused or down
  in that time are not counted: the fault caused their delay.
- `written`: from the write of the state znode to each broker's metadata; exactly that version. A
  version that a later one superseded was *never shown* there.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from emulator.trace import events as e
from emulator.trace.state.caches import ControllerCache, MetadataCaches
from emulator.trace.state.isr_updates import Attempt, IsrUpdates
from emulator.trace.state.partitions import Partitions, State
from emulator.trace.state.processes import Processes
from emulator.trace.state.spans import OPEN, Known, place_before
from emulator.trace.state.staleness import is_older
from emulator.trace.values import TopicPartition


class Arrival(msgspec.Struct):
    """When one broker's metadata reached a version: the entry `before`, and the first one that is
    at least as new (None: not yet, or `is_lost`: the process or the topic ended first)."""

    broker: int
    before: Known
    known: Known | None
    is_lost: bool = False


class Decided(msgspec.Struct):
    """One applied change: the time from the decision until its leader, the controller and brokers'
    metadata knew it, in microseconds (None: not yet). `awaits`: brokers that do not know it yet."""

    attempt: Attempt
    leader_us: int
    controller_us: int | None
    metadata_us: dict[int, int]
    awaits: list[int]


class Propagation:
    """All changes of all partitions so far."""

    def __init__(
        self,
        partitions: Partitions,
        metadata: MetadataCaches,
        controller: ControllerCache,
        updates: IsrUpdates,
        processes: Processes,
    ) -> None:
        self._partitions, self._metadata, self._controller = partitions, metadata, controller
        self._updates, self._processes = updates, processes

    # -- from the write ----------------------------------------------------------------------------

    def arrivals(self, state: State) -> list[Arrival]:
        """One arrival for each broker that had an older version when this one was written."""
        arrivals = []
        for broker, spans in sorted(self._metadata.history.get(state.partition, {}).items()):
            place = place_before(spans, state.from_us, state.seq)
            if place < 0 or (
                spans[place].to_us <= state.from_us and spans[place].seq_to < state.seq
            ):
                continue
            before = spans[place]
            if is_older(before, state):
                arrivals.append(_arrival(broker, spans, place, state))
        return arrivals

    def first_known(self, broker: int, state: State) -> Known | None:
        """The first metadata entry that is at least as new as this version, in the broker's process
        that had an older one or in a later process."""
        return first_known(self._metadata.spans(broker, state.partition), state)

    @property
    def _isr_changes(self) -> Iterator[State]:
        for _, partition in sorted(self._partitions.all.items()):
            yield from (state for state in partition.history if state.isr_change)

    @property
    def written_us(self) -> list[int]:
        """Times from the write of each ISR change to its arrival in each broker's metadata, for
        brokers that showed exactly that version."""
        return [
            one.known.from_us - state.from_us
            for state in self._isr_changes
            for one in self.arrivals(state)
            if one.known is not None and one.known.version == state.version
        ]

    @property
    def never_shown(self) -> int:
        """The number of ISR changes, counted per broker, that a later version superseded before
        they arrived."""
        return sum(
            one.known is not None and one.known.version != state.version
            for state in self._isr_changes
            for one in self.arrivals(state)
        )

    @property
    def not_yet_shown(self) -> int:
        """The number of ISR changes, counted per broker, that have not yet arrived."""
        return sum(
            one.known is None and not one.is_lost
            for state in self._isr_changes
            for one in self.arrivals(state)
        )

    def versions_shown(self, name: TopicPartition) -> set[int]:
        """Versions that any broker's metadata has had."""
        histories = self._metadata.history.get(name, {}).values()
        return {known.version for spans in histories for known in spans}

    # -- from the decision -------------------------------------------------------------------------

    @property
    def decided(self) -> list[Decided]:
        """Every ISR change that took effect."""
        return [
            self._decided(attempt, attempt.ended)
            for _, attempts in sorted(self._updates.attempts.items())
            for attempt in attempts
            if isinstance(attempt.ended, e.IsrUpdated) and not attempt.is_void
        ]

    def _decided(self, attempt: Attempt, ended: e.IsrUpdated) -> Decided:
        started, version = attempt.started, attempt.started.zk_version + 1
        decided = Decided(attempt, ended.t - started.t, None, {}, [])
        for known in self._controller.history.get(started.partition, ()):
            if known.version >= version and (known.from_us, known.seq) > (started.t, started.seq):
                decided.controller_us = known.from_us - started.t
                break
        for broker, spans in sorted(self._metadata.history.get(started.partition, {}).items()):
            start = place = place_before(spans, started.t, started.seq)
            if start < 0 or spans[start].to_us <= started.t:
                continue
            while _is_replaced(spans, place) and (place == start or spans[place].version < version):
                place += 1
            last = spans[place]
            is_known = place > start and last.version >= version
            if not self._processes.is_undisturbed(
                broker, started.t, last.from_us if is_known else last.to_us
            ):
                continue
            if is_known:
                decided.metadata_us[broker] = last.from_us - started.t
            elif last.to_us == OPEN and not self._is_forgotten(decided):
                decided.awaits.append(broker)
        return decided

    @property
    def leader_us(self) -> list[int]:
        """Times from the decision until the leader has the new ISR."""
        return [change.leader_us for change in self.decided]

    @property
    def controller_us(self) -> list[int]:
        """Times from the decision until the controller's cache has it."""
        return [one.controller_us for one in self.decided if one.controller_us is not None]

    @property
    def metadata_us(self) -> list[int]:
        """Times from the decision until each broker's metadata has it."""
        return [us for change in self.decided for us in change.metadata_us.values()]

    @property
    def unknown_changes(self) -> int:
        """Applied changes that the controller or some broker's metadata does not know yet."""
        return sum(
            bool(one.awaits) or (one.controller_us is None and not self._is_forgotten(one))
            for one in self.decided
        )

    def _is_forgotten(self, change: Decided) -> bool:
        started = change.attempt.started
        return self._updates.forgotten.get(started.partition, -1) > started.seq


def first_known(spans: list[Known], state: State) -> Known | None:
    """The first interval after the write that is at least as new as the version."""
    later = (one for one in spans if one.from_us >= state.from_us and not is_older(one, state))
    return next(later, None)


def _is_replaced(spans: list[Known], place: int) -> bool:
    """Whether the next entry directly replaced this one in the same cache."""
    return place + 1 < len(spans) and spans[place].seq_to == spans[place + 1].seq


def _arrival(broker: int, spans: list[Known], place: int, state: State) -> Arrival:
    before = spans[place]
    while _is_replaced(spans, place):
        place += 1
        if not is_older(spans[place], state):
            return Arrival(broker, before, spans[place])
    return Arrival(broker, before, None, is_lost=spans[place].to_us != OPEN)
