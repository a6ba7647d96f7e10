"""Requests at a broker's door: handler threads, broker epochs, sessions, errors of ZooKeeper."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.kafka.broker.admin import AdminManager
from emulator.kafka.broker.apis import KafkaApis
from emulator.kafka.broker.metadata_cache import LEADER_DURING_DELETE
from emulator.kafka.broker.request_handlers import RequestHandlerPool
from emulator.kafka.coordinator.group_coordinator import GroupCoordinator
from emulator.kafka.coordinator.group_metadata_manager import GroupMetadataManager
from emulator.kafka.coordinator.producer_id_manager import ProducerIdManager
from emulator.kafka.model.errors import Errors
from emulator.kafka.model.record_batch import batch_of
from emulator.kafka.protocol.groups import CommittedOffset
from emulator.kafka.protocol.messages import (
    AlterConfigsRequest,
    AlterIsrPartition,
    AlterIsrRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    LeaderAndIsrRequest,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
    OffsetsForLeaderEpochRequest,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    Request,
    StopReplicaPartition,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from emulator.kafka.protocol.messages import EpochQuery as Query
from emulator.kernel.scheduler import BASE_MS
from tests.interaction.controlling import registration
from tests.interaction.hosting import CONTROLLER_EPOCH, LIVE, ORDERS_0, ORDERS_1, Hosting, state_of
from tests.interaction.playbook import (
    WALL_MS,
    Incoming,
    Playbook,
    after_ms,
    answers,
    children,
    created,
    data,
    no_node,
    ok,
    reply,
)
from zk.client import codec
from zk.client.codec import ReplicaAssignment
from zk.errors import Code

BROKER_EPOCH = 50


class Answers:
    """emulator.kafka.protocol.transport.ServerConnection: answers come out as lines."""

    client, host = "client", "/127.0.0.1"

    def __init__(self, play: Playbook, name: str) -> None:
        self._play, self._name = play, name

    def respond(self, response: Any) -> None:
        self._play.say(f"{self._name}: {line_of(response)}")

    def hang_up(self) -> None:
        self._play.say(f"{self._name}: closed")


def line_of(response: Any) -> str:
    match response:
        case None:
            return "no answer"
        case FetchResponse(error=error, session_id=session, partitions=partitions):
            named = " ".join(
                f"{p.partition}@{p.size if p.error is Errors.NONE else p.error.name}"
                for p in partitions
            )
            return f"{error.name} session {session % BASE_MS} {named}".rstrip()
        case ProduceResponse(partitions=produced):
            return " ".join(f"{p.partition} {p.error.name}" for p in produced)
        case ListOffsetsResponse(error=Errors.NONE, timestamp_ms=at_ms) if (
            at_ms >= 0 or response.offset < 0
        ):
            return f"{response.error.name} {response.offset} of {at_ms}"
        case InitProducerIdResponse(error=Errors.NONE, producer_id=producer_id) as given:
            return f"producer {producer_id}, epoch {given.producer_epoch}"
    partitions = getattr(response, "partitions", None)
    if partitions is None:
        error = getattr(response, "error", None)
        return error.name if error is not None else str(response)
    if hasattr(response, "brokers"):
        return f"{len(response.brokers)} brokers, {len(partitions)} partitions"
    found = " ".join(f"{p[0]} {p[1].name}" for p in partitions)
    error = getattr(response, "error", None)
    return f"{error.name + ' ' if error is not None else ''}{found}".rstrip()


class NotAsked:
    """The controller in this process: only whether it is active matters here, and which topics
    are going."""

    def __init__(self, is_active: bool) -> None:
        self.is_active = is_active

    def is_topic_queued_for_deletion(self, topic: str) -> bool:
        return topic == "going"


class Serving(Hosting):
    """A broker whose handler threads serve requests; it leads orders-0."""

    def __init__(self, *partitions: Any, is_controller: bool = False, **settings: object) -> None:
        super().__init__(*(partitions or (state_of(),)), records=10, **settings)
        self.groups = GroupMetadataManager(self.context, self.replicas, 50, lambda: WALL_MS)
        self.apis = KafkaApis(
            self.context,
            self.replicas,
            self.metadata_cache,
            AdminManager(self.context, self.zk, self.metadata_cache, self._draw),
            NotAsked(is_controller),
            ProducerIdManager(self.context, self.zk),
            GroupCoordinator(self.context, self.groups, self.metadata_cache, self._draw),
        )
        self.draws: list[int] = []
        self.pool = RequestHandlerPool(self.context)
        self.pool.start(self.apis.handle)
        self.settle()

    def _draw(self, below: int) -> int:
        drawn = self.draws.pop(0)
        assert drawn < below
        return drawn


def request(what: Request, name: str = "answer") -> Incoming:
    def receive(play: Playbook) -> None:
        assert isinstance(play, Serving)
        play.pool.receive(what, Answers(play, name))

    return receive


def leader_and_isr(broker_epoch: int, epoch: int = 5) -> Request:
    states = (state_of(epoch=epoch),)
    return LeaderAndIsrRequest(2, CONTROLLER_EPOCH, broker_epoch, states, LIVE)


def update_metadata(broker_epoch: int) -> Request:
    return UpdateMetadataRequest(2, CONTROLLER_EPOCH, broker_epoch, (), LIVE)


def produce(acks: int = 1, partition: Any = ORDERS_0) -> Request:
    return ProduceRequest(acks, 1000, (ProducePartition(partition, 1, 100),))


def fetch(
    *offsets: int,
    session: int = 0,
    epoch: int = 0,
    max_wait_ms: int = 0,
    max_bytes: int = 1 << 20,
) -> Request:
    wanted = tuple(
        FetchPartition(p, 4, offset, 0, 1 << 20)
        for p, offset in zip((ORDERS_0, ORDERS_1), offsets, strict=False)
    )
    # Ids follow the time at which the process began.
    session_id = BASE_MS + session if session else 0
    return FetchRequest(2, max_wait_ms, 1, max_bytes, session_id, epoch, wanted)


# -- broker epochs (§4.3, KIP-380) -----------------------------------------------------------------


def test_what_was_meant_for_an_earlier_incarnation_is_refused() -> None:
    with Serving() as play:
        (
            play
            >> request(leader_and_isr(BROKER_EPOCH - 1))
            << "LeaderAndIsr refused: STALE_BROKER_EPOCH"
            << "answer: STALE_BROKER_EPOCH"
            >> request(update_metadata(BROKER_EPOCH - 1))
            << "UpdateMetadata refused: STALE_BROKER_EPOCH"
            << "answer: STALE_BROKER_EPOCH"
        )


def test_the_own_epoch_a_greater_one_and_none_at_all_are_accepted() -> None:
    with Serving() as play:
        for number, broker_epoch in enumerate((BROKER_EPOCH, BROKER_EPOCH + 1, -1)):
            (
                play
                >> request(leader_and_isr(broker_epoch, epoch=5 + number))
                << f"leads orders-0 in epoch {5 + number}"
                << "answer: NONE orders-0 NONE"
            )


def test_the_coordinator_hears_of_deleted_partitions_before_the_controller_is_answered() -> None:
    """KafkaApis.scala@2.6.3 handleUpdateMetadataRequest; test_groups has what it does then."""
    deleted = UpdateMetadataRequest(
        2, CONTROLLER_EPOCH, BROKER_EPOCH, (state_of(leader=LEADER_DURING_DELETE),), LIVE
    )
    with Serving() as play:
        group = play.groups.add_group("g")
        group.initialize_offset(ORDERS_0, CommittedOffset(9), 0)
        play >> request(update_metadata(BROKER_EPOCH)) << "answer: NONE"
        assert group.has_offsets
        play >> request(deleted) << "answer: NONE"
        assert not group.has_offsets


# -- StopReplica and fetcher threads (§5.1) --------------------------------------------------------


def stop_replica(partition: Any = ORDERS_0) -> Request:
    return StopReplicaRequest(
        2, CONTROLLER_EPOCH, -1, (StopReplicaPartition(partition, -1, delete=False),)
    )


def test_stop_replica_ends_a_thread_without_partitions_after_its_response() -> None:
    """KafkaApis.scala@2.6.3 handleStopReplicaRequest."""
    with Serving(state_of(leader=2)) as play:
        assert play.fetchers.threads
        play >> request(stop_replica()) << "answer: NONE orders-0 NONE"
        assert not play.fetchers.threads


def test_stop_replica_up_to_1_0_waits_for_the_fetch_in_flight_and_keeps_the_lock() -> None:
    """KAFKA-6051: the first response is sent, and the next request waits for the fetch."""
    with Serving(state_of(leader=2), profile="1.0") as play:
        (
            play
            >> request(stop_replica())
            << "answer: NONE orders-0 NONE"
            >> request(stop_replica(), "second")
            >> answers(2, FetchResponse(Errors.NONE, 0, ()))
            << "second: NONE orders-0 NONE"
        )
        assert not play.fetchers.threads


# -- handler threads -------------------------------------------------------------------------------


def test_a_handler_that_waits_for_zookeeper_is_one_handler_fewer() -> None:
    """H22: with two threads two blocked requests block the broker."""
    both = (state_of(isr=(1, 2)), state_of(ORDERS_1, isr=(1, 2)))
    with Serving(*both, num_io_threads=2) as play:
        (
            play
            >> request(joining(ORDERS_0), "join orders-0")
            << "set orders-0 at v5: leader 1, epoch 4, isr 1,2,3, controller 7"
            >> request(produce(partition=ORDERS_1), "produce")
            << "produce: orders-1 NONE"
            >> request(joining(ORDERS_1), "join orders-1")
            << "set orders-1 at v5: leader 1, epoch 4, isr 1,2,3, controller 7"
            >> request(MetadataRequest(), "metadata")
        )
        assert play.pool.waiting == 1
        (
            play
            >> ok(version=6)
            << "isr 1,2,3 v6"
            << "join orders-0: NONE session 0 orders-0@0"
            << "metadata: 3 brokers, 2 partitions"
            >> ok(version=6)
            << "isr 1,2,3 v6"
            << "join orders-1: NONE session 0 orders-1@100"
        )


@pytest.mark.parametrize(
    ("leader", "answer"),
    [(-1, ("LeaderAndIsr: NONE orders-0 NONE",)), (2, ())],
    ids=["no leader", "another leader"],
)
def test_beside_an_isr_write_a_request_waits_only_if_its_leader_is_alive(
    leader: int, answer: tuple[str, ...]
) -> None:
    """createLogIfNotExists takes no lock; makeFollower takes the one that the write holds."""
    with Serving(state_of(isr=(1, 2))) as play:
        play >> request(joining(ORDERS_0), "join")
        play << "set orders-0 at v5: leader 1, epoch 4, isr 1,2,3, controller 7"
        moved = (state_of(leader=leader, epoch=5),)
        play >> request(LeaderAndIsrRequest(2, CONTROLLER_EPOCH, -1, moved, LIVE), "LeaderAndIsr")
        for line in answer:
            play << line


def joining(partition: Any) -> Request:
    """Broker 3 fetches at the high watermark."""
    wanted = (FetchPartition(partition, 4, 10, 0, 1 << 20),)
    return FetchRequest(3, 0, 1, 0, 0, -1, wanted)


def test_requests_that_come_before_the_start_wait() -> None:
    with Hosting(state_of(), records=10) as play:
        served: list[object] = []

        async def handle(received: object) -> None:
            served.append(received)

        pool = RequestHandlerPool(play.context)
        pool.receive(MetadataRequest(), Answers(play, "early"))
        play.settle()
        assert (len(served), pool.waiting) == (0, 1)
        pool.start(handle)
        play.settle()
        assert (len(served), pool.waiting) == (1, 0)


# -- answers ---------------------------------------------------------------------------------------


def test_acks_0_gets_no_answer() -> None:
    with Serving() as play:
        play >> request(produce(acks=0)) << "answer: no answer"


def test_acks_0_that_fails_closes_the_connection() -> None:
    """The client reads no error; when it finds the connection closed it requests metadata."""
    with Serving() as play:
        play >> request(produce(acks=0, partition=ORDERS_1)) << "answer: closed"


def test_an_error_of_zookeeper_that_reaches_the_handler_is_the_whole_requests_answer() -> None:
    """§2.3: out of the fetch handler, whole fetch request answered with an error."""
    with Serving(state_of(isr=(1, 2))) as play:
        (
            play
            >> request(joining(ORDERS_0))
            << "set orders-0 at v5: leader 1, epoch 4, isr 1,2,3, controller 7"
            >> reply(Code.SESSION_EXPIRED)
            << (
                "FetchRequest failed: ZooKeeperError: SESSION_EXPIRED for "
                "/brokers/topics/orders/partitions/0/state"
            )
            << "answer: UNKNOWN_SERVER_ERROR session 0"
        )


def test_a_session_is_opened_continued_and_refused() -> None:
    with Serving(state_of(), state_of(ORDERS_1)) as play:
        (
            play
            >> request(fetch(10, 10))
            << "answer: NONE session 1 orders-0@0 orders-1@0"
            >> request(fetch(session=1, epoch=1))
            << "answer: NONE session 1"
            >> request(produce())
            << "answer: orders-0 NONE"
            >> request(fetch(session=1, epoch=2))
            << "answer: NONE session 1 orders-0@100"
            >> request(fetch(session=1, epoch=2))
            << "answer: INVALID_FETCH_SESSION_EPOCH session 0"
            >> request(fetch(session=9, epoch=1))
            << "answer: FETCH_SESSION_ID_NOT_FOUND session 0"
        )


def test_the_response_limit_goes_to_the_first_partitions_in_order() -> None:
    with Serving(state_of(), state_of(ORDERS_1)) as play:
        (
            play
            >> request(fetch(0, 0, max_bytes=300))
            << "answer: NONE session 1 orders-0@300 orders-1@0"
        )


def test_offsets_and_epochs_are_asked_for_under_the_leaders_epoch() -> None:
    with Serving() as play:
        (
            play
            >> request(ListOffsetsRequest(2, ORDERS_0, 3, earliest=False))
            << "answer: FENCED_LEADER_EPOCH"
            >> request(ListOffsetsRequest(2, ORDERS_0, 4, earliest=False))
            << "answer: NONE"
            >> request(ListOffsetsRequest(2, ORDERS_1, 4, earliest=False))
            << "answer: UNKNOWN_TOPIC_OR_PARTITION"
            >> request(OffsetsForLeaderEpochRequest(2, (Query(ORDERS_0, 4, 4),)))
            << "answer: orders-0 NONE"
            >> request(OffsetsForLeaderEpochRequest(2, (Query(ORDERS_0, 5, 4),)))
            << "answer: orders-0 UNKNOWN_LEADER_EPOCH"
        )


def test_a_consumer_is_told_what_is_committed() -> None:
    """And nothing before the leader has committed something of its own epoch (KIP-207)."""
    with Serving() as play:
        partition = play.replicas.partitions.get(ORDERS_0)
        assert partition is not None
        assert partition.log is not None
        partition.log.high_watermark, partition.leader_epoch_start_offset = 4, 10
        assert partition.latest_offset(2, partition.log) == 10
        assert partition.latest_offset(-1, partition.log) is Errors.OFFSET_NOT_AVAILABLE
        partition.leader_epoch_start_offset = 0
        assert partition.latest_offset(-1, partition.log) == 4


def test_an_offset_by_time_lies_at_the_log_start_at_the_earliest() -> None:
    """LogSegment.findOffsetByTimestamp; the answer has the epoch of the record's batch."""
    with Serving() as play:
        partition = play.replicas.partitions.get(ORDERS_0)
        assert partition is not None
        log = partition.log
        assert log is not None
        log.truncate_fully_and_start_at(0)
        data = batch_of([(None, b"v")] * 10, 1000)
        log.append_as_leader(10, len(data), 3, data)
        log.high_watermark = 10
        log.maybe_increment_log_start_offset(5)
        assert partition.offset_for_time(1000, log) == (5, 1000, 3)
        assert log.epochs.epoch_of_start(5) == 3


# -- administration --------------------------------------------------------------------------------


def test_only_the_controllers_broker_creates_topics() -> None:
    with Serving() as play:
        play >> request(CreateTopicsRequest("new", ((1, 2),), ())) << "answer: NOT_CONTROLLER"


def test_a_created_topic_is_answered_when_this_brokers_metadata_shows_a_leader() -> None:
    with Serving(is_controller=True) as play:
        new = state_of(ORDERS_0._replace(topic="new"))
        told = UpdateMetadataRequest(2, CONTROLLER_EPOCH, -1, (new,), LIVE)
        (
            play
            >> request(CreateTopicsRequest("new", ((1, 2),), ()))
            << "exists /brokers/topics/new"
            >> no_node
            << "set /config/topics/new at v-1"
            >> no_node
            << "create /config/topics/new"
            >> created("/config/topics/new")
            << "create /brokers/topics/new"
            >> created("/brokers/topics/new")
            >> after_ms(100)
            >> request(told, "update")
            << "answer: NONE"
            << "update: NONE"
        )


def test_a_created_topic_without_a_leader_times_out() -> None:
    with Serving(is_controller=True) as play:
        create = CreateTopicsRequest("new", ((1, 2),), (), timeout_ms=500)
        play >> request(create) << "exists /brokers/topics/new" >> no_node
        play << "set /config/topics/new at v-1" >> ok() << "create /brokers/topics/new"
        play >> created("/brokers/topics/new") >> after_ms(499) >> after_ms(1)
        play << "answer: REQUEST_TIMED_OUT"


@pytest.mark.parametrize("assignment", [((1, 1),), ((1, 2), (2, 2)), ((1, 2), (3,))])
def test_replicas_twice_and_different_numbers_of_them_are_refused(
    assignment: tuple[tuple[int, ...], ...],
) -> None:
    """After ZooKeeper was asked whether the topic is there (validateTopicCreate)."""
    with Serving(is_controller=True) as play:
        play >> request(CreateTopicsRequest("new", assignment, ()))
        play << "exists /brokers/topics/new" >> no_node << "answer: INVALID_REPLICA_ASSIGNMENT"


def test_a_topic_that_exists_is_refused_whatever_its_assignment() -> None:
    with Serving(is_controller=True) as play:
        play >> request(CreateTopicsRequest("new", ((1, 1),), ()))
        play << "exists /brokers/topics/new" >> ok() << "answer: TOPIC_ALREADY_EXISTS"


def test_a_topic_that_another_broker_creates_at_the_same_moment_exists() -> None:
    """FindCoordinator creates the topic of groups: it was answered with UNKNOWN_SERVER_ERROR."""
    with Serving(is_controller=True) as play:
        play >> request(CreateTopicsRequest("new", ((1, 2),), ()))
        play << "exists /brokers/topics/new" >> no_node
        play << "set /config/topics/new at v-1" >> ok() << "create /brokers/topics/new"
        play >> reply(Code.NODE_EXISTS) << "answer: TOPIC_ALREADY_EXISTS"


def test_an_illegal_name_is_refused_and_zookeeper_is_not_asked() -> None:
    with Serving(is_controller=True) as play:
        create = CreateTopicsRequest("no good", ((1, 2),), ())
        play >> request(create) << "answer: INVALID_TOPIC_EXCEPTION"


def test_a_name_that_collides_with_anothers_is_refused() -> None:
    """Other names are fetched only if this one has a dot or an underscore."""
    with Serving(is_controller=True) as play:
        (
            play
            >> request(CreateTopicsRequest("my.topic", ((1, 2),), ()))
            << "exists /brokers/topics/my.topic"
            >> no_node
            << "getChildren /brokers/topics"
            >> children("my_topic")
            << "answer: INVALID_TOPIC_EXCEPTION"
        )


@pytest.mark.parametrize("setting", [("foo", "bar"), ("min.insync.replicas", "0")])
def test_settings_that_no_topic_has_are_refused(setting: tuple[str, str]) -> None:
    with Serving(is_controller=True) as play:
        play >> request(CreateTopicsRequest("new", ((1, 2),), (setting,)))
        play << "exists /brokers/topics/new" >> no_node << "answer: INVALID_CONFIG"


def test_brokers_that_nobody_knows_are_not_refused() -> None:
    """Unlike when partitions are added (AdminManager.scala@2.6.3 createTopics says so)."""
    with Serving(is_controller=True) as play:
        (
            play
            >> request(CreateTopicsRequest("new", ((7, 8),), (), timeout_ms=0))
            << "exists /brokers/topics/new"
            >> no_node
            << "set /config/topics/new at v-1"
            >> ok()
            << "create /brokers/topics/new"
            >> created("/brokers/topics/new")
            << "answer: REQUEST_TIMED_OUT"
        )


def test_an_assignment_that_nobody_gave_is_drawn_among_the_live_brokers() -> None:
    with Serving(is_controller=True) as play:
        play.draws = [1, 0]  # type: ignore[attr-defined]
        create = CreateTopicsRequest("new", (), (), 0, num_partitions=4, replication_factor=2)
        (
            play
            >> request(create)
            << "exists /brokers/topics/new"
            >> no_node
            << "set /config/topics/new at v-1"
            >> ok()
            << "create /brokers/topics/new"
        )
        found = play.topic_written()
        assert [found[n].replicas for n in range(4)] == [(2, 3), (3, 1), (1, 2), (2, 1)]
        play >> created("/brokers/topics/new") << "answer: REQUEST_TIMED_OUT"


@pytest.mark.parametrize(
    ("partitions", "factor", "error"),
    [(0, 1, "INVALID_PARTITIONS"), (1, 4, "INVALID_REPLICATION_FACTOR")],
)
def test_counts_that_cannot_be_are_refused(partitions: int, factor: int, error: str) -> None:
    with Serving(is_controller=True) as play:
        play.draws = [0, 0]  # type: ignore[attr-defined]
        create = CreateTopicsRequest(
            "new", (), (), num_partitions=partitions, replication_factor=factor
        )
        play >> request(create) << f"answer: {error}"


def test_an_assignment_and_counts_exclude_each_other() -> None:
    with Serving(is_controller=True) as play:
        create = CreateTopicsRequest("new", ((1, 2),), (), num_partitions=1)
        play >> request(create) << "answer: INVALID_REQUEST"


# -- partitions that are added ---------------------------------------------------------------------


def adds(play: Serving, what: CreatePartitionsRequest, *now: ReplicaAssignment) -> Serving:
    """The broker has read who is registered (1 and 2), and what the topic has."""
    play >> request(what) << "getChildren /brokers/ids" >> children("1", "2")
    play << "getData /brokers/ids/1" << "getData /brokers/ids/2"
    play >> registration(1) >> registration(2) << "getData /brokers/topics/orders"
    play >> data(codec.encode_topic(dict(enumerate(now))))
    return play


@pytest.mark.parametrize("added", [((1, 2, 3),), ((1, 1),), ((1, 3),)])
def test_added_partitions_have_as_many_replicas_each_once_and_registered(
    added: tuple[tuple[int, ...], ...],
) -> None:
    with Serving(is_controller=True) as play:
        what = CreatePartitionsRequest("orders", added)
        adds(play, what, ReplicaAssignment((1, 2))) << "answer: INVALID_REPLICA_ASSIGNMENT"


def test_nothing_is_added_while_a_partition_moves() -> None:
    with Serving(is_controller=True) as play:
        what = CreatePartitionsRequest("orders", ((1, 2),))
        moving = ReplicaAssignment((1, 2), (2,), ())
        adds(play, what, moving) << "answer: REASSIGNMENT_IN_PROGRESS"


def test_a_count_goes_on_where_the_first_partition_began() -> None:
    with Serving(is_controller=True) as play:
        what = CreatePartitionsRequest("orders", (), 0, count=3)
        adds(play, what, ReplicaAssignment((2, 1)))
        found = play.topic_written()
        assert [found[n].replicas for n in range(3)] == [(2, 1), (1, 2), (2, 1)]
        play << "set /brokers/topics/orders at v-1" >> ok() << "answer: REQUEST_TIMED_OUT"


@pytest.mark.parametrize("count", [0, 1])
def test_a_count_that_adds_nothing_is_refused(count: int) -> None:
    with Serving(is_controller=True) as play:
        what = CreatePartitionsRequest("orders", (), count=count)
        adds(play, what, ReplicaAssignment((2, 1))) << "answer: INVALID_PARTITIONS"


def test_nothing_is_added_to_a_topic_that_is_going() -> None:
    with Serving(is_controller=True) as play:
        play >> request(CreatePartitionsRequest("going", ((1, 2),)))
        play << "answer: INVALID_TOPIC_EXCEPTION"


def test_topics_are_not_deleted_where_that_is_disabled() -> None:
    with Serving(is_controller=True, delete_topic_enable="false") as play:
        play >> request(DeleteTopicsRequest("orders")) << "answer: TOPIC_DELETION_DISABLED"


def test_a_topics_configuration_is_read_merged_written_and_announced() -> None:
    with Serving() as play:
        del play.zookeeper.presets["/config/topics/orders"]
        (
            play
            >> request(AlterConfigsRequest("topics", "orders", (("min.insync.replicas", "2"),)))
            << "exists /brokers/topics/orders"
            >> ok()
            << "exists /brokers/topics/orders"
            >> ok()
            << "getData /config/topics/orders"
            >> no_node
            << "set /config/topics/orders at v-1"
            >> ok()
            << "create /config/changes"
            >> reply(Code.NODE_EXISTS)
            << "create sequential /config/changes/config_change_"
            >> created("/config/changes/config_change_0000000000")
            << "answer: NONE"
        )


@pytest.mark.parametrize(
    ("setting", "error"),
    [(("foo", "bar"), "INVALID_CONFIG"), (("min.insync.replicas", "0"), "INVALID_REQUEST")],
)
def test_a_topics_configuration_that_cannot_be_is_not_written(
    setting: tuple[str, str], error: str
) -> None:
    with Serving() as play:
        del play.zookeeper.presets["/config/topics/orders"]
        (
            play
            >> request(AlterConfigsRequest("topics", "orders", (setting,)))
            << "exists /brokers/topics/orders"
            >> ok()
            << "exists /brokers/topics/orders"
            >> ok()
            << "getData /config/topics/orders"
            >> no_node
            << f"answer: {error}"
        )


# -- AlterIsr (§7.4) -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "error"), [("2.7", "NOT_CONTROLLER"), ("2.6", "UNSUPPORTED_VERSION")]
)
def test_alter_isr_at_a_broker_that_is_no_controller_or_does_not_know_it(
    profile: str, error: str
) -> None:
    asked = AlterIsrRequest(2, 102, (AlterIsrPartition(ORDERS_0, 4, (2, 1), 5),))
    with Serving(profile=profile) as play:
        play >> request(asked) << f"answer: {error}"


# -- idempotent producers (KIP-98) -----------------------------------------------------------------

BLOCK = "/latest_producer_id_block"


def block_of(broker: int, start: int, end: int) -> str:
    return f'{{"version":1,"broker":{broker},"block_start":"{start}","block_end":"{end}"}}'


def test_producer_ids_come_out_of_a_block_that_is_claimed_in_zookeeper() -> None:
    with Serving() as play:
        (
            play
            >> request(InitProducerIdRequest(), "first")
            << f"getData {BLOCK}"
            >> data(block_of(2, 3000, 3999), 4)
            << f"set {BLOCK} at v4: {block_of(1, 4000, 4999)}"
            # While one request claims, others wait.
            >> request(InitProducerIdRequest(), "second")
            >> ok(5)
            << "first: producer 4000, epoch 0"
            << "second: producer 4001, epoch 0"
        )


def test_a_block_that_another_broker_claims_first_is_not_used() -> None:
    with Serving() as play:
        (
            play
            >> request(InitProducerIdRequest())
            << f"getData {BLOCK}"
            >> data("", 0)
            << f"set {BLOCK} at v0: {block_of(1, 0, 999)}"
            >> reply(Code.BAD_VERSION)
            << f"getData {BLOCK}"
            >> data(block_of(2, 0, 999), 1)
            << f"getData {BLOCK}"
            >> data(block_of(2, 0, 999), 1)
            << f"set {BLOCK} at v1: {block_of(1, 1000, 1999)}"
            >> ok(2)
            << "answer: producer 1000, epoch 0"
        )


def test_a_transactional_producer_is_refused() -> None:
    with Serving() as play:
        play >> request(InitProducerIdRequest("t")) << "answer: INVALID_REQUEST"


# -- offsets by time -------------------------------------------------------------------------------


def test_an_offset_by_time_is_that_of_the_first_committed_record_not_older() -> None:
    """Ten records without contents are in the log before; two batches of clients follow."""
    with Serving(state_of(isr=(1,))) as play:
        for time_ms in (1000, 2000):
            data = batch_of([(None, b"a"), (None, b"b")], time_ms)
            wanted = ProducePartition(ORDERS_0, 2, len(data), data)
            play.run(play.replicas.append_records(ProduceRequest(1, 0, (wanted,)), lambda _: None))
        play.forget()
        for time_ms, offset, at_ms in ((1000, 10, 1000), (1001, 12, 2000), (2001, -1, -1)):
            query = ListOffsetsRequest(-1, ORDERS_0, -1, earliest=False, timestamp_ms=time_ms)
            play >> request(query) << f"answer: NONE {offset} of {at_ms}"
