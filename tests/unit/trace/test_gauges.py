"""Gauges as Kafka counts them, and water levels weighted by time."""

from __future__ import annotations

import msgspec

from emulator.trace import events as e
from tests.unit.scenario.story import ORDERS, SECOND, Story, observe


def assigned(story: Story, replicas: tuple[int, ...], adding: tuple[int, ...]) -> Story:
    state = story.state(0, 2, 1)
    state = msgspec.structs.replace(state, replicas=replicas, adding_replicas=adding)
    return story.tell(e.LeaderAndIsr, 1, 3, 1, state)


def controller_writes(story: Story, version: int, leader: int, *isr: int) -> Story:
    facts = ORDERS, leader, version, isr, version, "election"
    return story.tell(e.ControllerCacheUpdated, 3, *facts)


def test_replicas_that_a_reassignment_adds_are_not_missed() -> None:
    story = assigned(Story().created(2, 1), (2, 1, 3), adding=(3,))
    assert observe(story).gauges.under_replicated == 0
    assigned(story, (2, 1, 3), adding=())
    assert observe(story).gauges.under_replicated == 1


def test_a_partition_without_a_leader_is_offline_and_in_no_gauge_of_leaders() -> None:
    story = controller_writes(Story().created().at(5), 1, -1, 1)
    gauges = observe(story, **{"min.insync.replicas": "2"}).gauges
    assert (gauges.offline, gauges.under_replicated, gauges.under_min_isr) == (1, 0, 0)
    gauges = observe(story, **{"min.insync.replicas": "1"}).gauges
    assert gauges.at_min_isr == 0


def test_a_topic_whose_deletion_has_begun_is_not_offline() -> None:
    story = controller_writes(Story().created().at(5), 1, -1, 1)
    story.tell(e.ZkTransaction, 0, 9, "create", "/admin/delete_topics/orders", "")
    assert observe(story).gauges.offline == 0


def test_while_nothing_moves_the_leader_lags_all_the_same() -> None:
    story = Story().created().at(1).appended(1, 0, 10).at(26).hw(1, 10, 10).at(30).fetched(2, 10)
    levels = observe(story).water_levels
    assert levels.stalls(ORDERS, 30 * SECOND) == [(1 * SECOND, 26 * SECOND)]
    assert levels.behind_us(ORDERS, 30 * SECOND) == 25 * SECOND
    assert [lag.records for lag in levels.hw_lags(ORDERS, 30 * SECOND)] == [0, 10, 0]


def test_what_a_trace_does_not_tell_of_a_log_is_unknown() -> None:
    story = Story().tell(e.BecomesFollower, 2, ORDERS, 1, 0, -1, -1)
    assert observe(story, end=9).water_levels.at(ORDERS, 2, 5 * SECOND) is None
