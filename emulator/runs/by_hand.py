"""A cluster controlled interactively in virtual time: apply an action, advance time, undo.

The cluster, topics and workload come from a scenario; its faults are left out, because the user
applies them. A world cannot undo anything: undo builds a new world and replays all steps but the
last, which the seed makes identical. Owns the list of steps with their times. It must not know how
a step is entered, shown or saved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from emulator.invariants.base import Violation
from emulator.runs.play import PlayOptions
from emulator.runs.session import Session
from emulator.scenario.actions.base import Action
from emulator.scenario.schema import Scenario, Step
from emulator.scenario.standing import standing_after
from emulator.trace.events import AnyEvent
from emulator.trace.state import TraceState

SLICE_US = 1_000
LONGEST_STEP_US = 60_000_000
PROGRESS_EVERY_US = 500_000

OnTime = Callable[[int], None]


class ManualStep(msgspec.Struct, frozen=True):
    """One step: actions at `at_us`, or time that advanced until then."""

    at_us: int
    actions: tuple[Action, ...] = ()


class ActionFailed(Exception):
    """The action is impossible in this state of the cluster; nothing has changed."""


class ManualRun:
    """One run and its steps so far. Times are microseconds since the cluster was up."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        steps = tuple(step for step in scenario.steps if not step.fault)
        self.scenario: Scenario = msgspec.structs.replace(scenario, steps=steps)
        self.seed = seed
        self.acts: list[ManualStep] = []
        self._begin()

    def _begin(self) -> None:
        self._session = Session(self.scenario, PlayOptions(seed=self.seed), hearing="everything")
        self._run = self._session.run
        self._run.bring_up()
        self._run.run_through(0)

    def close(self) -> None:
        """Take the world down."""
        self._session.close()

    @property
    def events(self) -> Sequence[AnyEvent]:
        return self._session.events

    @property
    def state(self) -> TraceState:
        """The state that the trace implies so far."""
        return self._session.listeners.state

    @property
    def violations(self) -> list[Violation]:
        """Invariants violated so far."""
        return self._session.monitor.violations

    @property
    def now_us(self) -> int:
        return self._session.now_us

    @property
    def up_us(self) -> int:
        """When the cluster was up, in trace time."""
        return self._run.up_us

    # -- steps -------------------------------------------------------------------------------------

    def do(self, *actions: Action) -> None:
        """Apply the actions now, in order. Raises ActionFailed."""
        self._act(ManualStep(self.now_us, actions))

    def let(self, us: int, on_time: OnTime | None = None) -> None:
        """Advance time; `on_time` reports progress."""
        self._act(ManualStep(self.now_us + us), on_time)

    def step(
        self, is_wanted: Callable[[Sequence[AnyEvent]], bool], on_time: OnTime | None = None
    ) -> bool:
        """Advance time until a moment has an event that matches; False if there was none within a
        minute."""
        end_us, happened = self.now_us + LONGEST_STEP_US, False
        try:
            while not happened and self.now_us < end_us:
                before = len(self._session.events)
                self._run.run_through(self.now_us + SLICE_US)
                happened = is_wanted(self._session.events[before:])
                if on_time is not None:
                    on_time(self.now_us)
        except KeyboardInterrupt:
            self._replay_steps()
            raise
        self.acts.append(ManualStep(self.now_us))
        return happened

    def undo(self) -> ManualStep | None:
        """Undo the last step; None if there is none."""
        if not self.acts:
            return None
        act = self.acts.pop()
        self._replay_steps()
        return act

    def _act(self, act: ManualStep, on_time: OnTime | None = None) -> None:
        """Play a step and record it, unless it fails."""
        try:
            self._play(act, on_time)
        except BaseException as error:
            self._replay_steps()
            if not isinstance(error, Exception):
                raise
            raise ActionFailed(f"{error}") from error
        self.acts.append(act)

    def _replay_steps(self) -> None:
        """Replay all steps in a new world."""
        self._session.close()
        self._begin()
        for act in self.acts:
            self._play(act)

    def _play(self, act: ManualStep, on_time: OnTime | None = None) -> None:
        for action in act.actions:
            self._run.apply(action)
            self._run.run_to(act.at_us)
        while on_time is not None and self.now_us + PROGRESS_EVERY_US < act.at_us:
            self._run.run_through(self.now_us + PROGRESS_EVERY_US)
            on_time(self.now_us)
        self._run.run_through(act.at_us)

    # -- results -----------------------------------------------------------------------------------

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps so far in scenario format."""
        return tuple(Step(act.at_us, one, fault=True) for act in self.acts for one in act.actions)

    @property
    def standing(self) -> list[Action]:
        """Actions that are still in effect, in order."""
        return standing_after(step.action for step in self.steps)
