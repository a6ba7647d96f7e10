"""A broker host in this process: Kafka's broker on our kernel, with its disk in memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, Protocol

from emulator.kafka.broker.context import BrokerContext
from emulator.kafka.broker.log_dirs import Disk
from emulator.kafka.model.config import KafkaConfig
from emulator.kafka.node import Broker
from emulator.kafka.profiles.guards.controller import BROKER_LIST_ANNOUNCED
from emulator.kafka.protocol.messages import LiveBroker
from emulator.kernel.scheduler import Kernel, Process
from emulator.scenario.actions.base import ZooKeeperControl
from emulator.scenario.capabilities import Capabilities, ClusterCapabilities, HostCapabilities
from emulator.scenario.schema import Scenario
from emulator.worlds.clients.emulated import AnyClient, EmulatedClients
from emulator.worlds.cluster import Cluster, KernelPlaces, on_the_trace
from emulator.worlds.links import ChanceOf, MemoryLinks, ZooKeeperLinks
from emulator.worlds.network.memory import Listener, MemoryNetwork
from emulator.worlds.services import WorldServices
from emulator.worlds.storage.host_disk import DiskInFiles, DiskInMemory, HostDisk


class ZooKeeperOfHosts(ZooKeeperControl, ZooKeeperLinks, Protocol):
    """ZooKeeper's servers and sessions, and the links to it."""


HOST = "127.0.0.1"
FIRST_PORT = 23_798
"""The order in which fetcher threads start depends on their leaders' ports. These ports give the
order of ids for brokers 1 to 5, but not in 0.8.2, which hashes addresses differently."""


class EveryLink(Capabilities):
    """Everything that a link in memory supports."""

    cut = heal = delay = link_latency = lose = narrow = Capabilities.supported
    break_connection = limit_bandwidth = unplug = plug_in = Capabilities.supported


class EveryPlace(Capabilities):
    """Everything on our kernel can be held."""

    hold = release = Capabilities.supported


class InThisProcess(HostCapabilities):
    """Everything: process, disk and clock are under our control."""

    subject = "a broker in this process"
    links = EveryLink()

    pause = resume = kill = terminate = install = Capabilities.supported
    lose_from_disk = fail_log_dir = repair_log_dir = slow_disk = Capabilities.supported
    fail_disk_calls = limit_space = shorten_writes = damage_log = mend_disk = Capabilities.supported
    fail_authentication = start_again = set_clock = Capabilities.supported


def port_of(broker: int, scenario: Scenario) -> int:
    return scenario.ports.get(broker, FIRST_PORT + broker)


class EmulatedHost:
    """One broker: its disk, its version, and its process while there is one."""

    def __init__(
        self,
        broker: int,
        scenario: Scenario,
        kernel: Kernel,
        network: MemoryNetwork,
        services: WorldServices,
        chance_of: ChanceOf,
    ) -> None:
        self.broker, self._scenario, self._kernel = broker, scenario, kernel
        self._network, self._services = network, services
        self._profile = scenario.running(broker)
        self._clock_offset_ms = 0
        self.node: Broker | None = None
        config = self._config()
        self._storage: HostDisk = DiskInMemory(config.log_directories)
        if scenario.storage == "files":
            draw = chance_of("disk", f"broker-{broker}")
            self._storage = DiskInFiles(
                broker, config, lambda below: draw().below(below), lambda: kernel.now
            )

    def _config(self) -> KafkaConfig:
        settings = self._scenario.settings, self._scenario.broker_settings.get(self.broker, {})
        return KafkaConfig.of(self._profile.values, {**settings[0], **settings[1]})

    def boot(self, not_before_us: Mapping[str, int] | None = None) -> None:
        """Start a new process; `not_before_us` delays steps of its start-up."""
        kernel, services = self._kernel, self._services
        port = port_of(self.broker, self._scenario)
        process = kernel.process(f"broker-{self.broker}")
        # The operating system closes a dead process's sockets: the other ends notice a kill at
        # once, and an unplugged broker only by timeouts.
        process.on_death = self._network.process_died
        config = self._config()
        disk = self._storage.boot(config, self._profile.guards)
        node = self.node = Broker(
            BrokerContext(self.broker, kernel, process, config, self._profile),
            services.service_for(process.name),
            self._network,
            disk,
            host=HOST,
            port=port,
            wall_ms=lambda: services.wall_ms() + self._clock_offset_ms,
            draw=services.draw_assignment,
            not_before_us=not_before_us,
        )
        # Before it starts: connections are accepted during the start-up, and requests wait in its
        # queue.
        listener = Listener(
            process,
            config.num_network_threads,
            node.receive,
            drops_at_end=node.drops_requests_at_end,
        )
        self._network.listen(port, listener)
        node.start()

    @property
    def disk(self) -> Disk:
        """The disk as its current process has it."""
        return self._storage.disk

    @property
    def _broker(self) -> Broker:
        assert self.node is not None, f"broker {self.broker} has not been started"
        return self.node

    @property
    def _process(self) -> Process:
        return self._broker.context.process

    @property
    def started(self) -> bool:
        return self.node is not None and self.node.started

    @property
    def is_running(self) -> bool:
        node = self._broker
        return node.context.process.state != "dead" and not node.shutting_down

    def knows(self, brokers: Collection[int]) -> bool:
        node = self.node
        if node is None or not node.started:
            return False
        if BROKER_LIST_ANNOUNCED not in node.context.guards:
            # It learns of those that join later with the next change of a partition.
            brokers = (self.broker,)
        return all(node.metadata_cache.alive_broker(b) for b in brokers)

    def when_dead(self, then: Callable[[], object]) -> None:
        if self._process.state == "dead":
            then()
        else:
            self._process.on_death = partial(self._died, then)

    def _died(self, then: Callable[[], object], process: Process) -> None:
        self._network.process_died(process)
        # Not during the death: the next process must find this one's sockets closed.
        self._kernel.world.lane("world").post(then)

    def end(self) -> None:
        """Its session is closed."""
        if self.node is not None and self._process.state != "dead":
            self.node.close()

    def join(self) -> None:
        """Nothing to wait for: the kernel is not run again."""

    # -- actions -----------------------------------------------------------------------------------

    def pause(self) -> None:
        was = self._process.state
        self._services.pause_process(self._process)
        # A second SIGSTOP has no effect and no event.
        if self._process.state == "paused" != was:
            self._broker.note_pause()

    def resume(self) -> None:
        if self._process.state == "paused":
            # First: the event precedes what the process does from now on.
            self._broker.note_resume()
        self._services.resume_process(self._process)

    def kill(self) -> None:
        self._broker.crash()

    def terminate(self) -> None:
        self._broker.terminate()

    def lose_from_disk(self, what: str) -> None:
        self._storage.lose(what)

    def fail_log_dir(self, directory: int) -> None:
        self._storage.fail(directory)

    def repair_log_dir(self, directory: int) -> None:
        self._storage.repair(directory)

    def slow_disk(self, ms_per_append: int) -> None:
        self.disk.ms_per_append = ms_per_append

    def use_up_descriptors(self) -> None:
        raise AssertionError("processes alone have a machine's limits: Capabilities say so")

    free_descriptors = use_up_descriptors

    def set_clock(self, offset_ms: int) -> None:
        self._clock_offset_ms = offset_ms

    @property
    def _files(self) -> DiskInFiles:
        """The files of the logs; a scenario with logs in memory has no faults that need files."""
        assert isinstance(self._storage, DiskInFiles)
        return self._storage

    def fail_disk_calls(self, directory: int, call: str, count: int | None) -> None:
        self._files.fail_calls(directory, call, count)

    def limit_space(self, free_bytes: int) -> None:
        self._files.files.free_bytes = free_bytes

    def shorten_writes(self, directory: int) -> None:
        self._files.shorten_writes(directory)

    def damage_log(self, directory: int, how: str) -> None:
        self._files.damage_log(directory, how)

    def mend_disk(self) -> None:
        self._files.files.mend()

    def install(self, profile: str, propagation: str) -> None:
        runs = self._scenario.running(self.broker, profile or self._profile.name)
        self._profile = runs.altered({}, propagation) if propagation else runs

    def fail_authentication(self) -> None:
        client = self._broker.zk
        if client is not None and self.is_running:
            client.fail_authentication()


def emulated_cluster(
    scenario: Scenario,
    kernel: Kernel,
    network: MemoryNetwork,
    zookeeper: ZooKeeperOfHosts,
    zookeeper_capabilities: Capabilities,
    services: WorldServices,
    chance_of: ChanceOf,
) -> Cluster[EmulatedHost]:
    """A cluster whose brokers are all in this process."""
    brokers = [boot.broker for boot in scenario.boots]
    addresses = [LiveBroker(broker, HOST, port_of(broker, scenario)) for broker in brokers]
    return Cluster(
        {b: EmulatedHost(b, scenario, kernel, network, services, chance_of) for b in brokers},
        zookeeper,
        MemoryLinks(brokers, zookeeper, chance_of, network),
        EmulatedClients(scenario, kernel, network, addresses, services),
        emulated_capabilities(zookeeper_capabilities),
        partial(on_the_trace, kernel),
        KernelPlaces(kernel),
    )


def emulated_capabilities(zookeeper: Capabilities) -> ClusterCapabilities:
    """The capabilities of brokers in this process with this ZooKeeper."""
    return ClusterCapabilities.of_one_kind(InThisProcess(), zookeeper, AnyClient(), EveryPlace())


def nodes_of(cluster: Cluster[Any]) -> dict[int, Broker]:
    """The brokers in this process that have been started, in the order of the cluster's hosts."""
    hosts = ((broker, getattr(host, "node", None)) for broker, host in cluster.hosts.items())
    return {broker: node for broker, node in hosts if node is not None}
