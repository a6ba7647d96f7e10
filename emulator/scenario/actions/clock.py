"""A wall clock that jumps, as NTP or an administrator sets it."""

from __future__ import annotations

from emulator.scenario.actions.base import Action, Signed, World
from emulator.scenario.actions.drawing import Draw

SOAK_OFFSETS_MS = (1_000, 3_600_000)
"""Well below every retention: what a retention deletes is not lost."""


class JumpClock(Action, frozen=True, tag="jump_clock"):
    """The wall clock of `broker` is `offset_ms` ahead of the machine's, or behind it (negative).
    Timestamps, retention and log.roll.ms follow it; timeouts and sessions do not."""

    broker: int
    offset_ms: Signed

    soak_weight = 2

    @classmethod
    def drawn(cls, draw: Draw) -> Action:
        offset_ms = draw.spread(*SOAK_OFFSETS_MS)
        return cls(draw.broker, Signed(-offset_ms if draw.chance(50) else offset_ms))

    def apply(self, world: World) -> None:
        world.hosts[self.broker].set_clock(self.offset_ms)

    def healed(self) -> Action:
        return JumpClock(self.broker, Signed(0))
