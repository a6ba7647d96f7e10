"""Producers and consumers against a scripted broker: retries, order, time-outs, back-offs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, Self

from emulator.kafka.model.errors import Errors
from emulator.kafka.model.offset_log import Batch
from emulator.kafka.protocol.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FetchedPartition,
    FetchRequest,
    FetchResponse,
    LiveBroker,
    MetadataRequest,
    MetadataResponse,
    ProducedPartition,
    ProduceRequest,
    ProduceResponse,
)
from emulator.kafka.protocol.transport import Disconnected, ServerConnection
from emulator.kernel.scheduler import Kernel, Process
from emulator.trace import events
from emulator.trace.sink import Sink
from emulator.trace.values import TopicPartition
from emulator.worlds.clients.clients import Bootstrap, Consumer, TopicState
from emulator.worlds.clients.producer import (
    FIXED,
    PendingBatch,
    Producer,
    ProducerSettings,
    record_batch_size,
)
from emulator.worlds.network.memory import Listener, MemoryConnection, MemoryNetwork
from tests.interaction.hosting import ORDERS_0, ORDERS_1, state_of

BROKER = LiveBroker(1, "host", 9092)
WAY_US = 1000


class OneBroker:
    """A broker that answers metadata, and the rest as the script says (an error, or an offset)."""

    def __init__(self, *script: Errors | int | None) -> None:
        self.kernel, self.script = Kernel(Sink()), deque(script)
        self.network = MemoryNetwork(self.kernel, lambda purpose, actor: WAY_US)
        self.process = self.kernel.process("broker-1")
        self.network.listen(BROKER.port, Listener(self.process, 1, self._receive))
        self.bootstrap = Bootstrap(self.kernel, self.network, [BROKER])
        self.leader, self.epoch, self.version = 1, 4, 9
        self.topics = ("orders",)
        self.seen: list[str] = []
        self.held: list[Callable[[], None]] = []

    def queried_ms(self) -> list[int]:
        """When each metadata query arrived."""
        return [int(line.split()[0]) for line in self.seen if line.endswith("metadata")]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.kernel.close()

    def _receive(self, request: Any, connection: ServerConnection) -> None:
        now_ms = self.kernel.now // 1000
        match request:
            case ApiVersionsRequest():
                connection.respond(ApiVersionsResponse())
            case MetadataRequest():
                self.seen.append(f"{now_ms} metadata")
                states = tuple(
                    state_of(p, leader=self.leader, epoch=self.epoch)
                    for p in (ORDERS_0, ORDERS_1)
                    if p.topic in self.topics
                )
                connection.respond(MetadataResponse((BROKER,), 1, states, self.version))
            case ProduceRequest(partitions=(wanted,)):
                number = "" if wanted.partition == ORDERS_0 else " to 1"
                self.seen.append(f"{now_ms} produce {wanted.records}{number}")
                self._answer_produce(connection, wanted.partition, request.acks)
            case FetchRequest(partitions=(wanted,)):
                self.seen.append(f"{now_ms} fetch {wanted.fetch_offset}")
                self._answer_fetch(connection)

    def _answer_produce(
        self, connection: ServerConnection, partition: TopicPartition, acks: int
    ) -> None:
        answer = self.script.popleft()
        if answer is None:
            self.held.append(partial(self._answer_produce, connection, partition, acks))
            return
        error = answer if isinstance(answer, Errors) else Errors.NONE
        offset = -1 if error else int(answer)
        produced = ProduceResponse((ProducedPartition(partition, error, offset),))
        if error and not acks:
            connection.hang_up()
        else:
            connection.respond(produced if acks else None)

    def _answer_fetch(self, connection: ServerConnection) -> None:
        answer = self.script.popleft() if self.script else None
        if answer is None:
            return
        error = answer if isinstance(answer, Errors) else Errors.NONE
        batches = () if error else (Batch(int(answer), int(answer) + 2, 100, 4),)
        fetched = FetchedPartition(ORDERS_0, error, 9, 0, batches)
        connection.respond(FetchResponse(Errors.NONE, 0, (fetched,)))

    def producer(
        self, acks: str = "1", partitions: tuple[TopicPartition, ...] = (ORDERS_0,), **client: int
    ) -> Producer:
        named = {key.replace("_", "."): value for key, value in client.items()}
        settings = ProducerSettings(acks, 100, named)
        process = self.kernel.process("producer-1")
        producer = Producer("producer-1", self.bootstrap, process, [*partitions], settings)
        self.run_ms(10)
        self.take()
        return producer

    def tells(self, *, leader: int, epoch: int, version: int = 9) -> None:
        """Set the broker's metadata; every client has requested it twice since then."""
        self.leader, self.epoch, self.version = leader, epoch, version
        self.run_ms(2500)

    def tells_of(self, *topics: str, for_ms: int) -> None:
        """Set the topics that the broker knows, for this long."""
        self.topics = topics
        self.run_ms(for_ms)

    def run_ms(self, duration_ms: int) -> None:
        self.kernel.run(self.kernel.now + duration_ms * 1000)

    def take(self) -> list[str]:
        """Requests other than metadata since the last time."""
        seen, self.seen = [line for line in self.seen if not line.endswith("metadata")], []
        return seen

    def results(self) -> list[tuple[int, str, int, int]]:
        """(when, result, base offset, records) of what was delivered or given up."""
        return [
            (e.t // 1000, e.result, e.base_offset, e.count)
            for e in self.kernel.sink.events
            if isinstance(e, events.RecordsProduced)
        ]


SECOND = LiveBroker(2, "host", 9093)


class TwoBrokers(OneBroker):
    """The second leads orders-1."""

    def __init__(self, *script: Errors | int | None) -> None:
        super().__init__(*script)
        self.network.listen(SECOND.port, Listener(self.process, 2, self._receive_second))
        self.asked_second = 0

        self.led = {ORDERS_0: 1, ORDERS_1: 2}
        self.live = (BROKER, SECOND)

    def _receive(self, request: Any, connection: ServerConnection) -> None:
        if isinstance(request, MetadataRequest):
            states = tuple(state_of(p, leader=leader) for p, leader in self.led.items())
            connection.respond(MetadataResponse(self.live, 1, states, 9))
        else:
            super()._receive(request, connection)

    def _receive_second(self, request: Any, connection: ServerConnection) -> None:
        self.asked_second += isinstance(request, MetadataRequest)
        self._receive(request, connection)


# -- producers -------------------------------------------------------------------------------------


def test_records_that_are_handed_over_together_go_in_one_request() -> None:
    with OneBroker(0) as cluster:
        producer = cluster.producer()
        producer.hand_over(1)
        producer.hand_over(2)
        cluster.run_ms(20)
        assert [line.split(" ", 1)[1] for line in cluster.take()] == ["produce 3"]
        assert [(r, o, n) for _, r, o, n in cluster.results()] == [("ok", 0, 1), ("ok", 1, 2)]


def test_each_partition_has_a_request_of_its_own_and_one_that_waits_holds_up_the_others() -> None:
    """random-8 at 21.8 s: with acks=all and a replica missing, orders-0 had one record more than
    was committed, and orders-1, led by the same broker, none until that one was."""
    with OneBroker(None, 7, 8, 9, 10) as cluster:
        producer = cluster.producer("all", (ORDERS_0, ORDERS_1))
        producer.hand_over(1)
        cluster.run_ms(300)
        producer.hand_over(2)
        cluster.run_ms(300)
        assert cluster.take() == ["14 produce 1"]
        cluster.held.pop()()
        cluster.run_ms(10)
        assert cluster.take() == ["611 produce 1 to 1", "612 produce 2", "613 produce 2 to 1"]


def test_a_refused_request_is_sent_again_after_the_back_off_with_what_came_meanwhile() -> None:
    with OneBroker(Errors.NOT_ENOUGH_REPLICAS, 0) as cluster:
        producer = cluster.producer(acks="all")
        producer.hand_over(1)
        cluster.run_ms(50)
        producer.hand_over(1)
        cluster.run_ms(200)
        first, second = (line.split() for line in cluster.take())
        assert (first[2], second[2]) == ("1", "2")
        assert 100 <= int(second[0]) - int(first[0]) <= 105
        assert [(r, o) for _, r, o, _ in cluster.results()] == [("ok", 0), ("ok", 1)]


def test_each_retry_waits_twice_as_long_up_to_a_second() -> None:
    """librdkafka 2.3 rd_kafka_retry_msgq."""
    with OneBroker(*[Errors.NOT_ENOUGH_REPLICAS] * 7, 0) as cluster:
        cluster.producer(acks="all").hand_over(1)
        cluster.run_ms(6000)
        sent = [int(line.split()[0]) for line in cluster.take()]
        waits = [later - t for t, later in pairwise(sent)]
        assert [wait // 50 * 50 for wait in waits] == [100, 200, 400, 800, 1000, 1000, 1000]


def test_what_came_later_waits_behind_the_first_that_backs_off_and_keeps_its_place() -> None:
    refused = [Errors.NOT_ENOUGH_REPLICAS] * 3
    with OneBroker(*refused, 0) as cluster:
        producer = cluster.producer(acks="all")
        producer.hand_over(1)
        cluster.run_ms(250)
        producer.hand_over(1)  # The first is in its second back-off, until about 310.
        cluster.run_ms(40)
        assert [line.split(" ", 1)[1] for line in cluster.take()] == ["produce 1", "produce 1"]
        cluster.run_ms(1000)
        assert [line.split(" ", 1)[1] for line in cluster.take()] == ["produce 2", "produce 2"]
        assert [(r, o) for _, r, o, _ in cluster.results()] == [("ok", 0), ("ok", 1)]


def test_a_refusal_by_who_does_not_lead_counts_for_no_retry() -> None:
    with OneBroker(Errors.NOT_LEADER_OR_FOLLOWER, 0) as cluster:
        cluster.producer(retries=0).hand_over(1)
        cluster.run_ms(1500)
        assert [r[1] for r in cluster.results()] == ["ok"]


def test_an_error_that_is_not_retriable_is_the_result() -> None:
    with OneBroker(Errors.INVALID_REQUIRED_ACKS) as cluster:
        cluster.producer().hand_over(1)
        cluster.run_ms(500)
        assert [r[1] for r in cluster.results()] == ["INVALID_REQUIRED_ACKS"]


def test_retries_end_when_they_are_used_up() -> None:
    errors = [Errors.NOT_ENOUGH_REPLICAS] * 3
    with OneBroker(*errors) as cluster:
        cluster.producer(retries=2).hand_over(1)
        cluster.run_ms(1000)
        assert len(cluster.take()) == 3
        assert [r[1] for r in cluster.results()] == ["NOT_ENOUGH_REPLICAS"]


def test_who_does_not_lead_any_more_makes_the_producer_look_again() -> None:
    with OneBroker(Errors.NOT_LEADER_OR_FOLLOWER, 0) as cluster:
        producer = cluster.producer(topic_metadata_refresh_interval_ms=60_000)
        producer.hand_over(1)
        cluster.run_ms(300)
        kinds = [line.split(" ", 1)[1] for line in cluster.seen]
        assert kinds == ["produce 1", "metadata", "produce 1"]


def test_acks_0_is_delivered_without_an_offset() -> None:
    with OneBroker(0) as cluster:
        cluster.producer(acks="0").hand_over(1)
        cluster.run_ms(20)
        assert [(r, o) for _, r, o, _ in cluster.results()] == [("ok", -1)]


def test_acks_0_that_fails_is_lost_and_the_next_goes_on_another_connection() -> None:
    with OneBroker(Errors.NOT_LEADER_OR_FOLLOWER, 0) as cluster:
        producer = cluster.producer(acks="0")
        producer.hand_over(1)
        cluster.run_ms(20)
        assert cluster.network.connections_of(cluster.process) == 1  # that for metadata
        producer.hand_over(1)
        cluster.run_ms(200)
        assert cluster.network.connections_of(cluster.process) == 2
        assert [(r, o) for _, r, o, _ in cluster.results()] == [("ok", -1), ("ok", -1)]


def test_a_request_that_is_not_answered_in_time_takes_the_connection_down() -> None:
    """socket.max.fails 1: what came after it is tried again; what has timed out is not."""
    with OneBroker(None, 7) as cluster:
        producer = cluster.producer(message_timeout_ms=2000)
        producer.hand_over(1)
        cluster.run_ms(1500)
        producer.hand_over(1)  # Behind the first in the broker's socket, where it stays.
        cluster.run_ms(4500)
        assert [line.split(" ", 1)[1] for line in cluster.take()] == ["produce 1", "produce 1"]
        assert [(r, o) for _, r, o, _ in cluster.results()] == [("MSG_TIMED_OUT", -1), ("ok", 7)]


def test_a_broker_that_stands_still_is_asked_for_nothing_more_and_what_waits_times_out() -> None:
    with OneBroker(None) as cluster:
        producer = cluster.producer(message_timeout_ms=2000)
        producer.hand_over(1)
        cluster.run_ms(10)
        cluster.process.pause()
        cluster.run_ms(1000)
        producer.hand_over(1)
        cluster.run_ms(4000)
        assert [line.split(" ", 1)[1] for line in cluster.take()] == ["produce 1"]
        told = [(at // 1000, r) for at, r, _, _ in cluster.results()]
        assert told == [(2, "MSG_TIMED_OUT"), (3, "MSG_TIMED_OUT")]


def test_who_cannot_be_reached_is_tried_less_and_less_often() -> None:
    """rd_kafka_broker_update_reconnect_backoff, called twice for an attempt that is refused at once
    (debug log of librdkafka 2.16 at a broker that was down)."""
    with OneBroker() as cluster:
        tried: list[int] = []
        producer = cluster.producer()
        connect = cluster.network.connect_from

        async def refused(process: Process, client: str, host: str, *rest: int) -> MemoryConnection:
            if not client.endswith("produce"):
                return await connect(process, client, host, *rest)
            tried.append(cluster.kernel.now // 1000)
            raise Disconnected("refused")

        cluster.network.connect_from = refused  # type: ignore[method-assign]
        producer.hand_over(1)
        cluster.run_ms(5000)
        assert [later - t for t, later in pairwise(tried)] == [200, 800, 3200]


def test_records_wait_while_there_is_no_leader_and_time_out() -> None:
    with OneBroker() as cluster:
        cluster.leader = -1
        cluster.producer(message_timeout_ms=2000).hand_over(1)
        cluster.run_ms(3000)
        assert cluster.take() == []
        assert [r[1] for r in cluster.results()] == ["MSG_TIMED_OUT"]


def test_while_a_broker_is_gone_what_waits_for_it_times_out_at_each_hand_over() -> None:
    """kafka-2.7.2/random-4 from 12.52 s on: a record every 50 ms, not 20 once a second."""
    with OneBroker(0) as cluster:
        producer = cluster.producer(message_timeout_ms=2000)
        producer.hand_over(1)
        cluster.run_ms(10)
        cluster.process.crash()
        cluster.network.process_died(cluster.process)
        producer.start(rate=20, batch=1, jitter_us=lambda: 0)
        cluster.run_ms(2990)
        late = [at for at, r, _, _ in cluster.results() if r == "MSG_TIMED_OUT"]
        assert {later - t for t, later in pairwise(late)} == {50}


def test_metadata_is_asked_behind_what_is_on_its_way_to_a_broker() -> None:
    """A leader whose handlers wait says nothing of who leads; real producers stall with it."""
    with OneBroker(None, 8) as cluster:
        producer = cluster.producer("all")
        producer.hand_over(1)
        cluster.run_ms(100)
        cluster.seen.clear()
        cluster.run_ms(3000)
        assert cluster.seen == []
        cluster.held.pop()()
        cluster.run_ms(5)
        assert [line.split(" ", 1)[1] for line in cluster.seen] == ["metadata"] * 3


def test_of_the_brokers_that_were_last_sent_something_any_is_asked() -> None:
    """rd_kafka_broker_weighted: in whole seconds, and of equals one is drawn."""
    assert asks_of_the_second(turn=0) == 0
    assert asks_of_the_second(turn=1) == 3


def asks_of_the_second(turn: int) -> int:
    """In three seconds, both brokers having been sent a record."""
    drawn = {**FIXED, "client_turn": turn}
    with TwoBrokers(*range(10)) as cluster:
        process, settings = cluster.kernel.process("producer-1"), ProducerSettings("1", 100)
        both = [ORDERS_0, ORDERS_1]
        producer = Producer(
            "producer-1", cluster.bootstrap, process, both, settings, 0, lambda p, _: drawn[p]
        )
        cluster.run_ms(500)
        producer.hand_over(1)
        cluster.run_ms(3000)
        return cluster.asked_second


def two_partitions(cluster: TwoBrokers) -> Producer:
    """A producer with a connection to both brokers."""
    process, settings = cluster.kernel.process("producer-1"), ProducerSettings("1", 100)
    both = [ORDERS_0, ORDERS_1]
    producer = Producer("producer-1", cluster.bootstrap, process, both, settings)
    cluster.run_ms(10)
    producer.hand_over(1)
    cluster.run_ms(100)
    cluster.take()
    return producer


def test_a_broker_that_metadata_does_not_list_is_left() -> None:
    """rd_kafka_metadata_decommission_unavailable_brokers: the broker would still answer. Its
    partition has no leader until the next scan of topics (rd_kafka_broker_fail)."""
    with TwoBrokers(*range(10)) as cluster:
        producer = two_partitions(cluster)
        cluster.led, cluster.live = {ORDERS_0: 1, ORDERS_1: 1}, (BROKER,)
        cluster.run_ms(1000)
        asked = cluster.asked_second
        cluster.take()
        producer.hand_over(1)
        cluster.run_ms(100)
        assert [line.split(" ", 1)[1] for line in cluster.take()] == ["produce 1"]
        cluster.run_ms(1000)
        assert [line.split(" ", 1)[1] for line in cluster.take()] == ["produce 1 to 1"]
        assert cluster.asked_second == asked


def test_leaders_are_asked_for_at_once_and_ever_less_often_until_all_partitions_have_one() -> None:
    """rd_kafka_metadata_leader_query_tmr_cb."""
    with OneBroker(Errors.NOT_LEADER_OR_FOLLOWER, 7) as cluster:
        producer = cluster.producer(topic_metadata_refresh_interval_ms=60_000)
        cluster.leader = -1
        producer.hand_over(1)
        cluster.run_ms(900)
        asked = cluster.queried_ms()
        assert [later - t for t, later in pairwise(asked)] == [100, 200, 400]
        cluster.leader = 1
        cluster.run_ms(3000)
        asked = cluster.queried_ms()
        assert len(asked) == 5
        assert [r[1] for r in cluster.results()] == ["ok"]


def test_a_topic_that_does_not_exist_yet_is_asked_for_like_a_leader_and_at_each_scan() -> None:
    """librdkafka's debug log, of a topic that is created later: "partition leader query" after 100,
    300, 700 and 1,500 ms, "refresh unavailable topics" each second."""
    with OneBroker(7) as cluster:
        cluster.topics = ()
        process = cluster.kernel.process("producer-1")
        settings = ProducerSettings("1", 100, {"topic.metadata.refresh.interval.ms": 60_000})
        producer = Producer("producer-1", cluster.bootstrap, process, [ORDERS_0], settings)
        producer.hand_over(1)
        cluster.run_ms(1600)
        asked = cluster.queried_ms()
        assert [ms - ms % 50 for ms in asked] == [0, 100, 300, 700, 1000, 1500]
        cluster.topics = ("orders",)
        cluster.run_ms(3000)
        asked = cluster.queried_ms()
        assert [ms - ms % 50 for ms in asked[6:]] == [2000]
        assert [r[1] for r in cluster.results()] == ["ok"]


def test_each_scan_of_topics_is_0_6_ms_later_in_its_second() -> None:
    """rd_kafka_thread_main rounds its wait up to milliseconds; the timer counts from its end. The
    leader queries of the back-off come at half seconds here."""
    with OneBroker(7) as cluster:
        cluster.leader = -1
        cluster.producer(topic_metadata_refresh_interval_ms=600_000).hand_over(1)
        cluster.run_ms(30_100)
        asked = cluster.queried_ms()
        scans = [ms for ms in asked if ms % 1000 < 300 and ms >= 1000]
        assert (len(scans), scans[-1] - scans[0]) == (30, 29_018)


def test_a_refresh_each_second_comes_with_the_scan_of_topics_for_ever() -> None:
    """librdkafka's debug log beside a broker that was killed: "refresh unavailable topics" and
    "periodic topic and broker list refresh" in the same 0.1 ms, of each of 16 seconds."""
    with OneBroker(7) as cluster:
        cluster.leader = -1
        cluster.producer(topic_metadata_refresh_interval_ms=1000).hand_over(1)
        cluster.run_ms(60_100)
        asked = cluster.queried_ms()
        pairs = [ms for ms in asked if ms % 1000 < 300 and ms >= 1000]
        assert (len(pairs), pairs[-2] - pairs[0]) == (120, 59_036)
        assert all(s - first <= 1 for first, s in zip(pairs[::2], pairs[1::2], strict=True))


def test_metadata_is_refreshed_at_the_seconds_of_a_clients_life_however_late_it_gets_going() -> (
    None
):
    with OneBroker(7) as cluster:
        settings = ProducerSettings("1", 100)
        process = cluster.kernel.process("producer-1")
        producer = Producer("producer-1", cluster.bootstrap, process, [ORDERS_0], settings, 300_000)
        producer.hand_over(1)
        cluster.run_ms(3500)
        asked = cluster.queried_ms()
        assert [ms - ms % 50 for ms in asked] == [300, 1000, 2000, 3000]


def test_a_driver_is_told_results_one_after_another() -> None:
    with OneBroker(0, 0) as cluster:
        producer = cluster.producer(partitions=(ORDERS_0, ORDERS_1))
        producer.start(rate=20, batch=1, jitter_us=lambda: 0)
        cluster.run_ms(40)
        produced = [e for e in cluster.kernel.sink.events if isinstance(e, events.RecordsProduced)]
        assert [e.polled_at - produced[0].polled_at for e in produced] == [0, 20]


def test_a_broker_that_was_cut_off_is_not_believed_about_leaders() -> None:
    """kafka-2.7.2/random-4 at 35 s: who had lost ZooKeeper named a leader that stood still."""
    with OneBroker(0) as cluster:
        producer = cluster.producer()
        cluster.tells(leader=-1, epoch=3)
        producer.hand_over(1)
        cluster.run_ms(300)
        assert [r[1] for r in cluster.results()] == ["ok"], "led by broker 1 since epoch 4"


def test_a_leader_of_the_same_epoch_or_a_newer_one_is_believed() -> None:
    for epoch in (4, 5):
        with OneBroker(0) as cluster:
            producer = cluster.producer()
            cluster.tells(leader=-1, epoch=epoch)
            producer.hand_over(1)
            cluster.run_ms(300)
            assert cluster.results() == []
            cluster.tells(leader=1, epoch=epoch)
            assert [r[1] for r in cluster.results()] == ["ok"]


def test_brokers_before_2_4_are_believed_whatever_they_say() -> None:
    """Metadata up to version 8; their leader epochs may be wrong (KAFKA-9212)."""
    with OneBroker(0) as cluster:
        cluster.version = 8
        producer = cluster.producer()
        cluster.tells(leader=-1, epoch=3, version=8)
        producer.hand_over(1)
        cluster.run_ms(300)
        assert cluster.results() == []


def test_in_a_rolling_upgrade_an_older_broker_is_believed_and_the_epoch_forgotten() -> None:
    """librdkafka's issue 4796."""
    with OneBroker(0) as cluster:
        producer = cluster.producer()
        cluster.tells(leader=-1, epoch=3, version=8)
        cluster.tells(leader=1, epoch=2)
        producer.hand_over(1)
        cluster.run_ms(300)
        assert [r[1] for r in cluster.results()] == ["ok"]


def test_a_topic_that_was_gone_begins_anew_and_so_do_its_epochs() -> None:
    """rd_kafka_topic_set_notexists: half a minute after the client has found nothing about it in
    its metadata cache."""
    with OneBroker(0) as cluster:
        producer = cluster.producer()
        cluster.tells_of(for_ms=35_000)
        cluster.topics = ("orders",)
        cluster.tells(leader=-1, epoch=0)
        producer.hand_over(1)
        cluster.run_ms(300)
        assert cluster.results() == [], "nobody leads the new one yet"


def test_records_of_a_deleted_topic_fail_half_a_minute_after_nothing_is_known_of_it() -> None:
    """They were assigned to no partition."""
    with OneBroker() as cluster:
        producer = cluster.producer()
        cluster.topics = ()
        while producer.view.state_of("orders") is TopicState.EXISTS:
            cluster.run_ms(100)
        producer.hand_over(2)
        cluster.run_ms(29_500)
        assert cluster.take() == cluster.results() == []
        cluster.run_ms(1_000)
        assert [r[1:] for r in cluster.results()] == [("UNKNOWN_TOPIC_OR_PART", -1, 2)]


def test_while_refusals_keep_its_absence_in_the_cache_a_topic_exists_for_half_a_minute() -> None:
    """kafka-2.7.2/random-202: from when it was first named."""
    refused = [Errors.UNKNOWN_TOPIC_OR_PARTITION] * 400
    with OneBroker(*refused) as cluster:
        producer = cluster.producer()
        cluster.topics = ()
        producer.hand_over(1)
        cluster.run_ms(29_900)
        assert (producer.view.state_of("orders"), cluster.results()) == (TopicState.EXISTS, [])
        assert len(cluster.take()) > 250, "sent again and again"
        cluster.run_ms(300)
        assert [r[1:] for r in cluster.results()] == [("UNKNOWN_PARTITION", -1, 1)]


def test_a_client_takes_no_records_for_a_topic_that_does_not_exist_until_its_next_scan() -> None:
    with OneBroker(0) as cluster:
        producer = cluster.producer()
        cluster.topics = ()
        while producer.view.state_of("orders") is not TopicState.NOT_EXISTS:
            cluster.run_ms(100)
        producer.hand_over(1)
        cluster.run_ms(1000)
        assert producer.view.state_of("orders") is TopicState.UNKNOWN
        producer.hand_over(2)
        cluster.topics = ("orders",)
        cluster.run_ms(1100)
        assert [r[1:] for r in cluster.results()] == [("ok", 0, 2)]


def test_a_record_that_is_refused_after_its_topic_was_found_not_to_exist_is_destroyed() -> None:
    with OneBroker() as cluster:
        producer = cluster.producer()
        cluster.topics = ()
        while producer.view.state_of("orders") is not TopicState.NOT_EXISTS:
            cluster.run_ms(100)
        refused = ProducedPartition(ORDERS_0, Errors.UNKNOWN_TOPIC_OR_PARTITION, -1)
        producer.answered(refused, [PendingBatch(1, ORDERS_0, 1, 0, 60_000_000)])
        assert [r[1:] for r in cluster.results()] == [("DESTROY", -1, 1)]


def test_a_leader_query_that_is_far_off_comes_at_once_when_another_record_is_refused() -> None:
    """rd_kafka_metadata_fast_leader_query restarts a timer that has more than retry.backoff.ms
    left."""
    refused = [Errors.UNKNOWN_TOPIC_OR_PARTITION] * 20
    with OneBroker(*refused) as cluster:
        producer = cluster.producer(topic_metadata_refresh_interval_ms=600_000)
        cluster.topics = ()
        producer.hand_over(1)
        cluster.run_ms(900)
        asked = cluster.queried_ms()
        assert len(asked) >= 7
        assert max(b - a for a, b in pairwise(asked)) <= 210


def test_who_has_not_heard_of_a_young_topic_does_not_make_its_epochs_forgotten() -> None:
    with OneBroker(0) as cluster:
        producer = cluster.producer()
        cluster.tells_of("payments", for_ms=20_000)
        cluster.topics = ("orders",)
        cluster.tells(leader=-1, epoch=3)
        producer.hand_over(1)
        cluster.run_ms(300)
        assert [r[1] for r in cluster.results()] == ["ok"]


def test_a_driver_hands_over_at_its_rate_until_it_is_stopped() -> None:
    with OneBroker(*range(100)) as cluster:
        producer = cluster.producer()
        producer.start(rate=20, batch=2, jitter_us=lambda: 0)
        cluster.run_ms(999)
        producer.stop()
        cluster.run_ms(1000)
        assert sum(count for *_, count in cluster.results()) == 20


def test_a_batch_has_an_overhead_and_each_record_its_own() -> None:
    assert record_batch_size(1, 100) == 170
    assert record_batch_size(10, 100) - record_batch_size(9, 100) == 109


# -- consumers -------------------------------------------------------------------------------------


def consumed(cluster: OneBroker) -> list[tuple[int, int]]:
    return [
        (e.from_offset, e.to_offset)
        for e in cluster.kernel.sink.events
        if isinstance(e, events.RecordsConsumed)
    ]


def consumer(cluster: OneBroker) -> None:
    Consumer("consumer-1", cluster.bootstrap, cluster.kernel.process("consumer-1"), ORDERS_0)


def test_a_consumer_reads_on_from_where_it_is() -> None:
    with OneBroker(0, 2) as cluster:
        consumer(cluster)
        cluster.run_ms(100)
        assert consumed(cluster) == [(0, 2), (2, 4)]
        assert [line.split(" ", 1)[1] for line in cluster.take()] == [
            "fetch 0",
            "fetch 2",
            "fetch 4",
        ]


def test_a_consumer_that_is_answered_with_errors_looks_again_and_keeps_its_distance() -> None:
    with OneBroker(*[Errors.NOT_LEADER_OR_FOLLOWER] * 1000) as cluster:
        consumer(cluster)
        cluster.run_ms(1000)
        assert 5 <= len(cluster.take()) <= 11, "one per back-off"
