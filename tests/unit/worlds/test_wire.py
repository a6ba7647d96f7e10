"""Kafka's binary protocol: what we write is read by kio's own readers and by kafka-python, and what
we read back is what we meant, in every version that a profile speaks."""

import io
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record import MemoryRecords, MemoryRecordsBuilder
from kio.records.readers import read_batch
from kio.serial import entity_reader, entity_writer

from emulator.kafka.model.errors import Errors
from emulator.kafka.model.offset_log import Batch, DivergingEpoch
from emulator.kafka.profiles.base import profiles
from emulator.kafka.protocol import groups as g
from emulator.kafka.protocol import messages as m
from emulator.trace.values import PartitionState, TopicPartition
from emulator.worlds.wire import topic_ids as topic_ids_module
from emulator.worlds.wire.api import supported_versions, version_sent
from emulator.worlds.wire.errors import Malformed, Unsupported
from emulator.worlds.wire.frames import (
    MAX_FRAME,
    UnknownApiVersionsVersion,
    api_of,
    arrived,
    length_of,
    request_frame,
    response_from,
)
from emulator.worlds.wire.records import filled, produced, read_batches, write_batches
from emulator.worlds.wire.topic_ids import id_of, learn, name_of

ORDERS = TopicPartition("orders", 0)
PAYMENTS = TopicPartition("payments", 3)
STATE = PartitionState(ORDERS, 5, 1, 7, (1, 3), 9, (1, 2, 3))
FULL = PartitionState(PAYMENTS, 5, 2, 1, (2,), 0, (2, 3), (3,), (1,), is_new=True)
LIVE = (m.LiveBroker(1, "b1", 9092), m.LiveBroker(2, "b2", 9093))
BATCH = Batch(4, 6, len(filled(2, 300, 0)), 7, filled(2, 300, 0))
STORED = Batch(4, 6, BATCH.size, 7, write_batches([BATCH]))
NONE = Errors.NONE

EXCHANGES: list[tuple[m.Request, m.Response]] = [
    (
        m.FetchRequest(
            2,
            500,
            1,
            100,
            11,
            3,
            (m.FetchPartition(ORDERS, 7, 4, 0, 1 << 20),),
            (PAYMENTS,),
            rack_id="west",
        ),
        m.FetchResponse(
            NONE,
            11,
            (
                m.FetchedPartition(ORDERS, NONE, 4, 0, (STORED,)),
                m.FetchedPartition(PAYMENTS, Errors.NOT_LEADER_OR_FOLLOWER, -1, -1, ()),
                m.FetchedPartition(ORDERS, NONE, 4, 0, (), preferred_read_replica=3),
            ),
        ),
    ),
    (
        m.ProduceRequest(-1, 1000, (m.ProducePartition(ORDERS, 2, BATCH.size, BATCH.data),)),
        m.ProduceResponse((m.ProducedPartition(ORDERS, Errors.NOT_ENOUGH_REPLICAS, -1),)),
    ),
    (m.ListOffsetsRequest(2, ORDERS, 7, earliest=True), m.ListOffsetsResponse(NONE, 12)),
    (
        m.ListOffsetsRequest(-1, ORDERS, 7, earliest=False, timestamp_ms=1234),
        m.ListOffsetsResponse(NONE, 12, timestamp_ms=1235),
    ),
    (
        m.DeleteRecordsRequest(((ORDERS, 4), (PAYMENTS, -1)), 1000),
        m.DeleteRecordsResponse(
            (
                m.DeletedRecords(ORDERS, NONE, 4),
                m.DeletedRecords(PAYMENTS, Errors.OFFSET_OUT_OF_RANGE, -1),
            )
        ),
    ),
    (
        m.OffsetsForLeaderEpochRequest(2, (m.EpochQuery(ORDERS, 7, 6),)),
        m.OffsetsForLeaderEpochResponse((m.EpochEndOffset(ORDERS, NONE, 6, 40),)),
    ),
    (
        m.LeaderAndIsrRequest(1, 5, 99, (STATE, FULL), LIVE),
        m.LeaderAndIsrResponse(NONE, ((ORDERS, NONE), (PAYMENTS, Errors.KAFKA_STORAGE_ERROR))),
    ),
    (
        m.UpdateMetadataRequest(1, 5, 99, (STATE, FULL), LIVE),
        m.UpdateMetadataResponse(Errors.STALE_BROKER_EPOCH),
    ),
    (
        m.StopReplicaRequest(1, 5, 99, (m.StopReplicaPartition(ORDERS, 7, delete=True),)),
        m.StopReplicaResponse(NONE, ((ORDERS, Errors.FENCED_LEADER_EPOCH),)),
    ),
    (m.ControlledShutdownRequest(2, 99), m.ControlledShutdownResponse(NONE, (ORDERS, PAYMENTS))),
    (
        m.AlterIsrRequest(2, 99, (m.AlterIsrPartition(ORDERS, 7, (1, 2), 9),)),
        m.AlterIsrResponse(NONE, (m.AlterIsrResult(ORDERS, NONE, 1, 7, (1, 2), 10),)),
    ),
    (m.MetadataRequest(("orders",)), m.MetadataResponse(LIVE, 2, (STATE,), 9, "cluster")),
    (m.InitProducerIdRequest(), m.InitProducerIdResponse(NONE, 4000, 0)),
    (g.FindCoordinatorRequest("g"), g.FindCoordinatorResponse(NONE, "", 2, "h2", 9092)),
    (
        g.JoinGroupRequest("g", 10_000, 60_000, "", "i", "consumer", (("range", b"topics"),)),
        g.JoinGroupResponse(
            NONE, 3, "consumer", "range", "m", "m", (g.JoinedMember("m", "i", b"topics"),)
        ),
    ),
    (
        g.SyncGroupRequest("g", 3, "m", None, "consumer", "range", (("m", b"a"), ("n", b"b"))),
        g.SyncGroupResponse(NONE, "consumer", "range", b"a"),
    ),
    (g.HeartbeatRequest("g", 3, "m", "i"), g.HeartbeatResponse(Errors.REBALANCE_IN_PROGRESS)),
    (
        g.LeaveGroupRequest("g", (g.MemberIdentity("m", "i"),)),
        g.LeaveGroupResponse(NONE, ((g.MemberIdentity("m", "i"), Errors.FENCED_INSTANCE_ID),)),
    ),
    (
        g.OffsetCommitRequest("g", 3, "m", "i", ((ORDERS, g.CommittedOffset(12, 7, "note")),)),
        g.OffsetCommitResponse(((ORDERS, NONE), (PAYMENTS, Errors.OFFSET_METADATA_TOO_LARGE))),
    ),
    (
        g.OffsetFetchRequest("g", (ORDERS, PAYMENTS)),
        g.OffsetFetchResponse(
            NONE, ((ORDERS, g.CommittedOffset(12, 7, "note")), (PAYMENTS, g.CommittedOffset(-1)))
        ),
    ),
    (
        g.ListGroupsRequest(("Stable",)),
        g.ListGroupsResponse(NONE, (g.ListedGroup("g", "consumer", "Stable"),)),
    ),
    (
        g.DescribeGroupsRequest("g"),
        g.DescribeGroupsResponse(
            NONE,
            "Stable",
            "consumer",
            "range",
            (g.DescribedMember("m", "i", "client", "/127.0.0.1", b"topics", b"a"),),
        ),
    ),
    (g.DeleteGroupsRequest("g"), g.DeleteGroupsResponse(Errors.NON_EMPTY_GROUP)),
    (
        m.CreateTopicsRequest("orders", ((1, 2), (2, 3)), (("min.insync.replicas", "2"),)),
        m.AdminResponse(Errors.TOPIC_ALREADY_EXISTS),
    ),
    (m.CreatePartitionsRequest("orders", ((3, 1),), count=3), m.AdminResponse(NONE)),
    (m.DeleteTopicsRequest("orders"), m.AdminResponse(Errors.UNKNOWN_TOPIC_OR_PARTITION)),
    (m.ElectLeadersRequest((ORDERS,)), m.AdminResponse(NONE, partitions=((ORDERS, NONE),))),
    (
        m.AlterConfigsRequest("topics", "orders", (("flush.messages", "1"),), ("retention.ms",)),
        m.AdminResponse(NONE),
    ),
    (
        m.AlterPartitionReassignmentsRequest(((ORDERS, (1, 2)), (PAYMENTS, None))),
        m.AdminResponse(NONE, partitions=((ORDERS, NONE), (PAYMENTS, NONE))),
    ),
]


def _spoken() -> Iterator[tuple[str, m.Request, m.Response, int]]:
    """Each exchange in each version of each profile."""
    for profile in ("1.0", "1.1", "2.1", "2.4", "2.6", "2.7"):
        knows = supported_versions(profiles()[profile])
        for request, response in EXCHANGES:
            name = api_of(request).name
            least, most = knows.get(name, (1, 0))
            for version in range(least, most + 1):
                yield profile, request, response, version


@pytest.mark.parametrize("profile", ["1.0", "1.1", "2.1", "2.4", "2.6", "2.7"])
def test_requests_and_answers_survive_the_wire_in_every_version(profile: str) -> None:
    """In the newest version of a profile as they were, but for what that version does not say; in
    older ones they are read without complaint."""
    knows = supported_versions(profiles()[profile])
    for name, request, response, version in _spoken():
        if name != profile:
            continue
        frame = request_frame(request, version, 41, "broker-2-fetcher-0")
        assert length_of(frame[:4]) == len(frame) - 4
        read = arrived(frame[4:], knows)
        assert (read.correlation_id, read.version) == (41, version)
        answer = read.answer([response])
        assert answer is not None
        number, back = response_from(answer[4:], request, version)
        assert number == 41
        assert type(back) is type(response)


@pytest.mark.parametrize("request_response", EXCHANGES, ids=lambda e: type(e[0]).__name__)
def test_the_newest_version_says_everything(request_response: tuple[m.Request, m.Response]) -> None:
    request, response = request_response
    knows = supported_versions(
        profiles()["2.7" if isinstance(request, m.AlterIsrRequest) else "2.6"]
    )
    version = knows[api_of(request).name][1]
    frame = request_frame(request, version, 1, "c")
    read = arrived(frame[4:], knows)
    assert _told(read.sent.requests) == _told((request,))
    answer = read.answer([response])
    assert answer is not None
    assert _of_interest(response_from(answer[4:], request, version)[1]) == _of_interest(response)


def test_a_fetch_says_its_last_epoch_from_version_12_on_and_is_answered_where_logs_part() -> None:
    fetch = m.FetchPartition(ORDERS, 7, 4, 0, 1 << 20, last_fetched_epoch=6)
    request = m.FetchRequest(2, 500, 1, 100, 11, 3, (fetch,))
    end = DivergingEpoch(5, 3)
    response = m.FetchResponse(
        NONE,
        11,
        (
            m.FetchedPartition(ORDERS, NONE, 4, 0, (), end),
            m.FetchedPartition(PAYMENTS, NONE, 4, 0, ()),
        ),
    )
    for profile, epoch, parts in (("2.6", -1, None), ("2.7", 6, end)):
        knows = supported_versions(profiles()[profile])
        version = knows["Fetch"][1]
        read = arrived(request_frame(request, version, 1, "c")[4:], knows)
        (there,) = read.sent.requests
        assert isinstance(there, m.FetchRequest)
        assert [one.last_fetched_epoch for one in there.partitions] == [epoch]
        answer = read.answer([response])
        assert answer is not None
        back = response_from(answer[4:], request, version)[1]
        assert isinstance(back, m.FetchResponse)
        assert [one.diverging_epoch for one in back.partitions] == [parts, None]


TOPIC_IDS = {"orders": UUID(int=0x1234), "payments": UUID(int=0x5678)}


@pytest.fixture
def topic_ids() -> Iterator[None]:
    for topic, topic_id in TOPIC_IDS.items():
        learn(topic, topic_id)
    yield
    topic_ids_module._names.clear()
    topic_ids_module._ids.clear()


@pytest.mark.usefixtures("topic_ids")
@pytest.mark.parametrize(
    ("profile", "version", "request_type"),
    [
        ("2.8", 5, m.LeaderAndIsrRequest),
        ("3.3", 6, m.LeaderAndIsrRequest),
        ("2.8", 7, m.UpdateMetadataRequest),
        ("3.3", 13, m.FetchRequest),
    ],
)
def test_what_real_kafka_sends_with_topic_ids_is_read_and_answered(
    profile: str, version: int, request_type: type[m.Request]
) -> None:
    knows = supported_versions(profiles()[profile])
    request, response = next(pair for pair in EXCHANGES if type(pair[0]) is request_type)
    assert knows[api_of(request).name][1] == version
    read = arrived(request_frame(request, version, 1, "c")[4:], knows)
    assert _told(read.sent.requests) == _told((request,))
    answer = read.answer([response])
    assert answer is not None
    assert response_from(answer[4:], request, version)[1] == response


@pytest.mark.usefixtures("topic_ids")
def test_topic_ids_are_those_of_the_last_controller_request_that_was_accepted() -> None:
    knows = supported_versions(profiles()["2.8"])
    frame = request_frame(m.UpdateMetadataRequest(1, 5, 99, (STATE,), LIVE), 7, 1, "c")[4:]
    again = UUID(int=0x9ABC)
    assert frame.count(TOPIC_IDS["orders"].bytes) == 1
    read = arrived(frame.replace(TOPIC_IDS["orders"].bytes, again.bytes), knows)
    read.answer([m.UpdateMetadataResponse(Errors.STALE_CONTROLLER_EPOCH)])
    assert id_of("orders") == TOPIC_IDS["orders"], "it was refused"
    read.answer([m.UpdateMetadataResponse(NONE)])
    assert (id_of("orders"), name_of(again)) == (again, "orders")


@pytest.mark.usefixtures("topic_ids")
def test_a_fetch_with_an_unknown_topic_id_begins_its_session_again() -> None:
    knows = supported_versions(profiles()["3.3"])
    fetch = m.FetchPartition(ORDERS, 7, 4, 0, 1 << 20, last_fetched_epoch=6)
    request = m.FetchRequest(2, 500, 1, 100, 11, 3, (fetch,))
    frame = request_frame(request, 13, 1, "c")[4:]
    topic_ids_module._names.clear()
    read = arrived(frame, knows)
    assert read.sent.requests == ()
    answer = read.answer([])
    assert answer is not None
    back = response_from(answer[4:], request, 13)[1]
    assert back == m.FetchResponse(Errors.FETCH_SESSION_TOPIC_ID_ERROR, 0, ())


def test_versions_with_topic_ids_are_neither_sent_nor_offered() -> None:
    profile = profiles()["3.3"]
    knows = supported_versions(profile)
    for name, newest in {"Fetch": 12, "LeaderAndIsr": 4, "UpdateMetadata": 6}.items():
        assert version_sent(profile, name, knows[name][1]) == newest
    (offered,) = arrived(request_frame(m.ApiVersionsRequest(), 0, 1, "c")[4:], knows).sent.answered
    assert isinstance(offered, m.ApiVersionsResponse)
    assert [offered.newest[key] for key in (1, 4, 6)] == [12, 4, 6]


def _told(requests: tuple[m.Request, ...]) -> list[object]:
    """A controller's requests say of a state only what concerns their receivers."""
    return [
        [(s.partition, s.leader, s.leader_epoch, s.isr, s.zk_version, s.replicas) for s in r.states]
        if isinstance(r, m.LeaderAndIsrRequest | m.UpdateMetadataRequest)
        else r
        for r in requests
    ]


def _of_interest(response: m.Response) -> object:
    """Admin clients of ours want the error alone; Metadata carries no ZooKeeper versions."""
    if isinstance(response, m.AdminResponse):
        return response.error
    if isinstance(response, m.MetadataResponse):
        states = [(s.partition, s.leader, s.isr, s.replicas) for s in response.partitions]
        return response.brokers, response.controller_id, states
    return response


@pytest.mark.parametrize(
    ("version", "error"), [(5, Errors.LEADER_NOT_AVAILABLE), (6, Errors.LISTENER_NOT_FOUND)]
)
def test_a_leader_that_is_not_alive_is_none_and_version_6_misses_its_listener(
    version: int, error: Errors
) -> None:
    """MetadataCacheTest.getTopicMetadataWithNonSupportedSecurityProtocol and its like."""
    read = arrived(
        request_frame(m.MetadataRequest(), version, 7, "c")[4:], supported_versions(_2_6)
    )
    response = m.MetadataResponse(LIVE[:1], 1, (msgspec.structs.replace(STATE, leader=99),), 9)
    (topic,) = read.api.write_response(read.entity, (response,))["topics"]
    (partition,) = topic["partitions"]
    assert (partition["error_code"], partition["leader_id"]) == (error, -1)


def test_kio_reads_what_we_write_and_writes_what_we_read() -> None:
    """Our reader goes over kio's schemas by itself; kio's own is the oracle, byte for byte."""
    for _, request, _, version in _spoken():
        frame = request_frame(request, version, 7, "client")
        read = arrived(frame[4:], supported_versions(profiles()["2.7"]))
        schema = type(read.entity)
        header, size = entity_reader(schema.__header_schema__)(frame, 4)  # type: ignore[attr-defined]
        theirs, body = entity_reader(schema)(frame, 4 + size)
        assert theirs == read.entity
        assert 4 + size + body == len(frame)
        out = io.BytesIO()
        entity_writer(type(header))(out, header)
        entity_writer(schema)(out, read.entity)
        assert out.getvalue() == frame[4:]


def test_a_tagged_field_that_nobody_knows_is_passed_over() -> None:
    """librdkafka 2.16 asks for all topics with a null array of four bytes where one is meant; what
    follows reads as a tagged field, which Kafka passes over."""
    request = bytes.fromhex("0003000900000003000772646b61666b61000000000001000000")
    read = arrived(request, supported_versions(profiles()["2.6"]))
    assert read.sent.requests == (m.MetadataRequest(),)
    assert read.client_id == "rdkafka"


# -- what is refused -------------------------------------------------------------------------------


def test_an_unknown_version_of_api_versions_is_answered_in_version_0() -> None:
    """KIP-511: a newer client learns what there is."""
    with pytest.raises(UnknownApiVersionsVersion) as told:
        arrived(
            bytes.fromhex("0012 7fff 00000009 0001 63".replace(" ", "")), supported_versions(_2_6)
        )
    frame = told.value.answer
    assert frame[4:8] == (9).to_bytes(4, "big")
    assert frame[8:10] == (35).to_bytes(2, "big")


_2_6 = profiles()["2.6"]


@pytest.mark.parametrize(
    ("request_hex", "why"),
    [
        ("0001", "a request of 2 bytes"),
        ("03e7 0000 00000001", "API 999"),
        ("0000 0002 00000001", "Produce version 2: 3 to 8"),
        ("0038 0000 00000001", "API 56"),
        ("0003 0001 00000001 ffff 7fffffff", "an array of 2147483647 in 0 bytes"),
        ("0001 000b 00000001 ffff 00000001", "a number of 4 bytes at byte 14, 0 are left"),
    ],
)
def test_what_is_no_request_is_refused_with_a_reason(request_hex: str, why: str) -> None:
    with pytest.raises(Malformed, match=why):
        arrived(bytes.fromhex(request_hex.replace(" ", "")), supported_versions(_2_6))


def test_a_group_s_error_stands_where_its_version_has_a_place_for_it() -> None:
    """OffsetFetch 1 has none for the whole group; LeaveGroup 2 none for each member."""
    knows = supported_versions(_2_6)
    fetch = g.OffsetFetchRequest("g", (ORDERS,))
    for request, version, response, expected in (
        (
            fetch,
            1,
            g.OffsetFetchResponse(Errors.NOT_COORDINATOR),
            g.OffsetFetchResponse(NONE, ((ORDERS, g.CommittedOffset(-1)),)),
        ),
        (
            g.LeaveGroupRequest("g", (g.MemberIdentity("m"),)),
            2,
            g.LeaveGroupResponse(NONE, ((g.MemberIdentity("m"), Errors.UNKNOWN_MEMBER_ID),)),
            g.LeaveGroupResponse(Errors.UNKNOWN_MEMBER_ID),
        ),
    ):
        read = arrived(request_frame(request, version, 1, "c")[4:], knows)
        answer = read.answer([response])
        assert answer is not None
        assert response_from(answer[4:], request, version)[1] == expected


@pytest.mark.parametrize(
    ("version", "error"), [(4, Errors.LEADER_NOT_AVAILABLE), (5, Errors.OFFSET_NOT_AVAILABLE)]
)
def test_a_client_before_2_2_is_not_answered_with_an_error_that_it_does_not_know(
    version: int, error: Errors
) -> None:
    """handleListOffsetRequest, KIP-207."""
    request = m.ListOffsetsRequest(-1, ORDERS, -1, earliest=False)
    read = arrived(request_frame(request, version, 1, "c")[4:], supported_versions(_2_6))
    answer = read.answer([m.ListOffsetsResponse(Errors.OFFSET_NOT_AVAILABLE, -1)])
    assert answer is not None
    assert response_from(answer[4:], request, version)[1] == m.ListOffsetsResponse(error, -1)


def test_frames_are_capped() -> None:
    with pytest.raises(Malformed, match=f"{MAX_FRAME} at most"):
        length_of((1 << 31).__sub__(1).to_bytes(4, "big"))
    with pytest.raises(Malformed, match="-1 bytes"):
        length_of(b"\xff\xff\xff\xff")


@settings(deadline=None)
@given(st.binary(max_size=200), st.sampled_from(range(58)), st.integers(0, 12))
def test_whatever_comes_is_a_request_or_malformed(data: bytes, key: int, version: int) -> None:
    """Nothing else ever comes out of the reader."""
    head = key.to_bytes(2, "big") + version.to_bytes(2, "big") + b"\0\0\0\1\0\1c"
    try:
        arrived(head + data, supported_versions(_2_6))
    except (Malformed, Unsupported, UnknownApiVersionsVersion):
        pass


@pytest.mark.parametrize("topic", ["", "..", "a/b", "../../b", "a\0b", "é", "x" * 250])
def test_what_is_no_topic_makes_no_folder(topic: str) -> None:
    """A stranger that plays the controller is closed with a reason; so with partition -1."""
    for named in (TopicPartition(topic, 0), TopicPartition("orders", -1)):
        state = PartitionState(named, 5, 1, 7, (1,), 9, (1,))
        stop = m.StopReplicaPartition(named, 7, delete=True)
        for request in (
            m.LeaderAndIsrRequest(1, 5, 99, (state,), LIVE),
            m.UpdateMetadataRequest(1, 5, 99, (state,), LIVE),
            m.StopReplicaRequest(1, 5, 99, (stop,)),
        ):
            for version in range(1, 4):
                frame = request_frame(request, version, 1, "c")
                with pytest.raises(Malformed, match=r"Topic name|partition -1|has a NUL"):
                    arrived(frame[4:], supported_versions(_2_6))


FRAMES = [
    (request_frame(request, version, 1, "c")[4:], profile)
    for profile, request, _, version in _spoken()
]
STRIKES = st.lists(
    st.tuples(
        st.integers(8, 400),
        st.one_of(
            st.sampled_from([b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x80\0\0\0", b"\xff" * 8]),
            st.binary(min_size=1, max_size=4),
            st.none(),
        ),
    ),
    min_size=1,
    max_size=3,
)


def garbled(data: bytes, strikes: list[tuple[int, bytes | None]]) -> bytes:
    """With these bytes at these places; None: cut off there."""
    for at, bytes_ in strikes:
        at = min(at, len(data))
        data = data[:at] if bytes_ is None else data[:at] + bytes_ + data[at + len(bytes_) :]
    return data


@settings(deadline=None, max_examples=300)
@given(st.sampled_from(FRAMES), STRIKES)
def test_a_request_with_wrong_bytes_in_it_is_a_request_or_malformed(
    frame: tuple[bytes, str], strikes: list[tuple[int, bytes | None]]
) -> None:
    """Every API in every version, with other numbers and lengths, and truncated."""
    data, profile = frame
    try:
        arrived(garbled(data, strikes), supported_versions(profiles()[profile]))
    except (Malformed, Unsupported, UnknownApiVersionsVersion):
        pass


# -- record batches --------------------------------------------------------------------------------


def test_kio_and_kafka_python_read_our_batches() -> None:
    data = filled(3, 400, 1_700_000_000_000)
    batch, _ = read_batch(data, 0)
    assert [record.offset for record in batch.records] == [0, 1, 2]
    (theirs,) = _read_by_kafka_python(data)
    assert len(list(theirs)) == 3
    assert len(data) == pytest.approx(400, abs=20)


def _read_by_kafka_python(data: bytes) -> list[Any]:
    records, found = MemoryRecords(data), []
    while records.has_next():
        batch = records.next_batch()
        assert batch.validate_crc()
        found.append(batch)
    return found


def test_a_batch_gets_its_leaders_offset_and_epoch_and_keeps_its_checksum() -> None:
    builder = MemoryRecordsBuilder(magic=2, compression_type=0, batch_size=10_000)
    for n in range(4):
        builder.append(timestamp=n, key=None, value=b"v%d" % n)
    builder.close()
    sent = bytes(builder.buffer())
    assert produced(sent) == Batch(0, 4, len(sent), 0, sent)
    stored = write_batches([Batch(70, 74, len(sent), 6, sent)])
    (batch,) = read_batches(stored)
    assert (batch.base_offset, batch.next_offset, batch.leader_epoch) == (70, 74, 6)
    (theirs,) = _read_by_kafka_python(stored)
    assert [(r.offset, r.value) for r in theirs] == [(70 + n, b"v%d" % n) for n in range(4)]


def test_a_produce_request_without_a_whole_batch_is_refused_partition_by_partition() -> None:
    good, bad = BATCH.data, BATCH.data[:-1] + b"\xff"
    wanted = (
        m.ProducePartition(ORDERS, 2, len(good), good),
        m.ProducePartition(PAYMENTS, 2, len(bad), bad),
    )
    frame = request_frame(m.ProduceRequest(1, 1000, wanted), 8, 1, "p")
    read = arrived(frame[4:], supported_versions(_2_6))
    (request,) = read.sent.requests
    assert isinstance(request, m.ProduceRequest)
    assert [p.partition for p in request.partitions] == [ORDERS]
    answer = read.answer([m.ProduceResponse((m.ProducedPartition(ORDERS, NONE, 4),))])
    assert answer is not None
    _, back = response_from(answer[4:], request, 8)
    assert isinstance(back, m.ProduceResponse)
    assert {p.partition: p.error for p in back.partitions} == {
        ORDERS: NONE,
        PAYMENTS: Errors.CORRUPT_MESSAGE,
    }


def test_half_a_batch_at_the_end_is_left_out_and_a_wrong_checksum_is_noticed() -> None:
    whole = write_batches([BATCH, Batch(6, 8, BATCH.size, 7, BATCH.data)])
    assert [b.base_offset for b in read_batches(whole[:-1])] == [4]
    broken = whole[:-1] + bytes([whole[-1] ^ 1])
    with pytest.raises(Malformed, match="checksum of the batch at 6"):
        list(read_batches(broken))


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_no_bytes_are_a_batch_by_accident(data: bytes) -> None:
    with pytest.raises(Malformed):
        produced(data)


@settings(deadline=None)
@given(epochs=st.lists(st.integers(0, 1 << 60), min_size=2, max_size=4), version=st.integers(1, 6))
def test_what_all_brokers_get_reads_as_if_each_had_got_it_alone(
    epochs: list[int], version: int
) -> None:
    """One controller's request to several brokers: their epochs alone differ."""
    state = PartitionState(TopicPartition("orders", 0), 3, 1, 4, (1, 2), 5, (1, 2, 3))
    live = (m.LiveBroker(1, "127.0.0.1", 9092),)
    for number, epoch in enumerate(epochs):
        for states in ((state,), (state, msgspec.structs.replace(state, leader=2))):
            request = m.UpdateMetadataRequest(1, 3, epoch, states, live)
            frame = request_frame(request, version, number, f"broker-{number}")
            read = arrived(frame[4:], supported_versions(profiles()["2.6"]))
            assert (read.correlation_id, read.client_id) == (number, f"broker-{number}")
            (same,) = read.sent.requests
            assert isinstance(same, m.UpdateMetadataRequest)
            assert same.broker_epoch == (epoch if version >= 5 else -1)
            assert same.states == states
