"""Hazards of real Kafka found by a search, and how close a shrunk schedule is to the shortest one.

Each scope has some milliseconds around two simultaneous events, without the cure; whether an
invariant is violated depends on which message is slow. Breadth-first search finds a shortest
schedule.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from emulator.scenario.load import loads
from emulator.scenario.version import VersionOptions
from emulator.search.schedules.schedule import Schedule, schedule_of
from emulator.search.schedules.search import ExploreTally, SearchOptions, as_schedule, search
from emulator.search.schedules.shrink import Shrinking
from emulator.search.schedules.warm_cluster import WarmCluster

AFTER_US = 300_000
"""With 100 ms, the violation that two choices cause came too late to be seen."""


class Hazard(NamedTuple):
    """`cure`: the guard that is off; `shortest`: the minimum number of choices for a violation."""

    cure: str
    breaks: str
    shortest: int
    faults: str
    others: str = ""
    drawn: int = 60
    steps: int = 40
    lengths: int = 3
    """Of `drawn` schedules by chance at least so many fail that have different lengths."""

    def scope(self, state: str = "off") -> Schedule:
        text = SCENARIO.format(guards=f"{{{self.others}}}", faults=self.faults)
        scenario = loads(text, "scope", chosen=VersionOptions(guards=(f"{self.cure}={state}",)))
        return schedule_of(scenario, 1, begins="3998ms", steps=self.steps)


SCENARIO = """\
guards: {guards}
cluster:
  brokers: 3
  first: 3
  config: {{replica.lag.time.max.ms: 10000, zookeeper.session.timeout.ms: 6000,
            auto.leader.rebalance.enable: false}}
topics: {{orders: {{partitions: [[1, 2]]}}}}
faults: [{faults}]
run: 8s
"""
DIES = "{at: 3s, kill: 2}, {at: 4s, expire_session: 2}"
HAZARDS = [
    Hazard(
        "fenced-controller-writes",
        "state has one writer",
        1,
        f"{DIES}, {{at: 4010ms, delete_controller: }}",
    ),
    Hazard(
        "atomic-election",
        "the controller is not fenced",
        2,
        "{at: 4s, delete_controller: }, {at: 4017ms, delete_controller: }",
        "fenced-controller-writes: off",
        drawn=600,
        steps=80,
        lengths=2,  # an election takes milliseconds: chance seldom hits it
    ),
]
NAMES = [f"{one.cure}-{one.shortest}" for one in HAZARDS]


def found(scope: Schedule, how: SearchOptions) -> tuple[WarmCluster, ExploreTally]:
    warm, tally = WarmCluster(scope), ExploreTally()
    for _ in search(warm, how, tally):
        pass
    return warm, tally


@pytest.mark.slow
@pytest.mark.parametrize("hazard", HAZARDS, ids=NAMES)
def test_the_shrunk_schedule_is_at_most_half_longer_than_the_shortest(hazard: Hazard) -> None:
    """Breadth first ends with the first that fails, a shortest one; chance finds long ones."""
    every = SearchOptions(strategy="exhaustive", schedules=2_000, then_us=AFTER_US)
    _, shortest = found(hazard.scope(), every)
    assert {one.invariant for one in shortest.failing[0].broken} == {hazard.breaks}
    least = shortest.failing[0].length
    assert least == hazard.shortest
    drawn = SearchOptions(strategy="pct", schedules=hazard.drawn, then_us=AFTER_US, keep_going=True)
    warm, some = found(hazard.scope(), drawn)
    failing = {one.length: one for one in some.failing}
    assert len(failing) >= hazard.lengths
    longest = max(failing)  # the hardest to shrink
    small = Shrinking(as_schedule(warm, failing[longest])).smallest()
    assert longest > small.length
    assert small.length <= 1.5 * least, (longest, small.length, least)


@pytest.mark.slow
@pytest.mark.parametrize("hazard", HAZARDS, ids=NAMES)
def test_with_its_cure_no_choice_breaks_anything(hazard: Hazard) -> None:
    drawn = SearchOptions(strategy="pct", schedules=150, then_us=AFTER_US)
    _, some = found(hazard.scope("on"), drawn)
    assert some.failing == []
    assert some.schedules == 150
    assert some.seen["BadVersion seen"] > 3
