"""Clients of the emulated cluster: producers with librdkafka's manners, consumers, an
administrator.

They run in processes of their own, find leaders in the metadata that brokers serve, and retry as
librdkafka does. Owns no rule of Kafka's brokers. Sources: the recordings' README (producers);
librdkafka 2.3 and later (CONFIGURATION.md; rdkafka_partition.c rd_kafka_retry_msgq).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter

from emulator.kernel.scheduler import Kernel, Process
from emulator.kernel.sync import Queue
from emulator.model.errors import Errors
from emulator.protocol.messages import (
    AdminResponse,
    AlterConfigsRequest,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    LiveBroker,
    MetadataRequest,
    MetadataResponse,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    Request,
)
from emulator.protocol.transport import Disconnected
from emulator.runtime.network import MemoryConnection, MemoryNetwork
from emulator.trace import events
from emulator.trace.values import TopicPartition

BATCH_OVERHEAD = 61
RECORD_OVERHEAD = 9
CONNECT_TIMEOUT_MS = 30_000
METADATA_TIMEOUT_MS = 1_000
RECONNECT_BACKOFF_MS = 100

CLIENT_DEFAULTS = {
    "topic.metadata.refresh.interval.ms": 1000,
    "retries": 100_000,
    "message.timeout.ms": 60_000,
    "request.timeout.ms": 30_000,
    "retry.backoff.ms": 100,
    "retry.backoff.max.ms": 1000,
}
NO_JITTER = 1000
"""A back-off's jitter is in thousandths: between 80 % and 120 %."""

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


class Bootstrap:
    """What a client knows of the cluster: where to ask first."""

    def __init__(
        self, kernel: Kernel, network: MemoryNetwork, brokers: Iterable[LiveBroker]
    ) -> None:
        self.kernel, self.network = kernel, network
        self.brokers = list(brokers)


class ClusterView:
    """A client's metadata, and its connections."""

    def __init__(self, bootstrap: Bootstrap, process: Process) -> None:
        self._bootstrap, self._process = bootstrap, process
        self._kernel = bootstrap.kernel
        self.leaders: dict[TopicPartition, LiveBroker] = {}
        self.controller: LiveBroker | None = None
        self._connections: dict[tuple[str, int], MemoryConnection] = {}
        self._next = 0
        self._failures = 0
        self._used_us: dict[int, int] = {}

    async def connection(self, use: str, to: LiveBroker) -> MemoryConnection:
        """An open connection to a broker, one per use."""
        key = (use, to.broker)
        if use != "metadata":
            self._used_us[to.broker] = self._kernel.now
        connection = self._connections.get(key)
        if connection is None or not connection.open:
            connection = await self._bootstrap.network.connect_from(
                self._process, f"{self._process.name}-{use}", to.port, CONNECT_TIMEOUT_MS
            )
            self._connections[key] = connection
        return connection

    async def ask(self, use: str, to: LiveBroker, request: Request, timeout_ms: int) -> object:
        """Send to one broker and wait; Disconnected when that fails."""
        return await (await self.connection(use, to)).send(request, timeout_ms)

    def _least_idle(self) -> LiveBroker:
        """The broker that was last sent something, in whole seconds, as librdkafka prefers it
        (rd_kafka_broker_weight_usable): usually the leader. After a failure the next one."""
        brokers = self._bootstrap.brokers
        if not self._failures:
            now = self._kernel.now
            used = [b for b in brokers if b.broker in self._used_us]
            if used:
                return min(used, key=lambda b: (now - self._used_us[b.broker]) // 1_000_000)
        self._next += 1
        return brokers[self._next % len(brokers)]

    async def refresh(self, topics: tuple[str, ...] = ()) -> bool:
        """Ask a broker for metadata; False when it did not answer."""
        broker = self._least_idle()
        try:
            answer = await self.ask(
                "metadata", broker, MetadataRequest(topics), METADATA_TIMEOUT_MS
            )
        except Disconnected:
            self._failures += 1
            return False
        self._failures = 0
        assert isinstance(answer, MetadataResponse)
        where = {b.broker: b for b in answer.brokers}
        self.controller = where.get(answer.controller_id)
        for state in answer.partitions:
            leader = where.get(state.leader)
            if leader is None:
                self.leaders.pop(state.partition, None)
            else:
                self.leaders[state.partition] = leader
        return True


@dataclass(slots=True, eq=False)
class PendingBatch:
    """Records of one partition that were handed over together."""

    number: int
    partition: TopicPartition
    records: int
    handed_over_us: int
    retries: int = 0
    not_before_us: int = 0


@dataclass(slots=True)
class ProducerSettings:
    """What a producer is told: librdkafka's names to values."""

    acks: str
    record_bytes: int
    client: Mapping[str, int | str] = field(default_factory=dict)

    def __getitem__(self, key: str) -> int:
        return int(self.client.get(key, CLIENT_DEFAULTS[key]))

    @property
    def required_acks(self) -> int:
        return -1 if self.acks in ("all", "-1") else int(self.acks)


class Producer:
    """One producer of one topic: every partition's records in order of their hand-over."""

    def __init__(
        self,
        name: str,
        bootstrap: Bootstrap,
        process: Process,
        partitions: list[TopicPartition],
        settings: ProducerSettings,
        start_us: int = 0,
        retry_jitter: Callable[[], int] = lambda: NO_JITTER,
    ) -> None:
        """`start_us` is how long the client needs to get going; `retry_jitter`: thousandths."""
        self._start_us = start_us
        self.name, self.partitions, self.settings = name, partitions, settings
        self._kernel, self._process = bootstrap.kernel, process
        self._view = ClusterView(bootstrap, process)
        self._retry_jitter = retry_jitter
        self._queues: dict[TopicPartition, list[PendingBatch]] = {p: [] for p in partitions}
        self._handed_over = 0
        self._wake: Queue[None] = Queue(bootstrap.kernel)
        self._lane = process.lane(name)
        self._stopped = False
        self._refreshing = False
        process.spawn(f"{name}-sender", self._send_for_ever())
        process.spawn(f"{name}-metadata", self._refresh_for_ever())

    # -- what the driver does ----------------------------------------------------------------------

    def start(self, rate: float, batch: int, jitter_us: Callable[[], int]) -> None:
        """Hand over `rate` records per second and partition, `batch` at a time."""
        self._process.spawn(f"{self.name}-driver", self._drive(rate / batch, batch, jitter_us))

    async def _drive(self, per_second: float, batch: int, jitter_us: Callable[[], int]) -> None:
        start, k = self._kernel.now, 0
        while not self._stopped:
            due = start + int(k * 1_000_000 / per_second)
            await self._kernel.sleep_until(due + jitter_us())
            self._kernel.cause = -1
            if not self._stopped:
                self.hand_over(batch)
            k += 1

    def hand_over(self, records: int) -> None:
        """Give the client these many records for each partition, now."""
        for partition in self.partitions:
            self._handed_over += 1
            pending = PendingBatch(self._handed_over, partition, records, self._kernel.now)
            self._queues[partition].append(pending)
            timeout_us = self.settings["message.timeout.ms"] * 1000
            self._lane.call_later(timeout_us, partial(self._time_out, pending))
        self._wake.put(None)

    def stop(self) -> None:
        """No further records; what was handed over is still delivered."""
        self._stopped = True

    # -- the client's threads ----------------------------------------------------------------------

    async def _refresh_for_ever(self) -> None:
        """topic.metadata.refresh.interval.ms."""
        topics = tuple(dict.fromkeys(p.topic for p in self.partitions))
        await self._kernel.sleep(self._start_us)
        while True:
            self._kernel.cause = -1
            if await self._view.refresh(topics):
                self._wake.put(None)
                pause_ms = self.settings["topic.metadata.refresh.interval.ms"]
            else:
                pause_ms = RECONNECT_BACKOFF_MS
            await self._kernel.sleep(pause_ms * 1000)

    async def _send_for_ever(self) -> None:
        while True:
            await self._wake.take()
            ready: dict[LiveBroker, list[PendingBatch]] = {}
            for partition, queue in self._queues.items():
                leader = self._view.leaders.get(partition)
                count = self._ready(queue)
                if count and leader is not None:
                    ready.setdefault(leader, []).extend(queue[:count])
                    del queue[:count]
            for leader, batches in ready.items():
                await self._send(leader, batches)

    def _ready(self, queue: list[PendingBatch]) -> int:
        """How many go now: order is kept, so the first that backs off holds up all behind it."""
        now = self._kernel.now
        waiting = (n for n, batch in enumerate(queue) if batch.not_before_us > now)
        return next(waiting, len(queue))

    async def _send(self, leader: LiveBroker, batches: list[PendingBatch]) -> None:
        """One Produce request with all that waits; several requests are on their way."""
        try:
            connection = await self._view.connection("produce", leader)
        except Disconnected:
            self._put_back(batches, self._kernel.now + RECONNECT_BACKOFF_MS * 1000)
            return
        grouped: dict[TopicPartition, list[PendingBatch]] = {}
        for batch in batches:
            grouped.setdefault(batch.partition, []).append(batch)
        request = ProduceRequest(
            self.settings.required_acks,
            self.settings["request.timeout.ms"],
            tuple(self._produce_partition(p, waiting) for p, waiting in grouped.items()),
        )
        connection.submit(request, partial(self._answered, grouped))

    def _produce_partition(
        self, partition: TopicPartition, waiting: list[PendingBatch]
    ) -> ProducePartition:
        records = sum(batch.records for batch in waiting)
        size = record_batch_size(records, self.settings.record_bytes)
        return ProducePartition(partition, records, size)

    def _answered(self, sent: dict[TopicPartition, list[PendingBatch]], answer: object) -> None:
        if MemoryConnection.broken(answer):
            for batches in sent.values():
                self._retry(batches, "_TRANSPORT")
            return
        if answer is None:
            for batches in sent.values():
                self._report(batches, "ok", -1)
            return
        assert isinstance(answer, ProduceResponse)
        for produced in answer.partitions:
            batches = sent[produced.partition]
            if produced.error is Errors.NONE:
                self._report(batches, "ok", produced.base_offset)
            elif produced.error in RETRIABLE:
                moved = produced.error in LEADER_MOVED
                if moved:
                    self._view.leaders.pop(produced.partition, None)
                    self._process.spawn(f"{self.name}-metadata-now", self._refresh_now())
                self._retry(batches, produced.error.name, counted=not moved)
            else:
                self._report(batches, produced.error.name, -1)

    async def _refresh_now(self) -> None:
        if not self._refreshing:
            self._refreshing = True
            await self._view.refresh()
            self._refreshing = False
            self._wake.put(None)

    def _retry(self, batches: list[PendingBatch], error: str, counted: int = 1) -> None:
        """Put records back in their place, for as long as `retries` allows. A refusal by who does
        not lead is not `counted`: nothing can have been appended."""
        again = [b for b in batches if b.retries + counted <= self.settings["retries"]]
        over = [b for b in batches if b.retries + counted > self.settings["retries"]]
        if over:
            self._report(over, error, -1)
        jitter = self._retry_jitter()
        for batch in again:
            batch.retries += counted
            backoff_us = self._backoff_us(batch.retries, jitter)
            self._put_back([batch], self._kernel.now + backoff_us)

    def _backoff_us(self, retries: int, jitter: int) -> int:
        """librdkafka 2.3 rd_kafka_retry_msgq: twice as long with each retry, up to a limit."""
        longest_us = self.settings["retry.backoff.max.ms"] * 1000
        backoff_ms = self.settings["retry.backoff.ms"] << min(max(retries - 1, 0), 20)
        return min(backoff_ms * jitter, longest_us)

    def _put_back(self, batches: list[PendingBatch], not_before_us: int) -> None:
        for batch in batches:
            if batch.records:
                batch.not_before_us = not_before_us
                insort(self._queues[batch.partition], batch, key=attrgetter("number"))
        self._lane.call_at(not_before_us, lambda: self._wake.put(None))

    def _time_out(self, batch: PendingBatch) -> None:
        """message.timeout.ms ran out, whether they wait to be sent or are on their way: an answer
        that comes later is about nothing any more."""
        queue = self._queues[batch.partition]
        if batch in queue:
            queue.remove(batch)
        self._report([batch], "MSG_TIMED_OUT", -1)

    def _report(self, batches: list[PendingBatch], result: str, base_offset: int) -> None:
        for batch in batches:
            if not batch.records:
                continue
            self._kernel.emit(
                events.RecordsProduced,
                0,
                self.name,
                batch.partition,
                self.settings.acks,
                result,
                base_offset,
                batch.records,
                batch.handed_over_us,
            )
            if base_offset >= 0:
                base_offset += batch.records
            batch.records = 0


class Consumer:
    """Reads one partition from its start, up to the high watermark."""

    def __init__(
        self, name: str, bootstrap: Bootstrap, process: Process, partition: TopicPartition
    ) -> None:
        self.name, self.partition = name, partition
        self._kernel, self._view = bootstrap.kernel, ClusterView(bootstrap, process)
        self._offset = 0
        process.spawn(name, self._run())

    async def _run(self) -> None:
        while True:
            self._kernel.cause = -1
            leader = self._view.leaders.get(self.partition)
            if leader is None:
                await self._view.refresh((self.partition.topic,))
                if self.partition not in self._view.leaders:
                    await self._kernel.sleep(RECONNECT_BACKOFF_MS * 1000)
                continue
            if not await self._fetch(leader):
                self._view.leaders.pop(self.partition, None)
                await self._kernel.sleep(RECONNECT_BACKOFF_MS * 1000)

    async def _fetch(self, leader: LiveBroker) -> bool:
        wanted = FetchPartition(self.partition, -1, self._offset, -1, 1 << 20)
        request = FetchRequest(-1, 500, 1, 50 << 20, 0, -1, (wanted,))
        try:
            answer = await self._view.ask("fetch", leader, request, CONNECT_TIMEOUT_MS)
        except Disconnected:
            return False
        assert isinstance(answer, FetchResponse)
        if answer.error is not Errors.NONE or not answer.partitions:
            return False
        fetched = answer.partitions[0]
        if fetched.error is not Errors.NONE:
            return False
        if fetched.batches:
            before, self._offset = self._offset, fetched.batches[-1].next_offset
            self._kernel.emit(
                events.RecordsConsumed,
                0,
                self.name,
                self.partition,
                before,
                self._offset,
                fetched.high_watermark,
            )
        return True


class Administrator:
    """Sends admin requests, to the controller or to the broker that they are about."""

    def __init__(self, bootstrap: Bootstrap, process: Process) -> None:
        self._bootstrap, self._kernel, self._process = bootstrap, bootstrap.kernel, process
        self._view = ClusterView(bootstrap, process)

    def ask_controller(self, request: Request, done: Callable[[str], object]) -> None:
        """Send to the controller, wherever it is."""
        self._process.spawn("admin", self._to_controller(request, done))

    def alter_configs(
        self, request: AlterConfigsRequest, broker: int | None, done: Callable[[str], object]
    ) -> None:
        """IncrementalAlterConfigs: of a broker to that broker, else to the controller."""
        to = next((b for b in self._bootstrap.brokers if b.broker == broker), None)
        if to is None:
            self._process.spawn("admin", self._to_controller(request, done))
        else:
            self._process.spawn("admin", self._to_broker(to, request, done))

    async def _to_controller(self, request: Request, done: Callable[[str], object]) -> None:
        while True:
            while self._view.controller is None:
                if not await self._view.refresh() or self._view.controller is None:
                    await self._kernel.sleep(RECONNECT_BACKOFF_MS * 1000)
            result = await self._ask(self._view.controller, request)
            if result not in (Errors.NOT_CONTROLLER.name, "_TRANSPORT"):
                done(result)
                return
            self._view.controller = None

    async def _to_broker(
        self, to: LiveBroker, request: Request, done: Callable[[str], object]
    ) -> None:
        done(await self._ask(to, request))

    async def _ask(self, to: LiveBroker, request: Request) -> str:
        try:
            answer = await self._view.ask("admin", to, request, CONNECT_TIMEOUT_MS * 4)
        except Disconnected:
            return "_TRANSPORT"
        assert isinstance(answer, AdminResponse)
        return answer.error.name
