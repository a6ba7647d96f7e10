"""A scenario's cluster as processes of this machine: signals for faults, one trace at the end.

The same scenario, clients and order of steps as in the other worlds (`play.Run`); each broker is
`isr broker`, on ports of loopback, at a ZooKeeper server of our own, with a proxy on every link.
Owns the run's folder and what is told when all is over; what is done to brokers is
`process_cluster`'s, the order of their events `merged_trace`'s.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from emulator.kernel.rng import Chance, Stream
from emulator.kernel.scheduler import Process
from emulator.runtime.cause_links import CauseLinks
from emulator.runtime.latency import Latencies
from emulator.runtime.linked_sessions import LinkedService
from emulator.runtime.live import embedded_server
from emulator.runtime.live_clock import LiveClock, LiveKernel
from emulator.runtime.possible import check_steps
from emulator.runtime.process_cluster import (
    WHOM,
    PossibleForProcesses,
    ProcessCluster,
    free_port,
)
from emulator.runtime.process_links import ProcessLinks, addresses
from emulator.runtime.process_parts import RUNNER, Ran, merged_run
from emulator.runtime.producer import FIXED
from emulator.runtime.real_sessions import RealSessions
from emulator.runtime.tcp_network import TcpNetwork
from emulator.scenario.schema import Scenario
from emulator.trace.sink import Sink
from zk.client_times import ClientTimes
from zk.kazoo_service import KazooService
from zk.server import EmbeddedServer, wait_until_ready
from zk.txnlog import read_log
from zk.wire import Service, Way, When


def check_possible(scenario: Scenario) -> None:
    """UserError for what a process cannot be done from outside."""
    check_steps(scenario, PossibleForProcesses(), f"brokers that are {WHOM}")


class ProcessWorld(RealSessions):
    """One run. Use as a context manager; what happened is told when it is left."""

    def __init__(self, scenario: Scenario, seed: int, sink: Sink, data_dir: Path) -> None:
        self.scenario, self._told = scenario, sink
        self.chance = Chance(seed)
        self.latencies = Latencies(self.chance)
        self.clock = LiveClock()
        self.sink = Sink()
        self.kernel = LiveKernel(self.sink, self.clock)
        self.server: EmbeddedServer = embedded_server(scenario, data_dir)
        self.folder = data_dir.parent / "processes"
        self.folder.mkdir(parents=True, exist_ok=True)
        self._notes = CauseLinks(self.folder / f"{RUNNER}.links", lambda: self.sink.next_seq)
        self.network = TcpNetwork(
            self.kernel, self.clock, scenario.running(), self._notes, lambda _: None
        )
        self._service = KazooService(self.server.address, ClientTimes(), self.kernel.soon)
        ports = {boot.broker: free_port() for boot in scenario.boots}
        self.links = ProcessLinks(self.clock.now_us, self.server.address, addresses(ports))
        self.cluster = ProcessCluster(self, ports, self.kernel)

    @property
    def began_ns(self) -> int:
        """See Processes."""
        return self.clock.began_ns

    def __enter__(self) -> ProcessWorld:
        try:
            self.server.start()
            wait_until_ready(self.server.address)
            self.clock.begin()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.sink.close()
        self.close()
        if kind is None:
            self._tell()

    def close(self) -> None:
        """Nothing stays behind."""
        for tap in self.links.taps.values():
            tap.heal()
        self.cluster.close()
        self.links.close()
        self.network.close()
        self._service.close()
        self._notes.close()
        self.server.close()
        self.kernel.close()

    def _tell(self) -> None:
        """What all processes and the server's log say, in one order, up to the end of the run."""
        ran = Ran(
            folder=self.folder,
            brokers=list(self.cluster.children),
            own=self.sink.events,
            entries=list(read_log(self.server.txn_log_dir)),
            began_ms=time.time() * 1000 - self.clock.now_us() / 1000,
            asked=self.links.asked,
        )
        for event in merged_run(ran):
            if event.t <= self.kernel.now:
                self._told.append(event)

    def prepare(self, stimulus: str, at_us: int) -> None:
        """The machine itself is what is busy."""

    # -- emulator.runtime.cluster.Surroundings -----------------------------------------------------

    def service_for(self, client: str) -> Service:
        """For tools; brokers have their own."""
        return LinkedService(self._service, self._notes, self.kernel)

    def wall_ms(self) -> int:
        return int(time.time() * 1000)

    def pause_process(self, process: Process) -> None:
        raise AssertionError(f"{process.name} is none of ours")

    def resume_process(self, process: Process) -> None:
        raise AssertionError(f"{process.name} is none of ours")

    def pause_zookeeper(self) -> None:
        if self.server.is_there:
            self.server.pause()

    def resume_zookeeper(self) -> None:
        if self.server.is_there:
            self.server.resume()

    def stop_zookeeper(self) -> None:
        self.server.stop()

    def start_zookeeper(self) -> None:
        if not self.server.is_there:
            self.server.launch()

    def expire_session(self, client: str) -> None:
        self.links.expire_session(client)

    def drop_connection(self, client: str, when: When, op: str | None, count: int) -> None:
        self.links.taps[client].drop_connection(when, op, count)

    def cut_zookeeper(self, client: str, ways: tuple[Way, ...]) -> None:
        self.links.taps[client].cut(*ways)

    def heal_zookeeper(self, client: str) -> None:
        self.links.taps[client].heal()

    def delay_zookeeper(self, client: str, delay_ms: int) -> None:
        self.links.taps[client].delay(delay_ms * 1000)

    def disturb_zookeeper(self, client: str, drawn_us: Callable[[Way], int]) -> None:
        self.links.taps[client].disturb(drawn_us)

    def chance_of(self, purpose: str, actor: str) -> Callable[[], Stream]:
        """One stream for the whole run: the proxies' thread draws from its own."""
        stream = self.chance.stream(purpose, actor)
        return lambda: stream

    def client_start_us(self, client: str) -> int:
        return 0

    def draw_assignment(self, below: int) -> int:
        return self.chance.stream("assignment", "admin").below(below)

    def handover_jitter_us(self, producer: str) -> int:
        return 0

    def client_draw(self, purpose: str, actor: str) -> int:
        return FIXED[purpose]
