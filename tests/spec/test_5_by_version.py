"""Sections 3.9 and 5.4 of the spec by version: where a follower truncates to, and which of its
requests carry the leader epoch. Each with its guard, without it, and in the versions on either
side."""

from __future__ import annotations

import pytest

from emulator.kafka.model.errors import Errors
from emulator.kafka.protocol.messages import (
    FetchedPartition,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetsForLeaderEpochRequest,
)
from tests.interaction.hosting import (
    ORDERS_0,
    ORDERS_1,
    Hosting,
    fetch,
    leader_and_isr,
    leading,
    produce,
    state_of,
)
from tests.interaction.playbook import after_ms, answers, answers_and_closes, breaks, thread
from tests.interaction.test_apis import Serving, request
from tests.interaction.test_apis import fetch as fetch_in_session
from tests.interaction.test_apis import leader_and_isr as leads_in_epoch
from tests.interaction.test_following import (
    ASKS_EPOCH,
    answered,
    ended,
    fetched,
    following,
    grown,
    log_of,
)
from tests.spec.emulated import switched
from zk.errors import Code
from zk.ops import Reply

UNCLEAN = b'{"version":1,"config":{"unclean.leader.election.enable":"true"}}'


def told_to_follow(
    how: dict[str, object], *lengths: tuple[int, int], says: tuple[str, ...] = ()
) -> Hosting:
    play = Hosting(state_of(leader=-1, epoch=0), **how)
    grown(play, *lengths)
    play >> leader_and_isr(state_of(leader=2, epoch=9)) << "follows 2 for orders-0 in epoch 9"
    for line in says:
        play << line
    play << "LeaderAndIsr: NONE NONE"
    return play


# -- 5.1: fetcher threads --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "waits"),
    [
        ({"profile": "1.0"}, True),
        ({"profile": "1.1"}, False),
        (switched("fetcher-shutdown-ends-fetch", False), True),
        (switched("fetcher-shutdown-ends-fetch", True, "1.0"), False),
    ],
)
def test_5_1_up_to_1_0_the_end_of_a_fetcher_thread_waits_for_its_fetch(
    how: dict[str, object], waits: bool
) -> None:
    """KAFKA-6051: the only partition of the thread gets another leader, this broker."""
    with following(**how) as play:
        play >> leader_and_isr(state_of(epoch=5)) << "leads orders-0 in epoch 5"
        assert not play.fetchers.threads
        if waits:
            play.nothing_else()
            play >> answers(2, FetchResponse(Errors.NONE, 0, ()))
        play << "LeaderAndIsr: NONE NONE"


@pytest.mark.parametrize(
    ("how", "is_noticed"),
    [
        ({"profile": "0.8.2"}, True),
        ({"profile": "0.9.0"}, False),
        ({"profile": "0.10.2"}, True),
        (switched("closed-connections-noticed", False), False),
        (switched("closed-connections-noticed", True, "0.9.0"), True),
    ],
)
def test_5_1_in_0_9_a_fetch_is_lost_on_a_connection_that_the_leader_has_closed(
    how: dict[str, object], is_noticed: bool
) -> None:
    with following(replica_fetch_backoff_ms=1000, **how) as play:
        play >> answers_and_closes(2, FetchResponse(Errors.NONE, 0, (fetched(ORDERS_0, 0),)))
        if not is_noticed:
            play >> after_ms(1000) << "orders-0 delayed: DISCONNECTED" >> after_ms(1000)
        play << "to 2: Fetch orders-0@1"


@pytest.mark.parametrize(
    ("how", "asks"),
    [
        ({"profile": "0.10.2"}, False),
        ({"profile": "1.0"}, True),
        (switched("truncation-by-epoch", False), False),
        (switched("truncation-by-epoch", True, "0.10.2"), True),
    ],
)
def test_5_4_up_to_0_10_2_a_follower_truncates_to_its_high_watermark(
    how: dict[str, object], asks: bool
) -> None:
    """H17: ten records, none known to be committed; all go, while the broker becomes follower and
    before anything is asked."""
    truncated = () if asks else ("orders-0 truncated to 0",)
    with told_to_follow(how, (4, 10), says=truncated) as play:
        if asks:
            play << ASKS_EPOCH >> ended((ORDERS_0, 4, 12)) << "to 2: Fetch orders-0@10"
        else:
            play << "to 2: Fetch orders-0@0"


def test_5_4_what_cannot_be_truncated_is_not_followed() -> None:
    """Its directory fails just then; in 0.10.2 itself that is the end of the broker."""
    play = Hosting(state_of(leader=-1, epoch=0), **switched("truncation-by-epoch", False))
    with play:
        grown(play, (4, 10))
        play.disk.directories[0].failed = True
        play >> leader_and_isr(state_of(leader=2, epoch=9)) << "follows 2 for orders-0 in epoch 9"
        play << "LeaderAndIsr: NONE KAFKA_STORAGE_ERROR" >> after_ms(2_000)


@pytest.mark.parametrize(
    ("how", "again"),
    [
        ({"profile": "1.1"}, False),
        ({"profile": "2.1"}, True),
        (switched("truncation-in-rounds", False), False),
        (switched("truncation-in-rounds", True, "1.1"), True),
    ],
)
def test_5_4_up_to_1_1_there_is_one_round_of_truncation(
    how: dict[str, object], again: bool
) -> None:
    """The leader has no epoch 6 and knows 5 up to 9; the follower's 4 ends at 8."""
    with told_to_follow(how, (3, 5), (4, 8), (6, 10)) as play:
        play << ASKS_EPOCH >> ended((ORDERS_0, 5, 9))
        if again:
            play << "orders-0 truncated to 8" >> after_ms(1000) << ASKS_EPOCH
        else:
            play << "orders-0 truncated to 9" << "to 2: Fetch orders-0@9"


BY_FETCH = [
    ({"profile": "2.7"}, False),
    ({"profile": "2.8"}, True),
    ({"profile": "3.3"}, True),
    ({"profile": "2.8", "propagation": "zk"}, False),
    (switched("truncation-on-fetch", False, "2.8"), False),
    (switched("truncation-on-fetch", True, "2.7"), True),
]
"""With an inter.broker.protocol.version of 2.6 (`propagation: zk`) a 2.8 asks as before."""


@pytest.mark.parametrize(("how", "at_once"), BY_FETCH)
def test_5_4_from_2_8_on_a_follower_fetches_at_once_and_says_its_last_epoch(
    how: dict[str, object], at_once: bool
) -> None:
    """ReplicaFetcherThreadTest.shouldNotFetchLeaderEpochOnFirstFetchWithTruncateOnFetch@2.8.2."""
    with told_to_follow(how, (4, 10)) as play:
        if not at_once:
            play << ASKS_EPOCH >> ended((ORDERS_0, 4, 10))
        play << "to 2: Fetch orders-0@10"
        fetches = play.network.sent[-1][1]
        assert isinstance(fetches, FetchRequest)
        assert fetches.partitions[0].last_fetched_epoch == (4 if at_once else -1)


@pytest.mark.parametrize("profile", ["2.7", "2.8"])
def test_5_4_a_log_without_an_epoch_is_truncated_to_its_high_watermark_first(profile: str) -> None:
    """ReplicaFetcherThreadTest.shouldTruncateToInitialFetchOffset…: nothing could be said."""
    with told_to_follow({"profile": profile}, says=()) as play:
        play << "to 2: Fetch orders-0@0"
        fetches = play.network.sent[-1][1]
        assert isinstance(fetches, FetchRequest)
        assert fetches.partitions[0].last_fetched_epoch == -1


def test_5_4_a_follower_truncates_to_where_its_leaders_log_parts_from_its_own() -> None:
    """ReplicaFetcherThreadTest.shouldTruncateIfLeaderRepliesWithDivergingEpochNotKnownToFollower
    @2.8.2: the leader knows no 6, and has 5 up to 9, of which the follower knows nothing; then 4
    ends in both at 7."""
    with told_to_follow({"profile": "2.8"}, (3, 5), (4, 8), (6, 10)) as play:
        play << "to 2: Fetch orders-0@10"
        play >> answered(fetched(ORDERS_0, diverging=(5, 9)))
        play << "orders-0 truncated to 8" << "to 2: Fetch orders-0@8"
        assert play.network.sent[-1][1].partitions[0].last_fetched_epoch == 4
        play >> answered(fetched(ORDERS_0, diverging=(4, 7)))
        play << "orders-0 truncated to 7" << "to 2: Fetch orders-0@7"
        play >> answered(fetched(ORDERS_0, 7, 8, epoch=5)) << "to 2: Fetch orders-0@9"
        assert play.network.sent[-1][1].partitions[0].last_fetched_epoch == 5


@pytest.mark.parametrize(
    ("how", "applied"),
    [
        ({"profile": "2.8"}, ["hw 10"]),
        (switched("truncation-before-watermark", True, "2.8"), []),
    ],
)
def test_5_4_up_to_3_3_2_the_high_watermark_is_applied_before_the_log_is_truncated(
    how: dict[str, object], applied: list[str]
) -> None:
    """It goes as far as the old log, and comes down with the records that are truncated
    (KAFKA-14704)."""
    with told_to_follow(how, (4, 10)) as play:
        play << "to 2: Fetch orders-0@10"
        play >> answered(fetched(ORDERS_0, hw=12, diverging=(4, 7)))
        for line in applied:
            play << line
        play << "orders-0 truncated to 7" << "to 2: Fetch orders-0@7"
        assert log_of(play) == (7, 7 if applied else 0)


def test_5_4_a_disk_that_fails_at_a_diverging_epoch_fails_the_partition() -> None:
    with told_to_follow({"profile": "2.8"}, (4, 10)) as play:
        play << "to 2: Fetch orders-0@10"
        play.disk.directories[0].failed = True
        play >> answered(fetched(ORDERS_0, diverging=(4, 7)))
        play << "orders-0 marked as failed: KAFKA_STORAGE_ERROR"
        play << "to 2: Fetch nothing new -orders-0"
        assert list(play.fetchers.failed_partitions) == [ORDERS_0]


@pytest.mark.parametrize(
    ("at", "last_epoch", "answer"),
    [
        # The leader's epochs: 1 from 0, 3 from 3, 4 from 6; its log ends at 10.
        (10, 4, "nothing, hw 10"),
        (6, 3, "6..10, hw 10"),
        (3, 1, "3..10, hw 10"),
        (11, 4, "4 ends at 10"),
        (7, 3, "3 ends at 6"),
        (3, 2, "1 ends at 3"),
        (4, 2, "1 ends at 3"),
        (0, 0, "0..10, hw 10"),
        (1, 0, "0 ends at 0"),
        (10, 5, "OFFSET_OUT_OF_RANGE"),
    ],
)
def test_5_4_a_leader_says_where_a_fetch_parts_from_its_log(
    at: int, last_epoch: int, answer: str
) -> None:
    """PartitionTest.testLastFetchedOffsetValidation@2.8.2; at once, however long the fetch would
    wait."""
    with leading(records=0, profile="2.7") as play:
        log = play.hosted().log
        assert log is not None
        log.epochs.clear()
        grown(play, (1, 3), (3, 6), (4, 10))
        play.follower(2, 5)
        log.high_watermark = 10
        wait_ms = 0 if answer.startswith("nothing") else 500
        play >> fetch(2, at=at, last_epoch=last_epoch, max_wait_ms=wait_ms)
        play << f"fetch-2: {answer}"
        assert (play.hosted().remotes[2].log_end_offset == at) is ("hw" in answer)


@pytest.mark.parametrize(
    ("how", "answer"),
    [
        ({"profile": "2.7"}, "OFFSET_OUT_OF_RANGE"),
        ({"profile": "3.3"}, "OFFSET_OUT_OF_RANGE"),
        (switched("range-before-divergence", False, "2.8"), "1 ends at 6"),
    ],
)
def test_5_4_a_fetch_from_before_the_log_start_is_out_of_range_though_the_logs_diverge(
    how: dict[str, object], answer: str
) -> None:
    """KAFKA-12996: the leader's log starts at 5, the follower has four records of a lost epoch."""
    with leading(records=0, **how) as play:
        log = play.hosted().log
        assert log is not None
        log.epochs.clear()
        grown(play, (1, 6), (4, 10))
        play.follower(2, 4)
        log.high_watermark = 10
        log.maybe_increment_log_start_offset(5)
        play >> fetch(2, at=4, last_epoch=3, max_wait_ms=0) << f"fetch-2: {answer}"
        play >> fetch(2, at=5, last_epoch=3, max_wait_ms=0) << "fetch-2: 1 ends at 6"
        play.forget()


@pytest.mark.parametrize(
    ("how", "counts"),
    [
        ({"profile": "2.7"}, False),
        ({"profile": "2.8"}, False),
        (switched("diverging-fetch-not-counted", False, "2.8"), True),
    ],
)
def test_3_2_a_diverging_fetch_is_no_progress(how: dict[str, object], counts: bool) -> None:
    """H25, KAFKA-13141: follower 2 has records 10 and 11 of an epoch that lost."""
    with leading(records=10, isr=(1, 2), replicas=(1, 2), **how) as play:
        play >> produce(2) >> fetch(2, at=12, last_epoch=5 - 2, max_wait_ms=500)
        if counts:
            play << "hw 12" << "produce: NONE at 10"
        play << "fetch-2: 3 ends at 0"
        play.forget()


def test_4_6_a_parked_fetch_is_answered_when_its_epoch_is_gone() -> None:
    """DelayedFetchTest.testDivergingEpoch@2.8.2."""
    with leading(profile="2.8") as play:
        play >> fetch(2, at=10, last_epoch=4, max_wait_ms=500)
        log = play.hosted().log
        assert log is not None
        play.hosted().wake()
        log.truncate_to(8)
        log.append_as_leader(2, 100, 6)
        play >> thread("touch", play.replicas.check_and_complete_fetch(ORDERS_0))
        play << "fetch-2: 4 ends at 8" << "touch: done"


@pytest.mark.parametrize(
    ("how", "again"),
    [
        ({"profile": "1.1"}, False),
        ({"profile": "2.1"}, True),
        (switched("truncation-after-missed-epochs", True, "1.1"), True),
    ],
)
def test_3_9_up_to_2_0_0_a_later_epoch_of_the_same_leader_truncates_nothing(
    how: dict[str, object], again: bool
) -> None:
    """H24: another may have led in epoch 5."""
    with Hosting(**how) as play:
        play >> leader_and_isr(state_of(leader=2))
        play.forget()
        play >> answered(fetched(ORDERS_0, 0, 1)) << "to 2: Fetch orders-0@2"
        play >> leader_and_isr(state_of(leader=2, epoch=6)) << "follows 2 for orders-0 in epoch 6"
        play << "LeaderAndIsr: NONE NONE" >> answered()
        play << (ASKS_EPOCH if again else "to 2: Fetch nothing new")


@pytest.mark.parametrize(
    ("how", "epoch"),
    [
        ({"profile": "1.1"}, -1),
        ({"profile": "2.1"}, 9),
        (switched("fetch-fencing", False), -1),
        (switched("fetch-fencing", True, "1.1"), 9),
    ],
)
def test_5_3_from_2_1_on_a_follower_says_its_leader_epoch(
    how: dict[str, object], epoch: int
) -> None:
    with told_to_follow(how, (4, 10)) as play:
        play << ASKS_EPOCH >> ended((ORDERS_0, 4, 10)) << "to 2: Fetch orders-0@10"
        asked, fetches = (request for _, request in play.network.sent)
        play >> answered(fetched(ORDERS_0, error=Errors.OFFSET_OUT_OF_RANGE))
        play << "to 2: ListOffsetsRequest"
        (*_, offsets) = (request for _, request in play.network.sent)
        assert isinstance(offsets, ListOffsetsRequest)
        assert offsets.current_leader_epoch == epoch
        assert isinstance(asked, OffsetsForLeaderEpochRequest)
        assert isinstance(fetches, FetchRequest)
        said = [one.current_leader_epoch for one in (*asked.partitions, *fetches.partitions)]  # type: ignore[attr-defined]
        assert said == [epoch, epoch]


def test_11_4_a_fetch_without_an_epoch_is_served_by_whoever_leads() -> None:
    with leading() as play:
        play >> fetch(2, at=10, epoch=3, max_wait_ms=0) << "fetch-2: FENCED_LEADER_EPOCH"
        play >> fetch(2, at=10, epoch=-1, max_wait_ms=0) << "fetch-2: nothing, hw 10"


@pytest.mark.parametrize(
    ("how", "again"),
    [
        ({"profile": "2.1"}, "NONE session 1"),
        ({"profile": "2.4"}, "NONE session 1"),
        ({"profile": "2.6"}, "NONE session 1 orders-0@FENCED_LEADER_EPOCH"),
        (switched("session-epochs-kept", False), "NONE session 1"),
        (
            switched("session-epochs-kept", True, "2.4"),
            "NONE session 1 orders-0@FENCED_LEADER_EPOCH",
        ),
    ],
)
def test_5_3_up_to_2_4_only_the_first_fetch_of_a_session_is_fenced(
    how: dict[str, object], again: str
) -> None:
    """FetchRequestTest.testEpochValidationWithinFetchSession; the response names a partition with
    an error. The follower has missed that the leader has another epoch now."""
    with Serving(**how) as play:
        play >> request(fetch_in_session(10)) << "answer: NONE session 1 orders-0@0"
        play >> request(leads_in_epoch(-1, 5), "roles") << "leads orders-0 in epoch 5"
        play << "roles: NONE orders-0 NONE"
        play >> request(fetch_in_session(session=1, epoch=1)) << f"answer: {again}"


@pytest.mark.parametrize(
    ("how", "fails"),
    [
        ({"profile": "0.8.2"}, True),
        ({"profile": "0.10.2"}, True),
        ({"profile": "1.0"}, False),
        (switched("unassigned-fetch-is-empty", False, "1.0"), True),
        (switched("unassigned-fetch-is-empty", True, "0.10.2"), False),
    ],
)
def test_5_3_up_to_0_11_a_fetch_fails_as_a_whole_if_one_replica_is_not_assigned(
    how: dict[str, object], fails: bool
) -> None:
    """KAFKA-5758: a broker whose replica was moved away still fetches it. Both partitions of its
    fetch are answered with an error, although the second is its own."""
    others = state_of(replicas=(1, 3), isr=(1, 3))
    with Serving(others, state_of(ORDERS_1), **how) as play:
        play >> request(fetch_in_session(10, 9))
        if fails:
            play << (
                "FetchRequest failed: NotAssignedReplica: UNKNOWN_SERVER_ERROR: broker 2 has no"
                " replica of orders-0 assigned"
            )
        failed = Errors.UNKNOWN_SERVER_ERROR.name
        read = f"orders-0@{failed} orders-1@{failed}" if fails else "orders-0@0 orders-1@100"
        play << f"answer: NONE session 0 {read}"
        assert play.hosted(ORDERS_1).remotes[2].log_end_offset == (10 if fails else 9)


@pytest.mark.parametrize(("profile", "waits_ms"), [("0.9.0", 2000), ("0.10.2", 1000)])
def test_5_3_a_fetch_that_failed_as_a_whole_delays_every_partition(
    profile: str, waits_ms: int
) -> None:
    """0.9 sends the error in a version that the follower cannot read."""
    error = Errors.UNKNOWN_SERVER_ERROR
    failed = FetchedPartition(ORDERS_0, error, -1, -1, ())
    of_all = error if profile == "0.9.0" else Errors.NONE
    with following(replica_fetch_backoff_ms=1000, profile=profile) as play:
        play >> answers(2, FetchResponse(of_all, 0, (failed,)))
        if waits_ms == 2000:
            play >> after_ms(1000) << "orders-0 delayed: DISCONNECTED"
        else:
            play << "orders-0 delayed: UNKNOWN_SERVER_ERROR"
        play >> after_ms(1000) << "to 2: Fetch orders-0@0"


@pytest.mark.parametrize(
    ("how", "known"),
    [
        ({"profile": "1.1"}, None),
        ({"profile": "2.1"}, 4),
        (switched("epoch-start-recorded", False), None),
        (switched("epoch-start-recorded", True, "1.1"), 4),
    ],
)
def test_3_8_up_to_2_0_0_a_leader_knows_its_epoch_only_with_its_first_record(
    how: dict[str, object], known: int | None
) -> None:
    with leading(records=0, **how) as play:
        log = play.hosted().log
        assert log is not None and log.epochs.latest_epoch == known
        play.run(play.hosted().append_records_to_leader(1, 100, 1))
        play.forget()
        assert log.epochs.latest_epoch == 4


@pytest.mark.parametrize(
    ("how", "follows"),
    [
        ({"profile": "0.10.2"}, False),
        ({"profile": "1.0"}, True),
        (switched("log-start-followed", False), False),
        (switched("log-start-followed", True, "0.10.2"), True),
    ],
)
def test_5_4_from_0_11_on_a_follower_starts_where_its_leader_does_and_says_so(
    how: dict[str, object], follows: bool
) -> None:
    """ReplicaFetcherThread.processPartitionData@0.11.0.2."""
    with following(**how) as play:
        play >> answered(fetched(ORDERS_0, 0, 1, 2, 3, hw=3)) << "hw 3"
        play << "to 2: Fetch orders-0@4"
        play >> answered(fetched(ORDERS_0, hw=4, start=2)) << "hw 4"
        if follows:
            play << "orders-0 starts at 2: leader offset incremented"
        play.forget()
        fetches = play.network.sent[-1][1]
        assert isinstance(fetches, FetchRequest)
        said = {one.partition: one.log_start_offset for one in fetches.partitions}
        if follows and said:
            assert said == {ORDERS_0: 2}
        assert play.hosted().log.log_start_offset == (2 if follows else 0)


# -- 5.5: errors -----------------------------------------------------------------------------------

FORBIDDEN = {"unclean_leader_election_enable": False}


def out_of_range(how: dict[str, object], leader_ends_at: int) -> Hosting:
    """The follower has three records; its leader says where its own log ends."""
    how = dict(how)
    topic = how.pop("topic", None)
    play = following(**how)
    if isinstance(topic, bytes):
        play.zookeeper.presets["/config/topics/orders"] = Reply(Code.OK, data=topic)
    play >> (answered(fetched(ORDERS_0, 0, 1, 2))) << "to 2: Fetch orders-0@3"
    play >> answered(fetched(ORDERS_0, error=Errors.OFFSET_OUT_OF_RANGE))
    (
        play
        << "to 2: ListOffsetsRequest"
        >> answers(2, ListOffsetsResponse(Errors.NONE, leader_ends_at))
    )
    return play


@pytest.mark.parametrize(
    ("how", "fatal"),
    [
        ({"profile": "0.8.2"}, False),
        ({"profile": "0.8.2", **FORBIDDEN}, True),
        ({"profile": "1.1"}, True),
        ({"profile": "1.1", "unclean_leader_election_enable": True}, False),
        ({"profile": "1.1", "topic": UNCLEAN}, False),
        ({"profile": "2.1"}, False),
        ({**switched("out-of-range-not-fatal", False), **FORBIDDEN}, True),
        (switched("out-of-range-not-fatal", True, "1.1"), False),
    ],
)
def test_5_5_from_0_8_2_to_2_0_0_a_shorter_leader_stops_a_broker_unless_it_may_elect_uncleanly(
    how: dict[str, object], fatal: bool
) -> None:
    with out_of_range(how, leader_ends_at=1) as play:
        if fatal:
            play << "halts: orders-0: truncation to the leader's 1 is not allowed"
        else:
            play << "orders-0 truncated to 1" << "to 2: Fetch orders-0@1"


@pytest.mark.parametrize(
    ("how", "keeps"),
    [
        ({"profile": "0.8.2"}, False),
        ({"profile": "0.9.0"}, True),
        (switched("log-in-range-kept", False), False),
        (switched("log-in-range-kept", True, "0.8.2"), True),
    ],
)
def test_5_5_in_0_8_2_whoever_is_out_of_range_of_a_longer_leader_drops_its_whole_log(
    how: dict[str, object], keeps: bool
) -> None:
    """KAFKA-2143: the leader has 0 to 9, the follower 0 to 2."""
    with out_of_range(how, leader_ends_at=10) as play:
        play << "to 2: ListOffsetsRequest" >> answers(2, ListOffsetsResponse(Errors.NONE, 0))
        if keeps:
            play << "to 2: Fetch nothing new"
        else:
            play << "orders-0 truncated to 0" << "to 2: Fetch orders-0@0"


@pytest.mark.parametrize(
    ("how", "reaction"),
    [
        (
            {"profile": "2.1"},
            "ReplicaFetcherThread failed: UnexpectedAppendOffset: UNKNOWN_SERVER_ERROR",
        ),
        ({"profile": "2.4"}, "orders-0 marked as failed: UnexpectedAppendOffset"),
        (
            switched("failed-partitions-leave", False),
            "ReplicaFetcherThread failed: UnexpectedAppendOffset: UNKNOWN_SERVER_ERROR",
        ),
    ],
)
def test_5_5_what_begins_before_the_log_end_is_not_appended(
    how: dict[str, object], reaction: str
) -> None:
    """A leader that lost its log, and leads on in the same epoch, has batches of other lengths. Up
    to 2.2 that is the end of the thread, from 2.3 on the partition fails."""
    with following(**how) as play:
        play >> answered(fetched(ORDERS_0, 0, 1)) << "to 2: Fetch orders-0@2"
        play >> answered(fetched(ORDERS_0, 1))
        play << f"{reaction}: the first offset 1 is less than the next offset 2"
        if "marked as failed" in reaction:
            play << "to 2: Fetch nothing new -orders-0" >> answered(session=0)
        play >> after_ms(5_000)
        assert (ORDERS_0 in play.fetchers.failed_partitions) == ("marked as failed" in reaction)
        assert play.hosted().log.log_end_offset == 2
        play.forget()


@pytest.mark.parametrize(
    ("how", "waits_ms"),
    [
        ({"profile": "2.8"}, 2000),
        ({"profile": "3.3"}, 1000),
        (switched("one-back-off", False, "3.3"), 2000),
        (switched("one-back-off", True, "2.8"), 1000),
    ],
)
def test_5_5_from_3_1_on_a_broken_connection_costs_one_back_off(
    how: dict[str, object], waits_ms: int
) -> None:
    """AbstractFetcherThreadTest.testDelay, KAFKA-8529."""
    with following(**how) as play:
        play >> breaks(2)
        began_us = play.kernel.now
        while "to 2: Fetch orders-0@0" not in play.said:
            play.forget()
            play >> after_ms(1)
        assert play.kernel.now - began_us == waits_ms * 1000
        play.forget()


@pytest.mark.parametrize(
    ("how", "reaction"),
    [
        ({"profile": "0.10.2"}, "halts: a log directory cannot be written"),
        ({"profile": "1.0"}, "orders-0 delayed: KAFKA_STORAGE_ERROR"),
        ({"profile": "2.1"}, "orders-0 delayed: KAFKA_STORAGE_ERROR"),
        ({"profile": "2.4"}, "orders-0 marked as failed: KAFKA_STORAGE_ERROR"),
        (switched("failed-partitions-leave", False), "orders-0 delayed: KAFKA_STORAGE_ERROR"),
        (switched("log-dirs-fail-alone", False), "halts: a log directory cannot be written"),
    ],
)
def test_5_5_what_a_storage_error_does_to_a_fetcher(how: dict[str, object], reaction: str) -> None:
    """Up to 0.11 the broker halts, up to 2.2 the partition is tried again, from 2.3 on it fails."""
    with following(**how) as play:
        play.disk.directories[0].failed = True
        play >> answered(fetched(ORDERS_0, 0))
        play << reaction
        play.forget()
