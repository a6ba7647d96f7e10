"""What a trace implies: ISR histories, staleness, propagation, logs, records; story by story."""

from __future__ import annotations

from emulator.trace import events as e
from emulator.trace.state import TraceState
from emulator.trace.values import LoggedOp, TopicPartition
from tests.unit.scenario.story import ORDERS, SECOND, Story, observe
from tests.unit.view.recorded import recorded

STATE = "/brokers/topics/orders/partitions/0/state"


def ms(us: int) -> int:
    return us // 1000


def payload(*isr: int, leader: int = 1, epoch: int = 0) -> str:
    members = ",".join(map(str, isr))
    return (
        f'{{"controller_epoch":1,"leader":{leader},"version":1,'
        f'"leader_epoch":{epoch},"isr":[{members}]}}'
    )


def transaction(story: Story, op: str, data: str, version: int | None = None) -> Story:
    return story.tell(e.ZkTransaction, 1, 9, op, STATE, data, version)


# -- partitions ------------------------------------------------------------------------------------


def test_one_version_told_by_two_sources_counts_once_and_from_the_earlier_moment() -> None:
    story = Story().created().at(7.5).written(1, 1, 3)
    story.at(7.4)
    transaction(story, "setData", payload(1, 3), 1)
    states = observe(story).partitions.of(ORDERS).states
    assert [(s.version, ms(s.from_us)) for s in states] == [(0, 0), (1, 7400)]


def test_transactions_alone_tell_the_history_creation_in_a_multi_included() -> None:
    story = Story().at(1)
    ops = (
        LoggedOp("check", "/controller_epoch", version=2),
        LoggedOp("create", STATE, payload(1, 2)),
    )
    story.tell(e.ZkTransaction, 3, 8, "multi", None, None, None, False, ops)
    transaction(story.at(2), "setData", payload(1), 1)
    partition = observe(story).partitions.of(ORDERS)
    assert partition.isr_history == [(1, 2), (1,)]
    assert [s.by_leader for s in partition.states] == [False, True]


def test_a_write_that_failed_and_one_with_garbage_are_no_states() -> None:
    story = Story().created().at(1)
    story.tell(e.ZkTransaction, 1, 9, "setData", STATE, payload(1), 1, False, (), -103)
    transaction(story, "setData", "garbage", 2)
    assert len(observe(story).partitions.of(ORDERS).states) == 1


def test_a_topic_deleted_and_created_anew_begins_again() -> None:
    story = Story().created().at(1).written(1, 1, 3).at(9).created(1, 2)
    assert observe(story).partitions.of(ORDERS).isr_history == [(1, 2)]


def test_an_old_read_that_a_new_controller_reports_late_does_not_move_a_partition_back() -> None:
    """A controller that takes over reads all partitions, and caches them when it has the last."""
    story = Story().at(1)
    transaction(story, "create", payload(1, 2, 3))
    transaction(story.at(2), "setData", payload(1, 3), 1)
    partition = observe(story.at(3).created(1, 2, 3)).partitions.of(ORDERS)
    assert partition.isr_history == [(1, 2, 3), (1, 3)]
    assert partition.now is not None
    assert partition.now.version == 1


# -- metadata --------------------------------------------------------------------------------------


def test_propagation_is_measured_per_broker_from_the_write() -> None:
    story = Story().created().at(7).written(1, 1, 3)
    story.at(12).shown(1, 1, 3, at_brokers=(1, 3)).at(13).shown(1, 1, 3, at_brokers=(2,))
    propagation = observe(story).propagation
    assert sorted(map(ms, propagation.written_us)) == [5000, 5000, 6000]
    assert (propagation.never_shown, propagation.not_yet_shown) == (0, 0)


def test_a_version_that_a_later_one_overtook_was_never_shown() -> None:
    story = Story().created().at(7).written(1, 1, 3).at(8).written(2, 1, 3, 2, change="expand")
    story.at(14).shown(2, 1, 3, 2, at_brokers=(1, 2))
    propagation = observe(story).propagation
    assert sorted(map(ms, propagation.written_us)) == [6000, 6000]
    assert propagation.never_shown == 2
    assert propagation.not_yet_shown == 2


def test_an_isr_change_that_the_controller_wrote_is_one_and_an_election_is_none() -> None:
    story = Story().created().at(7)
    for version, epoch, isr in ((1, 0, (1, 3)), (2, 1, (1, 2, 3))):
        ops = (LoggedOp("setData", STATE, payload(*isr, epoch=epoch), version),)
        story.tell(e.ZkTransaction, 3, 8 + version, "multi", None, None, None, False, ops)
        story.at(7 + version).shown(version, *isr)
    observed = observe(story)
    states = observed.partitions.of(ORDERS).states
    assert [(s.by_leader, s.isr_change) for s in states[1:]] == [(False, True), (False, False)]
    assert list(map(ms, observed.propagation.written_us)) == [1000, 1000, 1000]


def test_staleness_lasts_from_the_first_write_missed_to_the_newest_shown() -> None:
    story = Story().created().at(7).written(1, 1, 3).at(8).written(2, 1, 3, 2, change="expand")
    story.at(10).shown(1, 1, 3, at_brokers=(1,)).at(14).shown(2, 1, 3, 2, at_brokers=(1,))
    staleness = observe(story, end=20).staleness
    assert ms(staleness.longest_us(ORDERS, 1)) == 7000
    assert ms(staleness.longest_us(ORDERS, 2)) == 13000
    assert ms(staleness.longest_of_all_us) == 13000


def test_metadata_that_moves_back_is_stale_from_then_on() -> None:
    story = Story().created().at(7).written(1, 1, 3).shown(1, 1, 3).at(9).shown(0, 1, 2, 3)
    assert ms(observe(story, end=10).staleness.longest_us(ORDERS, 1)) == 1000


def test_what_was_stale_before_a_process_started_anew_still_counts_and_nothing_after_it() -> None:
    story = Story().created().at(7).written(1, 1, 3).at(8)
    for broker in (1, 2, 3):
        story.tell(e.BrokerStarting, broker, "2.6")
    staleness = observe(story, end=10).staleness
    assert ms(staleness.longest_of_all_us) == 1000
    assert ms(staleness.sum_of_all_us) == 3000


# -- gauges ----------------------------------------------------------------------------------------


def test_time_below_min_isr_is_summed_over_partitions() -> None:
    story = Story().action("create_topic", topic="orders", config={"min.insync.replicas": "2"})
    story.created().on(1).created()
    story.on(0).at(5).written(1, 1)
    story.on(1).at(6).written(1, 1)
    story.on(0).at(8).written(2, 1, 2, change="expand")
    times = observe(story, end=10).gauges
    assert ms(times.under_min_isr_us(10 * SECOND)) == 3000 + 4000
    assert (times.under_min_isr, times.under_min_isr_max) == (1, 2)
    assert (times.under_replicated, times.under_replicated_max) == (2, 2)
    assert times.at_min_isr == 1


def test_min_isr_altered_while_it_runs_counts_from_then() -> None:
    story = Story().created(1, 2).at(4)
    story.action("topic_config", topic="orders", config={"min.insync.replicas": "3"})
    assert ms(observe(story, end=10).gauges.under_min_isr_us(10 * SECOND)) == 6000


# -- logs and records ------------------------------------------------------------------------------


def test_a_followers_log_is_its_leaders_piece_by_piece() -> None:
    story = Story().created().at(1).appended(1, 0, 5).appended(2, 0, 3).appended(2, 3, 5)
    logs = observe(story).logs
    assert logs.of(ORDERS, 2).pieces == logs.of(ORDERS, 1).pieces
    assert logs.of(ORDERS, 2).leo == 5


def elected(story: Story, leader: int, epoch: int, leo: int, version: int) -> Story:
    """The controller makes `leader` lead, and it does."""
    isr = tuple(b for b in (1, 2, 3) if b != 1 or leader == 1)
    facts = story.partition, leader, epoch, isr, version, "election"
    story.tell(e.ControllerCacheUpdated, 3, *facts)
    return story.tell(e.BecomesLeader, leader, story.partition, epoch, leo, leo)


def leads(story: Story, broker: int, base: int, leo: int) -> Story:
    facts = story.partition, "leader", base, leo, 1, 100
    return story.tell(e.RecordsAppended, broker, *facts)


def test_what_acks_1_promised_and_the_next_leader_lacks_is_lost_but_breaks_no_promise() -> None:
    story = Story().created().at(1).appended(1, 0, 10).appended(2, 0, 8).produced(0, 10, acks="1")
    leads(elected(story.at(5), 2, 1, 8, 1), 2, 8, 20)
    records = observe(story).records
    assert (records.lost(acks="1"), records.lost()) == (2, 0)
    assert records.acknowledged["orders"] == 10


def test_what_acks_all_promised_and_the_next_leader_has_is_not_lost() -> None:
    story = Story().created().at(1).appended(1, 0, 10).appended(2, 0, 10).produced(0, 10)
    leads(elected(story.at(5), 2, 1, 10, 1), 2, 10, 20).produced(10, 10)
    story.tell(e.BecomesFollower, 1, ORDERS, 2, 1, 10, 10).appended_by(1, 10, 20)
    records = observe(story).records
    assert records.lost() == 0
    assert records.promised("orders") == 20


def test_fetchers_lag_behind_the_high_watermark_when_they_append() -> None:
    story = Story().created().at(1).appended(1, 0, 100).hw(1, 60, 100).appended(2, 0, 50)
    fetches = observe(story).fetches
    assert fetches.lag[2, ORDERS] == 10
    story.at(2).appended(2, 50, 100)
    assert observe(story).fetches.lag[2, ORDERS] == 0
    assert observe(story).fetches.lag_max == 10


def test_the_slowest_fetcher_sets_the_rate() -> None:
    story = Story().created()
    for i in range(11):
        story.at(i).fetched(2, i)
    story.at(0).fetched(3, 0)
    assert observe(story).fetches.min_rate(10 * SECOND) == 0.1


# -- all of it over a recording of real Kafka ------------------------------------------------------


def test_a_recording_of_real_kafka_implies_what_its_readme_says() -> None:
    observed = TraceState((1, 2, 3))
    for event in recorded("flapping"):
        observed(event)
    assert observed.counts.notifications == 2
    assert observed.counts.isr_changes == 38
    assert 50 < observed.staleness.longest_of_all_us / SECOND < 60
    assert observed.records.acknowledged["orders"] == 4894
    assert min(observed.propagation.versions_shown(TopicPartition("orders", 0)) - {0}) > 24
