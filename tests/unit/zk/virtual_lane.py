"""A tiny virtual clock with lanes, enough to run the modelled service without the emulator's
kernel.

Lanes of one clock share a heap; what falls due while a lane is paused runs when it resumes, in the
order in which it was posted.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

Callback = Callable[[], None]


class VirtualTimer:
    __slots__ = ("callback", "lane")

    def __init__(self, lane: VirtualLane, callback: Callback) -> None:
        self.lane = lane
        self.callback: Callback | None = callback

    def cancel(self) -> None:
        self.callback = None


class VirtualClock:
    def __init__(self) -> None:
        self.now_us = 0
        self.callbacks = 0
        self._heap: list[tuple[int, int, VirtualTimer]] = []
        self._count = 0

    def schedule(self, at_us: int, timer: VirtualTimer) -> None:
        self._count += 1
        heapq.heappush(self._heap, (at_us, self._count, timer))

    def run_until(self, end_us: int) -> None:
        while self._heap and self._heap[0][0] <= end_us:
            self.step()
        self.now_us = end_us

    def run_ms(self, duration_ms: int) -> None:
        self.run_until(self.now_us + duration_ms * 1000)

    def step(self) -> None:
        at_us, _, timer = heapq.heappop(self._heap)
        self.now_us = max(self.now_us, at_us)
        timer.lane.run(timer)

    def run_while(self, condition: Callable[[], bool]) -> None:
        while condition():
            self.step()


class VirtualLane:
    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._paused: list[VirtualTimer] | None = None
        self._dead = False

    def now_us(self) -> int:
        return self._clock.now_us

    def post(self, callback: Callback) -> None:
        self._clock.schedule(self._clock.now_us, VirtualTimer(self, callback))

    def call_later(self, delay_us: int, callback: Callback) -> VirtualTimer:
        assert delay_us >= 0
        timer = VirtualTimer(self, callback)
        self._clock.schedule(self._clock.now_us + delay_us, timer)
        return timer

    def run(self, timer: VirtualTimer) -> None:
        if self._dead or timer.callback is None:
            return
        if self._paused is not None:
            self._paused.append(timer)
            return
        self._clock.callbacks += 1
        timer.callback()

    def pause(self) -> None:
        self._paused = self._paused or []

    def resume(self) -> None:
        missed, self._paused = self._paused or [], None
        for timer in missed:
            self._clock.schedule(self._clock.now_us, timer)

    def crash(self) -> None:
        self._dead = True
