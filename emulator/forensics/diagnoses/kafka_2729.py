"""A leader that ZooKeeper has overtaken, and that rejects its own ISR updates.

Owns this pattern: rejections in a row by one broker for one partition, until it learns the
current state. Its decision, and ZooKeeper's version beside the cached one, are all it looks at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from emulator.forensics.diagnoses.base import Diagnosed, Diagnosis
from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.handlers import Dispatch
from emulator.trace.state.partitions import Partitions
from emulator.trace.values import TopicPartition


class _Case(msgspec.Struct):
    """One broker's rejections of one partition, one after the other."""

    first: e.IsrUpdateRejected
    last: e.IsrUpdateRejected
    count: int
    version: int
    leader: int
    expired: bool


class StuckLeader(Diagnosis):
    """The leader lost its session, or was paused; meanwhile another broker wrote the state. It
    was not notified: its cached version makes ZooKeeper refuse its own writes, and it goes on
    serving (Partition.scala "Cached zkVersion ... skip updating ISR")."""

    cure = (
        "restart the broker, or elect another controller (delete /controller): it sends every"
        " leader its current state; fixed step by step up to 2.7, where the controller writes"
    )

    def cases(self, events: Sequence[AnyEvent]) -> Iterator[Diagnosed]:
        partitions = Partitions()
        learn = Dispatch([partitions])
        open_cases: dict[tuple[int, TopicPartition], _Case] = {}
        expired: set[int] = set()
        for event in events:
            learn(event)
            match event:
                case e.ZkSessionState(state="Expired"):
                    expired.add(event.broker)
                case e.IsrUpdateRejected():
                    state = partitions.of(event.partition).now
                    version, leader = (state.version, state.leader) if state else (-1, -1)
                    case = open_cases.setdefault(
                        (event.broker, event.partition),
                        _Case(event, event, 0, version, leader, event.broker in expired),
                    )
                    case.last, case.count = event, case.count + 1
                    case.version, case.leader = version, leader
                case e.BecomesLeader() | e.BecomesFollower() | e.IsrUpdated():
                    ended = open_cases.pop((event.broker, event.partition), None)
                    if ended is not None:
                        yield self._diagnosed(ended, event)
                case e.BrokerStarting():
                    expired.discard(event.broker)
                    for key in [key for key in open_cases if key[0] == event.broker]:
                        yield self._diagnosed(open_cases.pop(key), event)
        for case in open_cases.values():
            yield self._diagnosed(case, None)

    def _diagnosed(self, case: _Case, end: AnyEvent | None) -> Diagnosed:
        first = case.first
        has = "another" if case.version < 0 else str(case.version)
        seen = (
            f"broker {first.broker} rejected {case.count} ISR update{'s'[: case.count > 1]} of"
            f" {first.partition}: its cached version is {first.cached_zk_version}, ZooKeeper has"
            f" {has}"
        )
        if case.leader not in (-1, first.broker):
            seen += f" and leader {case.leader}"
        if case.expired:
            seen += "; its session had expired before"
        match end:
            case None:
                ended = "it never learned the current state"
            case e.BrokerStarting():
                ended = "it was restarted"
            case e.BecomesLeader() | e.BecomesFollower():
                ended = "a LeaderAndIsr brought the current state"
            case _:
                ended = "its next update was written"
        return Diagnosed(
            name=self.name,
            broker=first.broker,
            partitions=(first.partition,),
            from_us=first.t,
            to_us=None if end is None else end.t,
            seen=seen,
            ended=ended,
            cure=self.cure,
            facts=(first.seq, case.last.seq),
        )
