"""A follower's fetcher: truncate, fetch, back off, leave out who is throttled (spec §5, §3.5)."""

from __future__ import annotations

import pytest

from emulator.kafka.broker.replica_manager import initial_fetch_state
from emulator.kafka.model.errors import Errors
from emulator.kafka.model.offset_log import Batch, DivergingEpoch
from emulator.kafka.protocol.messages import (
    EpochEndOffset,
    FetchedPartition,
    FetchRequest,
    FetchResponse,
    ListOffsetsResponse,
    LiveBroker,
    OffsetsForLeaderEpochResponse,
)
from emulator.trace import events
from emulator.trace.values import TopicPartition
from tests.interaction.hosting import (
    LIVE,
    ORDERS_0,
    ORDERS_1,
    Hosting,
    leader_and_isr,
    state_of,
    update_metadata,
)
from tests.interaction.playbook import Incoming, after_ms, answers, breaks

ASKS_EPOCH = "to 2: OffsetsForLeaderEpochRequest"
SESSION, NO_SESSION = 33, 0


def following(*others: TopicPartition, **settings: object) -> Hosting:
    """Broker 1 follows broker 2 with empty logs; its first fetch is on its way."""
    play = Hosting(**settings)
    states = [state_of(partition, leader=2) for partition in (ORDERS_0, *others)]
    play >> leader_and_isr(*states)
    play.forget()
    return play


def fetched(
    partition: TopicPartition = ORDERS_0,
    *records: int,
    hw: int = 0,
    epoch: int = 4,
    error: Errors = Errors.NONE,
    start: int = 0,
    diverging: tuple[int, int] | None = None,
) -> FetchedPartition:
    """One partition of an answer, with a batch of 100 bytes for each of these offsets."""
    batches = tuple(Batch(offset, offset + 1, 100, epoch) for offset in records)
    end = None if diverging is None else DivergingEpoch(*diverging)
    return FetchedPartition(partition, error, hw, start, batches, end)


def answered(*partitions: FetchedPartition, session: int = SESSION) -> Incoming:
    """The leader answers the fetch that is on its way."""
    return answers(2, FetchResponse(Errors.NONE, session, partitions))


def ended(*found: tuple[TopicPartition, int, int], error: Errors = Errors.NONE) -> Incoming:
    """The leader says where epochs ended."""
    return answers(
        2,
        OffsetsForLeaderEpochResponse(
            tuple(EpochEndOffset(p, error, epoch, end) for p, epoch, end in found)
        ),
    )


def log_of(play: Hosting, partition: TopicPartition = ORDERS_0) -> tuple[int, int]:
    """(log end offset, high watermark)."""
    log = play.hosted(partition).log
    assert log is not None
    return log.log_end_offset, log.high_watermark


# -- the loop --------------------------------------------------------------------------------------


def test_a_follower_learns_the_high_watermark_one_fetch_after_it_has_the_records() -> None:
    with following() as play:
        (
            play
            >> answered(fetched(ORDERS_0, 0, 1, hw=0))
            << "to 2: Fetch orders-0@2"
            >> answered(fetched(ORDERS_0, hw=2))
            << "hw 2"
            << "to 2: Fetch nothing new"
        )


def test_the_high_watermark_is_set_not_maximised_and_never_beyond_the_own_log() -> None:
    with following() as play:
        (
            play
            >> answered(fetched(ORDERS_0, 0, 1, 2, hw=9))
            << "hw 3"
            << "to 2: Fetch orders-0@3"
            >> answered(fetched(ORDERS_0, hw=1))
            << "hw 1"
            << "to 2: Fetch nothing new"
        )


def test_partitions_that_got_records_go_to_the_end_of_the_order() -> None:
    other = TopicPartition("orders", 2)
    with following(ORDERS_1, other) as play:
        play >> answered(fetched(ORDERS_0, 0), fetched(ORDERS_1), fetched(other))
        assert play.said.popleft() == "to 2: Fetch orders-0@1"
        thread = play.fetchers.threads[2, 0]
        assert list(thread.partitions) == [ORDERS_1, other, ORDERS_0]
        play >> answered(fetched(ORDERS_1, 0))
        play.forget()
        assert list(thread.partitions) == [other, ORDERS_0, ORDERS_1]


@pytest.mark.parametrize(("port", "started"), [(9093, [3, 2]), (9097, [2, 3])])
def test_which_of_two_threads_starts_first_depends_on_their_leaders_ports(
    port: int, started: list[int]
) -> None:
    third = LiveBroker(3, "host-3", port)
    with Hosting() as play:
        play >> update_metadata(live=(*LIVE[:2], third)) << "UpdateMetadata: done"
        play >> leader_and_isr(state_of(ORDERS_0, leader=2), state_of(ORDERS_1, leader=3))
        play.forget()
        assert [leader for leader, _ in play.fetchers.threads] == started


def test_a_session_names_only_what_changed() -> None:
    with following(ORDERS_1) as play:
        play >> answered(fetched(ORDERS_0, 0), fetched(ORDERS_1, 0))
        play << "to 2: Fetch orders-0@1 orders-1@1"
        play >> answered(fetched(ORDERS_1, 1)) << "to 2: Fetch orders-1@2"
        play >> answered() << "to 2: Fetch nothing new"


def test_without_a_session_every_fetch_is_full() -> None:
    with following(ORDERS_1) as play:
        play >> answered(fetched(ORDERS_0, 0), session=0) << "to 2: Fetch orders-1@0 orders-0@1"
        play >> answered(session=0) << "to 2: Fetch orders-1@0 orders-0@1"


def test_a_refused_session_begins_anew_and_its_answer_is_ignored() -> None:
    with following() as play:
        play >> answered(fetched(ORDERS_0, 0)) << "to 2: Fetch orders-0@1"
        refused = FetchResponse(Errors.FETCH_SESSION_ID_NOT_FOUND, 0, ())
        play >> answers(2, refused) << "to 2: Fetch orders-0@1"


def test_a_broken_connection_closes_the_session_with_the_next_request() -> None:
    """FetchSessionHandler.java@2.6.3 handleError: the session's id with epoch 0."""
    with following() as play:
        play >> answered(fetched(ORDERS_0, 0)) << "to 2: Fetch orders-0@1" >> breaks(2)
        play >> after_ms(1000) << "orders-0 delayed: DISCONNECTED"
        play >> after_ms(1000) << "to 2: Fetch orders-0@1"
        *_, (_, before), (_, after) = play.network.sent
        assert isinstance(before, FetchRequest) and isinstance(after, FetchRequest)
        assert (before.session_id, before.session_epoch) == (SESSION, 1)
        assert (after.session_id, after.session_epoch) == (SESSION, 0)


def test_an_answer_is_used_only_if_the_partition_is_still_where_it_was_asked_for() -> None:
    with following() as play:
        play.fetchers.threads[2, 0].partitions.set_fetch_offset(ORDERS_0, 7)
        play >> answered(fetched(ORDERS_0, 0)) << "to 2: Fetch orders-0@7"
        assert log_of(play) == (0, 0)


# -- truncation ------------------------------------------------------------------------------------


def test_a_log_without_epochs_is_cut_to_the_high_watermark_and_fetching_begins() -> None:
    with Hosting() as play:
        (
            play
            >> leader_and_isr(state_of(leader=2))
            << "follows 2 for orders-0 in epoch 4"
            << "LeaderAndIsr: NONE NONE"
            << "to 2: Fetch orders-0@0"
        )


def starting(profile: str = "2.6", **takes_ms: int) -> Hosting:
    """A broker whose new fetcher threads take this long between steps."""

    play = Hosting(profile=profile)
    play.take(**takes_ms)
    play >> leader_and_isr(state_of(leader=2)) << "follows 2 for orders-0 in epoch 4"
    return play


NEW_ROLES = {
    "roles_taken": 1,
    "roles_taken.late": 2,
    "leaders_taken.late": 3,
    "followers_taken.late": 5,
}


@pytest.mark.parametrize(("profile", "follows_ms", "leads_ms"), [("2.4", 1, 1), ("2.6", 8, 6)])
def test_leader_and_isr_is_answered_when_all_that_hangs_on_new_roles_is_done(
    profile: str, follows_ms: int, leads_ms: int
) -> None:
    """Up to 2.4 the log line about a role comes after most of it."""
    with starting(profile, **NEW_ROLES) as play:
        play << "to 2: Fetch orders-0@0" >> after_ms(follows_ms) << "LeaderAndIsr: NONE NONE"
        play.forget()
        play >> leader_and_isr(state_of(epoch=5, isr=(1,))) << "leads orders-0 in epoch 5"
        play >> after_ms(leads_ms) << "LeaderAndIsr: NONE NONE"


def test_a_role_is_taken_some_time_after_the_request_for_it_came() -> None:
    with Hosting() as play:
        play.take(make_follower=5, make_leader=9)
        play >> leader_and_isr(state_of(leader=2)) >> after_ms(4) >> after_ms(1)
        play << "follows 2 for orders-0 in epoch 4" << "LeaderAndIsr: NONE NONE"
        play.forget()
        play >> leader_and_isr(state_of(epoch=5, isr=(1,))) >> after_ms(8) >> after_ms(1)
        play << "leads orders-0 in epoch 5" << "LeaderAndIsr: NONE NONE"


def test_up_to_2_4_the_line_about_a_follower_comes_later() -> None:
    for profile in ("2.4", "2.6"):
        with Hosting(profile=profile) as play:
            play.take(**{"followers_taken.early": 4})
            play >> leader_and_isr(state_of(leader=2))
            if profile == "2.4":
                play >> after_ms(3) >> after_ms(1)
            play << "follows 2 for orders-0 in epoch 4" << "LeaderAndIsr: NONE NONE"
            play.forget()


def test_what_changes_no_role_is_answered_at_once() -> None:
    with starting() as play:
        play.take(**NEW_ROLES)
        play.forget()
        play >> leader_and_isr(state_of(leader=2)) << "ignored: STALE_CONTROLLER_EPOCH"
        play << "LeaderAndIsr: NONE STALE_CONTROLLER_EPOCH"


def test_a_partition_that_is_added_before_its_thread_looks_is_fetched_at_once() -> None:
    with starting(fetcher_add=1, fetcher_start=2, fetcher_look=2) as play:
        (
            play
            >> after_ms(1)
            << "LeaderAndIsr: NONE NONE"
            >> after_ms(2)
            >> after_ms(1)
            << "to 2: Fetch orders-0@0"
        )


def test_a_thread_that_has_found_nothing_to_fetch_is_woken_by_what_is_added() -> None:
    with starting(fetcher_add=5, fetcher_start=2, fetcher_look=2) as play:
        play >> after_ms(5) << "LeaderAndIsr: NONE NONE" << "to 2: Fetch orders-0@0"


def test_a_partition_that_is_added_between_the_two_looks_waits_for_a_whole_back_off() -> None:
    """Recorded, after about a dozen of some 65 first starts: the thread has looked for what to
    truncate, finds nothing ready to be fetched, and is not signalled again."""
    with starting(fetcher_add=3, fetcher_start=2, fetcher_look=2) as play:
        (
            play
            >> after_ms(3)
            << "LeaderAndIsr: NONE NONE"
            >> after_ms(1000)
            >> after_ms(1)
            << "to 2: Fetch orders-0@0"
        )


def test_up_to_0_10_there_is_nothing_between_the_two_looks() -> None:
    with starting("0.10.2", fetcher_add=3, fetcher_start=2, fetcher_look=2) as play:
        play >> after_ms(3) << "LeaderAndIsr: NONE NONE" << "to 2: Fetch orders-0@0"


def test_a_thread_that_is_stopped_before_its_first_request_sends_none() -> None:
    with starting(fetcher_connect=10) as play:
        (
            play
            << "LeaderAndIsr: NONE NONE"
            >> after_ms(5)
            >> leader_and_isr(state_of(epoch=5, isr=(1,)))
            << "leads orders-0 in epoch 5"
            >> after_ms(5)
            << "LeaderAndIsr: NONE NONE"
        )


def grown(play: Hosting, *lengths: tuple[int, int]) -> None:
    """The own log has records of these (epoch, up to offset); none of them committed."""
    log = play.hosted().log
    assert log is not None
    for epoch, end in lengths:
        log.append_as_leader(end - log.log_end_offset, 100, epoch)


def told_to_follow(*lengths: tuple[int, int], epoch: int = 9) -> Hosting:
    """A follower with a log of these epochs learns of a new epoch; it requests the end of its last
    one."""
    play = Hosting(state_of(leader=-1, epoch=0))
    grown(play, *lengths)
    (
        play
        >> leader_and_isr(state_of(leader=2, epoch=epoch))
        << f"follows 2 for orders-0 in epoch {epoch}"
        << "LeaderAndIsr: NONE NONE"
        << ASKS_EPOCH
    )
    return play


def test_a_log_that_agrees_is_kept_whole() -> None:
    with told_to_follow((4, 10)) as play:
        play >> ended((ORDERS_0, 4, 12)) << "to 2: Fetch orders-0@10"


def test_a_log_that_is_longer_than_the_leaders_epoch_is_cut_there() -> None:
    with told_to_follow((4, 10)) as play:
        (play >> ended((ORDERS_0, 4, 7)) << "orders-0 truncated to 7" << "to 2: Fetch orders-0@7")


def test_an_epoch_that_the_leader_never_had_is_cut_and_the_one_before_asked_for() -> None:
    """KIP-279. Between the two questions lies a back-off: there is nothing to fetch."""
    with told_to_follow((3, 5), (4, 8), (6, 10)) as play:
        (
            play
            >> ended((ORDERS_0, 5, 9))
            << "orders-0 truncated to 8"
            >> after_ms(1000)
            << ASKS_EPOCH
            >> ended((ORDERS_0, 4, 6))
            << "orders-0 truncated to 6"
            << "to 2: Fetch orders-0@6"
        )


def test_a_leader_that_knows_no_epoch_sends_the_follower_to_its_high_watermark() -> None:
    with told_to_follow((4, 10)) as play:
        (play >> ended((ORDERS_0, -1, -1)) << "orders-0 truncated to 0" << "to 2: Fetch orders-0@0")


def test_an_answer_about_an_epoch_that_is_not_mine_any_more_is_dropped() -> None:
    """KAFKA-7786."""
    with told_to_follow((4, 10)) as play:
        play.fetchers.threads[2, 0].partitions[ORDERS_0].current_leader_epoch = 10
        play >> ended((ORDERS_0, 4, 3)) >> after_ms(1000) << ASKS_EPOCH
        assert log_of(play) == (10, 0)


def test_every_epoch_truncates_anew_even_with_the_same_leader() -> None:
    """KAFKA-7164 and 2.1: H24."""
    with following() as play:
        (
            play
            >> answered(fetched(ORDERS_0, 0, 1))
            << "to 2: Fetch orders-0@2"
            >> leader_and_isr(state_of(leader=2, epoch=5))
            << "follows 2 for orders-0 in epoch 5"
            << "LeaderAndIsr: NONE NONE"
            >> answered()
            << ASKS_EPOCH
            >> ended((ORDERS_0, 4, 1))
            << "orders-0 truncated to 1"
            << "to 2: Fetch orders-0@1"
        )


def test_truncation_below_the_high_watermark_takes_the_high_watermark_along() -> None:
    with following() as play:
        (
            play
            >> answered(fetched(ORDERS_0, 0, 1, 2, hw=3))
            << "hw 3"
            << "to 2: Fetch orders-0@3"
            >> leader_and_isr(state_of(leader=2, epoch=5))
            << "follows 2 for orders-0 in epoch 5"
            << "LeaderAndIsr: NONE NONE"
            >> answered()
            << ASKS_EPOCH
            >> ended((ORDERS_0, 4, 1))
            << "orders-0 truncated to 1"
            << "to 2: Fetch orders-0@1"
        )
        assert log_of(play) == (1, 1)


def test_an_unreachable_leader_delays_the_truncation() -> None:
    with told_to_follow((4, 10)) as play:
        (
            play
            >> breaks(2)
            << "orders-0 delayed: UNKNOWN_SERVER_ERROR"
            >> after_ms(999)
            >> after_ms(1)
            << ASKS_EPOCH
        )


# -- errors and delays -----------------------------------------------------------------------------


def test_a_broken_connection_costs_a_back_off_and_then_another_one_for_every_partition() -> None:
    with following(ORDERS_1) as play:
        (
            play
            >> breaks(2)
            >> after_ms(999)
            >> after_ms(1)
            << "orders-0 delayed: DISCONNECTED"
            << "orders-1 delayed: DISCONNECTED"
            >> after_ms(999)
            >> after_ms(1)
            << "to 2: Fetch orders-0@0 orders-1@0"
        )


def test_a_partition_with_an_error_comes_after_all_others() -> None:
    """handlePartitionsWithErrors, when the response has been processed."""
    orders_2 = TopicPartition("orders", 2)
    with following(ORDERS_1, orders_2) as play:
        moved = fetched(ORDERS_0, error=Errors.NOT_LEADER_OR_FOLLOWER)
        play >> answered(moved, fetched(ORDERS_1, 0), fetched(orders_2, 0))
        assert list(play.fetchers.threads[2, 0].partitions) == [ORDERS_1, orders_2, ORDERS_0]
        play.forget()


def test_a_leader_that_is_behind_or_does_not_lead_delays_that_partition_only() -> None:
    unknown, moved = Errors.UNKNOWN_LEADER_EPOCH, Errors.NOT_LEADER_OR_FOLLOWER
    with following(ORDERS_1) as play:
        (
            play
            >> answered(fetched(ORDERS_0, error=unknown), fetched(ORDERS_1, 0))
            << "orders-0 delayed: UNKNOWN_LEADER_EPOCH"
            << "to 2: Fetch orders-1@1 -orders-0"
            >> answered(fetched(ORDERS_1, error=moved))
            << "orders-1 delayed: NOT_LEADER_OR_FOLLOWER"
            << "to 2: Fetch nothing new -orders-1"
            >> answered(session=NO_SESSION)
            >> after_ms(999)
            >> after_ms(1)
            << "to 2: Fetch orders-0@0 orders-1@1"
        )


def test_who_is_fenced_fails_until_the_next_leader_and_isr() -> None:
    with following() as play:
        (
            play
            >> answered(fetched(ORDERS_0, error=Errors.FENCED_LEADER_EPOCH))
            << "orders-0 marked as failed: FENCED_LEADER_EPOCH"
            << "to 2: Fetch nothing new -orders-0"
            >> answered(session=NO_SESSION)
            >> after_ms(60_000)
        )
        assert list(play.fetchers.failed_partitions) == [ORDERS_0]
        (
            play
            >> leader_and_isr(state_of(leader=2, epoch=5))
            << "follows 2 for orders-0 in epoch 5"
            << "LeaderAndIsr: NONE NONE"
            << "to 2: Fetch orders-0@0"
        )
        assert not play.fetchers.failed_partitions


def test_out_of_range_below_the_leaders_end_cuts_to_it() -> None:
    with following() as play:
        (
            play
            >> answered(fetched(ORDERS_0, 0, 1, 2))
            << "to 2: Fetch orders-0@3"
            >> answered(fetched(ORDERS_0, error=Errors.OFFSET_OUT_OF_RANGE))
            << "to 2: ListOffsetsRequest"
            >> answers(2, ListOffsetsResponse(Errors.NONE, 1))
            << "orders-0 truncated to 1"
            << "to 2: Fetch orders-0@1"
        )


def test_out_of_range_before_the_leaders_beginning_starts_there_anew() -> None:
    with following() as play:
        (
            play
            >> answered(fetched(ORDERS_0, error=Errors.OFFSET_OUT_OF_RANGE))
            << "to 2: ListOffsetsRequest"
            >> answers(2, ListOffsetsResponse(Errors.NONE, 50))
            << "to 2: ListOffsetsRequest"
            >> answers(2, ListOffsetsResponse(Errors.NONE, 20))
            << "orders-0 starts at 20: full truncation"
            << "to 2: Fetch orders-0@20"
        )
        assert log_of(play) == (20, 20)


def out_of_range(play: Hosting) -> Hosting:
    """The follower has three records, and asks where the leader's log ends."""
    play >> answered(fetched(ORDERS_0, 0, 1, 2)) << "to 2: Fetch orders-0@3"
    play >> answered(fetched(ORDERS_0, error=Errors.OFFSET_OUT_OF_RANGE))
    play << "to 2: ListOffsetsRequest"
    return play


def test_a_follower_that_is_fenced_while_it_asks_for_the_leaders_end_fails() -> None:
    """AbstractFetcherThreadTest.testFencedOffsetResetAfterOutOfRange@2.6.3."""
    with out_of_range(following()) as play:
        play >> answers(2, ListOffsetsResponse(Errors.FENCED_LEADER_EPOCH, -1))
        play << "orders-0 marked as failed: FENCED_LEADER_EPOCH"
        play << "to 2: Fetch nothing new -orders-0"
        assert list(play.fetchers.failed_partitions) == [ORDERS_0]


def test_a_disk_that_fails_while_a_log_is_cut_to_the_leaders_end_delays_the_partition() -> None:
    """handleOutOfRangeError catches it before the partition is marked as failed."""
    with out_of_range(following()) as play:
        play.disk.directories[0].failed = True
        play >> answers(2, ListOffsetsResponse(Errors.NONE, 1))
        play << "orders-0 delayed: OFFSET_OUT_OF_RANGE"
        assert not play.fetchers.failed_partitions
        play.forget()


@pytest.mark.parametrize(("end", "start", "lag"), [(1, None, 0), (50, 20, 30), (50, 0, 47)])
def test_the_lag_after_out_of_range_is_known(end: int, start: int | None, lag: int) -> None:
    """AbstractFetcherThread.scala@2.6.3 fetchOffsetAndTruncate: who is behind may be throttled."""
    with out_of_range(following()) as play:
        play >> answers(2, ListOffsetsResponse(Errors.NONE, end))
        if start is not None:
            (
                play
                << "to 2: ListOffsetsRequest"
                >> answers(2, ListOffsetsResponse(Errors.NONE, start))
            )
        assert play.fetchers.threads[2, 0].partitions[ORDERS_0].lag == lag
        play.forget()


def test_a_leader_that_cannot_say_its_offsets_delays_the_partition() -> None:
    with following() as play:
        (
            play
            >> answered(fetched(ORDERS_0, error=Errors.OFFSET_OUT_OF_RANGE))
            << "to 2: ListOffsetsRequest"
            >> answers(2, ListOffsetsResponse(Errors.NOT_LEADER_OR_FOLLOWER, -1))
            << "orders-0 delayed: OFFSET_OUT_OF_RANGE"
            << "to 2: Fetch nothing new -orders-0"
        )


# -- throttling ------------------------------------------------------------------------------------


def throttled() -> Hosting:
    """orders-0 and orders-1 are followed at 100 bytes per second, more than used up."""
    play = following(ORDERS_1)
    play.follower_quota.mark_throttled("orders", "*")
    play.follower_quota.bytes_per_s = 100
    play.follower_quota.record(2000, play.kernel.now_ms())
    return play


def test_a_throttled_partition_that_is_out_of_sync_is_left_out_and_one_in_sync_never() -> None:
    with throttled() as play:
        (
            play
            >> answered(fetched(ORDERS_0, 0, hw=1), fetched(ORDERS_1, 0, hw=5))
            << "hw 1"
            << "hw 1"
            << "to 2: Fetch orders-0@1 -orders-1"
        )


def test_when_the_rate_has_fallen_it_is_fetched_again() -> None:
    with throttled() as play:
        play >> answered(fetched(ORDERS_0, 0, hw=5), fetched(ORDERS_1, 0, hw=5)) << "hw 1" << "hw 1"
        play << "to 2: Fetch nothing new -orders-0 -orders-1" >> answered(session=NO_SESSION)
        play >> after_ms(9_000)
        waited = 9_000
        while not play.said:
            play >> after_ms(500)
            waited += 500
        play << "to 2: Fetch orders-0@1 orders-1@1"
        assert waited >= 10_000, "the windows of the rate have to run out first"


def test_at_exactly_the_quota_nobody_is_left_out() -> None:
    with following() as play:
        play.follower_quota.mark_throttled("orders", "*")
        play.follower_quota.bytes_per_s = 1000
        play.follower_quota.record(900, play.kernel.now_ms())
        play >> answered(fetched(ORDERS_0, 0, hw=5)) << "hw 1" << "to 2: Fetch orders-0@1"


# -- threads ---------------------------------------------------------------------------------------


def test_a_thread_without_partitions_ends_with_the_next_leader_and_isr() -> None:
    with following() as play:
        (
            play
            >> leader_and_isr(state_of(epoch=5, isr=(1,)))
            << "leads orders-0 in epoch 5"
            << "LeaderAndIsr: NONE NONE"
        )
        assert not play.fetchers.threads
        stopped = [e for e in play.sink.events if isinstance(e, events.FetcherStopped)]
        assert [(e.leader, e.fetcher_id) for e in stopped] == [(2, 0)]


def test_a_leader_that_moved_to_another_address_gets_a_new_thread() -> None:
    moved = (LiveBroker(1, "host-1", 9091), LiveBroker(2, "elsewhere", 9092))
    with following() as play:
        before = play.fetchers.threads[2, 0]
        (
            play
            >> update_metadata(live=moved)
            << "UpdateMetadata: done"
            >> leader_and_isr(state_of(leader=2, epoch=5))
            << "follows 2 for orders-0 in epoch 5"
            << "LeaderAndIsr: NONE NONE"
            << "to 2: Fetch orders-0@0"
        )
        assert play.fetchers.threads[2, 0] is not before


def test_one_thread_per_leader_and_fetcher_number() -> None:
    with Hosting(num_replica_fetchers=4) as play:
        states = [
            state_of(TopicPartition("orders", n), leader=2 + n % 2, isr=(2, 3)) for n in range(8)
        ]
        play >> leader_and_isr(*states)
        play.forget()
        numbers = {
            leader: sorted(n for of, n in play.fetchers.threads if of == leader)
            for leader in (2, 3)
        }
        assert {leader: len(found) for leader, found in numbers.items()} == {2: 2, 3: 2}
        assert sorted(numbers[2] + numbers[3]) == [0, 1, 2, 3]


def test_a_partition_in_the_same_epoch_goes_on_where_it_is() -> None:
    with following(ORDERS_1) as play:
        thread = play.fetchers.threads[2, 0]
        play >> answered(fetched(ORDERS_0, 0, 1), fetched(ORDERS_1, 0))
        play.forget()
        play.run(
            play.fetchers.add_fetcher_for_partitions(
                {ORDERS_0: initial_fetch_state(play.hosted(), play.metadata_cache.alive_broker)}
            )
        )
        state = thread.partitions[ORDERS_0]
        assert (state.fetch_offset, state.truncating) == (2, False)
        assert list(thread.partitions) == [ORDERS_1, ORDERS_0]
        play.forget()


def test_a_partition_in_another_epoch_truncates_before_it_goes_on() -> None:
    with following(ORDERS_1) as play:
        play >> answered(fetched(ORDERS_0, 0, 1), fetched(ORDERS_1, 0))
        play.forget()
        initial = initial_fetch_state(play.hosted(), play.metadata_cache.alive_broker)
        initial = initial._replace(current_leader_epoch=5)
        play.run(play.fetchers.add_fetcher_for_partitions({ORDERS_0: initial}))
        state = play.fetchers.threads[2, 0].partitions[ORDERS_0]
        assert (state.fetch_offset, state.current_leader_epoch, state.truncating) == (0, 5, True)


def test_stopping_a_fetcher_whose_leader_is_silent_blocks_the_handler_for_a_back_off() -> None:
    """Recorded (§4.3): the thread finds its connection closed, and nothing to fetch."""
    with told_to_follow((4, 10)) as play:
        (
            play
            >> leader_and_isr(state_of(epoch=10, isr=(1,)))
            << "leads orders-0 in epoch 10"
            << "hw 10"
            >> update_metadata()
            >> after_ms(999)
            >> after_ms(1)
            << "LeaderAndIsr: NONE NONE"
            << "UpdateMetadata: done"
        )
