"""The live world: wall-clock time, a real ZooKeeper server, one kazoo session per broker.

Connects kernel, network, server, taps and cluster. Every broker reaches ZooKeeper through its own
tap, which reports the traffic and can be cut. The server's transactions are read from its own log
as it grows. Brokers live in this process: a pause stops a broker's tasks and its client.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from emulator.kafka.model.errors import Errors
from emulator.kernel.rng import Chance, Stream
from emulator.kernel.scheduler import Process
from emulator.scenario.capabilities import Capabilities
from emulator.scenario.schema import Scenario
from emulator.trace.events import ActionApplied, ActionReturned, AnyEvent, ThreadFailed
from emulator.trace.sink import Sink
from emulator.worlds.clients.producer import FIXED
from emulator.worlds.emulated_host import emulated_cluster
from emulator.worlds.latency import BROKERS, Latencies, Table
from emulator.worlds.live_causality import CLOSE, CONNECT, LiveCauses
from emulator.worlds.live_clock import LiveClock, LiveKernel
from emulator.worlds.machine_load import MachineLoadOf
from emulator.worlds.network.memory import MemoryNetwork
from emulator.worlds.zk_observer import TracingObserver
from emulator.worlds.zk_server_log import ReplyLog, ServerLog
from emulator.worlds.zookeeper import ForeignServer, OwnServer, TappedZooKeeper
from zk.client.client_times import ClientTimes
from zk.errors import Code
from zk.ops import Reply, Request, SessionState, WatchedEvent
from zk.real.kazoo_service import KazooService
from zk.real.server import (
    EmbeddedServer,
    NoRights,
    NotReady,
    ServerError,
    ensure_chroot,
    parse_address,
    require_session_timeout,
    wait_until_ready,
)
from zk.real.server_container import ContainerServer
from zk.real.server_ensemble import act_on
from zk.real.session_wrapper import SessionAround
from zk.real.tap import Tap, Taps
from zk.wire import Lane, Listener, OnReply, Service, Session

EMBEDDED, DOCKER = "embedded", "docker"
SERVER_LOOK_US = 1_000_000
_EXISTS = Errors.TOPIC_ALREADY_EXISTS.name


class LiveWorld:
    """One run on the wall clock. A context manager that starts and ends the server."""

    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        sink: Sink,
        *,
        zookeeper: str,
        data_dir: Path,
        time_scale: int = 1,
        machine_load: MachineLoadOf | None = None,
        latencies: Table | None = None,
    ) -> None:
        self.scenario, self._time_scale = scenario, time_scale
        self.chance = Chance(seed)
        self.latencies = Latencies(self.chance, latencies)
        self.clock = LiveClock(time_scale)
        self.kernel = LiveKernel(sink, self.clock)
        self.machine_load = (
            None if machine_load is None else machine_load(self.kernel, self.latencies)
        )
        self.network = MemoryNetwork(self.kernel, self._network_latency_us)
        self.server = self._own(zookeeper, data_dir)
        self._address = self.server.address if self.server else parse_address(zookeeper)
        # The wire has only session ids; this maps them to clients.
        self._sessions: dict[int, str] = {}
        self._opened: list[tuple[Session, str]] = []
        whose = self._client_of
        observer = TracingObserver(self.kernel, whose)
        self.causes = LiveCauses(self.kernel, observer, whose, self._read_tap_events)
        times = ClientTimes().divided_by(time_scale)
        self._service = KazooService(self._address, times, self.kernel.soon)
        self._sessions_of: Service = self._service
        self._taps = Taps(_Inbox(self.clock, self.causes), self.clock.now_us, time_scale)
        self._tap_of: dict[str, Tap] = {}
        self.log: ServerLog | ReplyLog = (
            ServerLog(self.server.txn_log_dir, self.causes, self.kernel)
            # Only a server in a local process of ours has a log file that this process can read.
            if isinstance(self.server, EmbeddedServer)
            else ReplyLog(self.causes, self.kernel)
        )
        if self.machine_load is not None:
            self._sessions_of = self.machine_load.paced(self._service)
            # The duration of a broker's own code on the recorded machine: it determines the phases
            # of periodic tasks, the order in which brokers learn of changes, and what is in flight.
            for name in BROKERS:
                self.kernel.checkpoints[name] = partial(self.machine_load.charge, name)
        self._coming_up = True
        # Before the cluster is created: its first events have listeners too.
        sink.listen(self._watch_the_start)
        self.cluster = emulated_cluster(
            scenario,
            self.kernel,
            self.network,
            TappedZooKeeper(
                lambda broker: self._tap_of[f"broker-{broker}"],
                # There is one server: the capabilities have checked its name.
                lambda _, what: act_on(self.server, what),
                self._expire_session,
            ),
            server_capabilities(zookeeper),
            self,
            self._one_stream,
        )

    def _read_tap_events(self) -> None:
        """Add the taps' reports to the trace: their thread hands them over a moment later."""
        # An order to the taps' thread runs after everything that it has reported.
        self._taps.run(lambda: None)
        for action in self.clock.inbox():
            action()

    def _network_latency_us(self, purpose: str, actor: str) -> int:
        """Messages between brokers stay in this process; on the recorded machine they took time."""
        if self.machine_load is None:
            return 0
        return self.machine_load.work_us(purpose, actor) + self.machine_load.delay_us(actor)

    def _own(self, zookeeper: str, data_dir: Path) -> EmbeddedServer | ContainerServer | None:
        """The server that this run started and may stop. None if it is someone else's."""
        if zookeeper == DOCKER:
            return ContainerServer(*server_times(self.scenario, self._time_scale))
        if zookeeper == EMBEDDED:
            return embedded_server(self.scenario, data_dir, self._time_scale)
        return None

    def __enter__(self) -> LiveWorld:
        try:
            if self.server is not None:
                self.server.start()
            self._wait_until_ready()
            # No broker creates the chroot: each one's paths start below it.
            ensure_chroot(self._address)
            self._check_session_timeout()
            # Time counts from here: the server's start is not part of the run.
            self.clock.begin()
            self._check_server()
        except BaseException:
            self.close()
            raise
        return self

    def _wait_until_ready(self) -> None:
        """If our own server has ended meanwhile (a full disk), report why, not only that it does
        not respond."""
        try:
            wait_until_ready(self._address)
        except NotReady:
            if self.server is not None:
                self.server.require_alive()
            raise

    def _check_session_timeout(self) -> None:
        scaled_ms = int(self._setting("zookeeper.session.timeout.ms")) // self._time_scale
        require_session_timeout(self._address, scaled_ms)

    def _check_server(self) -> None:
        """End the run if the server has ended without an action (a full disk)."""
        if self.server is not None:
            self.server.require_alive()
            # Not on a broker's lane: those stop while their broker is paused.
            lane = self.kernel.world.lane("world")
            lane.call_at(self.clock.now_us() + SERVER_LOOK_US, self._check_server)

    def _setting(self, key: str) -> str:
        return self.scenario.settings.get(key, self.scenario.running().values[key])

    def _watch_the_start(self, event: AnyEvent) -> None:
        """Detect what prevents a run: a broker that cannot start (later, the scenario decides), or
        an existing cluster, whose logs are missing here."""
        if isinstance(event, ActionApplied):
            self._coming_up = False
        elif self._coming_up and isinstance(event, ThreadFailed) and event.what == "startup":
            kind = NoRights if Code.NO_AUTH.name in event.error else ServerError
            raise kind(f"broker {event.broker} cannot start at {self._address}: {event.error}")
        elif self.server is None and isinstance(event, ActionReturned) and event.result == _EXISTS:
            raise ServerError(
                f"a topic of this scenario is at {self._address} already: use another chroot, such "
                f"as {self._address.hosts}/{self.scenario.name}-2, or remove what is there"
            )

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close sessions, including those of paused processes, then taps, server and tasks. No
        session of this run remains in ZooKeeper. The trace ends before."""
        # Read the server's transactions up to here; those caused by closing are not part of the
        # run.
        self.log.poll()
        self.log.close()
        self.kernel.sink.close()
        self.cluster.close()
        for process in self.kernel.processes.values():
            self._service.gate(process.name).resume()
        # A paused session could not send its closeSession.
        self._service.close()
        self._taps.close()
        if self.server is not None:
            self.server.close()
        self.kernel.close()

    # -- emulator.worlds.services.WorldServices ----------------------------------------------------

    def service_for(self, client: str) -> Service:
        """The service for a new process. Its link keeps the cuts and delays of its predecessor's;
        nothing of a process that was killed during a pause remains."""
        # Taps outlive processes: a link that was cut stays cut for the broker's next process.
        if client not in self._tap_of:
            tap = self._tap_of[client] = self._taps.open(client, self._address)
            self._service.route(client, tap.address)
        self._service.gate(client).resume()
        self.causes.forget(client)
        return _CausalService(self, client)

    def open_session(self, client: str, timeout_ms: int, lane: Lane, listener: Listener) -> Session:
        """A session through the broker's tap, with the scaled timeout."""
        scaled_ms = timeout_ms // self._time_scale
        session = self._sessions_of.open_session(client, scaled_ms, lane, listener)
        self._opened.append((session, client))
        return session

    def _client_of(self, session_id: int) -> str:
        """The session's client. The wire knows the session id before the client's listener does."""
        if session_id not in self._sessions:
            opened, self._opened = self._opened, []
            for session, client in opened:
                # Granted meanwhile. The others still wait for their first response and are checked
                # again.
                if session.session_id:
                    self._sessions[session.session_id] = client
                else:
                    self._opened.append((session, client))
        return self._sessions.get(session_id, "")

    def wall_ms(self) -> int:
        return 1_600_000_000_000 + self.kernel.now // 1000

    def pause_process(self, process: Process) -> None:
        """Pause the process and its sessions; does nothing if it has ended."""
        process.pause()
        if process.state == "paused":
            self._service.gate(process.name).pause()

    def resume_process(self, process: Process) -> None:
        self._service.gate(process.name).resume()
        process.resume()

    def _one_stream(self, purpose: str, actor: str) -> Callable[[], Stream]:
        """One stream for the whole run: the taps' thread draws from a separate one."""
        stream = self.chance.stream(purpose, actor)
        return lambda: stream

    def _expire_session(self, broker: int) -> None:
        self.causes.expiring(f"broker-{broker}")
        self._service.expire(f"broker-{broker}")

    def client_start_us(self, client: str) -> int:
        return 0 if self.machine_load is None else self.latencies("client_start", client)

    def draw_assignment(self, below: int) -> int:
        return self.chance.stream("assignment", "admin").below(below)

    def handover_jitter_us(self, producer: str) -> int:
        if self.machine_load is None:
            return 0
        late_us = self.latencies.handover(producer)
        return late_us + self.machine_load.delay_us(producer)

    def client_draw(self, purpose: str, actor: str) -> int:
        return FIXED[purpose] if self.machine_load is None else self.latencies(purpose, actor)


def server_capabilities(zookeeper: str) -> Capabilities:
    """The capabilities of the `--zookeeper` target: our own server, or one at an address."""
    return OwnServer() if zookeeper in (EMBEDDED, DOCKER) else ForeignServer()


def server_times(scenario: Scenario, scale: int) -> tuple[int, int, int]:
    """A server's tick, and the shortest and longest session timeout, in milliseconds."""
    settings = scenario.zookeeper
    tick_ms = max(1, settings.tick_time_ms // scale)
    least_ms = max(1, settings.min_session_timeout_ms // scale)
    return tick_ms, least_ms, settings.max_session_timeout_ms // scale


def embedded_server(scenario: Scenario, data_dir: Path, scale: int = 1) -> EmbeddedServer:
    """Our own server, as configured by a scenario."""
    return EmbeddedServer(data_dir, *server_times(scenario, scale))


class _Inbox:
    """Passes what the taps' thread sees to the kernel's thread. A request is only queued; its
    response wakes the kernel, because twice as many hand-overs would cost noticeable time."""

    def __init__(self, clock: LiveClock, observer: LiveCauses) -> None:
        self._clock, self._observer = clock, observer

    def on_request(self, at_us: int, client: str, request: Request | str) -> None:
        self._clock.put_without_waking(lambda: self._observer.on_request(at_us, client, request))

    def on_reply(self, client: str, request: Request | str, code: object, elapsed_us: int) -> None:
        """Responses are traced where they arrive, at the broker."""


class _CausalService:
    """A service whose sessions read the server's log before each callback, so that the cause of a
    callback is in the trace before it."""

    def __init__(self, world: LiveWorld, client: str) -> None:
        self._world, self._client = world, client

    def open_session(self, client: str, timeout_ms: int, lane: Lane, listener: Listener) -> Session:
        causal = _CausalListener(self._world, self._client, listener)
        self._world.causes.submitted(client, CONNECT)
        causal.session = self._world.open_session(client, timeout_ms, lane, causal)
        return _CausalSession(self._world, self._client, causal.session)


class _CausalListener:
    def __init__(self, world: LiveWorld, client: str, listener: Listener) -> None:
        self._world, self._client, self._listener = world, client, listener
        self.session: Session | None = None

    def on_watch(self, event: WatchedEvent) -> None:
        self._world.log.poll()
        self._world.causes.fired(self._client, event)
        self._listener.on_watch(event)

    def on_state(self, state: SessionState) -> None:
        self._world.log.poll()
        if self.session is not None:
            self._world.causes.session_changed(self.session.session_id)
        self._listener.on_state(state)


class _CausalSession(SessionAround):
    def __init__(self, world: LiveWorld, client: str, session: Session) -> None:
        super().__init__(session)
        self._world, self._client = world, client

    def submit(self, request: Request, on_reply: OnReply) -> None:
        session_id = self._session.session_id
        in_flight = self._world.causes.submitted(self._client, request)

        def replied(reply: Reply) -> None:
            self._world.log.replied(session_id, request, reply)
            self._world.causes.answered(self._client, in_flight, reply)
            on_reply(reply)

        self._session.submit(request, replied)

    def close(self) -> None:
        self._world.causes.submitted(self._client, CLOSE)
        self._session.close()
