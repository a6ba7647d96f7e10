"""Producers that behave like librdkafka: queues, requests in flight, retries, timeouts.

As in librdkafka one thread serves one broker. It connects and queries the broker's versions: a
paused process accepts connections but does not respond. Then it sends the queues of the partitions
that the broker leads, and checks once a second for timed-out requests. A single timeout closes the
connection, and all requests in flight on it are retried, perhaps with another leader. A broker that
metadata no longer lists is decommissioned: its connection is closed, even if it responds. Owns no
rule of Kafka's brokers. Sources: the recordings' README; librdkafka 2.10 and later
(CONFIGURATION.md; rdkafka_broker.c; rdkafka_metadata.c; rdkafka_partition.c rd_kafka_retry_msgq).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter

import msgspec

from emulator.kafka.model.errors import NO_ERROR, Errors
from emulator.kafka.protocol.messages import (
    ApiVersionsRequest,
    LiveBroker,
    MetadataRequest,
    ProducedPartition,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
)
from emulator.kafka.protocol.transport import Disconnected
from emulator.kernel.scheduler import Callback, Process
from emulator.kernel.sync import Queue
from emulator.scenario.actions.clients import CLIENT_DEFAULTS, REFRESH
from emulator.trace import events
from emulator.trace.values import TopicPartition
from emulator.worlds.clients.clients import (
    RECONNECT_BACKOFF_MS,
    Bootstrap,
    ClientConnection,
    ClusterView,
    TopicState,
)
from emulator.worlds.network.sending import BROKEN
from zk.wire import labelled

BATCH_OVERHEAD = 61
RECORD_OVERHEAD = 9
TRANSPORT, TIMED_OUT = "_TRANSPORT", "MSG_TIMED_OUT"
UNKNOWN_TOPIC, UNKNOWN_PARTITION, DESTROY = "UNKNOWN_TOPIC_OR_PART", "UNKNOWN_PARTITION", "DESTROY"
"""What becomes of a deleted topic's records: of those handed over since the client knew nothing of
the topic, of the others, and of those in flight."""

SCAN_US = 1_000_000
TIMER_LATE_US = 600
"""The main thread rounds its wait up to milliseconds and counts a timer's next period from its end
(rd_kafka_thread_main, rd_kafka_timer_schedule). So all its timers fall behind alike, and those that
were due together stay so."""
TOPIC_SCAN_US = SCAN_US + TIMER_LATE_US
RESULT_INTERVAL_US = 20
"""Between two results that a driver receives. In recordings 483 of 23,658 such pairs fell into two
different milliseconds."""
REFUSED_WITHIN_US = 50_000
"""An attempt to connect that fails sooner was refused: no timeout of a connection is that short."""
LAST_CHANCE_US = 100_000
"""The time-out of a request whose first record has timed out already (rd_kafka_ProduceRequest)."""

Draw = Callable[[str, str], int]
"""(purpose, actor): a draw of the world. `retry_jitter` and `reconnect_jitter` are thousandths of a
back-off, `client_scan` microseconds to the first look for what has timed out, `client_turn` which
partition or broker is first, beyond their number, `client_decommission` microseconds until a
broker's thread ends."""

FIXED = {
    "retry_jitter": 1000,
    "reconnect_jitter": 1000,
    "client_scan": 0,
    "client_turn": 0,
    "client_decommission": 0,
}
"""For a world that draws nothing."""

RETRIABLE = frozenset(
    {
        Errors.NOT_LEADER_OR_FOLLOWER,
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
        Errors.LEADER_NOT_AVAILABLE,
        Errors.NOT_ENOUGH_REPLICAS,
        Errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        Errors.REQUEST_TIMED_OUT,
        Errors.KAFKA_STORAGE_ERROR,
        Errors.UNKNOWN_SERVER_ERROR,
    }
)
LEADER_MOVED = frozenset(
    {
        Errors.NOT_LEADER_OR_FOLLOWER,
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
        Errors.LEADER_NOT_AVAILABLE,
    }
)


def record_batch_size(records: int, record_bytes: int) -> int:
    """Bytes of a v2 record batch of `records` values of `record_bytes` each (RecordBatch
    format)."""
    return BATCH_OVERHEAD + records * (RECORD_OVERHEAD + record_bytes)


class PendingBatch(msgspec.Struct, eq=False, gc=False):
    """Records of one partition from one hand-over of the application."""

    number: int
    partition: TopicPartition
    records: int
    handed_over_us: int
    times_out_us: int
    retries: int = 0
    not_before_us: int = 0


@dataclass(slots=True)
class ProducerSettings:
    """A producer's configuration: librdkafka's names to values."""

    acks: str
    record_bytes: int
    client: Mapping[str, int | str] = field(default_factory=dict)

    def __getitem__(self, key: str) -> int:
        return int(self.client.get(key, CLIENT_DEFAULTS[key]))

    @property
    def required_acks(self) -> int:
        return -1 if self.acks in ("all", "-1") else int(self.acks)


class Producer:
    """One producer of one topic; each partition's records are in the order of their hand-over."""

    def __init__(
        self,
        name: str,
        bootstrap: Bootstrap,
        process: Process,
        partitions: list[TopicPartition],
        settings: ProducerSettings,
        start_us: int = 0,
        draw: Draw = lambda purpose, _: FIXED[purpose],
    ) -> None:
        """`start_us`: how long the client takes to start."""
        self._start_us, self.draw = start_us, draw
        self.name, self.partitions, self.settings = name, partitions, settings
        self._kernel, self.process = bootstrap.kernel, process
        self._emit = self._kernel.emitter(0)
        self.view = ClusterView(bootstrap, process)
        self._queues: dict[TopicPartition, list[PendingBatch]] = {p: [] for p in partitions}
        self._unassigned: list[PendingBatch] = []
        """Handed over while nothing is known of the topic (RD_KAFKA_PARTITION_UA)."""
        self._handed_over = self._waiting = 0
        self._threads: dict[int, _BrokerThread] = {}
        self._leaving: set[TopicPartition] = set()
        """Their broker is decommissioned, and its thread has not ended."""
        self._lane = process.lane(name)
        self._stopped = False
        self._topic = partitions[0].topic
        self._topics = (self._topic,)
        self._queries = 0
        self._next_query: Callback | None = None
        self._next_query_us = 0
        self._round: _Round | None = None
        process.spawn(f"{name}-metadata", self._refresh_for_ever())
        self._lane.call_later(TOPIC_SCAN_US, self._scan_topics)

    # -- the driver --------------------------------------------------------------------------------

    def start(self, rate: float, batch: int, jitter_us: Callable[[], int]) -> None:
        """Hand over `rate` records per second and partition, `batch` at a time."""
        self.process.spawn(f"{self.name}-driver", self._drive(rate / batch, batch, jitter_us))

    async def _drive(self, per_second: float, batch: int, jitter_us: Callable[[], int]) -> None:
        start, k = self._kernel.now, 0
        while not self._stopped:
            # Counted from the start: a late round does not delay the next one.
            self._round = _Round(start + int(k * 1_000_000 / per_second), jitter_us)
            await self._kernel.sleep_until(self._round.due_us)
            await self._kernel.sleep_until(self._round.at_us)
            self._kernel.cause = -1
            if not self._stopped:
                self.hand_over(batch)
            k += 1

    def hand_over(self, records: int) -> None:
        """Hand over this many records for each partition, now. A client takes none for a topic
        that it believes not to exist."""
        now, state = self._kernel.now, self.view.state_of(self._topic)
        if state is TopicState.NOT_EXISTS:
            return
        # Counted from the hand-over: retries do not extend a message's timeout.
        times_out_us = now + self.settings["message.timeout.ms"] * 1000
        for partition in self.partitions:
            self._handed_over += 1
            pending = PendingBatch(self._handed_over, partition, records, now, times_out_us)
            if state is TopicState.UNKNOWN:
                self._unassigned.append(pending)
            else:
                self._queues[partition].append(pending)
                self._waiting += 1
        self._wake()

    def stop(self) -> None:
        """Hand over no more records; queued ones are still delivered."""
        self._stopped = True

    # -- the client's main thread ------------------------------------------------------------------

    async def _refresh_for_ever(self) -> None:
        """Query metadata every topic.metadata.refresh.interval.ms, counted from the client's
        creation, not from its start (rd_kafka_thread_main). With an interval of one second the
        query follows that of the topic scan at once. If its response comes before the thread of a
        decommissioned broker ends, that thread forgets the new leader after both responses, and the
        partition waits for the next second."""
        made_us = self._kernel.now
        period_us = self.settings[REFRESH] * 1000 + TIMER_LATE_US
        await self._kernel.sleep(self._start_us)
        while True:
            self._kernel.cause = -1
            if self._query_broker() or await self._query_bootstrap():
                if not self.view.has_seen_leader and self._next_query is None:
                    # Its log: "New local topic", then "Starting fast leader query", once.
                    self.refresh()
                pause_us = period_us - (self._kernel.now - made_us) % period_us
            else:
                pause_us = RECONNECT_BACKOFF_MS * 1000
            await self._kernel.sleep(pause_us)

    def _query_broker(self) -> bool:
        """Query metadata on an open connection; where none is, open one to a known broker, and the
        next query finds it. False: only a bootstrap server is left to ask."""
        return self._query_idle_broker() or self._connect_any()

    def _connect_any(self) -> bool:
        """rd_kafka_connect_any: to a broker that was never connected to, else to one that is not
        about to reconnect by itself. False: every known broker is down (rd_kafka_rebootstrap)."""
        threads = self._threads
        known = list(self.view.brokers.values())
        candidates = [b for b in known if b.broker not in threads] or [
            b for b in known if not any(self._waiting_for(b.broker)) and threads[b.broker].is_idle
        ]
        if not candidates:
            return any(not threads[broker.broker].is_down for broker in known)
        turn = self.draw("client_turn", f"{self.name}-connect") if len(candidates) > 1 else 0
        self._thread(candidates[turn % len(candidates)]).connect()
        return True

    def _thread(self, broker: LiveBroker) -> _BrokerThread:
        if broker.broker not in self._threads:
            self._threads[broker.broker] = _BrokerThread(self, broker)
        return self._threads[broker.broker]

    def _query_idle_broker(self) -> bool:
        """Query metadata on an open connection, behind its requests in flight: that of the broker
        with the most recent request, in whole seconds; any of several equals
        (rd_kafka_broker_weighted). False if no connection is open.
        """
        now = self._kernel.now
        idle = [((now - t.sent_us) // 1_000_000, t) for t in self._threads.values() if t.is_up]
        if not idle:
            return False
        least = min(idle_s for idle_s, _ in idle)
        equals = [thread for idle_s, thread in idle if idle_s == least]
        turn = self.draw("client_turn", f"{self.name}-metadata") if len(equals) > 1 else 0
        equals[turn % len(equals)].query_metadata(self._topics)
        return True

    async def _query_bootstrap(self) -> bool:
        """Query metadata on a new connection, which is not used once brokers are known."""
        answered = await self.view.refresh(self._topics)
        if answered:
            self._topic_updated()
        return answered

    def take_metadata(self, answer: object) -> None:
        leader_of = {p: leader.broker for p, leader in self.view.leaders.items()}
        self.view.take_metadata(self._topics, answer)
        for broker in sorted(self._threads.keys() - self.view.brokers.keys()):
            partitions = [p for p, leader in leader_of.items() if leader == broker]
            self._leaving.update(partitions)
            self._threads.pop(broker).decommission(partitions)
        # Until its old broker's thread lets go of it, no other serves a partition.
        for partition in self._leaving:
            self.view.leaders.pop(partition, None)
        self._topic_updated()

    def _topic_updated(self) -> None:
        """Metadata has come: assign what is unassigned, or fail all records if the topic does not
        exist (rd_kafka_topic_assign_uas, rd_kafka_topic_partition_cnt_update)."""
        match self.view.state_of(self._topic):
            case TopicState.EXISTS:
                for batch in self._unassigned:
                    self._put_back(batch)
                self._unassigned.clear()
            case TopicState.NOT_EXISTS:
                self.report(self._unassigned, UNKNOWN_TOPIC, -1)
                self._unassigned.clear()
                for queue in self._queues.values():
                    self.report(queue, UNKNOWN_PARTITION, -1)
                    queue.clear()
                self._waiting = 0
        self._wake()

    def _put_back(self, batch: PendingBatch) -> None:
        """By number: before everything that was handed over later."""
        insort(self._queues[batch.partition], batch, key=attrgetter("number"))
        self._waiting += 1

    def leave(self, partitions: list[TopicPartition]) -> None:
        """The thread of a decommissioned broker ends. It forgets the new leaders, too, which the
        metadata has already named (rd_kafka_broker_fail): only metadata that comes from now on
        brings them back."""
        for partition in partitions:
            self._leaving.discard(partition)
            self.view.forget_epoch(partition)

    def refresh(self) -> None:
        """Query metadata until it is current; at once, unless the next query is near
        (rd_kafka_metadata_fast_leader_query)."""
        self.view.is_current = False
        near_us = self.settings["retry.backoff.ms"] * 1000
        if self._next_query is not None:
            if self._next_query_us - self._kernel.now <= near_us:
                return
            self._next_query.cancel()
        self._queries = 0
        self._query_leaders()

    @labelled("query_leaders")
    def _query_leaders(self) -> None:
        """rd_kafka_metadata_leader_query_tmr_cb: query at once, and again after a back-off until
        every partition has a current leader."""
        if self.view.is_current:
            self._next_query = None
            return
        self._queries += 1
        if not self._query_broker():
            self.process.spawn(f"{self.name}-metadata-now", self._query_bootstrap())
        backoff_us = self._backoff_us(
            self._queries, self.draw("retry_jitter", f"{self.name}-query")
        )
        self._next_query_us = self._kernel.now + backoff_us
        self._next_query = self._lane.call_later(backoff_us, self._query_leaders)

    @labelled("wake")
    def _wake(self) -> None:
        """Wake the threads of all brokers that lead a partition with a non-empty queue."""
        if not self._waiting:
            return
        leaders = self.view.leaders
        for partition, queue in self._queues.items():
            if queue and (leader := leaders.get(partition)) is not None:
                self._thread(leader).wake()

    @labelled("scan_topics")
    def _scan_topics(self) -> None:
        """rd_kafka_topic_scan_all: query metadata if nothing is known of the topic, or if a
        partition's leader is unknown or down, and expire records of partitions without a leader,
        which no broker's thread serves."""
        self._lane.call_later(TOPIC_SCAN_US, self._scan_topics)
        self.view.expire_topics()
        is_unknown = self.view.state_of(self._topic) is TopicState.UNKNOWN
        leaders, threads = self.view.leaders, self._threads
        leaderless = [p for p in self.partitions if p not in leaders]
        connections = (threads.get(leader.broker) for leader in leaders.values())
        is_down = any(thread is None or not thread.is_up for thread in connections)
        if is_unknown or leaderless or is_down:
            self._query_idle_broker()
        self._unassigned = self._expire_from(self._unassigned)
        if self._waiting:
            self._expire(leaderless)

    # -- queues ------------------------------------------------------------------------------------

    def _waiting_for(self, broker: int) -> Iterator[TopicPartition]:
        """Partitions with a non-empty queue that this broker leads."""
        if not self._waiting:
            return
        leaders = self.view.leaders
        for partition, queue in self._queues.items():
            leader = leaders.get(partition) if queue else None
            if leader is not None and leader.broker == broker:
                yield partition

    def has_ready(self, broker: int) -> bool:
        return any(self._ready(self._queues[p]) for p in self._waiting_for(broker))

    def take_ready(self, broker: int) -> dict[TopicPartition, list[PendingBatch]]:
        """Remove and return the batches that can be sent to this broker now."""
        ready = {}
        for partition in self._waiting_for(broker):
            queue = self._queues[partition]
            if count := self._ready(queue):
                ready[partition] = queue[:count]
                del queue[:count]
                self._waiting -= count
        return ready

    def _ready(self, queue: list[PendingBatch]) -> int:
        """The number of batches to send now. Order is kept: a batch in back-off delays those behind
        it."""
        now = self._kernel.now
        for count, batch in enumerate(queue):
            if batch.not_before_us > now:
                return count
        return len(queue)

    def expire(self, broker: int) -> None:
        """Time out old batches of the partitions that this broker leads."""
        self._expire(self._waiting_for(broker))

    def _expire(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            queue = self._queues[partition]
            self._queues[partition] = self._expire_from(queue)
            self._waiting -= len(queue) - len(self._queues[partition])

    def _expire_from(self, queue: list[PendingBatch]) -> list[PendingBatch]:
        """The batches that are left; the others are reported."""
        now = self._kernel.now
        late = [batch for batch in queue if batch.times_out_us <= now]
        if not late:
            return queue
        self.report(late, TIMED_OUT, -1)
        return [batch for batch in queue if batch.times_out_us > now]

    # -- results -----------------------------------------------------------------------------------

    def answered(self, produced: ProducedPartition, batches: list[PendingBatch]) -> None:
        if produced.error is NO_ERROR:
            self.report(batches, "ok", produced.base_offset)
        elif produced.error in RETRIABLE:
            # The broker responded that it is not the leader: the batch was not appended. It is sent
            # again without counting as a retry, to whichever broker metadata names by then.
            moved = produced.error in LEADER_MOVED
            if moved:
                self.refresh()
            self.retry(batches, produced.error.name, counted=not moved)
        else:
            self.report(batches, produced.error.name, -1)

    def retry(self, batches: list[PendingBatch], error: str, counted: int = 1) -> None:
        """Put batches back into their queues, in order, while `retries` allows. A rejection by a
        broker that is not the leader is not `counted`: nothing was appended."""
        if not self.view.has_partitions(self._topic):
            self.report(batches, DESTROY, -1)
            return
        retries = self.settings["retries"]
        self.report([b for b in batches if b.retries + counted > retries], error, -1)
        # One draw for all batches that are put back together.
        jitter = self.draw("retry_jitter", self.name)
        for batch in [b for b in batches if b.retries + counted <= retries]:
            batch.retries += counted
            batch.not_before_us = self._kernel.now + self._backoff_us(batch.retries, jitter)
            self._put_back(batch)
            self._lane.call_at(batch.not_before_us, self._wake)

    def _backoff_us(self, retries: int, jitter: int) -> int:
        """librdkafka 2.3 rd_kafka_retry_msgq: doubled with each retry, up to a limit."""
        longest_us = self.settings["retry.backoff.max.ms"] * 1000
        backoff_ms = self.settings["retry.backoff.ms"] << min(max(retries - 1, 0), 20)
        return min(backoff_ms * jitter, longest_us)

    def report(self, batches: list[PendingBatch], result: str, base_offset: int) -> None:
        reported_us = 0
        if batches and self._round and not self._stopped:
            reported_us = self._round.next_report_us()
        for batch in batches:
            self._emit(
                events.RecordsProduced,
                self.name,
                batch.partition,
                self.settings.acks,
                result,
                base_offset,
                batch.records,
                batch.handed_over_us,
                reported_us,
            )
            # A request has one base offset: each batch's own follows from the batches before it.
            if base_offset >= 0:
                base_offset += batch.records


class _Round:
    """A driver's next round. Its delay is drawn only when needed."""

    def __init__(self, due_us: int, jitter_us: Callable[[], int]) -> None:
        self.due_us, self._jitter_us = due_us, jitter_us
        self._at_us = -1
        self._reports = 0

    @property
    def at_us(self) -> int:
        if self._at_us < 0:
            self._at_us = self.due_us + self._jitter_us()
        return self._at_us

    def next_report_us(self) -> int:
        """When the driver receives its next result: one at a time."""
        self._reports += 1
        return self.at_us + self._reports * RESULT_INTERVAL_US


class _InFlightRequest(msgspec.Struct, eq=False):
    """One Produce request, always for one partition; without batches it is a metadata query."""

    batches: list[PendingBatch]
    times_out_us: int


class _BrokerThread:
    """A producer's thread for one broker (rd_kafka_broker_thread_main)."""

    def __init__(self, producer: Producer, broker: LiveBroker) -> None:
        self._producer, self._broker = producer, broker
        self._kernel = producer.process.kernel
        self._name = f"{producer.name}-broker-{broker.broker}"
        self._woken: Queue[None] = Queue(self._kernel)
        self._in_flight: list[_InFlightRequest] = []
        self._connection: ClientConnection | None = None
        self._is_wanted = self._is_connecting = self._is_decommissioned = False
        self._was_tried = False
        self._failed_with = TRANSPORT
        self._reconnect_us = 0
        self.sent_us = 0
        """The time of the last request to this broker."""
        self._backoff_ms = producer.settings["reconnect.backoff.ms"]
        self._lane = producer.process.lane(self._name)
        producer.process.spawn(self._name, self._run())
        self._lane.call_later(producer.draw("client_scan", self._name), self._look_at_requests)
        self._lane.call_later(
            producer.draw("client_scan", f"{self._name}-queue") + SCAN_US // 2, self._look_at_queue
        )

    @property
    def is_up(self) -> bool:
        return self._connection is not None and self._connection.open

    def _has_ended(self) -> bool:
        """A method: the answer changes while the thread waits."""
        return self._is_decommissioned

    @property
    def is_idle(self) -> bool:
        return not (self.is_up or self._is_wanted or self._is_connecting)

    @property
    def is_down(self) -> bool:
        """The last connection, or attempt at one, has failed."""
        return self._was_tried and not self.is_up

    def connect(self) -> None:
        """Connect although no records wait."""
        self._is_wanted = True
        self.wake()

    def decommission(self, partitions: list[TopicPartition]) -> None:
        """Metadata lists this broker no longer: end the thread (RD_KAFKA_OP_TERMINATE)."""
        self._is_decommissioned = True
        self._lane.call_later(
            self._producer.draw("client_decommission", self._name),
            partial(self._terminate, partitions),
        )

    @labelled("terminate")
    def _terminate(self, partitions: list[TopicPartition]) -> None:
        if self._connection is not None:
            self._connection.close()
        self._producer.leave(partitions)
        self.wake()

    def query_metadata(self, topics: tuple[str, ...]) -> None:
        """Query metadata on the open connection."""
        assert self._connection is not None
        self.sent_us = self._kernel.now
        timeout_us = self._producer.settings["socket.timeout.ms"] * 1000
        request = _InFlightRequest([], self.sent_us + timeout_us)
        self._in_flight.append(request)
        self._connection.submit(MetadataRequest(topics), partial(self._metadata_received, request))

    def _metadata_received(self, request: _InFlightRequest, answer: object) -> None:
        self._in_flight.remove(request)
        if answer is not BROKEN:
            self._producer.take_metadata(answer)

    def wake(self) -> None:
        """While not connected, old batches also expire at each wake-up, not only once a second
        (rd_kafka_broker_producer_serve: at each of its calls)."""
        if not self.is_up:
            self._producer.expire(self._broker.broker)
        if not len(self._woken):
            self._woken.put(None)

    async def _run(self) -> None:
        while True:
            await self._woken.take()
            if self._has_ended():
                return
            if self._is_wanted or self._producer.has_ready(self._broker.broker):
                self._is_connecting = True
                connection = await self._connected()
                self._is_wanted = self._is_connecting = False
                if connection is not None:
                    self._send(connection)

    async def _connected(self) -> ClientConnection | None:
        """The open connection, or a new one; None if it failed: this thread then wakes up later."""
        if self.is_up:
            return self._connection
        await self._kernel.sleep_until(self._reconnect_us)
        if self._has_ended():
            return None
        self._back_off()
        self._was_tried = True
        timeout_ms = self._producer.settings["api.version.request.timeout.ms"]
        began_us = self._kernel.now
        try:
            connection = await self._producer.view.connection("produce", self._broker)
            await connection.send(ApiVersionsRequest(), timeout_ms)
        except Disconnected:
            # An attempt that is refused at once counts twice (rd_kafka_broker_thread_main: all
            # addresses were tried), so the delays grow by 4.
            if self._kernel.now - began_us < REFUSED_WITHIN_US:
                self._back_off()
            self.wake()
            return None
        if self._has_ended():
            connection.close()
            return None
        self._connection, self.sent_us = connection, self._kernel.now
        return connection

    def _back_off(self) -> None:
        """rd_kafka_broker_update_reconnect_backoff: set the earliest time of the next attempt."""
        settings, now = self._producer.settings, self._kernel.now
        longest_ms = settings["reconnect.backoff.max.ms"]
        if self._reconnect_us + longest_ms * 1000 < now:
            self._backoff_ms = settings["reconnect.backoff.ms"]
        jitter = self._producer.draw("reconnect_jitter", self._name)
        self._reconnect_us = now + min(self._backoff_ms * jitter, longest_ms * 1000)
        self._backoff_ms = min(2 * self._backoff_ms, longest_ms)

    def _send(self, connection: ClientConnection) -> None:
        """Send one Produce request per partition (rd_kafka_msgset_create_ProduceRequest). The first
        partition changes at each wake-up (rd_kafka_broker_produce_toppars). This matters because a
        broker reads a connection's next request only after its response to the last one: with
        acks=all, one partition that waits for its replicas delays the others.
        """
        ready = list(self._producer.take_ready(self._broker.broker).items())
        if not ready:
            return
        first = self._producer.draw("client_turn", self._name) % len(ready)
        settings = self._producer.settings
        acks, timeout_ms = settings.required_acks, settings["request.timeout.ms"]
        self.sent_us = self._kernel.now
        latest_us = self.sent_us + settings["socket.timeout.ms"] * 1000
        for partition, batches in ready[first:] + ready[:first]:
            records = 0
            for batch in batches:
                records += batch.records
            produced = ProducePartition(
                partition, records, record_batch_size(records, settings.record_bytes)
            )
            times_out_us = batches[0].times_out_us
            # Already timed out and removed from the queue: it gets a last chance.
            if times_out_us <= self.sent_us:
                times_out_us = self.sent_us + LAST_CHANCE_US
            request = _InFlightRequest(batches, min(times_out_us, latest_us))
            self._in_flight.append(request)
            connection.submit(
                ProduceRequest(acks, timeout_ms, (produced,)), partial(self._answered, request)
            )

    def _answered(self, request: _InFlightRequest, answer: object) -> None:
        self._in_flight.remove(request)
        if answer is BROKEN:
            self._producer.retry(request.batches, self._failed_with)
            self._producer.refresh()
        elif answer is None:
            self._producer.report(request.batches, "ok", -1)
        else:
            assert isinstance(answer, ProduceResponse)
            (produced,) = answer.partitions
            self._producer.answered(produced, request.batches)

    # -- once a second -----------------------------------------------------------------------------

    @labelled("look_at_queue")
    def _look_at_queue(self) -> None:
        if self._has_ended():
            return
        self._lane.call_later(SCAN_US, self._look_at_queue)
        self._producer.expire(self._broker.broker)

    @labelled("look_at_requests")
    def _look_at_requests(self) -> None:
        """rd_kafka_broker_timeout_scan: with socket.max.fails 1 a single timeout closes the
        connection."""
        if self._has_ended():
            return
        self._lane.call_later(SCAN_US, self._look_at_requests)
        late = any(request.times_out_us <= self._kernel.now for request in self._in_flight)
        if late and self._connection is not None:
            # Closing completes all requests in flight, with this reason, before it returns.
            self._failed_with = TIMED_OUT
            self._connection.close()
            self._failed_with = TRANSPORT
