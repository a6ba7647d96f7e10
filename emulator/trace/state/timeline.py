"""What a trace implies: who knew which state of a partition, from when to when.

Owns the one derivation that lanes, `isr why`, the page and the metrics share: the history of each
state znode, what every metadata cache and the controller's cache held meanwhile, the leader's
attempts to change the ISR, notifications, the controller's terms, and (from these) staleness. It
knows the trace vocabulary and the layout of three znodes; it must know nothing of the core that
produced the trace, and nothing of how any of this is drawn.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import msgspec

from emulator.trace import events as e
from emulator.trace.events import ROLLED_BACK, AnyEvent
from emulator.trace.state.actions import lane_of as stimulus_lane
from emulator.trace.values import LoggedOp, PartitionState, TopicPartition

OPEN = 1 << 62
"""The end of what has not ended yet; replaced by the trace's end."""

_STATE = re.compile(r"/brokers/topics/([^/]+)/partitions/(\d+)/state")
_NOTIFICATION = "/isr_change_notification/"


class Known(msgspec.Struct):
    """Somebody holds this state of a partition during [from_us, to_us): ZooKeeper, a controller, a
    metadata cache.

    `by` is who wrote or sent it; `seq` the event it came with. `seq_to` is the event that ended it
    (-1: the trace's end).
    """

    partition: TopicPartition
    version: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    by: int
    seq: int
    from_us: int
    to_us: int = OPEN
    seq_to: int = -1


K = TypeVar("K", bound=Known)


class StateWrite(Known):
    """One version of a state znode. `by_controller`: its multi was fenced by `/controller_epoch`,
    or (before 2.1) it begins another leadership.
    """

    by_controller: bool = False
    cause: int = -1


class Attempt(msgspec.Struct):
    """One try of a leader to change an ISR, and how it ended (None: the trace ends first, or it
    blocks or is pending for ever); `asked`: the requests to the controller that carried it.
    """

    started: e.IsrUpdateStarted
    ended: e.IsrUpdated | e.IsrUpdateRejected | e.AlterIsrFailed | None = None
    asked: list[e.AlterIsrSent] = []


class Notification(msgspec.Struct):
    """One node below `/isr_change_notification`, from its creation to its deletion."""

    path: str
    by: int
    partitions: tuple[TopicPartition, ...]
    seq: int
    from_us: int
    to_us: int = OPEN
    cleared_by: int = 0
    told: e.IsrChangeNotified | None = None


class Term(msgspec.Struct):
    """`broker` is controller during [from_us, to_us)."""

    broker: int
    epoch: int
    from_us: int
    to_us: int = OPEN


class Stale(msgspec.Struct, frozen=True):
    """A cache shows `version` during [from_us, to_us) while ZooKeeper has others: `missed` lists
    them in order.
    """

    broker: int
    partition: TopicPartition
    version: int
    from_us: int
    to_us: int
    missed: tuple[int, ...]


class Derived(msgspec.Struct):
    """All of it. Lists are in the order of time; intervals of one list never overlap."""

    events: list[AnyEvent]
    origin_us: int
    end_us: int
    brokers: tuple[int, ...]
    partitions: tuple[TopicPartition, ...]
    zookeeper: dict[TopicPartition, list[StateWrite]]
    metadata: dict[tuple[int, TopicPartition], list[Known]]
    controller: dict[TopicPartition, list[Known]]
    attempts: dict[TopicPartition, list[Attempt]]
    notifications: list[Notification]
    terms: list[Term]
    held: dict[int, list[e.IsrChangeHeld]]

    def stale(self, broker: int, partition: TopicPartition) -> list[Stale]:
        """When `broker`'s metadata showed another version than ZooKeeper had; none where it had
        no entry at all.
        """
        held = self.metadata.get((broker, partition), [])
        return [stale for shown in held for stale in self.stale_spans(broker, shown)]

    def stale_spans(self, broker: int, shown: Known) -> list[Stale]:
        """When that one entry of a cache was older than what ZooKeeper had."""
        truth = self.zookeeper.get(shown.partition, [])
        first = max(bisect_right(truth, shown.from_us, key=lambda write: write.from_us) - 1, 0)
        last = bisect_right(truth, shown.to_us, key=lambda write: write.from_us)
        return [_stale(broker, shown, run) for run in _differing(shown, truth[first:last])]

    def truth_at(self, partition: TopicPartition, at_us: int) -> StateWrite | None:
        """What ZooKeeper had at `at_us`; None where there is no znode."""
        return span_at(self.zookeeper.get(partition, []), at_us)

    def shown_at(self, broker: int, partition: TopicPartition, at_us: int) -> Known | None:
        """What the metadata cache of `broker` showed at `at_us`."""
        return span_at(self.metadata.get((broker, partition), []), at_us)

    def controller_at(self, at_us: int) -> int:
        """Who is controller at `at_us` (0: nobody)."""
        return next((term.broker for term in self.terms if term.from_us <= at_us < term.to_us), 0)


def span_at(spans: list[K], at_us: int) -> K | None:
    """The interval in which `at_us` lies."""
    place = bisect_right(spans, at_us, key=lambda span: span.from_us) - 1
    return spans[place] if place >= 0 and at_us < spans[place].to_us else None


def _differing(shown: Known, truth: list[StateWrite]) -> Iterator[list[tuple[int, int, int]]]:
    """Runs of (version, from, to) that ZooKeeper had, without a gap, while `shown` was another
    version.
    """
    run: list[tuple[int, int, int]] = []
    for write in truth:
        start, end = max(write.from_us, shown.from_us), min(write.to_us, shown.to_us)
        if start >= end:
            continue
        if write.version == shown.version or (run and run[-1][2] != start):
            if run:
                yield run
            run = []
        if write.version != shown.version:
            run.append((write.version, start, end))
    if run:
        yield run


def _stale(broker: int, shown: Known, run: list[tuple[int, int, int]]) -> Stale:
    missed = tuple(version for version, _, _ in run)
    return Stale(broker, shown.partition, shown.version, run[0][1], run[-1][2], missed)


# -- one pass over the trace -----------------------------------------------------------------------


def derive(events: Iterable[AnyEvent]) -> Derived:
    """Read a trace once. Events may be given in any order; equal times keep the order of their
    `seq`.
    """
    ordered = sorted(events, key=lambda event: (event.t, event.seq))
    reader = _Reader()
    for event in ordered:
        reader.read(event)
    return reader.finish(ordered)


def notified_partitions(data: str | None) -> tuple[TopicPartition, ...]:
    """The partitions that a notification node names; none when its data is not of that form."""
    try:
        payload = msgspec.json.decode(data or "", type=_NotificationData)
    except msgspec.DecodeError:
        return ()
    return tuple(TopicPartition(p.topic, p.partition) for p in payload.partitions)


class _NamedPartition(msgspec.Struct):
    topic: str
    partition: int


class _NotificationData(msgspec.Struct):
    partitions: list[_NamedPartition]


class _StateData(msgspec.Struct):
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]


def state_partition(path: str | None) -> TopicPartition | None:
    """The partition whose state znode `path` is."""
    match = _STATE.fullmatch(path or "")
    return TopicPartition(match[1], int(match[2])) if match else None


def applied_ops(event: e.ZkTransaction) -> tuple[LoggedOp, ...]:
    """What the transaction changed: a multi's operations (none of one that failed), or the one
    that it is.
    """
    if event.op != "multi":
        one = LoggedOp(event.op, event.path, event.data, event.version, event.ephemeral, event.code)
        return () if event.op == "error" else (one,)
    return () if any(op.op == "error" for op in event.ops) else event.ops


def is_fenced(event: e.ZkTransaction) -> bool:
    """Whether the transaction is a controller's: it checks `/controller_epoch`."""
    return any(op.op == "check" and op.path == "/controller_epoch" for op in event.ops)


class _Reader:
    def __init__(self) -> None:
        self.zookeeper: dict[TopicPartition, list[StateWrite]] = {}
        self.metadata: dict[tuple[int, TopicPartition], list[Known]] = {}
        self.controller: dict[TopicPartition, list[Known]] = {}
        self.attempts: dict[TopicPartition, list[Attempt]] = {}
        self.notifications: list[Notification] = []
        self.terms: list[Term] = []
        self.held: dict[int, list[e.IsrChangeHeld]] = {}
        self.brokers: set[int] = set()
        self.origin_us: int | None = None
        self._pending: dict[str, Notification] = {}
        self._told: dict[str, e.IsrChangeNotified] = {}
        self._read: dict[type[Any], Callable[[Any], None]] = {
            e.ZkTransaction: self._transaction,
            e.MetadataCacheUpdated: self._metadata,
            e.ControllerCacheUpdated: self._controller_cache,
            e.IsrUpdateStarted: self._started,
            e.IsrUpdated: self._ended,
            e.IsrUpdateRejected: self._ended,
            e.AlterIsrSent: self._asked,
            e.AlterIsrFailed: self._failed,
            e.IsrChangeNotified: self._notified,
            e.IsrChangeHeld: lambda event: self.held.setdefault(event.broker, []).append(event),
            e.ControllerElected: self._elected,
            e.ControllerResigned: self._resigned,
            e.BrokerStarting: lambda event: self._forget(str(event.broker), event),
            e.Stimulus: self._stimulus,
        }

    def read(self, event: AnyEvent) -> None:
        if event.broker > 0:
            self.brokers.add(event.broker)
        read = self._read.get(type(event))
        if read is not None:
            read(event)

    def _transaction(self, event: e.ZkTransaction) -> None:
        for op in applied_ops(event):
            partition = state_partition(op.path)
            if partition is not None:
                self._state(event, op, partition)
            elif op.path is not None and op.path.startswith(_NOTIFICATION):
                self._notification(event, op)

    def _state(self, event: e.ZkTransaction, op: LoggedOp, partition: TopicPartition) -> None:
        spans = self.zookeeper.setdefault(partition, [])
        last = _close(spans, event)
        if op.op not in ("create", "setData"):
            return
        before = last.version if last is not None else -1
        version = op.version if op.op == "setData" and op.version is not None else before + 1
        version = 0 if op.op == "create" else version
        write = _state_write(op.data, partition, version, event)
        elected = last is None or last.leader_epoch != write.leader_epoch
        write.by_controller = elected or is_fenced(event)
        spans.append(write)

    def _notification(self, event: e.ZkTransaction, op: LoggedOp) -> None:
        path = op.path or ""
        if op.op == "create":
            named = notified_partitions(op.data)
            node = Notification(path, event.broker, named, event.seq, event.t)
            self._pending[path] = node
            self.notifications.append(node)
        elif op.op == "delete" and path in self._pending:
            node = self._pending.pop(path)
            node.to_us, node.cleared_by = event.t, event.broker

    def _notified(self, event: e.IsrChangeNotified) -> None:
        self._told[event.path] = event

    def _metadata(self, event: e.MetadataCacheUpdated) -> None:
        for partition in event.removed:
            _close(self.metadata.get((event.broker, partition), []), event)
        for state in event.states:
            spans = self.metadata.setdefault((event.broker, state.partition), [])
            _learn(spans, event, state, event.sender)

    def _controller_cache(self, event: e.ControllerCacheUpdated) -> None:
        _learn(self.controller.setdefault(event.partition, []), event, event, event.broker)

    def _started(self, event: e.IsrUpdateStarted) -> None:
        self.attempts.setdefault(event.partition, []).append(Attempt(event))

    def _ended(self, event: e.IsrUpdated | e.IsrUpdateRejected | e.AlterIsrFailed) -> None:
        for attempt in reversed(self.attempts.get(event.partition, [])):
            if attempt.started.broker == event.broker:
                attempt.ended = attempt.ended or event
                return

    def _asked(self, event: e.AlterIsrSent) -> None:
        for partition in event.partitions:
            attempts = self.attempts.get(partition)
            if attempts and attempts[-1].started.broker == event.broker and not attempts[-1].ended:
                attempts[-1].asked.append(event)

    def _failed(self, event: e.AlterIsrFailed) -> None:
        """What stays pending or goes out again is not over."""
        if event.outcome == ROLLED_BACK:
            self._ended(event)

    def _elected(self, event: e.ControllerElected) -> None:
        self._end_term(event)
        self.terms.append(Term(event.broker, event.controller_epoch, event.t))

    def _resigned(self, event: e.ControllerResigned) -> None:
        if self.terms and self.terms[-1].broker == event.broker:
            self._end_term(event)

    def _end_term(self, event: AnyEvent) -> None:
        if self.terms and self.terms[-1].to_us == OPEN:
            self.terms[-1].to_us = event.t
        for spans in self.controller.values():
            _close(spans, event)

    def _stimulus(self, event: e.Stimulus) -> None:
        if event.do == "up" and self.origin_us is None:
            self.origin_us = event.t
        if event.do in ("kill", "crash", "exited"):
            self._forget(stimulus_lane(event), event)

    def _forget(self, broker: str, event: AnyEvent) -> None:
        """A process that ended or starts anew has an empty metadata cache."""
        for (owner, _), spans in self.metadata.items():
            if str(owner) == broker:
                _close(spans, event)

    def finish(self, ordered: list[AnyEvent]) -> Derived:
        end_us = ordered[-1].t + 1 if ordered else 0
        first_us = ordered[0].t if ordered else 0
        for span in self._spans():
            span.to_us = min(span.to_us, end_us)
        for node in self.notifications:
            node.told = self._told.get(node.path)
        return Derived(
            events=ordered,
            origin_us=first_us if self.origin_us is None else self.origin_us,
            end_us=end_us,
            brokers=tuple(sorted(self.brokers)),
            partitions=tuple(sorted(self.zookeeper)),
            zookeeper=self.zookeeper,
            metadata=self.metadata,
            controller=self.controller,
            attempts=self.attempts,
            notifications=self.notifications,
            terms=self.terms,
            held=self.held,
        )

    def _spans(self) -> Iterator[Any]:
        for history in (self.zookeeper, self.metadata, self.controller):
            for spans in history.values():
                yield from spans
        yield from self.notifications
        yield from self.terms


def _close(spans: list[Any], event: AnyEvent) -> Any:
    """End the interval that is open; returns it."""
    if not spans or spans[-1].to_us != OPEN:
        return None
    spans[-1].to_us, spans[-1].seq_to = event.t, event.seq
    return spans[-1]


def _learn(
    spans: list[Known], event: AnyEvent, state: PartitionState | e.ControllerCacheUpdated, by: int
) -> None:
    """A new interval, unless what is learnt is what was known."""
    last = spans[-1] if spans and spans[-1].to_us == OPEN else None
    facts = state.zk_version, state.leader, state.leader_epoch, state.isr
    if last is None or facts != (last.version, last.leader, last.leader_epoch, last.isr):
        _close(spans, event)
        spans.append(Known(state.partition, *facts, by, event.seq, event.t))


def _state_write(
    data: str | None, partition: TopicPartition, version: int, event: e.ZkTransaction
) -> StateWrite:
    """A version of a state znode; one whose data cannot be read has leader -1 and no ISR."""
    try:
        state = msgspec.json.decode(data or "", type=_StateData)
    except msgspec.DecodeError:
        state = _StateData(-1, -1, ())
    facts = state.leader, state.leader_epoch, state.isr, event.broker, event.seq, event.t
    return StateWrite(partition, version, *facts, cause=event.cause)
