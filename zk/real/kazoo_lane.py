"""A lane (`zk.wire.Lane`) for a thread that only owns a session: a queue of closures.

What kazoo's threads post waits until the owner's thread runs it. Timers fire only within `run`; the
connection to a real server needs none.
"""

from __future__ import annotations

import heapq
import itertools
import queue
import time
from collections.abc import Callable


class _Timer:
    def __init__(self, action: Callable[[], None]) -> None:
        self.action: Callable[[], None] | None = action

    def cancel(self) -> None:
        self.action = None


class QueueLane:
    """Runs everything within `run`, on the owner's thread."""

    def __init__(self) -> None:
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._timers: list[tuple[int, int, _Timer]] = []
        self._numbers = itertools.count()

    def now_us(self) -> int:
        return time.monotonic_ns() // 1000

    def post(self, action: Callable[[], None]) -> None:
        self._inbox.put(action)

    def call_later(self, delay_us: int, action: Callable[[], None]) -> _Timer:
        timer = _Timer(action)
        heapq.heappush(self._timers, (self.now_us() + delay_us, next(self._numbers), timer))
        return timer

    def run(self, for_us: int) -> None:
        """Run what was posted and what falls due within this time; checks the queue at least
        once."""
        until_us = self.now_us() + for_us
        while True:
            while self._timers and self._timers[0][0] <= self.now_us():
                action = heapq.heappop(self._timers)[2].action
                if action is not None:
                    action()
            next_us = min(until_us, self._timers[0][0]) if self._timers else until_us
            try:
                self._inbox.get(timeout=max(0, next_us - self.now_us()) / 1e6)()
            except queue.Empty:
                if self.now_us() >= until_us:
                    return
