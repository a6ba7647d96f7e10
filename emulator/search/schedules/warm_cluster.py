"""A warm cluster, and one schedule played on it.

Owns how a schedule becomes a run: the default order from boot to where choosing begins, then a
strategy, then the default order to the end, with all invariants listening. A warm cluster is played
once; a search forks before that. Two plays of one schedule are identical. Must not know why a
schedule is played.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

from emulator.invariants.base import Monitor, Violation
from emulator.kernel.choices import ChoosingKernel
from emulator.kernel.scheduler import Runnable
from emulator.runs.broken import Broken
from emulator.runs.play import PlayOptions
from emulator.runs.session import Session
from emulator.scenario.errors import UserError
from emulator.scenario.typed import cluster_of, read_typed
from emulator.scenario.units import BadDuration, duration_us
from emulator.search.schedules.coverage_goals import seen_in
from emulator.search.schedules.fingerprint import state_of
from emulator.search.schedules.labels import label_of
from emulator.search.schedules.schedule import Candidate, Injection, Schedule, microseconds
from emulator.search.schedules.strategies import DefaultOrder, WrittenOrder
from emulator.trace.difference import digest_of
from emulator.trace.events import AnyEvent
from emulator.worlds.gc_tuning import rare_collections
from emulator.worlds.simulated import SimulatedWorld

FOREVER_US = 1 << 50


class ScheduleResult(Candidate, frozen=True, kw_only=True):
    """The outcome of a schedule. `offered`: the number of options at each step. `needed`: the
    number of steps that had to be chosen. `broken_us`: when each invariant was violated, since the
    cluster was up (-1: liveness at the end). On request also `states`, the state before each step,
    and `options`, the labels at each step."""

    offered: tuple[int, ...]
    needed: int
    broken: tuple[Broken, ...]
    broken_us: tuple[int, ...]
    seen: frozenset[str]
    events: int
    virtual_us: int
    states: tuple[str, ...] = ()
    options: tuple[tuple[str, ...], ...] = ()
    trace: str = ""


class WarmCluster:
    """One world, played up to the beginning of a schedule; `warm_s`: the CPU time for this.
    `on_violation` is called at once."""

    def __init__(
        self, schedule: Schedule, on_violation: Callable[[Violation], None] | None = None
    ) -> None:
        self.schedule, self.scenario = schedule, schedule.loaded()
        self.begins_us = microseconds(schedule, "begins")
        ends = microseconds(schedule, "ends") if schedule.ends else self.scenario.duration_us
        self.ends_us = max(self.begins_us, ends)
        options = PlayOptions(seed=schedule.seed, kernel=ChoosingKernel)
        self.session = Session(self.scenario, options, liveness=schedule.liveness)
        if on_violation is not None:
            self.session.listeners.sink.listen(_watch(self.session.monitor, on_violation))
        assert isinstance(self.session.world, SimulatedWorld)
        assert isinstance(self.session.kernel, ChoosingKernel)
        self.world, self.kernel = self.session.world, self.session.kernel
        self.kernel.window_us = microseconds(schedule, "window")
        self._run = self.session.run
        began_s = time.process_time()
        with rare_collections():
            self._run.bring_up()
            self._play_until(self.begins_us - 1)
        self.warm_s = time.process_time() - began_s
        self.warm_events = len(self.events)

    @property
    def events(self) -> list[AnyEvent]:
        """All events so far."""
        return self.session.events

    @property
    def up_us(self) -> int:
        """When the cluster was up, in trace time."""
        return self._run.up_us

    def close(self) -> None:
        """Take the world down."""
        self.session.close()

    def play_as_written(self) -> ScheduleResult:
        """Play the schedule itself."""
        return self.play_written(self.schedule, digest=True)

    def play_written(
        self,
        candidate: Candidate,
        *,
        exactly: bool = True,
        then_us: int = FOREVER_US,
        states: bool = False,
        digest: bool = False,
    ) -> ScheduleResult:
        """Play with these choices and faults (`exactly`: see `WrittenOrder`)."""
        # A schedule that was made smaller has fewer steps than the one of the warm start: what is
        # late at its last step is then played in the default order.
        steps = candidate.steps if isinstance(candidate, Schedule) else self.schedule.steps
        order = WrittenOrder(steps, candidate, exactly=exactly)
        return self.play(order, then_us=then_us, states=states, digest=digest)

    def play(
        self,
        strategy: DefaultOrder,
        *,
        then_us: int = FOREVER_US,
        states: bool = False,
        digest: bool = False,
    ) -> ScheduleResult:
        """Play from here to the end, or for some time after the last step. With `states`, each
        step's state and options are recorded."""
        kernel, digests, labels = self.kernel, list[str](), list[tuple[str, ...]]()
        strategy.do = self._inject

        def on_step(options: Sequence[Runnable]) -> None:
            digests.append(state_of(self.world, strategy.late))
            labels.append(tuple(label_of(option) for option in options))

        if states:
            strategy.on_step = on_step
        kernel.strategy, kernel.halts = strategy, then_us < FOREVER_US
        self._play_until(self.ends_us)
        if kernel.halts:
            kernel.halts = False
            self._play_until(min(self.ends_us, kernel.now - self.up_us + then_us))
        broken = self.session.listeners.broken(at_end=True)
        # Missing liveness comes last, and has no moment.
        lacking = len(self.session.monitor.lacking())
        seen = broken[: len(broken) - lacking]
        broken_us = [self.events[max(one.facts)].t - self.up_us for one in seen]
        return ScheduleResult(
            tuple(strategy.choices),
            tuple(strategy.injected),
            offered=tuple(strategy.offered),
            needed=strategy.needed,
            broken=broken,
            broken_us=(*broken_us, *[-1] * lacking),
            seen=seen_in(self.events[self.warm_events :]),
            events=len(self.events),
            virtual_us=self.kernel.now - self.up_us,
            states=tuple(digests),
            options=tuple(labels),
            trace=digest_of(self.events) if digest else "",
        )

    def _play_until(self, until_us: int) -> None:
        """Apply the scenario's own steps at their times."""
        run, kernel = self._run, self.kernel
        while not run.over and run.scenario.steps[run.segment].at_us <= until_us:
            run.run_to(run.scenario.steps[run.segment].at_us)
            if kernel.halts and kernel.strategy is None:
                return  # the last step was earlier, so the action is not due yet
            run.next_action()
        run.run_to(until_us)

    def _inject(self, injection: Injection) -> None:
        action = read_typed(injection.do.split(), cluster_of(self.scenario))
        self.kernel.cause = -1  # a fault has no cause among the events
        self.world.cluster.apply(action)
        if injection.lasts:
            healed = action.healed()
            assert healed is not None
            lane = self.kernel.world.lane("world")
            lane.call_later(duration_us(injection.lasts), partial(self.world.cluster.apply, healed))


def _watch(
    monitor: Monitor, on_violation: Callable[[Violation], None]
) -> Callable[[AnyEvent], None]:
    """A listener that checks after each event for new violations."""
    known = 0

    def on_event(_event: AnyEvent) -> None:
        nonlocal known
        number = sum(len(one.violations) for one in monitor.held)
        if number > known:
            known = number
            on_violation(monitor.violations[-1])

    return on_event


def read_injection(text: str, schedule: Schedule) -> Injection:
    """Parse `pause 3 for 8s`, a fault that a search may inject. Raises UserError."""
    do, _, lasts = text.partition(" for ")
    try:
        action = read_typed(do.split(), cluster_of(schedule.loaded()))
    except UserError as error:
        raise UserError(f"--fault {text}: {error}") from None
    if lasts:
        try:
            duration_us(lasts)
        except BadDuration as error:
            raise UserError(f"--fault {text}: {error}") from None
        if action.healed() is None:
            raise UserError(f"--fault {text}: nothing undoes {action.name}")
    return Injection(0, do, lasts)
