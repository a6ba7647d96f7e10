"""Hand-written traces: a short story of one topic, event by event, checked against one
expectation."""

from __future__ import annotations

from typing import Any

import msgspec

from emulator.scenario.expectations.base import Finding, Judge, parse
from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.reader import with_process_states
from emulator.trace.state import TraceState
from emulator.trace.values import Lagging, Offset, Parameters, PartitionState, TopicPartition

ORDERS = TopicPartition("orders", 0)
SECOND = 1_000_000
REPLICAS = (1, 2, 3)


class Story:
    """Events in order; times in seconds since the cluster was up."""

    def __init__(self, partition: TopicPartition = ORDERS) -> None:
        self.events: list[AnyEvent] = []
        self.partition = partition
        self.t = 0.0

    def at(self, seconds: float) -> Story:
        """The following events happen then."""
        self.t = seconds
        return self

    def on(self, partition: int) -> Story:
        """The following events concern this partition."""
        self.partition = TopicPartition(self.partition.topic, partition)
        return self

    def tell(self, kind: type[Any], broker: int, *fields: Any, thread: str = "t") -> Story:
        event = kind(len(self.events), round(self.t * SECOND), broker, thread, -1, *fields)
        self.events.append(event)
        return self

    # -- what happens ------------------------------------------------------------------------------

    def action(self, do: str, **arguments: Any) -> Story:
        return self.tell(e.ActionApplied, 0, do, msgspec.convert(arguments, Parameters))

    def created(self, *isr: int) -> Story:
        """The controller (3) created the partition; every broker knows it; 1 leads."""
        isr = isr or REPLICAS
        self.tell(e.ControllerCacheUpdated, 3, self.partition, isr[0], 0, isr, 0, "creation")
        for broker in isr:
            self.tell(e.LeaderAndIsr, broker, 3, 1, self.state(0, *isr))
        self.tell(e.BecomesLeader, isr[0], self.partition, 0, 0, 0)
        for broker in isr[1:]:
            self.tell(e.BecomesFollower, broker, self.partition, isr[0], 0, 0, 0)
        return self.shown(0, *isr)

    def state(self, version: int, *isr: int) -> PartitionState:
        return PartitionState(self.partition, 1, 1, 0, isr, version, REPLICAS)

    def written(self, version: int, *isr: int, change: str = "shrink") -> Story:
        return self.tell(e.IsrUpdated, 1, self.partition, change, isr, version, 0)

    def shown(self, version: int, *isr: int, at_brokers: tuple[int, ...] = REPLICAS) -> Story:
        for broker in at_brokers:
            states = (self.state(version, *isr),)
            self.tell(e.MetadataCacheUpdated, broker, 3, 1, REPLICAS, states)
        return self

    def notified(self) -> Story:
        path = "/isr_change_notification/isr_change_0000000000"
        return self.tell(e.IsrChangeNotified, 1, path, (self.partition,), 5001, 0)

    def appended(self, broker: int, base: int, leo: int, epoch: int = 0) -> Story:
        role = "leader" if broker == 1 else "follower"
        return self.tell(e.RecordsAppended, broker, self.partition, role, base, leo, epoch, 100)

    def appended_by(self, follower: int, base: int, leo: int) -> Story:
        """A follower's append, whatever broker led before."""
        facts = (self.partition, "follower", base, leo, 0, 100)
        return self.tell(e.RecordsAppended, follower, *facts)

    def fetched(self, broker: int, offset: int, leader: int = 1) -> Story:
        offsets = (Offset(self.partition, offset),)
        return self.tell(e.FetchSent, broker, leader, offsets, 1, thread=f"fetcher-{broker}")

    def hw(self, broker: int, hw: int, leo: int) -> Story:
        role = "leader" if broker == 1 else "follower"
        return self.tell(e.HwAdvanced, broker, self.partition, role, hw, leo)

    def shrinks(self, *leaving: int, after_ms: int) -> Story:
        late = tuple(Lagging(replica, 0, after_ms) for replica in leaving)
        left = tuple(r for r in REPLICAS if r not in leaving)
        facts = (self.partition, "shrink", REPLICAS, left, 0, 9, 0, 0, late)
        return self.tell(e.IsrUpdateStarted, 1, *facts)

    def produced(self, base: int, count: int, acks: str = "all", result: str = "ok") -> Story:
        facts = ("p", self.partition, acks, result, base, count, 0)
        return self.tell(e.RecordsProduced, 0, *facts)


def observe(story: Story, *, end: float | None = None, **settings: str) -> TraceState:
    """The story as it is read event by event; the last thing happens at `end`."""
    observed = TraceState((), {"min.insync.replicas": "1", **settings})
    if end is not None:
        story.at(end).tell(e.BrokerChange, 3, (), (), (), REPLICAS)
    for event in with_process_states(story.events):
        observed(event)
    return observed


def judged(text: str, story: Story, *, end: float | None = None) -> Finding:
    """One expectation's finding for the story."""
    observed = TraceState(())
    judge = Judge([parse(text)], observed)
    if end is not None:
        story.at(end).tell(e.BrokerChange, 3, (), (), (), REPLICAS)
    for event in story.events:
        observed(event)
        judge(event)
    return judge.findings()[0][1]
