"""Broker 1 with its ReplicaManager: partitions that it hosts, requests that reach it.

The stage of transcripts about leaders and followers. Topic configurations are absent unless said
otherwise; the cluster is brokers 1 to 3, controller 2 in epoch 7.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from emulator.kafka.broker.alter_isr_manager import RpcAlterIsrManager
from emulator.kafka.broker.controller_channel import BrokerToControllerChannelManager
from emulator.kafka.broker.fetch_session import FetchContext
from emulator.kafka.broker.fetcher import ReplicaFetcherManager
from emulator.kafka.broker.log_dir_failure import handle_log_dir_failures
from emulator.kafka.broker.log_dirs import Disk
from emulator.kafka.broker.log_manager import LogManager
from emulator.kafka.broker.metadata_cache import MetadataCache
from emulator.kafka.broker.out_of_range import OutOfRange
from emulator.kafka.broker.partition import Partition
from emulator.kafka.broker.quota import ReplicationQuotaManager
from emulator.kafka.broker.replica_manager import ReplicaManager
from emulator.kafka.model.errors import KafkaError
from emulator.kafka.model.producer_state import BatchProducer
from emulator.kafka.protocol.messages import (
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    LeaderAndIsrRequest,
    LiveBroker,
    ProducedPartition,
    ProducePartition,
    ProduceRequest,
    UpdateMetadataRequest,
)
from emulator.trace.values import PartitionState, TopicPartition
from tests.interaction.playbook import Incoming, Playbook, thread
from zk.errors import Code
from zk.ops import Reply

ORDERS_0, ORDERS_1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
LIVE = tuple(LiveBroker(n, f"host-{n}", 9090 + n) for n in (1, 2, 3))
CONTROLLER_EPOCH = 7
BROKER_EPOCH = 50


def state_of(
    partition: TopicPartition = ORDERS_0,
    *,
    leader: int = 1,
    epoch: int = 4,
    isr: tuple[int, ...] = (1, 2, 3),
    version: int = 5,
    replicas: tuple[int, ...] = (1, 2, 3),
    decided_by: int = CONTROLLER_EPOCH,
) -> PartitionState:
    """One partition as LeaderAndIsr and UpdateMetadata carry it."""
    return PartitionState(partition, decided_by, leader, epoch, isr, version, replicas)


class Hosting(Playbook):
    """A broker that hosts replicas; it knows all three brokers. Where its version propagates by
    AlterIsr it asks controller 2."""

    def __init__(
        self,
        *partitions: PartitionState,
        records: int = 0,
        disk: Disk | None = None,
        **settings: object,
    ) -> None:
        """The partitions' LeaderAndIsr was obeyed; each log holds `records` records of 100 bytes,
        all of them with followers that are caught up where this broker leads."""
        super().__init__(**settings)
        self.zookeeper.presets["/config/topics/orders"] = Reply(Code.NO_NODE)
        self.disk = disk or Disk()
        self.leader_quota = ReplicationQuotaManager(11, 1000)
        self.follower_quota = ReplicationQuotaManager(11, 1000)
        self.logs = LogManager(self.context, self.zk, self.disk, self._halts)
        self.metadata_cache = MetadataCache(self.context)
        self.context.broker_epoch = BROKER_EPOCH
        self.channel = BrokerToControllerChannelManager(
            self.context, self.network, self.metadata_cache
        )
        self.alter_isr = RpcAlterIsrManager(self.context, self.channel)
        by_rpc = self.context.profile.propagation == "rpc"
        self.replicas = ReplicaManager(
            self.context,
            self.zk,
            self.logs,
            self.metadata_cache,
            self.leader_quota,
            lambda below: 0,
            self.alter_isr if by_rpc else None,
        )
        self.fetchers = ReplicaFetcherManager(
            self.context,
            self.network,
            self.replicas.partitions.get,
            self.follower_quota,
            OutOfRange(self.context, self.zk, self._halts),
        )
        self.replicas.fetchers = self.fetchers
        self.run(
            self.replicas.maybe_update_metadata_cache(
                UpdateMetadataRequest(2, 7, -1, partitions, LIVE)
            )
        )
        if by_rpc:
            self.channel.start()
            self.alter_isr.start()
        if partitions:
            request = LeaderAndIsrRequest(2, CONTROLLER_EPOCH, -1, partitions, LIVE)
            self.run(self.replicas.become_leader_or_follower(request))
        for state in partitions:
            self._fill(self.hosted(state.partition), records)
        self.forget()

    def start_log_dir_failure_handler(self) -> None:
        body = handle_log_dir_failures(self.context, self.zk, self.logs, self.replicas, self._halts)
        self.context.spawn("LogDirFailureHandler", body)

    def _halts(self, reason: str) -> None:
        self.say(f"halts: {reason}")

    def _fill(self, partition: Partition, records: int) -> None:
        log = partition.log
        assert log is not None
        for _ in range(records):
            log.append_as_leader(1, 100, partition.leader_epoch)
        if partition.is_leader:
            for broker in [b for b in partition.isr if b != self.context.broker]:
                self.follower(broker, records, partition=partition.partition)
            log.high_watermark = records

    def hosted(self, partition: TopicPartition = ORDERS_0) -> Partition:
        return self.replicas.partitions[partition]

    def follower(
        self,
        broker: int,
        leo: int,
        *,
        caught_up_ms_ago: int = 0,
        partition: TopicPartition = ORDERS_0,
    ) -> None:
        """Put a follower where it is, as the leader knows it."""
        hosted = self.hosted(partition)
        assert hosted.log is not None
        hosted.wake()
        replica, now_ms = hosted.remotes[broker], self.kernel.now_ms()
        replica.log_end_offset, replica.log_start_offset = leo, 0
        replica.last_fetch_leader_log_end_offset = hosted.log.log_end_offset
        replica.last_fetch_time_ms = now_ms - caught_up_ms_ago
        replica.last_caught_up_time_ms = now_ms - caught_up_ms_ago


def leading(*, records: int = 10, **state: Any) -> Hosting:
    """A broker that leads orders-0 since its log was empty; its followers are caught up."""
    settings = {k: state.pop(k) for k in list(state) if k not in state_of.__kwdefaults__}
    return Hosting(state_of(**state), records=records, **settings)


# -- what comes in ---------------------------------------------------------------------------------


def leader_and_isr(
    *states: PartitionState,
    controller_epoch: int = CONTROLLER_EPOCH,
    name: str = "LeaderAndIsr",
    live: tuple[LiveBroker, ...] = LIVE,
) -> Incoming:
    """The controller tells roles; the answer names an error per partition."""
    request = LeaderAndIsrRequest(2, controller_epoch, -1, states, live)

    def start(play: Playbook) -> None:
        assert isinstance(play, Hosting)

        async def handle() -> str:
            response = await play.replicas.become_leader_or_follower(request)
            return " ".join([response.error.name, *(e.name for _, e in response.partitions)])

        thread(name, handle())(play)

    return start


def update_metadata(
    *states: PartitionState,
    controller_epoch: int = CONTROLLER_EPOCH,
    live: tuple[LiveBroker, ...] = LIVE,
) -> Incoming:
    """The controller sends new metadata."""
    request = UpdateMetadataRequest(2, controller_epoch, -1, states, live)

    def start(play: Playbook) -> None:
        assert isinstance(play, Hosting)

        async def handle() -> None:
            await play.replicas.maybe_update_metadata_cache(request)

        thread("UpdateMetadata", handle())(play)

    return start


def _answering(name: str, handle: Callable[[Hosting, Callable[[Any], None]], Any]) -> Incoming:
    """A handler thread whose answer comes out when it is given, which may be long after."""

    def start(play: Playbook) -> None:
        assert isinstance(play, Hosting)

        async def run() -> None:
            try:
                await handle(play, lambda what: play.say(f"{name}: {what}"))
            except KafkaError as error:
                play.say(f"{name}: {error.error.name}")

        play.process.spawn(name, run())

    return start


def produce(
    records: int = 1,
    *,
    acks: int = -1,
    timeout_ms: int = 30_000,
    partition: TopicPartition = ORDERS_0,
    data: bytes = b"",
    producer: BatchProducer | None = None,
    name: str = "produce",
) -> Incoming:
    """A producer's records, 100 bytes each where there is no `data`."""
    size = len(data) or records * 100
    wanted = ProducePartition(partition, records, size, data, producer)
    request = ProduceRequest(acks, timeout_ms, (wanted,))

    async def handle(play: Hosting, say: Callable[[Any], None]) -> None:
        def respond(produced: tuple[ProducedPartition, ...]) -> None:
            it = produced[0]
            say(it.error.name if it.base_offset < 0 else f"{it.error.name} at {it.base_offset}")

        await play.replicas.append_records(request, respond)

    return _answering(name, handle)


def fetch(
    follower: int,
    at: int,
    *,
    epoch: int = 4,
    last_epoch: int = -1,
    max_wait_ms: int = 500,
    partition: TopicPartition = ORDERS_0,
    name: str = "",
    rack: str | None = None,
    then: tuple[TopicPartition, ...] = (),
) -> Incoming:
    """A follower's fetch (or a consumer's: -1); the answer for the first partition comes out."""
    wanted = tuple(
        FetchPartition(one, epoch, at, 0, 1 << 20, last_epoch) for one in (partition, *then)
    )
    request = FetchRequest(follower, max_wait_ms, 1, 10 << 20, 0, -1, wanted, rack_id=rack)

    async def handle(play: Hosting, say: Callable[[Any], None]) -> None:
        context = FetchContext(None, wanted)
        await play.replicas.fetch_messages(request, context, lambda f: say(line_of_fetched(f[0])))

    return _answering(name or f"fetch-{follower}", handle)


def line_of_fetched(it: FetchedPartition) -> str:
    if it.error:
        return it.error.name
    if it.preferred_read_replica >= 0:
        return f"read from {it.preferred_read_replica}, hw {it.high_watermark}"
    if it.diverging_epoch is not None:
        return f"{it.diverging_epoch.epoch} ends at {it.diverging_epoch.end_offset}"
    if not it.batches:
        return f"nothing, hw {it.high_watermark}"
    return f"{it.batches[0].base_offset}..{it.batches[-1].next_offset}, hw {it.high_watermark}"


def shrink_pass() -> Incoming:
    """One run of isr-expiration."""

    def start(play: Playbook) -> None:
        assert isinstance(play, Hosting)
        thread("isr-expiration", play.replicas._maybe_shrink_isr())(play)

    return start


def propagation() -> Incoming:
    """One run of isr-change-propagation."""

    def start(play: Playbook) -> None:
        assert isinstance(play, Hosting)
        thread("propagation", play.replicas.propagation.maybe_propagate_isr_changes())(play)

    return start
