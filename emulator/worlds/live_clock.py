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
        self._filled = threading.Lock()
        """Held while there is nothing new: what fills the inbox lets it go (an Event would make a
        lock of its own at every wait, and a hand-over would feel it)."""
        self._filled.acquire()
        self._before_waiting: dict[Callable[[], None], None] = {}
        self.on_idle: Callable[[int], None] | None = None

    def begin(self, at_ns: int | None = None) -> None:
        """The world begins now: what was waited for before, a server that starts, is not its
        time. Or it began for others already, `at_ns` by this machine's monotonic clock."""
        self._began_ns = time.monotonic_ns() if at_ns is None else at_ns

    @property
    def began_ns(self) -> int:
        """When the world began, by the machine's monotonic clock."""
        return self._began_ns

    def now_us(self) -> int:
        """Microseconds of the world since it began."""
        return (time.monotonic_ns() - self._began_ns) * self._scale // 1000

    def put(self, action: Callable[[], None]) -> None:
        """Any thread: have the kernel's thread do this."""
        self._inbox.append(action)
        self._wake()

    def before_waiting(self, action: Callable[[], None]) -> None:
        """The kernel's thread: do this once, when there is nothing else to be done."""
        self._before_waiting[action] = None

    def put_without_waking(self, action: Callable[[], None]) -> None:
        """Any thread: the same, but it is worth no waking up: when the kernel's thread does so for
        something else, or looks around."""
        self._inbox.append(action)

    def _wake(self) -> None:
        """Any thread: end the kernel's wait, or the next one."""
        try:
            self._filled.release()
        except RuntimeError:
            pass  # it has been woken already

    def wait(self, until_us: int) -> int:
        """Sleep until then, or until something is in the inbox; never long, so that signals and
        progress get their turn."""
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
    """A kernel whose lanes can be posted to from any thread."""

    def __init__(self, sink: Sink, clock: LiveClock) -> None:
        super().__init__(sink, clock)
        self._live_clock = clock
        self._own_thread = threading.get_ident()

    def soon(self, action: Callable[[], None]) -> None:
        """The kernel's thread: do this before it waits, or at once while others wait for it."""
        if self._ready:
            action()
        else:
            self._live_clock.before_waiting(action)

    def post(self, item: Runnable) -> None:
        """From another thread the item goes through the inbox and has no cause of its own."""
        if threading.get_ident() == self._own_thread:
            self.make_ready(item)
        else:
            item.cause = -1
            self._live_clock.put(lambda: self.make_ready(item))
