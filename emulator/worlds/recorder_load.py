"""The machine that a recorded cluster shared with whoever drove it: busy around a stimulus.

Where a stimulus is done for the first time, its driver takes the two cores for a while, before it
and after; what needs a core meanwhile comes later. Live too: our machine has other things to do
than theirs had. Knows no stimulus; how long is drawn.
"""

from __future__ import annotations

from collections.abc import Callable

from emulator.kernel.scheduler import Kernel


class Cores:
    """Until when they are taken (`until_us`), and what that costs."""

    __slots__ = ("_draw", "_kernel", "until_us")

    def __init__(self, kernel: Kernel, draw: Callable[[str, str], int]) -> None:
        self._kernel, self._draw, self.until_us = kernel, draw, 0

    def prepare(self, stimulus: str, at_us: int) -> None:
        """Whoever is to do this at that moment takes the cores for a while, before and after."""
        busy_us = self._draw("stimulus_busy", stimulus)
        if busy_us:
            lane = self._kernel.world.lane("machine")
            lane.call_at(at_us - busy_us, lambda: self._take(at_us + busy_us))

    def _take(self, until_us: int) -> None:
        self.until_us = until_us

    def busy_us(self, actor: str) -> int:
        """How much later something is that needs a core now."""
        left_us = self.until_us - self._kernel.now
        return left_us * self._draw("busy_share", actor) // 1000 if left_us > 0 else 0
