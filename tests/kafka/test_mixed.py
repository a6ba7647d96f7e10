"""A cluster of mixed hosts: two emulated brokers as processes, and a real Kafka 2.6.3 beside them.

They share one ZooKeeper; each leads, follows and controls the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest

from emulator.kafka.protocol.messages import (
    CreateTopicsRequest,
    MetadataResponse,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
)
from emulator.scenario.actions.base import Clients, Links
from emulator.scenario.actions.life import Kill, Start, Terminate
from emulator.scenario.capabilities import Capabilities, ClusterCapabilities
from emulator.trace import events
from emulator.trace.sink import Sink
from emulator.trace.values import PartitionState, TopicPartition
from emulator.worlds.clients.blocking_client import (
    Unreachable,
    ask_controller,
    metadata,
    send_request,
)
from emulator.worlds.cluster import BrokerHost, Cluster
from emulator.worlds.live_clock import LiveClock, LiveKernel
from emulator.worlds.processes.host import ProcessHost, SeparateProcess
from emulator.worlds.processes.local_brokers import LocalBroker
from emulator.worlds.processes.local_site import Deployment
from emulator.worlds.real_kafka.broker import RealBroker
from emulator.worlds.real_kafka.capabilities import HostOfKafka
from emulator.worlds.real_kafka.clients import wall_us
from emulator.worlds.real_kafka.host import RealHost
from emulator.worlds.real_kafka.notes import RunNotes
from emulator.worlds.real_kafka.release import find_release
from emulator.worlds.wire.records import filled
from emulator.worlds.zookeeper import OwnServer, TappedZooKeeper
from tests.live.processes.cluster import SESSIONS
from zk.real.server import HOST, EmbeddedServer, reserve

pytestmark = pytest.mark.kafka

KAFKA = "2.6.3"
REAL = 3
SETTINGS = {"zookeeper.session.timeout.ms": "2000", "replica.lag.time.max.ms": "2000"}
PATIENCE_US = 60_000_000


class MixedCluster:
    """Brokers 1 and 2 are ours."""

    def __init__(self, folder: Path, server: EmbeddedServer) -> None:
        self.folder, self.server = folder, server
        self.reserved = {broker: reserve(0) for broker in (1, 2)}
        self.notes, self.clock = RunNotes(wall_us()), LiveClock()
        self.sink = Sink()
        self.kernel = LiveKernel(self.sink, self.clock)
        settings = {**SETTINGS, "zookeeper.connect": str(server.address)}
        self.real = RealBroker(REAL, folder / "kafka", find_release(KAFKA, None))
        self.real.configure(settings)
        site = cast("Deployment", self)
        hosts: dict[int, BrokerHost] = {
            broker: ProcessHost(broker, site, self.kernel, "2.6", self._arguments)
            for broker in (1, 2)
        }
        hosts[REAL] = RealHost(self.real, self.notes)
        kinds = {1: SeparateProcess(), 2: SeparateProcess(), REAL: HostOfKafka((2, 6, 3))}
        nothing = cast("Links", None), cast("Clients", None)
        self.cluster = Cluster(
            hosts,
            cast("TappedZooKeeper", None),
            *nothing,
            ClusterCapabilities(kinds, OwnServer(), Capabilities(), Capabilities()),
            self.notes.record,
        )

    def _arguments(self, broker: int, profile: str, propagation: str) -> list[str]:
        words = ["--id", str(broker), "--zookeeper", str(self.server.address)]
        words += ["--listen", "{}:{}".format(*self.address_of(broker)), "--profile", profile]
        words += ["--data", str(self.folder / f"data-{broker}"), "--trace", str(self.folder)]
        for key, value in SETTINGS.items():
            words += ["--set", f"{key}={value}"]
        return words

    # -- the deployment of the processes -----------------------------------------------------------

    def process(self, broker: int) -> LocalBroker:
        return LocalBroker(broker, [], self.folder / f"broker-{broker}.log")

    def address_of(self, broker: int) -> tuple[str, int]:
        if broker == REAL:
            return HOST, self.real.port
        return HOST, int(self.reserved[broker].getsockname()[1])

    # -- what it is --------------------------------------------------------------------------------

    def metadata(self, broker: int) -> MetadataResponse:
        return metadata([self.address_of(broker)], 10)

    def partition(self, broker: int, topic: str) -> PartitionState:
        states = self.metadata(broker).partitions
        return {state.partition: state for state in states}[TopicPartition(topic, 0)]

    def until(self, holds: Callable[[], bool]) -> None:
        """The kernel looks after processes meanwhile."""
        end_us = self.clock.now_us() + PATIENCE_US
        while self.clock.now_us() < end_us:
            for host in self.cluster.hosts.values():
                if isinstance(host, RealHost):
                    host.look()
            self.kernel.run(self.clock.now_us() + 100_000)
            try:
                if holds():
                    return
            except (Unreachable, KeyError):
                continue
        raise AssertionError("not within our patience")

    def until_isr(self, topic: str, leader: int, isr: set[int]) -> None:
        """In the metadata of each ISR member."""
        self.until(
            lambda: all(
                (state.leader, set(state.isr)) == (leader, isr)
                for state in (self.partition(broker, topic) for broker in isr)
            )
        )

    def create(self, topic: str, *replicas: int) -> None:
        servers = [self.address_of(broker) for broker in (1, 2, REAL)]
        answer = ask_controller(servers, CreateTopicsRequest(topic, (replicas,), ()), 30)
        assert answer.error.name == "NONE", answer

    def send(self, topic: str, leader: int, base_offset: int) -> None:
        """Five records that every member of the ISR has when they are acknowledged."""
        data = filled(5, 500, 0)
        records = ProducePartition(TopicPartition(topic, 0), 5, len(data), data)
        answer = send_request(self.address_of(leader), ProduceRequest(-1, 10_000, (records,)), 20)
        assert isinstance(answer, ProduceResponse)
        result = answer.partitions[0]
        assert (result.error.name, result.base_offset) == ("NONE", base_offset)

    def close(self) -> None:
        self.cluster.close()
        for reservation in self.reserved.values():
            reservation.close()
        self.kernel.close()


@contextmanager
def mixed_cluster(folder: Path) -> Iterator[MixedCluster]:
    with EmbeddedServer(folder / "zookeeper", tick_ms=500, **SESSIONS) as server:
        mixed = MixedCluster(folder, server)
        try:
            for broker in (1, 2, REAL):
                mixed.cluster.start(broker)
                mixed.until(lambda host=mixed.cluster.hosts[broker]: host.started)  # type: ignore[misc]
            mixed.until(lambda: mixed.cluster.is_up)
            yield mixed
        finally:
            mixed.close()


def test_emulated_and_real_brokers_are_one_cluster(tmp_path: Path) -> None:
    with mixed_cluster(tmp_path) as mixed:
        apply = mixed.cluster.apply
        assert mixed.metadata(REAL).controller_id == 1  # the first that started
        # Our controller makes real Kafka a leader and a follower; each replicates from the other.
        mixed.create("ours", 1, 2, 3)
        mixed.create("theirs", 3, 1, 2)
        mixed.until_isr("ours", 1, {1, 2, 3})
        mixed.until_isr("theirs", 3, {1, 2, 3})
        mixed.send("ours", 1, 0)
        mixed.send("theirs", 3, 0)
        # Our leaders leave in an orderly way; at the end real Kafka is the controller.
        apply(Terminate(1))
        mixed.until_isr("ours", 2, {2, 3})
        apply(Terminate(2))
        mixed.until_isr("ours", 3, {3})
        # Leaderships go first, and then the process with its session.
        mixed.until(lambda: mixed.metadata(REAL).controller_id == REAL)
        mixed.send("ours", 3, 5)
        # It has our broker follow it, which then leads where it was, when real Kafka dies.
        apply(Start(2))
        mixed.until_isr("ours", 3, {2, 3})
        mixed.send("ours", 3, 10)
        apply(Kill(REAL))
        mixed.until_isr("ours", 2, {2})
        mixed.send("ours", 2, 15)
        assert [note.state for note in mixed.notes.processes] == ["starting", "dead"]
        assert not [e for e in mixed.sink.events if isinstance(e, events.BrokerHalted)]
