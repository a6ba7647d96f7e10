"""One call-back of a lane: what the kernel runs beside tasks.

A struct, and so in a file of its own: `scheduler` is a module that may be compiled
(`emulator.compiled`). Knows the lane it belongs to and no time but the kernel's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from emulator.kernel.scheduler import Lane, Process


class Action(msgspec.Struct, eq=False):
    """One call-back of a lane; also a timer that can be called off. A struct, since every message
    makes several."""

    _lane: Lane
    _fn: Callable[[], object] | None
    cause: int
    process: Process
    thread: str
    _put_off: bool = False

    def cancel(self) -> None:
        self._fn = None

    def not_before(self, at_us: int) -> int:
        """Later than what the lane has been given before, after a resume."""
        lane, process = self._lane, self.process
        if not self._put_off:
            lane.put_off.append(self)
        lane.busy_until = max(lane.busy_until, at_us)
        process.ordered_until = max(process.ordered_until, lane.busy_until)
        self._put_off = True
        return lane.busy_until

    def is_behind(self) -> bool:
        if self._put_off:
            return False
        return self._lane.busy_until >= self.process.kernel.now or bool(self._lane.put_off)

    def is_cancelled(self) -> bool:
        return self._fn is None

    def run(self) -> None:
        """One that was put off stands for the first of those: another pause may have put off
        those before it once more."""
        action = self._lane.put_off.popleft() if self._put_off else self
        if action._fn is not None:
            kernel = self.process.kernel
            kernel.current, kernel.cause = action, action.cause
            action._fn()
