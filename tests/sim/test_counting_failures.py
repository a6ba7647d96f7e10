"""How many failures an acknowledged record survives: n + 1 in-sync replicas tolerate n clean
crashes (a majority protocol needs 2n + 1), and one more crash can lose it.

A crash is clean if it leaves the disk unchanged. Lost records are counted as in a run's summary:
acknowledged with acks=all, and not in the log of the partition's leader.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.testing.cluster import SETTINGS, Cluster, scenario_of
from emulator.trace import events as e
from emulator.trace.state import TraceState

CONTROLLER = 9
SETTLED_MS = 5_000
SMALLEST = ("kill 2", "send", "kill 1", "start 2")
UNCLEAN = {"unclean.leader.election.enable": "true"}
CLEAN = {"unclean.leader.election.enable": "false"}


def made(replicas: int, seed: int, config: dict[str, str]) -> Cluster:
    """orders-0 on brokers 1, 2 …, the controller on a broker without replicas."""
    brokers = range(1, replicas + 1)
    scenario = scenario_of(CONTROLLER, *brokers, settings={**SETTINGS, **config})
    return Cluster(scenario, seed).topic("orders", tuple(brokers))


def lost(cluster: Cluster) -> int:
    """Records that were acknowledged with acks=all and are not there."""
    observed = TraceState(cluster.brokers, {})
    for event in cluster.events:
        observed(event)
    return observed.records.lost()


def acknowledged(cluster: Cluster) -> int:
    return sum(one.count for one in cluster.seen(e.RecordsProduced, result="ok"))


@st.composite
def crashes(draw: st.DrawFn) -> tuple[int, list[tuple[int, str]]]:
    """n + 1 replicas, and what is done when: n of them are killed, in any order, and between those
    crashes (or at the same moment) a client writes."""
    n = draw(st.integers(1, 3))
    dying = draw(st.permutations(range(1, n + 2)))[:n]
    moments = st.integers(0, 6_000)
    done = [(draw(moments), f"kill {broker}") for broker in dying]
    done += [(at, "send") for at in draw(st.lists(moments, min_size=1, max_size=6))]
    return n + 1, sorted(done)


def survives(replicas: int, done: Sequence[tuple[int, str]], seed: int, unclean: bool) -> None:
    with made(replicas, seed, UNCLEAN if unclean else CLEAN) as cluster:
        cluster.send(1, acks="all").run_ms(500)
        for before, (at, what) in pairwise([(0, ""), *done]):
            cluster.run_ms(at - before[0])
            cluster.send(1, acks="all") if what == "send" else cluster.do(what)
        told = len(cluster.seen(e.RecordsProduced))
        cluster.run_ms(SETTLED_MS).send(1, acks="all")
        cluster.until(lambda: len(cluster.seen(e.RecordsProduced)) > told, what="an answer")
        cluster.run_ms(SETTLED_MS)
        assert acknowledged(cluster) >= 2
        assert cluster.seen(e.RecordsProduced)[-1].result == "ok"
        assert lost(cluster) == 0
        assert cluster.monitor.violations == []


@settings(max_examples=6, derandomize=True, deadline=None)
@given(crashes(), st.integers(0, 1 << 32), st.booleans())
def test_n_clean_crashes_of_n_plus_1_replicas_lose_nothing(
    drawn: tuple[int, list[tuple[int, str]]], seed: int, unclean: bool
) -> None:
    """Whatever the order and the moments; and the one that is left takes records."""
    survives(*drawn, seed, unclean)


@pytest.mark.soak
@settings(max_examples=300, deadline=None)
@given(crashes(), st.integers(0, 1 << 32), st.booleans())
def test_n_clean_crashes_of_n_plus_1_replicas_lose_nothing_at_length(
    drawn: tuple[int, list[tuple[int, str]]], seed: int, unclean: bool
) -> None:
    survives(*drawn, seed, unclean)


def lost_by(schedule: Sequence[str], config: dict[str, str], seed: int = 1) -> list[int]:
    """Two replicas, n = 1; how many records are lost after each step of the schedule."""
    with made(2, seed, config) as cluster:
        found = []
        for step in schedule:
            cluster.send(1, acks="all") if step == "send" else cluster.do(step)
            cluster.run_ms(SETTLED_MS)
            found.append(lost(cluster))
        return found


def test_one_crash_more_loses_what_only_the_last_replica_had() -> None:
    """The follower dies, a record is acknowledged by the leader alone (the ISR is [1]), the leader
    dies too: two crashes of two replicas. The first to come back has not got the record; let it
    lead, and what was acknowledged is gone."""
    assert lost_by(SMALLEST, UNCLEAN) == [0, 0, 0, 1]


@pytest.mark.parametrize("without", range(len(SMALLEST)))
def test_no_step_of_it_can_be_left_out(without: int) -> None:
    shorter = [step for place, step in enumerate(SMALLEST) if place != without]
    if "kill 2" not in shorter:
        shorter.remove("start 2")
    assert set(lost_by(shorter, UNCLEAN)) == {0}


def test_it_loses_nothing_where_only_in_sync_replicas_may_lead() -> None:
    """The partition has no leader then, until broker 1 is back."""
    assert lost_by((*SMALLEST, "start 1"), CLEAN) == [0, 0, 0, 0, 0]


def schedules(length: int) -> list[tuple[str, ...]]:
    """All sequences of actions on two brokers with this many steps, including clients."""
    found: list[tuple[tuple[str, ...], frozenset[int]]] = [((), frozenset({1, 2}))]
    for _ in range(length):
        longer = []
        for done, alive in found:
            longer.append(((*done, "send"), alive))
            for broker in (1, 2):
                verb = "kill" if broker in alive else "start"
                longer.append(((*done, f"{verb} {broker}"), alive ^ {broker}))
        found = longer
    return [done for done, _ in found]


@pytest.mark.soak
def test_no_shorter_schedule_loses_anything() -> None:
    """All of four steps, looked at after each: nothing of three loses, and of four only those in
    which a record is acknowledged by one replica alone and the other one comes back first."""
    losing = []
    for schedule in schedules(len(SMALLEST)):
        after = lost_by(schedule, UNCLEAN)
        assert after[:-1] == [0, 0, 0]
        losing += [schedule] if after[-1] else []
    assert losing == [("kill 1", "send", "kill 2", "start 1"), SMALLEST]
