"""A kernel that asks a strategy wherever more than one thing can happen next.

The options are the ready items, and the items that fall due within a window after the oldest ready
one: a message may take that much longer, a thread may be scheduled that much later. Time never goes
backwards, nothing runs before it is due, and nothing is deferred for longer than the window.
Messages to one receiver over one connection keep their order.

Without a strategy this is the plain kernel. A strategy that always takes the first option changes
nothing. The kernel does not know which strategy chooses, or why.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from heapq import heapify, heappop
from typing import Protocol

from emulator.kernel.scheduler import NEVER, Callback, Clock, Kernel, Runnable, WakeUpDelays
from emulator.trace.sink import Sink

WINDOW_US = 20_000
LOOK_AGAIN = -1
"""The index that a strategy returns after it has acted itself: compute the options again."""


class Strategy(Protocol):
    """Chooses what happens next."""

    @property
    def over(self) -> bool:
        """Whether the strategy has ended; the plain kernel then takes over."""
        ...

    def choose(self, options: Sequence[Runnable]) -> int:
        """The index of the next option; the plain kernel would take index 0."""
        ...


class ChoosingKernel(Kernel):
    """The scheduler of an explored world. With `halts` it stops when the strategy ends."""

    def __init__(
        self, sink: Sink, clock: Clock | None = None, wake_up: WakeUpDelays | None = None
    ) -> None:
        super().__init__(sink, clock, wake_up)
        # A strategy chooses among all pending items: none is kept apart.
        self._near_until = NEVER
        self.strategy: Strategy | None = None
        self.window_us = WINDOW_US
        self.halts = False
        self._waiting: list[tuple[int, Runnable]] = []

    def run(self, until_us: int = NEVER) -> None:
        """Run with the strategy, and as the plain kernel once the strategy has ended."""
        # Read once: a strategy that is set while this loop runs takes effect at the next call.
        self._stopping = False
        strategy = self.strategy
        while strategy is not None and not self._stopping:
            if strategy.over:
                self.strategy = strategy = None
                self._stopping = self.halts
            elif not self._step(strategy, until_us):
                break
        # Deferred items are older than anything ready: they go first, in their order.
        self._ready.extendleft(item for _, item in reversed(self._waiting))
        self._waiting.clear()
        if not self._stopping:
            super().run(until_us)

    def pending(self) -> list[tuple[int, Runnable]]:
        """All pending items with the time since which, or at which, they are due, in the plain
        kernel's order."""
        ready = [*self._waiting, *((self.now, item) for item in self._ready)]
        # By time, then by count; the items themselves do not compare.
        heap = sorted(self._heap, key=lambda entry: entry[:2])
        return ready + [(due, item) for due, _, item in heap]

    def _step(self, strategy: Strategy, until_us: int) -> bool:
        """Run one item; False when nothing can happen before `until_us`."""
        while self._ready:
            self._waiting.append((self.now, self._ready.popleft()))
        if not self._waiting:
            if not self._heap or self._heap[0][0] > until_us:
                return False
            self._come_to(self._heap[0][0])
            return True
        # The window starts at the oldest item, so that nothing is deferred for longer than the
        # window.
        since_us, oldest = self._waiting[0]
        if oldest.is_cancelled():
            self._run(0)
            return True
        options = self._options(min(since_us + self.window_us, until_us))
        # A single option is not a choice: a schedule lists only the points that could have gone
        # differently.
        chosen = 0 if len(options) == 1 else strategy.choose([item for _, item in options])
        if chosen != LOOK_AGAIN:
            self._take(options[chosen][0])
        return True

    def _come_to(self, at_us: int) -> None:
        """Advance the clock; items that are due by then count as waiting since their due time."""
        self._note_time(at_us)
        heap, now = self._heap, self.now
        while heap and heap[0][0] <= now:
            due, _, item = heappop(heap)
            # Something that was queued before it on its lane has been deferred: it follows that.
            if item.process.ordered_until >= now and item.is_behind():
                self.call_at(item.not_before(now), item)
            elif item.process.running:
                self._waiting.append((due, item))
            else:
                # A paused process keeps the item until it resumes.
                item.process.hold(item)

    def _options(self, until_us: int) -> list[tuple[int, Runnable]]:
        """(index, item) of the first item of each queue (`ordered_queue_of`). The indices of items
        that are not due yet follow those of the waiting items."""
        options: list[tuple[int, Runnable]] = []
        queues: set[Hashable] = set()
        waiting = len(self._waiting)
        due_soon = sorted(
            (due, count, index)
            for index, (due, count, _) in enumerate(self._heap)
            if due <= until_us
        )
        for index in [*range(waiting), *(waiting + index for _, _, index in due_soon)]:
            item = self._waiting[index][1] if index < waiting else self._heap[index - waiting][2]
            queue = ordered_queue_of(item)
            # Not an option: it is behind another item of its queue, or its process is paused.
            if queue in queues or item.is_cancelled() or not item.process.running:
                continue
            queues.add(queue)
            options.append((index, item))
        # Every waiting item may belong to a paused process: the first then moves to that process.
        return options or [(0, self._waiting[0][1])]

    def _take(self, index: int) -> None:
        """Run the chosen option; if it is not due yet, the clock advances to its due time."""
        waiting = len(self._waiting)
        if index < waiting:
            self._run(index)
            return
        due, _, item = self._heap.pop(index - waiting)
        # An element was removed from the middle of the heap: restore the heap order.
        heapify(self._heap)
        self._come_to(max(due, self.now))
        if item.process.ordered_until >= self.now and item.is_behind():
            self.call_at(item.not_before(self.now), item)
            return
        self._waiting.insert(0, (self.now, item))
        self._run(0)

    def _run(self, index: int) -> None:
        item = self._waiting.pop(index)[1]
        if item.process.running:
            item.run()
        else:
            item.process.hold(item)
        self.current = None


def ordered_queue_of(item: Runnable) -> Hashable:
    """The queue that keeps this item's order. A thread is its own queue. Callbacks of one object (a
    connection, a session) on one lane share a queue; a deferred callback shares one with its whole
    lane.
    """
    if not isinstance(item, Callback):
        return id(item)
    owner = owner_of(item)
    return id(item._lane) if owner is None or item._put_off else (id(item._lane), id(owner))


def owner_of(item: Callback) -> object | None:
    """The object whose method a callback calls; None when it is unknown."""
    call: object = item._fn
    # A callback is often a method with its arguments bound.
    while isinstance(call, partial):
        call = call.func
    return getattr(call, "__self__", None)
