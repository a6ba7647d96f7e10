"""Wall-clock time for the kernel, and the inbox through which other threads reach it.

Time may run `scale` times as fast as the wall clock. In the live world the kernel's thread waits
only in this module.
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
        self._filled = threading.Lock()
        """Held while there is nothing new: what fills the inbox lets it go (an Event would make a
        lock of its own at every wait, and a hand-over would feel it)."""
        self._filled.acquire()
        self._before_waiting: dict[Callable[[], None], None] = {}
        self.on_idle: Callable[[int], None] | None = None

    def begin(self, at_ns: int | None = None) -> None:
        """The world's time starts now, so that earlier waits (a server's start) do not count. Or it
        started earlier for others, at `began_ns` on this machine's monotonic clock."""
        self._began_ns = time.monotonic_ns() if at_ns is None else at_ns

    @property
    def began_ns(self) -> int:
        """The world's start on the machine's monotonic clock."""
        return self._began_ns

    def now_us(self) -> int:
        """Microseconds since the world's start."""
        return (time.monotonic_ns() - self._began_ns) * self._scale // 1000

    def put(self, action: Callable[[], None]) -> None:
        """Any thread: run this on the kernel's thread."""
        self._inbox.append(action)
        self._wake()

    def before_waiting(self, action: Callable[[], None]) -> None:
        """The kernel's thread: run this once, when nothing else is ready."""
        self._before_waiting[action] = None

    def put_without_waking(self, action: Callable[[], None]) -> None:
        """Any thread: run this on the kernel's thread at its next wake-up, without causing one."""
        self._inbox.append(action)

    def _wake(self) -> None:
        """Any thread: end the kernel's current wait, or the next one."""
        try:
            self._filled.release()
        except RuntimeError:
            pass  # it has been woken already

    def wait(self, until_us: int) -> int:
        """Sleep until then, or until the inbox has an item. Each sleep is short, so that signals
        and progress are handled."""
        while self._before_waiting:
            self._before_waiting.popitem()[0]()
        now = self.now_us()
        pause_us = min(until_us - now, LONGEST_WAIT_US * self._scale)
        if pause_us > 0 and not self._inbox:
            self._filled.acquire(timeout=pause_us / self._scale / 1_000_000)
            now = self.now_us()
        if self.on_idle is not None:
            self.on_idle(now)
        return now

    def inbox(self) -> list[Callable[[], None]]:
        actions = []
        while self._inbox:
            actions.append(self._inbox.popleft())
        return actions


class LiveKernel(Kernel):
    """A kernel whose lanes accept posts from any thread."""

    def __init__(self, sink: Sink, clock: LiveClock) -> None:
        super().__init__(sink, clock)
        self._live_clock = clock
        self._own_thread = threading.get_ident()

    def soon(self, action: Callable[[], None]) -> None:
        """The kernel's thread: run this before the next wait, or at once while other items wait for
        it."""
        if self._ready:
            action()
        else:
            self._live_clock.before_waiting(action)

    def post(self, item: Runnable) -> None:
        """From another thread the item goes through the inbox and has no cause."""
        if threading.get_ident() == self._own_thread:
            self.make_ready(item)
        else:
            item.cause = -1
            self._live_clock.put(lambda: self.make_ready(item))
