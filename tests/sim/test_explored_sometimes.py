"""A search of a whole cluster exercises the races of the *sometimes* list, which otherwise are only
recognised in hand-written traces."""

from __future__ import annotations

import pytest

from emulator.scenario.load import loads
from emulator.scenario.version import VersionOptions
from emulator.search.schedules.schedule import schedule_of
from emulator.search.schedules.search import ExploreTally, SearchOptions, search
from emulator.search.schedules.warm_cluster import WarmCluster, read_injection

TWO_LEADERS = """\
cluster:
  brokers: 3
  first: 3
  config: {replica.lag.time.max.ms: 2000, zookeeper.session.timeout.ms: 6000}
topics: {orders: {partitions: [[1, 2, 3]]}, bills: {partitions: [[2, 1, 3]]}}
workload:
  - {produce: orders, rate: 20, from: 1s, until: 12s}
  - {produce: bills, rate: 20, from: 1s, until: 12s}
faults: [{at: 3s, cut_link: {broker: 1, peer: 2}, for: 14s}]
run: 20s
"""
SEARCHES = {
    "writes": (
        "2.6",
        "4s",
        ("drop_connection 1 after setData", "kill 3", "delete_controller"),
        {"BadVersion seen", "reply lost after apply", "controller moved", "ISR changed"},
    ),
    "notifications": (
        "2.6",
        "9900ms",
        ("pause 3 for 3s", "kill 3"),
        {
            "two notifications coalesced",
            "a watch fired before the list was processed",
            "controller moved with notifications outstanding",
        },
    ),
    "alter-isr": (
        "2.7",
        "4s",
        ("kill 3", "break_connection 1 3 after AlterIsr"),
        {"AlterIsr retried", "leader changed", "control request refused"},
    ),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_runs_each_of_these_races(name: str) -> None:
    profile, begins, menu, wanted = SEARCHES[name]
    scenario = loads(TWO_LEADERS, "two-leaders", chosen=VersionOptions(profile))
    schedule = schedule_of(scenario, 1, begins=begins, steps=60)
    injections = tuple(read_injection(one, schedule) for one in menu)
    tally = ExploreTally()
    asked = SearchOptions(schedules=24, menu=injections, faults_max=2, keep_going=True)
    for _ in search(WarmCluster(schedule), asked, tally):
        if wanted <= set(tally.seen):
            break
    assert wanted <= set(tally.seen)
    assert tally.failing == []
