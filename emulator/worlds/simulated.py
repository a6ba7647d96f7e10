"""The simulated world: virtual time, a modelled ZooKeeper, drawn latencies; one seed.

Connects kernel, network, ensemble and cluster. All free choices come from `Chance`: the same seed
and choices give the same run.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from emulator.kernel.rng import Chance, Choice
from emulator.kernel.scheduler import Kernel, Process
from emulator.scenario.schema import Scenario
from emulator.trace.sink import Sink
from emulator.worlds.emulated_host import emulated_cluster
from emulator.worlds.latency import BROKERS, Latencies, Table
from emulator.worlds.machine_load import MachineLoadOf
from emulator.worlds.network.memory import MemoryNetwork
from emulator.worlds.zk_observer import TracingObserver
from emulator.worlds.zookeeper import ModelledServer, ModelledZooKeeper
from zk.model.ensemble import Ensemble
from zk.wire import Service

RESUME_ECHO_US = 50_000
EPOCH_MS = 1_600_000_000_000


class SimulatedWorld:
    """One run in virtual time."""

    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        sink: Sink,
        choices: Mapping[Choice, int] | None = None,
        kernel: type[Kernel] = Kernel,
        machine_load: MachineLoadOf | None = None,
        latencies: Table | None = None,
    ) -> None:
        self.scenario = scenario
        self.chance = Chance(seed, choices)
        self.latencies = Latencies(self.chance, latencies)
        self.kernel = kernel(sink, wake_up=self.latencies)
        self.machine_load = (
            None if machine_load is None else machine_load(self.kernel, self.latencies)
        )
        # The method itself: for every message, to call the object would take Python twice as long.
        draw = self.latencies.__call__
        network_latency = draw if machine_load is None else self._network_latency_us
        self.network = MemoryNetwork(self.kernel, network_latency)
        self._zookeeper = self.kernel.process("zookeeper")
        settings = scenario.zookeeper
        self.ensemble: Ensemble = Ensemble(
            server=self._zookeeper.lane("SyncThread"),
            # A separate thread, as in the real server: after a stall it races with the thread that
            # reads packets, and may expire sessions whose pings have arrived.
            tracker=self._zookeeper.lane("SessionTracker"),
            network=self.kernel.world.lane("network"),
            latency=self._zookeeper_latency_us,
            observer=TracingObserver(self.kernel, self._client_of),
            tick_time_ms=settings.tick_time_ms,
            min_session_timeout_ms=settings.min_session_timeout_ms,
            max_session_timeout_ms=settings.max_session_timeout_ms,
            # The phase of the ticks depends on the moment of the server's start, so it is drawn.
            tick_phase_ms=self.chance.stream("zk_tick", "zookeeper").below(settings.tick_time_ms),
            epoch_ms=EPOCH_MS,
        )
        # Our own code takes no time: the duration of Kafka's code is drawn at these places.
        charge = (self.machine_load or self.latencies).charge
        for name in BROKERS:
            self.kernel.checkpoints[name] = partial(charge, name)
        self.cluster = emulated_cluster(
            scenario,
            self.kernel,
            self.network,
            ModelledZooKeeper(self.ensemble, self._zookeeper, self.latencies),
            ModelledServer(),
            self,
            lambda purpose, actor: partial(self.chance.stream, purpose, actor),
        )

    def _network_latency_us(self, purpose: str, actor: str) -> int:
        assert self.machine_load is not None
        return self.machine_load.work_us(purpose, actor) + self.machine_load.delay_us(actor)

    def _zookeeper_latency_us(self, purpose: str, actor: str) -> int:
        if self.machine_load is not None:
            return self.machine_load.work_us(purpose, actor)
        return self.latencies.at(self.kernel.now, purpose, actor)

    def _client_of(self, session_id: int) -> str:
        return self.ensemble.client_of(session_id)

    # -- emulator.worlds.services.WorldServices ----------------------------------------------------

    def service_for(self, client: str) -> Service:
        return self.ensemble

    def wall_ms(self) -> int:
        return EPOCH_MS + self.kernel.now // 1000

    def pause_process(self, process: Process) -> None:
        process.pause()

    def resume_process(self, process: Process) -> None:
        process.resume()

    def client_start_us(self, client: str) -> int:
        return self.latencies("client_start", client)

    def draw_assignment(self, below: int) -> int:
        return self.chance.stream("assignment", "admin").below(below)

    def handover_jitter_us(self, producer: str) -> int:
        """Even later while a resumed process occupies the shared cores."""
        late_us, now = self.latencies.handover(producer), self.kernel.now
        if self.machine_load is not None:
            late_us += self.machine_load.delay_us(producer)
        if any(p.sluggish_until + RESUME_ECHO_US > now for p in self.kernel.processes.values()):
            late_us += self.latencies("handover_beside_resume", producer)
        return late_us

    def client_draw(self, purpose: str, actor: str) -> int:
        return self.latencies(purpose, actor)

    def __enter__(self) -> SimulatedWorld:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Take the world down."""
        self.kernel.close()
