"""Sections 3.5, 3.6 and 4 of the spec by version: responses to waiting fetches, and a producer's
options. Each with its guard, without it, and in the versions on either side."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.kafka.broker.metadata_cache import LEADER_DURING_DELETE
from emulator.kafka.model.config import KafkaConfig
from emulator.kafka.model.errors import Errors
from emulator.kafka.model.producer_state import BatchProducer
from emulator.kafka.profiles.base import profiles
from emulator.kafka.protocol.messages import (
    FetchPartition,
    FetchRequest,
    LeaderAndIsrRequest,
    ProducePartition,
    ProduceRequest,
    Request,
    UpdateMetadataRequest,
)
from emulator.kernel.rng import Stream
from emulator.scenario.actions.clients import Produce
from emulator.scenario.actions.pause import Pause
from emulator.trace import events
from emulator.trace.values import PartitionState, TopicPartition
from emulator.worlds.storage.modelled_disk import ModelledDisk
from emulator.worlds.storage.stored_logs import StoredDirectory, stored_disk
from emulator.worlds.wire.records import filled
from tests.interaction.hosting import (
    CONTROLLER_EPOCH,
    LIVE,
    ORDERS_0,
    ORDERS_1,
    fetch,
    leader_and_isr,
    leading,
    produce,
    state_of,
    update_metadata,
)
from tests.interaction.playbook import Incoming, after_ms
from tests.interaction.test_apis import Serving, request
from tests.interaction.test_apis import fetch as fetch_in_session
from tests.interaction.test_apis import produce as produce_to
from tests.interaction.test_fetch_from_followers import consume, follower, in_east
from tests.interaction.test_following import answered, fetched
from tests.interaction.test_groups import (
    commit,
    described,
    expiring,
    heartbeat,
    offsets,
    stable,
)
from tests.interaction.test_stop_replica import stop
from tests.spec.emulated import Emulated, switched

# -- 3.5: the high watermark and fetches that wait -------------------------------------------------

WAITS = [
    ({"profile": "2.1"}, True),
    ({"profile": "2.4"}, False),
    ({"profile": "2.6"}, True),
    (switched("hw-answers-no-fetch", False), False),
    (switched("hw-answers-no-fetch", True, "2.4"), True),
]


@pytest.mark.parametrize(("how", "waits"), WAITS)
def test_3_5_in_2_4_and_2_5_a_new_high_watermark_answers_a_followers_fetch_that_waits(
    how: dict[str, object], waits: bool
) -> None:
    """The fetch that raises it is answered by it, and its follower's next one again: what is sent
    to one that waited is not taken note of."""
    with leading(isr=(1, 2), records=0, **how) as play:
        play >> produce(acks=1) << "produce: NONE at 0" >> fetch(2, at=1) << "hw 1"
        if waits:
            play >> after_ms(500)
        play << "fetch-2: nothing, hw 1" >> fetch(2, at=1)
        if waits:
            play >> after_ms(500)
        play << "fetch-2: nothing, hw 1" >> fetch(2, at=1) >> after_ms(500)
        play << "fetch-2: nothing, hw 1"


def learnt_after_ms(profile: str) -> int:
    """How long after the leader a follower knows that a record is committed."""
    with Emulated(1, 2, profile=profile) as cluster:
        cluster.topic("orders", (1, 2)).run_ms(3000)
        cluster.do(Produce("orders", partitions=(0,), rate=1, acks="all")).run_ms(1300)
        raised = {e.broker: e for e in cluster.seen(events.HwAdvanced) if e.hw == 1}
        return (raised[2].t - raised[1].t) // 1000


def test_3_5_so_a_follower_knows_in_2_4_at_once_what_it_is_told_half_a_second_later_in_2_6() -> (
    None
):
    assert learnt_after_ms("2.4") < 50
    assert 450 <= learnt_after_ms("2.6") <= 550


# -- 4.4: StopReplica ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "answers"),
    [
        ({"profile": "2.1"}, False),
        ({"profile": "2.4"}, True),
        (switched("stopped-replica-answers", False, "2.4"), False),
        (switched("stopped-replica-answers", True, "2.1"), True),
    ],
)
def test_4_4_up_to_2_3_a_removed_leader_leaves_waiting_requests_to_their_timeout(
    how: dict[str, object], answers: bool
) -> None:
    """ReplicaManagerTest.testClearProducePurgatoryOnStopReplica: no LeaderAndIsr follows."""
    with leading(**how) as play:
        play >> produce() >> stop((-2, True))
        if answers:
            play << "produce: NOT_LEADER_OR_FOLLOWER"
        play << "StopReplica: NONE NONE"


@pytest.mark.parametrize(
    ("how", "answers"),
    [
        ({"profile": "0.8.2"}, False),
        ({"profile": "0.9.0"}, False),
        ({"profile": "0.10.2"}, True),
        (switched("new-follower-answers", False, "0.10.2"), False),
        (switched("new-follower-answers", True, "0.9.0"), True),
    ],
)
def test_4_3_up_to_0_9_a_deposed_leader_leaves_waiting_requests_to_their_timeout(
    how: dict[str, object], answers: bool
) -> None:
    """As in recordings of 0.8.2.2 and 0.9.0.1 (five-brokers-pauses): a producer whose only
    connection was to the deposed leader had no more answers."""
    with leading(epoch=4, **how) as play:
        play >> produce() >> leader_and_isr(state_of(leader=2, epoch=5))
        assert ("produce: NOT_LEADER_OR_FOLLOWER" in play.said) is answers
        play.forget()
        play >> after_ms(31_000)
        assert ("produce: REQUEST_TIMED_OUT" in play.said) is not answers
        play.forget()


# -- 3.5: what a log is made of --------------------------------------------------------------------


@pytest.mark.parametrize(("profile", "begins"), [("0.10.2", 13), ("1.0", 10)])
def test_3_5_before_0_11_a_fetch_begins_at_its_very_offset_even_inside_what_came_together(
    profile: str, begins: int
) -> None:
    """So a follower that was truncated to its high watermark, there, continues from there."""
    with leading(isr=(1, 2), profile=profile) as play:
        play >> produce(records=5, acks=1) << "produce: NONE at 10"
        play >> fetch(2, at=13, max_wait_ms=0) << "hw 13" << f"fetch-2: {begins}..15, hw 10"


# -- 4.3: whom a follower knows --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "role"),
    [("0.8.2", ["follows 2 for orders-0 in epoch 5"]), ("0.9.0", []), ("2.6", [])],
)
def test_4_3_from_0_9_on_a_new_leader_has_to_be_in_the_followers_metadata_cache(
    profile: str, role: list[str]
) -> None:
    """Up to 0.8.2 the LeaderAndIsr says itself which leaders live: H28 came with 0.9
    (ReplicaManager@0.8.2.2 makeFollowers is given `leaders`, @0.9.0.1 the MetadataCache)."""
    with leading(epoch=4, profile=profile) as play:
        play >> update_metadata(live=LIVE[:1]) << "UpdateMetadata: done"
        play >> leader_and_isr(state_of(leader=2, epoch=5))
        for line in role:
            play << line
        play << "LeaderAndIsr: NONE NONE"
        play.forget()


def test_4_3_in_0_8_2_a_leader_that_the_request_does_not_name_is_not_followed() -> None:
    """Although the metadata cache has it."""
    with leading(epoch=4, profile="0.8.2") as play:
        play >> leader_and_isr(state_of(leader=2, epoch=5), live=LIVE[2:])
        play << "LeaderAndIsr: NONE NONE"
        assert play.hosted().leader_replica_id == 1


# -- 3.6: acks -------------------------------------------------------------------------------------

REFUSES = [
    ({"profile": "0.8.2"}, False),
    ({"profile": "0.9.0"}, True),
    (switched("acks-are-all-or-one", False), False),
    (switched("acks-are-all-or-one", True, "0.8.2"), True),
]


@pytest.mark.parametrize(("how", "refuses"), REFUSES)
def test_3_6_acks_above_1_existed_only_in_0_8_x(how: dict[str, object], refuses: bool) -> None:
    """Two members have the record: that is enough, although it is not committed."""
    with leading(**how) as play:
        play >> produce(acks=2)
        if refuses:
            play << "produce: INVALID_REQUIRED_ACKS"
        else:
            play >> fetch(2, at=10, max_wait_ms=0) << "fetch-2: 10..11, hw 10"
            play >> fetch(2, at=11, max_wait_ms=0) << "produce: NONE at 10"
            play << "fetch-2: nothing, hw 10"


def test_3_6_replicas_outside_the_isr_are_not_counted() -> None:
    """Although this one has the record: its way into the ISR is only by a fetch."""
    with leading(isr=(1, 2), profile="0.8.2") as play:
        play >> produce(acks=3)
        play.follower(3, 11)
        play >> fetch(2, at=11, max_wait_ms=0) << "hw 11"
        play << "fetch-2: nothing, hw 10" >> after_ms(30_000) << "produce: REQUEST_TIMED_OUT"


def test_3_6_acks_2_is_told_ok_of_what_is_not_committed() -> None:
    """The third member of the ISR is paused."""
    with Emulated(profile="0.8.2", replica_lag_time_max_ms=60_000) as cluster:
        cluster.topic("orders", (1, 2, 3)).run_ms(3000).do(Pause(3))
        cluster.do(Produce("orders", partitions=(0,), rate=10, acks="2")).run_ms(2000)
        told = [e for e in cluster.seen(events.RecordsProduced) if e.result == "ok"]
        committed = [e.hw for e in cluster.seen(events.HwAdvanced, broker=1)]
        assert told
        assert max(committed, default=0) < told[-1].base_offset


# -- idempotent producers --------------------------------------------------------------------------

UNKNOWN = [
    ({"profile": "2.4"}, "UNKNOWN_PRODUCER_ID"),
    ({"profile": "2.6"}, "NONE at 10"),
    (switched("unknown-producers-accepted", False), "UNKNOWN_PRODUCER_ID"),
    (switched("unknown-producers-accepted", True, "2.4"), "NONE at 10"),
]


@pytest.mark.parametrize(("how", "answer"), UNKNOWN)
def test_up_to_2_4_a_producer_that_the_log_does_not_know_must_begin_at_0(
    how: dict[str, object], answer: str
) -> None:
    with leading(**how) as play:
        play >> produce(acks=1, producer=BatchProducer(7, 0, 3)) << f"produce: {answer}"


def test_a_batch_that_comes_again_is_answered_with_its_first_offset_and_not_appended() -> None:
    with leading(isr=(1,)) as play:
        first, second = BatchProducer(7, 0, 0), BatchProducer(7, 0, 2)
        play >> produce(2, producer=first) << "hw 12" << "produce: NONE at 10"
        play >> produce(1, producer=second) << "hw 13" << "produce: NONE at 12"
        play >> produce(2, producer=first) << "produce: NONE at 10"
        play >> produce(1, producer=BatchProducer(7, 0, 4))
        play << "produce: OUT_OF_ORDER_SEQUENCE_NUMBER"
        assert play.hosted().log.log_end_offset == 13  # type: ignore[union-attr]


# -- committed offsets -----------------------------------------------------------------------------

EXPIRY = [
    ({"profile": "1.1"}, "NONE"),
    ({"profile": "2.1"}, "NONE orders-0@7"),
    (switched("offsets-expire-with-group", False), "NONE"),
    (switched("offsets-expire-with-group", True, "1.1"), "NONE orders-0@7"),
]


@pytest.mark.parametrize(("how", "answer"), EXPIRY)
def test_up_to_2_0_offsets_expire_under_the_members_of_their_group(
    how: dict[str, object], answer: str
) -> None:
    """testExpireOffsetsWithActiveGroup@1.1.1: the group stays without them."""
    with stable(expiring(**how)) as play:
        play >> commit("a", "a1", 1, 7) << "a: orders-0 NONE"
        for _ in range(12):
            play >> after_ms(5000) >> heartbeat("a", "a1", 1) << "a: NONE"
            play >> heartbeat("b", "b2", 1) << "b: NONE"
        play >> offsets << "offsets: NONE orders-0@7" >> after_ms(2000)
        play >> offsets << f"offsets: {answer}" >> described << "describe: NONE Stable a1,b2"


# -- storage: what a crash of the machine leaves ---------------------------------------------------


def survives(profile: str, seed: int) -> bool:
    """Whether a flushed record is there after it."""
    files, folder = ModelledDisk(Stream(seed).below), Path("/data")
    version = profiles()[profile]
    config = KafkaConfig.of(version.values, {})

    def directory() -> StoredDirectory:
        (one,) = stored_disk(files, folder, config, version.guards, print).directories
        assert isinstance(one, StoredDirectory)
        return one

    first = directory()
    log = first.open_log(ORDERS_0)
    files.fsync_directory(Path("/"))
    files.fsync_directory(first.folder.parent)
    files.fsync_directory(first.folder)  # as old as that: only the segment is new
    log.append_as_leader(1, 200, 0, filled(1, 200, 0))
    log.flush()
    files.crash()
    return directory().open_log(ORDERS_0).log_end_offset == 1


@pytest.mark.parametrize(
    ("profile", "outcomes"), [("2.8", {True, False}), ("3.3", {True})], ids=["2.8", "3.3"]
)
def test_up_to_2_8_a_flushed_segment_may_be_missing_after_a_crash_of_the_machine(
    profile: str, outcomes: set[bool]
) -> None:
    """Its directory was not flushed (KAFKA-3968)."""
    assert {survives(profile, seed) for seed in range(40)} == outcomes


FIVE = (4, 5, 1, 2, 3)


@pytest.mark.parametrize(
    ("profile", "assigned", "received", "shown"),
    [
        ("0.9.0", (3, 1, 2), (3, 1, 2), (3, 1, 2)),
        ("0.9.0", FIVE, (5, 1, 2, 3, 4), (5, 1, 2, 3, 4)),
        ("0.10.2", (3, 1, 2), (1, 2, 3), (1, 2, 3)),
        ("0.10.2", (3, 4, 5), (4, 5, 3), (5, 3, 4)),
        ("0.10.2", FIVE, (1, 2, 3, 4, 5), (1, 5, 2, 3, 4)),
        ("1.0", (3, 1, 2), (3, 1, 2), (3, 1, 2)),
        ("1.0", FIVE, FIVE, FIVE),
    ],
)
def test_4_3_up_to_0_10_a_broker_reads_replicas_into_a_set(
    profile: str,
    assigned: tuple[int, ...],
    received: tuple[int, ...],
    shown: tuple[int, ...],
) -> None:
    """As recorded with 0.8.2.2, 0.9.0.1, 0.10.2.2 and 1.0.2: in LeaderAndIsr, and in metadata."""
    with Emulated(1, 2, 3, 4, 5, profile=profile) as cluster:
        cluster.topic("orders", assigned).run_ms(2000)
        states = [s for e in cluster.seen(events.MetadataCacheUpdated) for s in e.states]
        assert {e.state.replicas for e in cluster.seen(events.LeaderAndIsr)} == {received}
        assert {s.replicas for s in states} == {shown}


# -- 4.6: consumers that read from the replica in their rack ---------------------------------------


@pytest.mark.parametrize(
    ("how", "redirects"),
    [
        ({"profile": "2.1"}, False),
        ({"profile": "2.4"}, True),
        (switched("fetch-from-followers", False), False),
    ],
)
def test_4_6_from_2_4_on_a_leader_may_send_a_consumer_to_the_replica_in_its_rack(
    how: dict[str, object], redirects: bool
) -> None:
    play = in_east(**how)
    play >> consume(5, wait_ms=0)
    play << f"consumer: {'read from 3' if redirects else '5..10'}, hw 10"


@pytest.mark.parametrize(
    ("how", "waits"),
    [
        ({"profile": "2.4"}, True),
        ({"profile": "2.8"}, True),
        ({"profile": "3.3"}, False),
        (switched("preferred-replica-at-once", False, "3.3"), True),
    ],
)
def test_4_6_before_3_3_the_answer_that_names_the_replica_waits(
    how: dict[str, object], waits: bool
) -> None:
    play = in_east(**how)
    play >> consume(5)
    if waits:
        play >> after_ms(500)
    play << "consumer: read from 3, hw 10"


@pytest.mark.parametrize(
    ("how", "preferred"),
    [
        ({"profile": "2.4"}, 2),
        ({"profile": "2.8"}, 2),
        ({"profile": "3.3"}, 3),
        (switched("preferred-replica-in-isr", False, "3.3"), 2),
    ],
)
def test_4_6_from_3_3_2_on_only_isr_members_are_preferred(
    how: dict[str, object], preferred: int
) -> None:
    play = in_east(**how, isr=(1, 3))
    play.follower(2, 10)
    play.follower(3, 8)
    play >> consume(5, wait_ms=0)
    play << f"consumer: read from {preferred}, hw 10"


@pytest.mark.parametrize(
    ("how", "waits"),
    [
        ({"profile": "2.6"}, True),
        ({"profile": "3.3"}, False),
        (switched("follower-hw-completes-fetches", False, "3.3"), True),
    ],
)
def test_4_6_before_3_3_2_a_fetch_that_waits_at_a_follower_does_not_see_its_high_watermark_advance(
    how: dict[str, object], waits: bool
) -> None:
    play = follower(5, 3, **how)
    play >> consume(3)
    play >> answered(fetched(ORDERS_0, hw=5))
    play << "hw 5" << "to 2: Fetch nothing new"
    if waits:
        play >> after_ms(500)
    play << "consumer: 3..5, hw 5"


# -- 4.6: partitions that the metadata cache does not have -----------------------------------------

GOING = state_of(leader=LEADER_DURING_DELETE)


def metadata(*states: PartitionState) -> Incoming:
    return request(UpdateMetadataRequest(2, CONTROLLER_EPOCH, -1, states, LIVE), "metadata")


def fetched_by_2(*wanted: TopicPartition, max_wait_ms: int = 0) -> Request:
    """From the log's end, without a session."""
    partitions = tuple(FetchPartition(p, 4, 10, 0, 1 << 20) for p in wanted)
    return FetchRequest(2, max_wait_ms, 1, 1 << 20, 0, -1, partitions)


@pytest.mark.parametrize(
    ("how", "is_refused"),
    [
        ({"profile": "0.9.0"}, False),
        ({"profile": "0.10.2"}, True),
        ({"profile": "2.6"}, True),
        (switched("unknown-partitions-refused", False), False),
        (switched("unknown-partitions-refused", True, "0.9.0"), True),
    ],
)
def test_4_6_from_0_10_1_a_leader_refuses_what_its_metadata_cache_does_not_have(
    how: dict[str, object], is_refused: bool
) -> None:
    """KAFKA-3396: from the deletion's UpdateMetadata on (recordings of random-202), and until that
    of a new topic."""
    error = "UNKNOWN_TOPIC_OR_PARTITION"
    with Serving(**how) as play:
        play >> metadata(GOING) << "metadata: NONE"
        play >> request(produce_to(acks=1))
        play << f"answer: orders-0 {error if is_refused else 'NONE'}"
        play >> request(produce_to(acks=0))
        play << f"answer: {'closed' if is_refused else 'no answer'}"
        play >> request(fetched_by_2(ORDERS_0))
        play << f"answer: NONE session 0 orders-0@{error if is_refused else 200}"
        play >> metadata(state_of()) << "metadata: NONE"
        play >> request(produce_to(acks=1)) << "answer: orders-0 NONE"


def test_4_6_what_is_refused_waits_for_the_rest_of_the_fetch() -> None:
    """handleFetchRequest: `erroneous` is no part of what ReplicaManager reads, and completes
    nothing."""
    refused = "orders-0@UNKNOWN_TOPIC_OR_PARTITION"
    with Serving(state_of(), state_of(ORDERS_1)) as play:
        play >> metadata(GOING) << "metadata: NONE"
        play >> request(fetched_by_2(ORDERS_0, max_wait_ms=500))
        play << f"answer: NONE session 0 {refused}"
        wanted = (FetchPartition(ORDERS_0, 4, 10, 0, 1 << 20),)
        play >> request(FetchRequest(2, 500, 1, 1 << 20, 0, 0, wanted))
        play << f"answer: NONE session 1 {refused}"
        play >> request(fetched_by_2(ORDERS_0, ORDERS_1, max_wait_ms=500))
        play.nothing_else()
        play >> after_ms(500) << f"answer: NONE session 0 orders-1@0 {refused}"
        play >> request(fetched_by_2(ORDERS_0, ORDERS_1, max_wait_ms=500))
        both = (ProducePartition(ORDERS_0, 1, 100), ProducePartition(ORDERS_1, 1, 100))
        play >> request(ProduceRequest(1, 1000, both), "produce")
        play << f"answer: NONE session 0 orders-1@100 {refused}"
        play << "produce: orders-1 NONE orders-0 UNKNOWN_TOPIC_OR_PARTITION"


def test_4_6_a_partition_that_was_idle_is_refused_when_its_topic_is_deleted() -> None:
    """Its fetch is in a session, and was not looked at any more."""
    with Serving(state_of(), state_of(ORDERS_1)) as play:
        play >> request(fetch_in_session(10, 10))
        play << "answer: NONE session 1 orders-0@0 orders-1@0"
        for epoch in (1, 2, 3):
            play >> request(fetch_in_session(session=1, epoch=epoch)) << "answer: NONE session 1"
        play >> metadata(GOING) << "metadata: NONE"
        for epoch in (4, 5):
            play >> request(fetch_in_session(session=1, epoch=epoch))
            play << "answer: NONE session 1 orders-0@UNKNOWN_TOPIC_OR_PARTITION"


def test_4_6_what_becomes_unknown_while_its_fetch_waits_is_refused_from_the_next_one_on() -> None:
    with Serving(state_of(), state_of(ORDERS_1)) as play:
        play >> request(fetch_in_session(10, 10))
        play << "answer: NONE session 1 orders-0@0 orders-1@0"
        for epoch in (1, 2, 3):
            play >> request(fetch_in_session(session=1, epoch=epoch)) << "answer: NONE session 1"
        play >> request(fetch_in_session(session=1, epoch=4, max_wait_ms=500))
        play >> metadata(GOING) << "metadata: NONE"
        play >> after_ms(500) << "answer: NONE session 1"
        play >> request(fetch_in_session(session=1, epoch=5))
        play << "answer: NONE session 1 orders-0@UNKNOWN_TOPIC_OR_PARTITION"


@pytest.mark.parametrize(
    ("how", "by_partition"),
    [
        ({"profile": "1.1"}, False),
        ({"profile": "2.1"}, True),
        (switched("known-by-partition", False), False),
        (switched("known-by-partition", True, "1.1"), True),
    ],
)
def test_4_6_up_to_1_1_the_metadata_cache_is_asked_about_topics(
    how: dict[str, object], by_partition: bool
) -> None:
    """KAFKA-6796: orders-1 is new, and led by this broker before its UpdateMetadata; then another
    broker hosts it."""
    unknown = "UNKNOWN_TOPIC_OR_PARTITION"
    with Serving(**how) as play:
        led = LeaderAndIsrRequest(2, CONTROLLER_EPOCH, -1, (state_of(ORDERS_1),), LIVE)
        play >> request(led, "roles")
        play << "leads orders-1 in epoch 4" << "roles: NONE orders-1 NONE"
        play >> request(produce_to(partition=ORDERS_1))
        play << f"answer: orders-1 {unknown if by_partition else 'NONE'}"
    with Serving(**how) as play:
        play >> metadata(state_of(ORDERS_1, leader=2)) << "metadata: NONE"
        play >> request(produce_to(partition=ORDERS_1))
        play << f"answer: orders-1 {'NOT_LEADER_OR_FOLLOWER' if by_partition else unknown}"


@pytest.mark.parametrize(
    ("how", "hidden"),
    [
        ({"profile": "2.1"}, False),
        ({"profile": "2.4"}, True),
        (switched("offsets-behind-election-hidden", False, "2.4"), False),
    ],
)
def test_4_6_until_a_new_leader_has_committed_a_record_it_hides_the_end_from_consumers(
    how: dict[str, object], hidden: bool
) -> None:
    """PartitionTest.testMonotonicOffsetsAfterLeaderChange, KIP-207 (2.2). The end, and that nothing
    is as late as a consumer says."""
    with leading(**how) as play:
        partition = play.hosted()
        assert partition.log is not None
        partition.log.high_watermark, partition.leader_epoch_start_offset = 4, 10
        unknown = Errors.OFFSET_NOT_AVAILABLE
        assert partition.latest_offset(-1, partition.log) == (unknown if hidden else 4)
        late = partition.offset_for_time(10**12, partition.log)
        assert late == (unknown if hidden else (-1, -1, -1))
