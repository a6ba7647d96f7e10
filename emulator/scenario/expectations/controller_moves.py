"""`controller moves from 3 between 14s and 17s`: another broker is elected after this one.

Held when of two consecutive controller elections this broker won the first and another broker the
second (in that time). Not held otherwise.
"""

from __future__ import annotations

import itertools

from emulator.scenario.expectations.base import Check, Finding
from emulator.scenario.units import show_us
from emulator.trace import events as e


class ControllerMoves(Check):
    forms = (
        "controller moves from {broker}",
        "controller moves from {broker} between {low_us:duration} and {high_us:duration}",
    )
    broker: int
    low_us = 0
    high_us = 1 << 62

    def take(self, **arguments: object) -> None:
        super().take(**arguments)
        self.elected: list[e.ControllerElected] = []

    def on_controller_elected(self, event: e.ControllerElected) -> None:
        self.elected.append(event)

    def at_end(self) -> Finding:
        moves = [
            (self.state.clock.since_up(after.t), after.broker)
            for before, after in itertools.pairwise(self.elected)
            if before.broker == self.broker != after.broker
        ]
        if not moves:
            return Finding(False, "it never did")
        held = any(self.low_us <= t <= self.high_us for t, _ in moves)
        return Finding(held, ", ".join(f"to {to} at {show_us(t)}" for t, to in moves[:5]))
