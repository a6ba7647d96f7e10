"""Wall-clock time for the kernel, and the inbox through which other threads reach it.

Time may run `scale` times as fast as the wall clock. This is the only file of the live world in
which the kernel's thread waits.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from emulator.kernel.scheduler import Kernel, Runnable
from emulator.trace.sink import Sink

LONGEST_WAIT_US = 100_000


class LiveClock:
    """emulator.kernel.scheduler.Clock on time.monotonic_ns."""

    def __init__(self, scale: int = 1) -> None:
        self._scale = scale
        self._began_ns = time.monotonic_ns()
        self._inbox: deque[Callable[[], None]] = deque()
        self._filled = threading.Event()
        self.on_idle: Callable[[int], None] | None = None

    def now_us(self) -> int:
        """Microseconds of the world since it began."""
        return (time.monotonic_ns() - self._began_ns) * self._scale // 1000

    def put(self, action: Callable[[], None]) -> None:
        """Any thread: have the kernel's thread do this."""
        self._inbox.append(action)
        self._filled.set()

    def put_aside(self, action: Callable[[], None]) -> None:
        """Any thread: the same, but it is worth no waking up: when the kernel's thread does so for
        something else, or looks around."""
        self._inbox.append(action)

    def wait(self, until_us: int) -> int:
        """Sleep until then, or until something is in the inbox; never long, so that signals and
        progress get their turn."""
        now = self.now_us()
        pause_us = min(until_us - now, LONGEST_WAIT_US * self._scale)
        if pause_us > 0 and not self._inbox:
            self._filled.wait(pause_us / self._scale / 1_000_000)
            now = self.now_us()
        self._filled.clear()
        if self.on_idle is not None:
            self.on_idle(now)
        return now

    def inbox(self) -> list[Callable[[], None]]:
        taken = []
        while self._inbox:
            taken.append(self._inbox.popleft())
        return taken


class LiveKernel(Kernel):
    """A kernel whose lanes can be posted to from any thread."""

    def __init__(self, sink: Sink, clock: LiveClock) -> None:
        super().__init__(sink, clock)
        self._live_clock = clock
        self._thread = threading.get_ident()

    def post(self, item: Runnable) -> None:
        """From another thread the item goes through the inbox and has no cause of its own."""
        if threading.get_ident() == self._thread:
            self.make_ready(item)
        else:
            item.cause = -1
            self._live_clock.put(lambda: self.make_ready(item))
