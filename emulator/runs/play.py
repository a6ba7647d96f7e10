"""Plays a scenario in a world: brings the cluster up, then applies one action after the other.

The steps are the same in every world. `Run` plays segment by segment (a search forks between
segments); `play` plays everything. Knows no scenario by name and no output.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from emulator.kafka.profiles.base import Profile
from emulator.kernel.rng import Choice
from emulator.kernel.scheduler import Callback, Kernel
from emulator.scenario.actions.admin import AdminRequest
from emulator.scenario.actions.base import Action
from emulator.scenario.actions.life import EndsProcess
from emulator.scenario.schema import Boot, Scenario, Step
from emulator.scenario.units import show_us
from emulator.trace import events
from emulator.trace.sink import Sink
from emulator.trace.values import Parameters
from emulator.worlds.cluster import Cluster
from emulator.worlds.errors import DidNotComeUp, TooFast
from emulator.worlds.gc_tuning import rare_collections
from emulator.worlds.kafka_logs import ReadKafkaLogs, no_logs
from emulator.worlds.latency import Latencies, Table
from emulator.worlds.live import LiveWorld
from emulator.worlds.machine_load import MachineLoad, MachineLoadOf
from emulator.worlds.simulated import SimulatedWorld
from zk.wire import labelled

if TYPE_CHECKING:
    from emulator.worlds.processes.world import ProcessWorld

SIMULATED = "simulated"
OF_PROCESSES = ("processes", "containers", "compose")
"""Targets that run each broker as a process of its own."""
UP_AFTER_FIRST_REGISTRATION_US = 3_000_000
BRING_UP_LIMIT_US = 120_000_000
BRING_UP_WALL_US = 10_000_000
"""The minimum wall-clock time for bring-up when time is scaled: processes do not start any
faster."""
_SLICE_US = 20_000
TO_REGISTRATION = ("boot.replica_manager_to_registration",)

World: TypeAlias = "SimulatedWorld | LiveWorld | ProcessWorld"
OnUp = Callable[[Any, int], object]


class PlayOptions(msgspec.Struct, kw_only=True):
    """How to play. `zookeeper` is `simulated`, `embedded`, or `HOST:PORT[,…][/chroot]`. `target` is
    one of OF_PROCESSES if each broker runs in its own process (otherwise `zookeeper` determines the
    world). `on_progress` is called about ten times per second of wall clock with the world's time.
    `choices` (chosen seeds) and `kernel` (the order of events) are for virtual time.
    `machine_load`: the load of another machine, and `latencies` the ranges fitted to it (None: the
    declared ones). `read_kafka` reads the logs of real Kafka hosts. `on_up` is called
    when the cluster is up, with the world and that moment in the world's time."""

    seed: int
    zookeeper: str = SIMULATED
    target: str = ""
    time_scale: int = 1
    data_dir: Path | None = None
    on_progress: Callable[[int], None] | None = None
    choices: Mapping[Choice, int] | None = None
    kernel: type[Kernel] = Kernel
    machine_load: MachineLoadOf | None = None
    latencies: Table | None = None
    read_kafka: ReadKafkaLogs = no_logs
    on_up: OnUp | None = None


class Outcome(msgspec.Struct):
    """The result of a play."""

    virtual_us: int
    wall_ms: int
    kernel_late_us_max: int
    interrupted: bool


class Run:
    """One play, segment by segment."""

    def __init__(self, world: World) -> None:
        self.world, self.scenario = world, world.scenario
        self.kernel: Kernel = world.kernel
        self.cluster: Cluster[Any] = world.cluster
        self.up_us = 0
        self.limit_us = BRING_UP_LIMIT_US
        self.segment = 0
        self._prepared = 0
        self._silent: dict[int, Callback] = {}
        """By broker: the start of its latest process, which a recording launched before: a JVM is
        silent at first. A process that ends before is never started."""
        self._machine_load: MachineLoad | None = world.machine_load
        self.cluster.on_start = self.start_again
        self.on_up: Callable[[int], object] = lambda _: None

    # -- boot -------------------------------------------------------------------------------------

    def bring_up(self, *, together: bool = False) -> None:
        """Boot the brokers. If registrations have recorded times, so has `up`. Otherwise each
        broker starts after the previous one (`together`: all at once), and the cluster is up when
        all brokers know each other."""
        if self._is_recorded:
            self._boot_by_registration(self.scenario.boots)
        elif together:
            hosts = [self.cluster.start(boot.broker) for boot in self.scenario.boots]
            self._run_until(lambda: all(host.started for host in hosts) and self.cluster.is_up)
            self.up_us = self.kernel.now
        else:
            self._boot_one_by_one()
        self.kernel.current, self.kernel.cause = None, -1
        self.kernel.emit(events.ActionApplied, 0, "up", Parameters())
        self.on_up(self.up_us)

    def start_again(self, broker: int, registered_ms: int | None) -> None:
        """Start a broker's next process; if its registration has a recorded time, its boot is
        planned backwards."""
        self.world.latencies.forget(f"broker-{broker}")
        launched_us = self.kernel.now
        registered_us = None if registered_ms is None else self.up_us + registered_ms * 1000
        # It is launched when the last process is dead. One that stops, or that may not register,
        # may run longer here than in the recording: until after the next one's registration there.
        if registered_us is None or registered_us <= launched_us:
            self.cluster.start(broker)
            return
        start_us, plan = self._boot_plan(broker, launched_us, registered_us)
        lane = self.kernel.world.lane("world")
        start = partial(self.cluster.start, broker, plan)
        self._silent[broker] = lane.call_at(max(start_us, self.kernel.now), start)

    @property
    def _is_recorded(self) -> bool:
        """Whether the scenario comes from a recording: registrations have fixed times."""
        return any(boot.registered_us is not None for boot in self.scenario.boots)

    def _boot_by_registration(self, boots: Sequence[Boot]) -> None:
        first_us = min(boot.registered_us or 0 for boot in boots)
        self.up_us = self.kernel.now + UP_AFTER_FIRST_REGISTRATION_US - first_us
        self.start_streams_again()
        for boot in boots:
            at_us = self.up_us + (boot.registered_us or 0)
            launched_us = None if boot.launched_us is None else self.up_us + boot.launched_us
            is_elected = boot.registered_us == first_us
            start_us, plan = self._boot_plan(boot.broker, launched_us, at_us, is_elected=is_elected)
            lane = self.kernel.world.lane("world")
            lane.call_at(start_us, partial(self.cluster.start, boot.broker, plan))
        self.kernel.run(self.up_us)

    def _boot_plan(
        self, broker: int, launched_us: int | None, registered_us: int, *, is_elected: bool = False
    ) -> tuple[int, dict[str, int]]:
        profile = self.scenario.running(broker)
        to_registration = latencies_to_registration(profile, is_elected=is_elected)
        return boot_plan(broker, launched_us, registered_us, self.world.latencies, to_registration)

    def _boot_one_by_one(self) -> None:
        for boot in self.scenario.boots:
            self.kernel.current, self.kernel.cause = None, -1
            node = self.cluster.start(boot.broker)
            self._run_until(partial(getattr, node, "started"))
        self._run_until(lambda: self.cluster.is_up)
        self.up_us = self.kernel.now

    def _run_until(self, condition: Callable[[], bool]) -> None:
        limit_us = self.kernel.now + self.limit_us
        while not condition():
            if self.kernel.now >= limit_us:
                raise DidNotComeUp(f"the cluster did not come up within {show_us(self.limit_us)}")
            self.kernel.run(self.kernel.now + _SLICE_US)

    # -- segments --------------------------------------------------------------------------------

    @property
    def over(self) -> bool:
        """All actions were applied."""
        return self.segment >= len(self.scenario.steps)

    def next_action(self) -> None:
        """Run until the next action and apply it."""
        self.run_on()
        action = self.scenario.steps[self.segment].action
        self.segment += 1
        self.apply(action)

    def next_segment(self, until_us: int | None = None) -> None:
        """Apply the next action and run until just before the following one (or to the end); or
        only until a moment since `up`."""
        self.next_action()
        self.run_on(until_us)

    def run_on(self, until_us: int | None = None) -> None:
        """Run until just before the next action (or to the end), or only until a moment. Prepares
        the machine's model for that action."""
        if self.over:
            at_us = self.scenario.duration_us
        else:
            step = self.scenario.steps[self.segment]
            self._prepare(step)
            at_us = step.at_us
        self.run_to(at_us if until_us is None else until_us)

    def _prepare(self, step: Step) -> None:
        if self._prepared <= self.segment and self._machine_load is not None:
            self._prepared = self.segment + 1
            at_us = self.up_us + step.at_us
            if step.action.by_shell:
                self._machine_load.shell_at(at_us)
            if occupies_machine(step.action):
                self._machine_load.prepare(step.action.name, at_us)

    def apply(self, action: Action) -> None:
        """Apply an action now, which begins a new segment of random numbers."""
        self.world.chance.next_segment()
        self.start_streams_again()
        if isinstance(action, EndsProcess) and action.broker in self._silent:
            self._silent.pop(action.broker).cancel()
        self.cluster.apply(action)

    def start_streams_again(self, since_us: float = -math.inf) -> None:
        """At the chosen moments of this segment, from a moment on."""
        chance, lane = self.world.chance, self.kernel.world.lane("chance")
        for moment_us in chance.moments_us():
            if moment_us >= since_us:
                lane.call_at(self.up_us + moment_us, partial(chance.start_again_at, moment_us))

    def run_to(self, at_us: int) -> None:
        """Advance time to a moment since `up`."""
        self.kernel.run(self.up_us + at_us)

    def run_through(self, at_us: int) -> None:
        """Advance time like `run_to`, applying every action that is due by then."""
        while not self.over and self.scenario.steps[self.segment].at_us <= at_us:
            self.next_action()
        self.run_to(at_us)

    def play(self) -> None:
        """Play everything, from boot to end."""
        self.bring_up()
        while not self.over:
            self.next_segment()
        self.run_to(self.scenario.duration_us)


def occupies_machine(action: Action) -> bool:
    """Messages pause around faults, not around requests: 118 topics were read 4 to 24 ms after
    `up`."""
    return not isinstance(action, AdminRequest)


def latencies_to_registration(profile: Profile, *, is_elected: bool) -> dict[str, tuple[str, ...]]:
    """Steps of a start-up, each with the latencies from there to the registration. Up to 1.0 the
    registration comes last, and even later in a cluster's first process, which is elected
    meanwhile."""
    if profile.zookeeper_client != "zkclient":
        return {"replica_manager": TO_REGISTRATION}
    threads = "queue" if profile.controller_threads == "event-queue" else "callbacks"
    steps: dict[str, tuple[str, ...]] = {
        "replica_manager": (f"boot.replica_manager_to_late_registration_{threads}",),
        "early_config": ("boot.config_to_late_registration",),
    }
    if is_elected:
        steps["replica_manager"] += (f"boot.while_elected_{threads}",)
        if threads == "queue":
            # The main thread is about as fast as the one that runs the election.
            steps["early_controller"] = ("boot.election_to_late_registration",)
    return steps


def boot_plan(
    broker: int,
    launched_us: int | None,
    registered_us: int,
    latencies: Latencies,
    to_registration: Mapping[str, Sequence[str]],
) -> tuple[int, dict[str, int]]:
    """(start, times of boot steps) of a boot whose registration is created at `registered_us`. The
    steps before are drawn backwards from there. The steps after depend on the time since the
    launch, if that is known."""
    actor = f"broker-{broker}"
    if launched_us is not None:
        latencies.set_boot_time(actor, registered_us - launched_us)

    plan = {
        step: registered_us - sum(latencies(it, actor) for it in purposes)
        for step, purposes in to_registration.items()
    }
    start_us = registered_us - latencies("boot.to_registration", actor)
    return min(start_us, plan["replica_manager"] - 300_000), {**plan, "register": registered_us}


def make_world(scenario: Scenario, options: PlayOptions, sink: Sink) -> World:
    """The world for these options, not yet entered. All worlds except virtual time need a
    `data_dir`."""
    if options.zookeeper == SIMULATED:
        return SimulatedWorld(
            scenario,
            options.seed,
            sink,
            options.choices,
            options.kernel,
            options.machine_load,
            options.latencies,
        )
    assert options.data_dir is not None
    if options.target in OF_PROCESSES:
        from emulator.worlds.processes.world import ProcessWorld

        return ProcessWorld(
            scenario, options.seed, sink, options.data_dir, options.target, options.read_kafka
        )
    return LiveWorld(
        scenario,
        options.seed,
        sink,
        zookeeper=options.zookeeper,
        data_dir=options.data_dir,
        time_scale=options.time_scale,
        machine_load=options.machine_load,
        latencies=options.latencies,
    )


def play(scenario: Scenario, options: PlayOptions, sink: Sink) -> Outcome:
    """Play a scenario from boot to end. A KeyboardInterrupt ends it in an orderly way."""
    began_s = time.monotonic()
    with ExitStack() as open_:
        if options.zookeeper != SIMULATED and options.data_dir is None:
            # Only without a given folder: a killed process leaves a temporary one behind.
            scratch = open_.enter_context(TemporaryDirectory())
            options = msgspec.structs.replace(options, data_dir=Path(scratch) / "zookeeper")
        world = make_world(scenario, options, sink)
        open_.enter_context(world)
        run = Run(world)
        if isinstance(world, SimulatedWorld):
            open_.enter_context(rare_collections())
            if options.on_progress is not None:
                _tick(world, options.on_progress)
        else:
            world.clock.on_idle = options.on_progress
            run.limit_us = max(run.limit_us, BRING_UP_WALL_US * options.time_scale)
        if options.on_up is not None:
            run.on_up = partial(options.on_up, world)
        interrupted = False
        try:
            run.play()
        except KeyboardInterrupt:
            interrupted = True
        except DidNotComeUp as error:
            if options.time_scale == 1:
                raise
            raise TooFast(options.time_scale, str(error)) from None
        return Outcome(
            virtual_us=world.kernel.now,
            wall_ms=int((time.monotonic() - began_s) * 1000),
            kernel_late_us_max=world.kernel.late_us_max,
            interrupted=interrupted,
        )


def _tick(world: SimulatedWorld, on_progress: Callable[[int], None]) -> None:
    """In virtual time: checks the wall clock now and then, to report progress ten times a
    second."""
    lane = world.kernel.process("progress").lane("progress")
    reported = time.monotonic()

    @labelled("tick")
    def tick() -> None:
        nonlocal reported
        now = time.monotonic()
        if now - reported > 0.1:
            reported = now
            on_progress(world.kernel.now)
        lane.call_later(100_000, tick)

    tick()
