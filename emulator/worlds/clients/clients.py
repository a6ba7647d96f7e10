"""Clients of the emulated cluster: what they know of it, consumers, an administrator.

They run in processes of their own and find leaders in the metadata that brokers serve. Producers
are in `producer`. Owns no rule of Kafka's brokers. Source: librdkafka's CONFIGURATION.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from emulator.kafka.model.errors import Errors
from emulator.kafka.protocol.messages import (
    AdminResponse,
    AlterConfigsRequest,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    LiveBroker,
    MetadataRequest,
    MetadataResponse,
    Request,
)
from emulator.kafka.protocol.transport import Disconnected
from emulator.kernel.scheduler import Kernel, Process
from emulator.trace import events
from emulator.trace.values import TopicPartition

CONNECT_TIMEOUT_MS = 30_000
METADATA_TIMEOUT_MS = 1_000
RECONNECT_BACKOFF_MS = 100
API_TIMEOUT_MS = 60_000
"""default.api.timeout.ms of Kafka's admin client."""
TOPIC_PROPAGATION_US = 30_000_000
"""topic.metadata.propagation.max.ms: so long a topic that is not named is believed to be there."""
RELIABLE_EPOCHS = 9
"""From this Metadata version on (Kafka 2.4, after KAFKA-9212) a client trusts the leader epochs in
it (rd_kafka_has_reliable_leader_epochs); an older broker's count as unknown."""
UNKNOWN_EPOCH = -1


class ClientConnection(Protocol):
    """A client's end of a connection, in memory or on a socket."""

    @property
    def open(self) -> bool: ...

    async def send(self, request: Request, timeout_ms: int) -> Any: ...

    def submit(self, request: Request, on_answer: Callable[[object], None]) -> None: ...

    def close(self) -> None: ...


class ClientNetwork(Protocol):
    """How clients reach brokers."""

    async def connect_from(
        self, process: Process, client: str, host: str, port: int, timeout_ms: int, /
    ) -> ClientConnection: ...


class Bootstrap:
    """What a client knows of the cluster: where to ask first."""

    def __init__(
        self, kernel: Kernel, network: ClientNetwork, brokers: Iterable[LiveBroker]
    ) -> None:
        self.kernel, self.network = kernel, network
        self.brokers = list(brokers)


class ClusterView:
    """A client's metadata, and its connections."""

    def __init__(self, bootstrap: Bootstrap, process: Process) -> None:
        self._bootstrap, self._process = bootstrap, process
        self._kernel = bootstrap.kernel
        self.leaders: dict[TopicPartition, LiveBroker] = {}
        self._epochs: dict[TopicPartition, int] = {}
        self._topics_since_us: dict[str, int] = {}
        self._taken: MetadataResponse | None = None
        self.controller: LiveBroker | None = None
        self.settled = self._is_good = False
        """What was told last was not old, and all partitions in it had leaders."""
        self._connections: dict[tuple[str, int], ClientConnection] = {}
        self._next = 0
        self._failures = 0
        self._used_us: dict[int, int] = {}

    async def connection(self, use: str, to: LiveBroker) -> ClientConnection:
        """An open connection to a broker, one per use."""
        key = (use, to.broker)
        if use != "metadata":
            self._used_us[to.broker] = self._kernel.now
        connection = self._connections.get(key)
        if connection is None or not connection.open:
            connection = await self._bootstrap.network.connect_from(
                self._process, f"{self._process.name}-{use}", to.host, to.port, CONNECT_TIMEOUT_MS
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
        self.told(topics, answer)
        return True

    def told(self, asked: tuple[str, ...], answer: object) -> None:
        """A broker has answered, whatever the connection."""
        assert isinstance(answer, MetadataResponse)
        where = {b.broker: b for b in answer.brokers}
        self.controller = where.get(answer.controller_id)
        self._look_for_topics(asked, answer)
        if self._takes(answer):
            self._is_good = self._take(answer, where)
        self.settled = self._is_good

    def _look_for_topics(self, asked: tuple[str, ...], answer: MetadataResponse) -> None:
        """The partitions of a topic that is not there any more are forgotten, their leader epochs
        with them, so that a topic of this name may begin anew; not at once, since who says so may
        not have heard of it (rd_kafka_topic_set_notexists)."""
        now, since_us = self._kernel.now, self._topics_since_us
        told = {state.partition.topic for state in answer.partitions}
        for topic in told:
            since_us.setdefault(topic, now)
        for topic in [t for t in since_us if t not in told and (not asked or t in asked)]:
            if since_us[topic] + TOPIC_PROPAGATION_US <= now:
                del since_us[topic]
                self._epochs = {p: e for p, e in self._epochs.items() if p.topic != topic}

    def _takes(self, answer: MetadataResponse) -> bool:
        """Whether it says anything new: a broker that was not updated tells the very same."""
        taken, self._taken = self._taken, answer
        return (
            taken is None
            or answer.partitions is not taken.partitions
            or answer.brokers != taken.brokers
        )

    def _take(self, answer: MetadataResponse, where: Mapping[int, LiveBroker]) -> bool:
        """What is older than what is known of a partition is ignored: a broker that was cut off
        tells of a leader that was (rd_kafka_toppar_leader_update, since librdkafka 2.1). An unknown
        epoch is believed, and what was known is forgotten: a broker that is not upgraded yet may
        lead (its issue 4796, since 2.8)."""
        reliable, is_good = answer.version >= RELIABLE_EPOCHS, True
        for state in answer.partitions:
            partition = state.partition
            epoch = state.leader_epoch if reliable else UNKNOWN_EPOCH
            if UNKNOWN_EPOCH < epoch < self._epochs.get(partition, UNKNOWN_EPOCH):
                is_good = False
                continue
            self._epochs[partition] = epoch
            if state.leader in where:
                self.leaders[partition] = where[state.leader]
            else:
                self.leaders.pop(partition, None)
                is_good = False
        return is_good

    def forget(self, partition: TopicPartition) -> None:
        """Its leader is another by now, or gone."""
        self.leaders.pop(partition, None)
        self._taken = None


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
                self._view.forget(self.partition)
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
        """A broker that is not there is asked again for a while."""
        until_us = self._kernel.now + API_TIMEOUT_MS * 1000
        while (result := await self._ask(to, request)) == "_TRANSPORT":
            if self._kernel.now >= until_us:
                break
            await self._kernel.sleep(RECONNECT_BACKOFF_MS * 1000)
        done(result)

    async def _ask(self, to: LiveBroker, request: Request) -> str:
        try:
            answer = await self._view.ask("admin", to, request, CONNECT_TIMEOUT_MS * 4)
        except Disconnected:
            return "_TRANSPORT"
        assert isinstance(answer, AdminResponse)
        return answer.error.name
