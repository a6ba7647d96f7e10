"""DeleteRecords and retention: where a log starts, at its leader and at its followers (KIP-107)."""

from __future__ import annotations

import pytest

from emulator.kafka.broker.fetch_session import FetchContext
from emulator.kafka.broker.log_retention import LogRetention
from emulator.kafka.model.errors import Errors
from emulator.kafka.model.offset_log import Batch
from emulator.kafka.protocol.messages import (
    DeleteRecordsRequest,
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    ListOffsetsResponse,
)
from tests.interaction.hosting import (
    LIVE,
    ORDERS_0,
    Hosting,
    fetch,
    leader_and_isr,
    leading,
    state_of,
    update_metadata,
)
from tests.interaction.playbook import Incoming, Playbook, after_ms, answers, thread
from tests.interaction.test_following import answered, fetched, following, log_of
from zk.errors import Code
from zk.ops import Reply

DAY_MS = 24 * 3_600_000


def delete(offset: int, *, timeout_ms: int = 30_000) -> Incoming:
    """A client asks for everything before `offset` to be deleted."""
    request = DeleteRecordsRequest(((ORDERS_0, offset),), timeout_ms)

    def start(play: Playbook) -> None:
        assert isinstance(play, Hosting)

        async def handle() -> None:
            await play.replicas.deletion.delete_records(
                request,
                lambda response: play.say(
                    f"deleted: {response.partitions[0].error.name}"
                    f" {response.partitions[0].low_watermark}"
                ),
            )

        play.process.spawn("delete", handle())

    return start


def settings(**topic: str) -> Reply:
    """The topic's, in ZooKeeper."""
    pairs = ",".join(f'"{key.replace("_", ".")}":"{value}"' for key, value in topic.items())
    return Reply(Code.OK, data=b'{"version":1,"config":{%s}}' % pairs.encode())


def with_settings(records: int = 10, **topic: str) -> Hosting:
    """Broker 1 leads orders-0, whose settings these are."""
    play = Hosting()
    play.zookeeper.presets["/config/topics/orders"] = settings(**topic)
    play >> leader_and_isr(state_of())
    play.forget()
    play >> update_metadata(state_of()) << "UpdateMetadata: done"
    play._fill(play.hosted(), records)
    return play


def retention() -> Incoming:
    """One run of kafka-log-retention."""

    def start(play: Playbook) -> None:
        assert isinstance(play, Hosting)
        job = LogRetention(play.context, play.logs, play.replicas.partitions.get)
        thread("retention", job.delete_old_segments())(play)

    return start


def started(follower: int, at: int, start: int) -> Incoming:
    """A follower's fetch, which says where its own log starts."""
    one = (FetchPartition(ORDERS_0, 4, at, start, 1 << 20),)
    request = FetchRequest(follower, 0, 1, 10 << 20, 0, -1, one)

    def begin(play: Playbook) -> None:
        assert isinstance(play, Hosting)
        thread(
            f"fetch-{follower}",
            play.replicas.fetch_messages(request, FetchContext(None, one), lambda _: None),
        )(play)

    return begin


# -- the leader ------------------------------------------------------------------------------------


def test_a_deletion_is_answered_when_every_live_follower_starts_there() -> None:
    """DeleteRecordsRequestTest, DelayedDeleteRecords.tryComplete@2.6.3."""
    with leading() as play:
        play >> delete(4) << "orders-0 starts at 4: client record deletion"
        play >> started(2, 10, 4) << "fetch-2: done"
        play >> started(3, 10, 4) << "deleted: NONE 4" << "fetch-3: done"
        play >> fetch(2, at=3, max_wait_ms=0) << "fetch-2: OFFSET_OUT_OF_RANGE"


def test_a_deletion_that_a_follower_does_not_follow_times_out_and_stays() -> None:
    with leading() as play:
        play >> delete(4, timeout_ms=1000) << "orders-0 starts at 4: client record deletion"
        play >> started(2, 10, 4) << "fetch-2: done"
        play >> after_ms(1000) << "deleted: REQUEST_TIMED_OUT 0"
        assert play.hosted().log is not None and play.hosted().log.log_start_offset == 4


def test_a_dead_follower_is_not_waited_for() -> None:
    with leading() as play:
        play >> update_metadata(live=LIVE[:2])
        play.forget()
        play >> delete(4) << "orders-0 starts at 4: client record deletion"
        play >> started(2, 10, 4) << "deleted: NONE 4" << "fetch-2: done"


def test_what_waits_is_answered_when_the_leader_becomes_follower() -> None:
    with leading() as play:
        play >> delete(4) << "orders-0 starts at 4: client record deletion"
        play >> leader_and_isr(state_of(leader=2, epoch=5))
        play << "follows 2 for orders-0 in epoch 5" << "deleted: NOT_LEADER_OR_FOLLOWER -1"
        play.forget()


@pytest.mark.parametrize(
    ("offset", "answer"),
    [
        (-1, "orders-0 starts at 10: client record deletion"),
        (11, "deleted: OFFSET_OUT_OF_RANGE -1"),
        (-2, "deleted: OFFSET_OUT_OF_RANGE -1"),
        (0, "deleted: NONE 0"),
    ],
)
def test_only_what_is_committed_can_be_deleted(offset: int, answer: str) -> None:
    """PartitionTest, LogTest.testLogDeletionAfterDeleteRecords@2.6.3; -1 is the high watermark."""
    with leading() as play:
        play >> delete(offset) << answer
        play.forget()


def test_records_of_a_compacted_topic_are_not_deleted() -> None:
    with with_settings(cleanup_policy="compact") as play:
        play >> delete(4) << "deleted: POLICY_VIOLATION -1"


def test_who_does_not_lead_deletes_nothing() -> None:
    with following() as play:
        play >> delete(0) << "deleted: UNKNOWN_TOPIC_OR_PARTITION -1"
        play >> update_metadata(state_of(leader=2)) << "UpdateMetadata: done"
        play >> delete(0) << "deleted: NOT_LEADER_OR_FOLLOWER -1"
        play.forget()


# -- the follower ----------------------------------------------------------------------------------


def test_a_follower_whose_log_ends_before_its_leaders_starts_begins_there() -> None:
    """ReplicaFetcherThreadTest, AbstractFetcherThreadTest.testFollowerFetchOutOfRangeLow@2.6.3."""
    with following() as play:
        play >> answered(fetched(ORDERS_0, 0, 1, hw=2)) << "hw 2" << "to 2: Fetch orders-0@2"
        play >> answered(fetched(ORDERS_0, error=Errors.OFFSET_OUT_OF_RANGE))
        play << "to 2: ListOffsetsRequest" >> answers(2, ListOffsetsResponse(Errors.NONE, 50))
        play << "to 2: ListOffsetsRequest" >> answers(2, ListOffsetsResponse(Errors.NONE, 20))
        play << "orders-0 starts at 20: full truncation" << "to 2: Fetch orders-0@20"
        assert log_of(play) == (20, 20)


@pytest.mark.parametrize("profile", ["1.0", "2.1", "2.6", "3.3"])
def test_a_leader_whose_log_starts_inside_a_batch_sends_it_whole(profile: str) -> None:
    """PartitionTest.testAppendRecordsAsFollowerBelowLogStartOffset, KAFKA-6975."""
    with following(profile=profile) as play:
        play >> answered(fetched(ORDERS_0, error=Errors.OFFSET_OUT_OF_RANGE))
        play << "to 2: ListOffsetsRequest" >> answers(2, ListOffsetsResponse(Errors.NONE, 10))
        play << "to 2: ListOffsetsRequest" >> answers(2, ListOffsetsResponse(Errors.NONE, 3))
        play << "orders-0 starts at 3: full truncation" << "to 2: Fetch orders-0@3"
        whole = FetchedPartition(ORDERS_0, Errors.NONE, 10, 3, (Batch(0, 10, 100, 4),))
        (
            play
            >> answered(whole)
            << "orders-0 truncated to 0"
            << "orders-0 starts at 0: full truncation"
        )
        play << "hw 10" << "orders-0 starts at 3: leader offset incremented"
        play << "to 2: Fetch orders-0@10"
        assert not play.fetchers.failed_partitions
        assert log_of(play) == (10, 10)


# -- retention -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("topic", "start"),
    [
        ({"retention_bytes": "300"}, 6),
        ({"retention_bytes": "301"}, 6),
        ({"retention_bytes": "399"}, 6),
        ({"retention_bytes": "400"}, 6),
        ({"retention_bytes": "0"}, 10),
        ({"retention_bytes": "-1"}, 0),
        ({"retention_bytes": "0", "cleanup_policy": "compact"}, 0),
    ],
)
def test_old_segments_go_while_the_log_is_larger_than_it_may_be(
    topic: dict[str, str], start: int
) -> None:
    """LogTest.shouldDeleteSizeBasedSegments@2.6.3: segments of two records, 200 bytes; a log keeps
    at least `retention.bytes`."""
    with with_settings(segment_bytes="200", **topic) as play:
        play >> retention()
        if start:
            play << f"orders-0 starts at {start}: segment deletion"
        play << "retention: done"
        log = play.hosted().log
        assert log is not None and log.log_start_offset == start and log.log_end_offset == 10


def test_a_segment_goes_when_its_last_record_is_too_old() -> None:
    """LogTest.shouldDeleteTimeBasedSegmentsReadyToBeDeleted@2.6.3; also the one that is written
    to."""
    with with_settings(0, segment_bytes="200", retention_ms=str(DAY_MS)) as play:
        play.run(play.hosted().append_records_to_leader(2, 200, 1))
        play >> after_ms(DAY_MS // 2)
        play.run(play.hosted().append_records_to_leader(2, 200, 1))
        play.follower(2, 4)
        play.follower(3, 4)
        play.hosted().maybe_increment_leader_hw(play.kernel.now_ms())
        play.forget()
        play >> after_ms(DAY_MS // 2) >> retention() << "retention: done"
        play >> after_ms(1) >> retention() << "orders-0 starts at 2: segment deletion"
        play << "retention: done" >> after_ms(DAY_MS) >> retention()
        play << "orders-0 starts at 4: segment deletion" << "retention: done"
        log = play.hosted().log
        assert log is not None and (log.log_end_offset, log.high_watermark) == (4, 4)
        assert [segment.base_offset for segment in log.segments] == [4]


def test_what_is_not_committed_is_not_deleted() -> None:
    """LogTest.testRetentionOnHighWatermark…: only below the high watermark."""
    with with_settings(segment_bytes="200", retention_bytes="0") as play:
        log = play.hosted().log
        assert log is not None
        log.high_watermark = 5
        play >> retention() << "orders-0 starts at 4: segment deletion" << "retention: done"


def test_segments_before_the_log_start_go_whatever_the_policy() -> None:
    """LogTest.shouldDeleteStartOffsetBreachedSegmentsWhenPolicyDoesNotIncludeDelete@2.6.3."""
    with with_settings(segment_bytes="200") as play:
        play >> delete(5)
        play.forget()
        play >> retention() << "retention: done"
        log = play.hosted().log
        assert log is not None
        assert [segment.base_offset for segment in log.segments] == [4, 6, 8]
        assert log.batches[0].base_offset == 4 and log.log_start_offset == 5
        play.forget()


# -- what a crash leaves ---------------------------------------------------------------------------


@pytest.mark.parametrize(("checkpointed", "start"), [(True, 5), (False, 4)])
def test_a_log_starts_again_where_the_checkpoint_says(checkpointed: bool, start: int) -> None:
    """LogManagerTest.testCheckpointLogStartOffsets…: what was deleted since is served again."""
    with with_settings(segment_bytes="200") as play:
        play >> delete(5)
        play.forget()
        play >> retention() << "retention: done"
        if checkpointed:
            play.logs.checkpoint_log_start_offsets()
        disk = play.disk
        play.forget()
    with Hosting(state_of(), disk=disk) as again:
        log = again.hosted().log
        assert log is not None and log.log_start_offset == start
