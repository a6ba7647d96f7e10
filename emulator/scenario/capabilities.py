"""What a target can be given: asked of every stimulus before anything starts.

A target says it with a world that does nothing: what stands there can be done, the rest cannot, and
a method may say why. Knows the port of stimuli (`emulator.scenario.actions.base.World`), no target.
"""

from __future__ import annotations

from typing import Any

from emulator.scenario.actions.base import Stimulus
from emulator.scenario.errors import UserError
from emulator.scenario.schema import Scenario
from emulator.scenario.units import show_us


class CannotBeGiven(Exception):
    """Why a target cannot be given a stimulus."""


class Possible:
    """The port of stimuli, for asking. Heirs name what can be done; the rest cannot."""

    whom = "this target"

    def fine(self, *_: object, **__: object) -> None:
        """It can be done, whatever its parameters."""

    def consider(self, stimulus: Stimulus) -> None:
        """A look at all of its parameters, before it is tried."""

    def runs(self, broker: int) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        raise CannotBeGiven(f"{self.whom} cannot be told to {name.replace('_', ' ')}")


def is_possible(stimulus: Stimulus, world: Possible) -> bool:
    """Whether a target can be given it."""
    return not _refusal(stimulus, world)


def _refusal(stimulus: Stimulus, world: Possible) -> str:
    """Why not; empty: it can."""
    try:
        world.consider(stimulus)
        stimulus.apply(world)
    except CannotBeGiven as why:
        return str(why)
    return ""


def check_steps(scenario: Scenario, world: Possible, to: str) -> None:
    """Raises UserError for the first stimulus that `to` cannot be given."""
    for step in scenario.steps:
        if why := _refusal(step.stimulus, world):
            raise UserError(
                f"{scenario.source}: {step.stimulus.name} at {show_us(step.at_us)} cannot be given"
                f" to {to}: {why}"
            )
