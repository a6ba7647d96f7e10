"""Clients of the emulated cluster: their view of it, consumers, an administrator.

They run in their own processes and find leaders through the metadata that brokers return.
`producer` has the producers. Owns no rule of Kafka's brokers. Source: librdkafka's
CONFIGURATION.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Protocol

import msgspec

from emulator.kafka.model.errors import Errors
from emulator.kafka.protocol.messages import (
    AdminResponse,
    AlterConfigsRequest,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
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
"""topic.metadata.propagation.max.ms: so long a client waits before it believes that a topic that
metadata lacks does not exist, or that one that did not exist does."""
METADATA_MAX_AGE_US = 900_000_000
"""metadata.max.age.ms."""
ABSENCE_CACHED_US = 100_000
"""So long the metadata cache keeps the error of a topic that metadata lacks."""
RELIABLE_EPOCHS = 9
"""From this Metadata version on (Kafka 2.4, after KAFKA-9212) a client trusts the leader epochs in
it (rd_kafka_has_reliable_leader_epochs); an older broker's count as unknown."""
UNKNOWN_EPOCH = -1
PREFERRED_MS = 300_000
"""For so long a consumer reads from the replica that the leader preferred, then it asks the leader
again (metadata.max.age.ms; librdkafka's lease)."""


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


class TopicState(Enum):
    """What a client believes of a topic (rd_kafka_topic_t.rkt_state)."""

    UNKNOWN, EXISTS, NOT_EXISTS = range(3)


class LocalTopic(msgspec.Struct):
    """A topic that metadata has named."""

    state: TopicState
    since_us: int
    cached_until_us: int = 0
    has_partitions: bool = True
    """False from when it was found not to exist until metadata names it again."""

    def enter(self, state: TopicState, now_us: int) -> None:
        if self.state is not state:
            self.state, self.since_us = state, now_us

    def has_propagated(self, now_us: int) -> bool:
        """Whether brokers have had time to learn of the topic's creation or deletion."""
        return self.since_us + TOPIC_PROPAGATION_US <= now_us


class Bootstrap:
    """A client's initial knowledge of the cluster: the bootstrap servers."""

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
        self.brokers: dict[int, LiveBroker] = {}
        """Those that the last metadata lists."""
        self._epochs: dict[TopicPartition, int] = {}
        self._topics: dict[str, LocalTopic] = {}
        self._last_response: MetadataResponse | None = None
        self.controller: LiveBroker | None = None
        self.is_current = self._is_good = False
        """The last metadata had each queried topic that exists, was not out of date, and every
        partition in it had a leader."""
        self.has_seen_leader = False
        """Some metadata has named a leader, perhaps of a topic that was deleted since."""
        self._connections: dict[tuple[str, int], ClientConnection] = {}
        self._next = 0
        self._failures = 0
        self._used_us: dict[int, int] = {}

    async def connection(self, use: str, to: LiveBroker) -> ClientConnection:
        """An open connection to a broker, one per use."""
        key = (use, to.broker)
        # A metadata query does not count as use when the next broker is chosen.
        if use != "metadata":
            self._used_us[to.broker] = self._kernel.now
        connection = self._connections.get(key)
        if connection is None or not connection.open:
            connection = await self._bootstrap.network.connect_from(
                self._process, f"{self._process.name}-{use}", to.host, to.port, CONNECT_TIMEOUT_MS
            )
            self._connections[key] = connection
        return connection

    async def request(self, use: str, to: LiveBroker, request: Request, timeout_ms: int) -> object:
        """Send to one broker and wait; raises Disconnected on failure."""
        return await (await self.connection(use, to)).send(request, timeout_ms)

    def _least_idle(self) -> LiveBroker:
        """The broker with the most recent request, in whole seconds, as librdkafka prefers
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
        """Query a broker's metadata; False if there was no response."""
        broker = self._least_idle()
        try:
            response = await self.request(
                "metadata", broker, MetadataRequest(topics), METADATA_TIMEOUT_MS
            )
        except Disconnected:
            self._failures += 1
            return False
        self._failures = 0
        self.take_metadata(topics, response)
        return True

    def take_metadata(self, topics: tuple[str, ...], response: object) -> None:
        """A broker has responded to a query for `topics` (none: all), on any connection."""
        assert isinstance(response, MetadataResponse)
        brokers = self.brokers = {b.broker: b for b in response.brokers}
        self.controller = brokers.get(response.controller_id)
        is_complete = self._update_topics(topics, response)
        last, self._last_response = self._last_response, response
        # A broker whose metadata was not updated responds with the same partitions.
        if (
            last is None
            or response.partitions is not last.partitions
            or response.brokers != last.brokers
        ):
            self._is_good = self._update_leaders(response, brokers)
        self.is_current = self._is_good and is_complete

    def _update_topics(self, topics: tuple[str, ...], response: MetadataResponse) -> bool:
        """Whether the response has every queried topic that is believed to exist. One that it lacks
        is believed to for a while, because the responding broker may not know a new topic yet; so
        is the absence of one that has come back (rd_kafka_topic_set_notexists and _set_exists of
        librdkafka 2.16).
        """
        now, is_complete = self._kernel.now, True
        present = {state.partition.topic for state in response.partitions}
        for name in present:
            topic = self._topics.setdefault(name, LocalTopic(TopicState.UNKNOWN, now))
            topic.cached_until_us = now + METADATA_MAX_AGE_US
            topic.has_partitions = True
            if topic.state is not TopicState.NOT_EXISTS or topic.has_propagated(now):
                topic.enter(TopicState.EXISTS, now)
        for name in topics or tuple(self._topics):
            if name in present:
                continue
            absent = self._topics.get(name)
            if absent is None:
                is_complete = False
                continue
            absent.cached_until_us = now + ABSENCE_CACHED_US
            if absent.state is not TopicState.NOT_EXISTS and not absent.has_propagated(now):
                is_complete = False
                continue
            absent.enter(TopicState.NOT_EXISTS, now)
            if absent.has_partitions:
                absent.has_partitions = False
                self._remove_partitions(name)
        return is_complete

    def _remove_partitions(self, topic: str) -> None:
        """A new topic with the same name starts at leader epoch 0."""
        self.leaders = {p: leader for p, leader in self.leaders.items() if p.topic != topic}
        self._epochs = {p: e for p, e in self._epochs.items() if p.topic != topic}

    def expire_topics(self) -> None:
        """Nothing is known of topics whose entry in the metadata cache has expired
        (rd_kafka_topic_scan_all)."""
        now = self._kernel.now
        for topic in self._topics.values():
            if topic.cached_until_us < now:
                topic.enter(TopicState.UNKNOWN, now)

    def state_of(self, topic: str) -> TopicState:
        known = self._topics.get(topic)
        return TopicState.UNKNOWN if known is None else known.state

    def has_partitions(self, topic: str) -> bool:
        """Whether metadata has named the topic, and it was not found to be deleted since."""
        known = self._topics.get(topic)
        return known is not None and known.has_partitions

    def _update_leaders(
        self, response: MetadataResponse, brokers: Mapping[int, LiveBroker]
    ) -> bool:
        """Whether every partition has a leader that is not outdated. A leader epoch below the known
        one is ignored: a disconnected broker may report a former leader
        (rd_kafka_toppar_leader_update, since librdkafka 2.1). An unknown epoch is accepted, and the
        known one dropped: a broker of an older version may lead (librdkafka issue 4796, since 2.8).
        """
        reliable, is_good = response.version >= RELIABLE_EPOCHS, True
        for state in response.partitions:
            partition = state.partition
            epoch = state.leader_epoch if reliable else UNKNOWN_EPOCH
            if UNKNOWN_EPOCH < epoch < self._epochs.get(partition, UNKNOWN_EPOCH):
                is_good = False
                continue
            self._epochs[partition] = epoch
            if state.leader in brokers:
                self.leaders[partition] = brokers[state.leader]
                self.has_seen_leader = True
            else:
                self.leaders.pop(partition, None)
                is_good = False
        return is_good

    def forget(self, partition: TopicPartition) -> None:
        """The partition's leader has changed, or is unknown."""
        self.leaders.pop(partition, None)
        # Otherwise an identical response would not restore the leader.
        self._last_response = None

    def forget_epoch(self, partition: TopicPartition) -> None:
        """Believe whatever leader is named next (rd_kafka_toppar_forget_leader)."""
        self.forget(partition)
        self._epochs.pop(partition, None)


class Consumer:
    """Reads one partition from its start, up to the high watermark: from the leader, or with a
    `rack` from the replica that the leader prefers (KIP-392)."""

    def __init__(
        self,
        name: str,
        bootstrap: Bootstrap,
        process: Process,
        partition: TopicPartition,
        rack: str = "",
    ) -> None:
        self.name, self.partition, self._rack = name, partition, rack
        self._kernel, self._view = bootstrap.kernel, ClusterView(bootstrap, process)
        self._offset = 0
        self._preferred: LiveBroker | None = None
        self._preferred_until_us = 0
        process.spawn(name, self._run())

    async def _run(self) -> None:
        while True:
            # It reads on its own: the records of the last read are not the cause of the next one.
            self._kernel.cause = -1
            leader = self._view.leaders.get(self.partition)
            if leader is None:
                await self._view.refresh((self.partition.topic,))
                if self.partition not in self._view.leaders:
                    await self._kernel.sleep(RECONNECT_BACKOFF_MS * 1000)
                continue
            if self._kernel.now >= self._preferred_until_us:
                self._preferred = None
            if await self._fetch(self._preferred or leader):
                continue
            if self._preferred is not None:
                # The leader chooses again.
                self._preferred = None
            else:
                self._view.forget(self.partition)
                await self._kernel.sleep(RECONNECT_BACKOFF_MS * 1000)

    async def _fetch(self, replica: LiveBroker) -> bool:
        # Leader epoch -1: none to fence by; below, replica -1 is a consumer and session epoch -1
        # says that there is no fetch session.
        partition = FetchPartition(self.partition, -1, self._offset, -1, 1 << 20)
        rack = self._rack or None
        request = FetchRequest(-1, 500, 1, 50 << 20, 0, -1, (partition,), rack_id=rack)
        try:
            response = await self._view.request("fetch", replica, request, CONNECT_TIMEOUT_MS)
        except Disconnected:
            return False
        assert isinstance(response, FetchResponse)
        if response.error is not Errors.NONE or not response.partitions:
            return False
        fetched = response.partitions[0]
        if fetched.error is Errors.OFFSET_OUT_OF_RANGE and self._preferred is None:
            return await self._reset_offset(replica)
        if fetched.error is not Errors.NONE:
            return False
        if fetched.preferred_read_replica >= 0:
            self._preferred = self._view.brokers.get(fetched.preferred_read_replica)
            self._preferred_until_us = self._kernel.now + PREFERRED_MS * 1000
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

    async def _reset_offset(self, leader: LiveBroker) -> bool:
        """What it was to read next is deleted: it goes on with the first record that is left
        (auto.offset.reset=earliest)."""
        query = ListOffsetsRequest(-1, self.partition, -1, earliest=True)
        try:
            response = await self._view.request("fetch", leader, query, CONNECT_TIMEOUT_MS)
        except Disconnected:
            return False
        assert isinstance(response, ListOffsetsResponse)
        if response.error is Errors.NONE:
            self._offset = response.offset
        return response.error is Errors.NONE


_STALE_METADATA = frozenset(
    error.name
    for error in (
        Errors.NOT_LEADER_OR_FOLLOWER,
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
        Errors.LEADER_NOT_AVAILABLE,
    )
)


class Administrator:
    """Sends admin requests to the controller, or to the broker that they are for.

    `remembers_controller`: as librdkafka's AdminClient, which older recordings used as it is. It
    has little cause to query metadata, and does not repeat a request. If another broker has become
    controller, a request gets NOT_CONTROLLER, or waits for a dead one. All 9 recorded creations and
    deletions of a topic after such an election had no effect.
    """

    def __init__(
        self, bootstrap: Bootstrap, process: Process, *, remembers_controller: bool = False
    ) -> None:
        self._bootstrap, self._kernel, self._process = bootstrap, bootstrap.kernel, process
        self._view = ClusterView(bootstrap, process)
        self._remembers_controller = remembers_controller

    def ask_controller(
        self, request: Request, done: Callable[[str], object], *, after_metadata: bool = False
    ) -> None:
        """Send the request to the controller. `after_metadata`: the request is made from metadata,
        so even a client that remembers the controller has new metadata."""
        if after_metadata and self._remembers_controller:
            self._view.controller = None
        self._process.spawn("admin", self._to_controller(request, done))

    def alter_configs(
        self, request: AlterConfigsRequest, broker: int | None, done: Callable[[str], object]
    ) -> None:
        """IncrementalAlterConfigs: for a broker to that broker, otherwise to the controller."""
        to = next((b for b in self._bootstrap.brokers if b.broker == broker), None)
        if to is None:
            self._process.spawn("admin", self._to_controller(request, done))
        else:
            self._process.spawn("admin", self._to_broker(to, request, done))

    def delete_records(
        self, offsets: Sequence[tuple[TopicPartition, int]], done: Callable[[str], object]
    ) -> None:
        """DeleteRecords, to the leader of each partition; the first error is that of the whole."""
        self._process.spawn("admin", self._delete_records(offsets, done))

    async def _delete_records(
        self, offsets: Sequence[tuple[TopicPartition, int]], done: Callable[[str], object]
    ) -> None:
        results = [await self._to_leader(p, DeleteRecordsRequest(((p, at),))) for p, at in offsets]
        done(next((it for it in results if it != Errors.NONE.name), Errors.NONE.name))

    async def _to_leader(self, partition: TopicPartition, request: DeleteRecordsRequest) -> str:
        """Again until API_TIMEOUT_MS has passed, while metadata names no leader, or one that is
        not."""
        until_us = self._kernel.now + API_TIMEOUT_MS * 1000
        result = "_TIMED_OUT"
        while self._kernel.now < until_us:
            leader = self._view.leaders.get(partition)
            if leader is not None:
                try:
                    response = await self._view.request("admin", leader, request, API_TIMEOUT_MS)
                except Disconnected:
                    result = "_TRANSPORT"
                else:
                    assert isinstance(response, DeleteRecordsResponse)
                    result = response.partitions[0].error.name
                    if result not in _STALE_METADATA:
                        return result
                self._view.forget(partition)
            if not await self._view.refresh((partition.topic,)) or (
                partition not in self._view.leaders
            ):
                await self._kernel.sleep(RECONNECT_BACKOFF_MS * 1000)
        return result

    async def _to_controller(self, request: Request, done: Callable[[str], object]) -> None:
        while True:
            while self._view.controller is None:
                if not await self._view.refresh() or self._view.controller is None:
                    await self._kernel.sleep(RECONNECT_BACKOFF_MS * 1000)
            if self._remembers_controller:
                await self._to_broker(self._view.controller, request, done)
                return
            result = await self._send(self._view.controller, request)
            # Metadata may name an outdated or dead controller: the request itself shows that.
            if result not in (Errors.NOT_CONTROLLER.name, "_TRANSPORT"):
                done(result)
                return
            self._view.controller = None

    async def _to_broker(
        self, to: LiveBroker, request: Request, done: Callable[[str], object]
    ) -> None:
        """Send to one broker; while it cannot be reached repeat until API_TIMEOUT_MS has passed."""
        until_us = self._kernel.now + API_TIMEOUT_MS * 1000
        while (result := await self._send(to, request)) == "_TRANSPORT":
            if self._kernel.now >= until_us:
                break
            await self._kernel.sleep(RECONNECT_BACKOFF_MS * 1000)
        done(result)

    async def _send(self, to: LiveBroker, request: Request) -> str:
        """The name of the response's error; librdkafka's `_TRANSPORT` if there is no response."""
        try:
            response = await self._view.request("admin", to, request, CONNECT_TIMEOUT_MS * 4)
        except Disconnected:
            return "_TRANSPORT"
        assert isinstance(response, AdminResponse)
        return response.error.name
