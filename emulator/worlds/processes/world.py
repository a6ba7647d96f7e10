"""A scenario's cluster as processes: signals for faults, and one trace at the end.

The same scenario, clients and order of steps as in the other worlds (`play.Run`). Each broker is
`isr broker` at some `Deployment` (this machine, containers), with a proxy on every link. Owns the
run's folder and the events emitted at its end. `host` acts on brokers, `trace_merge` orders their
events.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from emulator.kafka.profiles.base import profiles
from emulator.kafka.protocol.messages import LiveBroker
from emulator.kernel.rng import Chance, Stream
from emulator.kernel.scheduler import Process
from emulator.scenario.schema import Host, Scenario
from emulator.trace.reader import SCHEMA_VERSION, Header
from emulator.trace.sink import Sink
from emulator.worlds.clients.emulated import EmulatedClients
from emulator.worlds.clients.producer import FIXED
from emulator.worlds.cluster import Cluster, on_the_trace
from emulator.worlds.kafka_logs import ReadKafkaLogs, no_logs
from emulator.worlds.latency import Latencies
from emulator.worlds.links import ProxiedLinks
from emulator.worlds.live_clock import LiveClock, LiveKernel
from emulator.worlds.network.cause_links import CausalityLog
from emulator.worlds.network.tcp import TcpNetwork
from emulator.worlds.processes.hollow_brokers import HollowBroker
from emulator.worlds.processes.host import ProcessHost, process_capabilities
from emulator.worlds.processes.linked_sessions import LinkedService
from emulator.worlds.processes.local_site import Deployment, LocalDeployment
from emulator.worlds.processes.proxies import ProcessProxies
from emulator.worlds.processes.trace_files import (
    PROCESSES,
    RUNNER,
    RunnerTrace,
    UntracedPart,
    merged_run,
)
from emulator.worlds.zookeeper import TappedZooKeeper
from zk.client.client_times import ClientTimes
from zk.real.kazoo_service import KazooService
from zk.real.server import Address, wait_until_ready
from zk.wire import Service

LOCAL, COMPOSE = "processes", "compose"
BEFORE_RPC = "2.6"
"""The newest protocol in which leaders write ISRs to ZooKeeper (KIP-497)."""

OF_CLIENTS = ("auto.create.topics.enable", "offsets.topic.replication.factor")


def make_site(target: str, scenario: Scenario, data_dir: Path, folder: Path) -> Deployment:
    """The deployment of a target. Raises ServerError."""
    if target == LOCAL:
        return LocalDeployment(scenario, data_dir, folder)
    from emulator.worlds.processes.compose_site import ComposeDeployment
    from emulator.worlds.processes.container_site import ContainerDeployment

    return (
        ComposeDeployment(scenario, folder)
        if target == COMPOSE
        else ContainerDeployment(scenario, folder)
    )


class ProcessWorld:
    """One run. A context manager that emits its events at the exit."""

    machine_load = None
    """Processes take what this machine needs."""

    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        sink: Sink,
        data_dir: Path,
        target: str = LOCAL,
        read_kafka: ReadKafkaLogs = no_logs,
    ) -> None:
        """`read_kafka` reads real Kafka's logs. Raises ServerError."""
        self.scenario, self._whole_trace, self._read_kafka = scenario, sink, read_kafka
        self.chance = Chance(seed)
        self.latencies = Latencies(self.chance)
        self.clock = LiveClock()
        self.sink = Sink()
        self.kernel = LiveKernel(self.sink, self.clock)
        self.folder = data_dir.parent / PROCESSES
        self.folder.mkdir(parents=True, exist_ok=True)
        self.site: Deployment = make_site(target, scenario, data_dir, self.folder)
        ids = [boot.broker for boot in scenario.boots]
        self.addresses = reached = {broker: self.site.address_of(broker) for broker in ids}
        self._notes = CausalityLog(self.folder / f"{RUNNER}.links", lambda: self.sink.next_seq)
        header = Header(SCHEMA_VERSION, scenario.name, seed, scenario.profile, "")
        self._runner_trace = RunnerTrace(self.folder, header, self._notes)
        self.sink.listen(self._runner_trace)
        self._service = KazooService(self.site.zookeeper, ClientTimes(), self.kernel.soon)
        # Hollow brokers are too many for a proxy between each two.
        proxied = [broker for broker in ids if self.host_of(broker).kind != "hollow"]
        self.links = ProcessProxies(
            self.clock.now_us,
            self.site.zookeeper,
            {broker: Address((reached[broker],)) for broker in proxied},
            self.site.here,
            [broker for broker, host in scenario.hosts.items() if host.kind == "kafka"],
        )
        # Metadata has the addresses for brokers; our clients may need others.
        routes = {self._advertised(broker): where for broker, where in reached.items()}
        self.network = TcpNetwork(
            self.kernel, self.clock, scenario.running(), self._notes, lambda _: None, routes
        )
        zookeeper = TappedZooKeeper(self.links.tap_of, self.site.act_on, self.links.expire_session)

        def one_stream(purpose: str, actor: str) -> Callable[[], Stream]:
            """For the whole run: the proxies' thread draws from it."""
            stream = self.chance.stream(purpose, actor)
            return lambda: stream

        addresses = [LiveBroker(b, *self._advertised(b)) for b in ids]
        self.cluster: Cluster[ProcessHost] = Cluster(
            {
                b: ProcessHost(b, self.site, self.kernel, scenario.running(b).name, self._arguments)
                for b in ids
            },
            zookeeper,
            ProxiedLinks(proxied, zookeeper, one_stream, self.links.between, self.site.plug),
            EmulatedClients(scenario, self.kernel, self.network, addresses, self),
            process_capabilities(scenario.hosts, ensemble=target != LOCAL),
            partial(on_the_trace, self.kernel),
        )

    def host_of(self, broker: int) -> Host:
        """The host of a broker."""
        is_local = isinstance(self.site, LocalDeployment)
        default = Host("process") if is_local else Host("container")
        return self.scenario.hosts.get(broker, default)

    def _advertised(self, broker: int) -> tuple[str, int]:
        """The address that a broker advertises."""
        if broker in self.links.advertised:
            return self.links.advertised[broker].servers[0]
        return self.site.advertised_address(broker)

    def _arguments(self, broker: int, profile: str, propagation: str) -> list[str]:
        """The start arguments of a broker's process: those of `isr broker`, or the settings of real
        Kafka."""
        scenario, site, proxies = self.scenario, self.site, self.links
        is_hollow = self.host_of(broker).kind == "hollow"
        address = str(site.zookeeper if is_hollow else proxies.tap_of(broker).address)
        settings = {**scenario.settings, **scenario.broker_settings.get(broker, {})}
        advertised = "{}:{}".format(*self._advertised(broker))
        if self.host_of(broker).kind == "kafka":
            own = {"zookeeper.connect": address, "advertised.listeners": advertised}
            # The emulated brokers have Kafka's defaults here, whatever a recording needs.
            kafka = {key: scenario.running(broker).values[key] for key in OF_CLIENTS}
            own |= self._protocol_of_kafka(profile, propagation)
            pairs = {**kafka, **settings, **own}.items()
            return [
                self._kafka_version(broker, profile),
                *(f"{key}={value}" for key, value in pairs),
            ]
        words = ["--id", str(broker), "--zookeeper", address, *site.words(broker)]
        if broker in proxies.advertised:
            words += ["--advertise", advertised]
        for peer, proxy in proxies.routes_of(broker).items():
            words += ["--through", "{}:{}={}".format(*self._advertised(peer), proxy)]
        # One time zero for all, on the clock that processes of a machine share.
        words += ["--began-ns", str(self.clock.began_ns), "--profile", profile]
        for name, on in scenario.guards.items():
            words += ["--guard", f"{name}={'on' if on else 'off'}"]
        if propagation or scenario.propagation:
            words += ["--propagation", propagation or scenario.propagation]
        for key, value in settings.items():
            words += ["--set", f"{key}={value}"]
        return words

    def _kafka_version(self, broker: int, profile: str) -> str:
        """Of a real broker: an upgrade names a profile, and means that one's release."""
        is_first = profile == self.scenario.running(broker).name
        return self.scenario.hosts[broker].version if is_first else profiles()[profile].release

    def _protocol_of_kafka(self, profile: str, propagation: str) -> dict[str, str]:
        """Leaders of newer versions write ISRs themselves only for an older protocol."""
        is_newer = profiles()[profile].propagation == "rpc"
        if is_newer and (propagation or self.scenario.propagation) == "zk":
            return {"inter.broker.protocol.version": BEFORE_RPC}
        return {}

    def __enter__(self) -> ProcessWorld:
        try:
            self.site.start()
            wait_until_ready(self.site.zookeeper)
            self.clock.begin()
            self._runner_trace.begin(self._began_ms())
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.sink.close()
        try:
            # Traces are complete when their writers have ended; ZooKeeper's log is read last,
            # because a broker that ends still writes to it.
            self._end_brokers()
            entries = self.site.gather() if kind is None else []
        finally:
            self._take_down()
        if kind is None:
            merged = merged_run(
                self.folder,
                self.cluster.hosts,
                self.sink.events,
                entries,
                self._began_ms(),
                self.links.zookeeper_requests,
                self._untraced_parts(),
            )
            for event in merged:
                if event.t <= self.kernel.now:  # what the end of the run leads to is not of it
                    self._whole_trace.append(event)
        self._runner_trace.close()  # last: until now nobody else may put the trace together

    def _untraced_parts(self) -> dict[int, UntracedPart]:
        """Real Kafka's logs on the run's clock, and the sessions of real and hollow brokers."""
        began_us = round(self._began_ms() * 1000)
        parts: dict[int, UntracedPart] = {}
        for broker in [b for b, host in self.scenario.hosts.items() if host.kind == "kafka"]:
            logged = self._read_kafka(self.folder / f"broker-{broker}", broker)
            events = [msgspec.structs.replace(one, t=max(0, one.t - began_us)) for one in logged]
            parts[broker] = UntracedPart(events, list(self.links.tap_of(broker).sessions))
        for broker, one in self.cluster.hosts.items():
            if isinstance(one.process, HollowBroker):
                parts[broker] = UntracedPart([], one.process.sessions)
        return parts

    def _began_ms(self) -> float:
        """Time zero on the wall clock, which ZooKeeper's log uses."""
        return time.time() * 1000 - self.clock.now_us() / 1000

    def _end_brokers(self) -> None:
        # A broker that ends asks ZooKeeper for the controller, for as long as that takes.
        for tap in self.links.taps.values():
            tap.heal()
        self.cluster.close()

    def close(self) -> None:
        """Remove everything; the traces of the processes are not merged."""
        self._take_down()
        self._runner_trace.close()

    def _take_down(self) -> None:
        self._end_brokers()
        self.links.close()
        self.network.close()
        self._service.close()
        self._notes.close()
        self.site.close()
        self.kernel.close()

    # -- emulator.worlds.services.WorldServices --------------------------------------------------

    def service_for(self, client: str) -> Service:
        """For tools; brokers have their own."""
        return LinkedService(self._service, self._notes, self.kernel)

    def wall_ms(self) -> int:
        return int(time.time() * 1000)

    def pause_process(self, process: Process) -> None:
        raise AssertionError(f"{process.name} is none of ours")

    def resume_process(self, process: Process) -> None:
        raise AssertionError(f"{process.name} is none of ours")

    def client_start_us(self, client: str) -> int:
        return 0

    def draw_assignment(self, below: int) -> int:
        return self.chance.stream("assignment", "admin").below(below)

    def handover_jitter_us(self, producer: str) -> int:
        return 0

    def client_draw(self, purpose: str, actor: str) -> int:
        return FIXED[purpose]
