"""Tasks, processes, lanes and time.

A *task* is one Kafka thread: a coroutine that awaits only the primitives of `sync`. A *process* is
the operating-system process of one broker or server. It can be paused (SIGSTOP: nothing of it runs,
and due work waits), resumed, and crashed (its tasks never run again: a dead JVM runs no `finally`).
A *lane* is a thread of plain callbacks.

Between two awaits nothing else runs. Time is in integer microseconds. Ready items run first come,
first served. After a resume each thread wakes up after a drawn delay, because in reality the
operating system decides that order. This module does not depend on Kafka, ZooKeeper or the wall
clock, and draws nothing itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import suppress
from heapq import heappop, heappush
from typing import Protocol

import msgspec

from emulator.kernel.places import At, Place
from emulator.trace.event import Event
from emulator.trace.sink import Sink

Body = Coroutine[object, None, object]
"""A thread's coroutine: no value is sent into it, and its result is ignored."""

# Later than any time of a run, and within 64 bits.
NEVER = 1 << 62
# Kafka's rules compare times with 0, and a wall clock is far from 0.
BASE_MS = 1_000_000_000
NEAR_US = 250_000
"""Timers beyond it are kept apart. Every request has a timeout of 30 s, which nearly always is
cancelled: among the others these would make each step of the heap twice as long."""


class Callback(msgspec.Struct, eq=False):
    """One callback of a lane, or a timer that can be cancelled. A struct, because every message
    creates several."""

    _lane: Lane
    _fn: Callable[[], object] | None
    cause: int
    process: Process
    thread: str
    _put_off: bool = False

    def cancel(self) -> None:
        self._fn = None

    def not_before(self, at_us: int) -> int:
        """The time at which a deferred callback runs: after everything that its lane has deferred
        before."""
        lane, process = self._lane, self.process
        # A second pause defers the same callback again: it keeps its place in the lane.
        if not self._put_off:
            lane.put_off.append(self)
        lane.busy_until = max(lane.busy_until, at_us)
        # Until then `Kernel.make_ready` checks the order of each callback. Afterwards nothing is
        # deferred any more, and the check costs one comparison.
        process.ordered_until = max(process.ordered_until, lane.busy_until)
        self._put_off = True
        return lane.busy_until

    def is_behind(self) -> bool:
        # A deferred callback has its place in the lane already and must not wait for itself.
        if self._put_off:
            return False
        return self._lane.busy_until >= self.process.kernel.now or bool(self._lane.put_off)

    def is_cancelled(self) -> bool:
        return self._fn is None

    def run(self) -> None:
        """Run the callback. A deferred callback runs the first deferred one of its lane instead:
        another pause may have deferred earlier ones once more."""
        callback = self._lane.put_off.popleft() if self._put_off else self
        if callback._fn is not None:
            kernel = self.process.kernel
            kernel.current, kernel.cause = callback, callback.cause
            callback._fn()


class _Suspend:
    """The only awaitable: suspends the thread until something makes the task ready."""

    __slots__ = ()

    def __await__(self) -> Generator[None, None, None]:
        return iter(_ONCE)  # type: ignore[return-value]  # one step, and no frame of Python's


_ONCE = (None,)
SUSPEND = _Suspend()


class Clock(Protocol):
    """The source of time. A virtual clock jumps; a live clock waits for the wall clock or for the
    inbox."""

    def wait(self, until_us: int) -> int:
        """Return the present time: at the latest when `until_us` is reached, earlier when the inbox
        has an item."""
        ...

    def inbox(self) -> list[Callable[[], None]]:
        """The callbacks that other threads have put since the last call."""
        ...


class VirtualClock:
    """Time that jumps to the next due item."""

    def wait(self, until_us: int) -> int:
        return until_us

    def inbox(self) -> list[Callable[[], None]]:
        return []


class WakeUpDelays(Protocol):
    """Microseconds until threads run; drawn by the world."""

    def window(self, process: str, waiting: int) -> int:
        """How long a resumed process is sluggish, given the number of waiting items. Drawn
        first."""
        ...

    def thread(self, process: str, thread: str) -> int:
        """Once for each thread after a resume."""
        ...

    def step(self, process: str, thread: str) -> int:
        """For each wake-up while the process is sluggish."""
        ...

    def unpark(self, process: str, thread: str) -> int:
        """After the lock that the thread waits for was released."""
        ...


class NoDelays:
    """No delays: for the live world, where the machine decides."""

    def window(self, process: str, waiting: int) -> int:
        return 0

    def thread(self, process: str, thread: str) -> int:
        return 0

    def step(self, process: str, thread: str) -> int:
        return 0

    def unpark(self, process: str, thread: str) -> int:
        return 0


class HeldHere(Protocol):
    """A hold that was reached; the callbacks of `lane` wait behind it."""

    lane: Lane

    async def stand(self) -> None: ...

    def behind(self, call: Callable[[], object]) -> None: ...


class HoldOrders(Protocol):
    """The interface of `emulator.kernel.holds.Holds` for the kernel and for code that reaches a
    place."""

    def order(self, place: Place) -> object: ...

    def release(self, place: Place) -> int: ...

    def caught(
        self, process: str, at: At, of: str, which: tuple[str, ...] = ("",), *, peer: str = ""
    ) -> HeldHere | None: ...


class TaskFailed(Exception):
    """A task ended with an uncaught exception: an internal error that stops the run."""

    def __init__(self, task: str, error: BaseException) -> None:
        super().__init__(f"{task}: {type(error).__name__}: {error}")
        self.task, self.error = task, error


class Process:
    """A unit that is paused, resumed and crashed as a whole."""

    __slots__ = (
        "_awake",
        "_held",
        "kernel",
        "live_tasks",
        "name",
        "on_death",
        "ordered_until",
        "running",
        "sluggish_until",
        "state",
    )

    def __init__(self, kernel: Kernel, name: str) -> None:
        self.kernel, self.name = kernel, name
        self.running = True
        self.state = "running"
        self.sluggish_until = 0
        self.ordered_until = -1
        self.live_tasks: dict[Task, None] = {}
        self.on_death: Callable[[Process], None] | None = None
        self._held: list[Runnable] = []
        self._awake: dict[str, int] = {}

    def pause(self) -> None:
        """SIGSTOP: from now on nothing of this process runs."""
        if self.state == "running":
            self.state, self.running = "paused", False

    def resume(self) -> None:
        """SIGCONT: everything that fell due or arrived during the pause is ready; each thread wakes
        up after its drawn delay."""
        if self.state != "paused":
            return
        kernel = self.kernel
        self.state, self.running = "running", True
        # Each resume draws new wake-up delays for the threads.
        self._awake.clear()
        # Items that fall due at this instant queue behind the held ones.
        self.ordered_until = max(self.ordered_until, kernel.now)
        held, self._held = self._held, []
        # The world draws by the amount of waiting work; a cancelled timer is not work.
        waiting = sum(not item.is_cancelled() for item in held)
        self.sluggish_until = kernel.now + kernel.wake_up.window(self.name, waiting)
        for item in held:
            kernel.make_ready(item)

    def crash(self) -> None:
        """The process ends: its tasks never run again, not even their `finally` clauses."""
        if self.state == "dead":
            return
        self.state, self.running = "dead", False
        self._held.clear()
        # The list keeps references: garbage collection would close the coroutines and run their
        # `finally` clauses.
        self.kernel.stopped_tasks.extend(self.live_tasks)
        self.live_tasks.clear()
        # Last: it closes sockets, and their other ends must find the process dead.
        if self.on_death is not None:
            self.on_death(self)

    def hold(self, item: Runnable) -> None:
        """Keep an item that became ready while the process is paused."""
        # A dead process keeps nothing: it is never resumed.
        if self.state == "paused":
            self._held.append(item)

    def wake_delay(self, thread: str) -> int:
        """Microseconds until `thread` runs, shortly after a resume."""
        kernel = self.kernel
        awake = self._awake.get(thread)
        # Drawn once, when the thread first has something to do: later items wait only for the rest
        # of that delay.
        if awake is None:
            awake = self._awake[thread] = kernel.now + kernel.wake_up.thread(self.name, thread)
        return max(0, awake - kernel.now) + kernel.wake_up.step(self.name, thread)

    def spawn(self, thread: str, body: Body) -> Task:
        """Start a thread in this process."""
        return self.kernel.spawn(self, thread, body)

    def lane(self, thread: str) -> Lane:
        """Create a thread of callbacks in this process."""
        return Lane(self, thread)


class Runnable(Protocol):
    """An item that the kernel can run: a task's next step or one callback of a lane."""

    cause: int
    process: Process
    thread: str

    def run(self) -> None: ...

    def not_before(self, at_us: int) -> int:
        """When the item runs if it is due at `at_us`: after everything queued before it."""
        ...

    def is_behind(self) -> bool:
        """Whether something queued before this item has been deferred while this item has not."""
        ...

    def is_cancelled(self) -> bool:
        """Whether running it would do nothing."""
        ...


class Task:
    """One thread: a coroutine, and what it waits for."""

    __slots__ = (
        "_kernel",
        "cause",
        "coro",
        "finished",
        "process",
        "thread",
        "waiting_for",
    )

    def __init__(self, process: Process, thread: str, body: Body) -> None:
        self.process, self.thread, self.coro = process, thread, body
        self._kernel = process.kernel
        # A thread inherits the cause of the thread that started it.
        self.cause = process.kernel.cause
        self.finished = False
        self.waiting_for = "start"

    def __repr__(self) -> str:
        return f"{self.process.name}/{self.thread} ({self.waiting_for})"

    # A thread waits for one thing at a time, so it has no other items to overtake.

    def not_before(self, at_us: int) -> int:
        return at_us

    def is_behind(self) -> bool:
        return False

    def is_cancelled(self) -> bool:
        return self.finished

    def run(self) -> None:
        # It was stopped after it had become ready: the queue still contained it.
        if self.finished:
            return
        kernel = self._kernel
        kernel.current, kernel.cause = self, self.cause
        try:
            self.coro.send(None)
            # The task waits now and keeps its cause; a promise may replace it.
            self.cause = kernel.cause
        except StopIteration:
            self._end()
        except Exception as error:
            self._end()
            raise TaskFailed(f"{self.process.name}/{self.thread}", error) from error

    def _end(self) -> None:
        self.finished = True
        self.process.live_tasks.pop(self, None)

    def stop(self) -> None:
        """End this thread at its current await and run its `finally` clauses (an orderly
        interrupt)."""
        if self.finished:
            return
        self._end()
        kernel = self._kernel
        # `finally` clauses release locks, and a lock checks that the current task is its owner.
        before, kernel.current = kernel.current, self
        try:
            self.coro.close()
        finally:
            kernel.current = before


class Lane:
    """An ordered executor of one process (zk.wire.Lane): a network thread, an event thread, a
    timer."""

    __slots__ = ("_kernel", "busy_until", "process", "put_off", "thread")

    def __init__(self, process: Process, thread: str) -> None:
        self.process, self.thread = process, thread
        self._kernel = process.kernel
        self.busy_until = -1
        self.put_off: deque[Callback] = deque()

    def now_us(self) -> int:
        return self._kernel.now

    def callback(self, fn: Callable[[], object] | None, cause: int) -> Callback:
        """Create a callback that the caller schedules."""
        return Callback(self, fn, cause, self.process, self.thread)

    def post(self, callback: Callable[[], object]) -> None:
        kernel = self._kernel
        kernel.post(Callback(self, callback, kernel.cause, self.process, self.thread))

    def call_later(self, delay_us: int, callback: Callable[[], object]) -> Callback:
        # Half of all timers are set here and none is in the past: this avoids the check of
        # `call_at`.
        kernel = self._kernel
        timer = Callback(self, callback, kernel.cause, self.process, self.thread)
        kernel.call_at(kernel.now + delay_us, timer)
        return timer

    def call_at(self, at_us: int, callback: Callable[[], object]) -> Callback:
        """Run the callback at `at_us` of the world's clock, or as soon as the process runs after
        that."""
        kernel = self._kernel
        timer = Callback(self, callback, kernel.cause, self.process, self.thread)
        # Every message is such a timer: a comparison costs less than `max`.
        if at_us < kernel.now:
            at_us = kernel.now
        kernel.call_at(at_us, timer)
        return timer


class Kernel:
    """The scheduler of one world."""

    def __init__(
        self, sink: Sink, clock: Clock | None = None, wake_up: WakeUpDelays | None = None
    ) -> None:
        self.sink = sink
        self._emitters: dict[int, Callable[..., None]] = {}
        self.clock: Clock = clock or VirtualClock()
        self._virtual = isinstance(self.clock, VirtualClock)
        self.wake_up: WakeUpDelays = wake_up or NoDelays()
        self.now = 0
        self.cause = -1
        self.current: Runnable | None = None
        self.late_us_max = 0
        self.behind_us = 0
        """How late the present step may be; 0 in virtual time."""
        self.stopped_tasks: list[Task] = []
        self.checkpoints: dict[str, Callable[[Task], Awaitable[None]]] = {}
        self.holds: HoldOrders | None = None
        self.processes: dict[str, Process] = {}
        self._ready: deque[Runnable] = deque()
        # (due, count, item): the count preserves the order of items that are due at the same time,
        # and the heap never compares items.
        self._heap: list[tuple[int, int, Runnable]] = []
        self._far: list[tuple[int, int, Runnable]] = []
        """A second heap, of the items that are due after `_near_until`; `_heap` has all others."""
        self._near_until = 0
        self._count = 0
        self._stopping = False
        self.world = self.process("world")

    # -- what the core uses ------------------------------------------------------------------------

    def now_ms(self) -> int:
        """Kafka's clock (Time.milliseconds). It is far from 0, because Kafka's rules compare times
        with 0."""
        return BASE_MS + self.now // 1000

    def emit(self, event_type: Callable[..., Event], broker: int, *fields: object) -> None:
        """Add an event to the trace; it becomes the cause of what this thread does next."""
        emit = self._emitters.get(broker)
        if emit is None:
            emit = self._emitters[broker] = self.emitter(broker)
        emit(event_type, *fields)

    def emitter(self, broker: int) -> Callable[..., None]:
        """`emit` for one broker: a closure, because brokers emit most events of a run."""
        sink, append = self.sink, self.sink.append

        def emit(event_type: Callable[..., Event], *fields: object) -> None:
            seq, current = sink.next_seq, self.current
            thread = current.thread if current is not None else ""
            event = event_type(seq, self.now, broker, thread, self.cause, *fields)
            self.cause = seq
            append(event)

        return emit

    def this_task(self) -> Task:
        """The thread that runs now."""
        assert isinstance(self.current, Task), "only a task can block"
        return self.current

    async def sleep(self, us: int) -> None:
        """Block this thread for `us` microseconds."""
        await self.sleep_until(self.now + us)

    async def sleep_until(self, at_us: int) -> None:
        """Block this thread until `at_us`; returns at once if that time has passed."""
        if at_us <= self.now:
            return
        task = self.this_task()
        task.waiting_for = "sleep"
        self.call_at(at_us, task)
        # Only time ends the sleep, no matter what makes the task ready.
        while self.now < at_us:
            await SUSPEND

    async def checkpoint(self, name: str, what: str = "") -> None:
        """A named place where a world may charge time or hold this thread; free otherwise. `what`
        names the item that the thread works on."""
        wait = self.checkpoints.get(name)
        if wait is not None:
            await wait(self.this_task())
        if self.holds is not None:
            hold = self.holds.caught(self.this_task().process.name, "checkpoint", name, (what,))
            if hold is not None:
                await hold.stand()

    def may_wait_at(self, name: str) -> bool:
        """Whether a `checkpoint` of this name can do anything but return at once."""
        return name in self.checkpoints or self.holds is not None

    # -- what worlds use ---------------------------------------------------------------------------

    def process(self, name: str) -> Process:
        """Create an operating-system process; a restarted broker gets a new one under the same
        name."""
        process = self.processes[name] = Process(self, name)
        return process

    def spawn(self, process: Process, thread: str, body: Body) -> Task:
        task = Task(process, thread, body)
        process.live_tasks[task] = None
        self.make_ready(task)
        return task

    def make_ready(self, item: Runnable) -> None:
        """Let `item` run as soon as its process runs."""
        process = item.process
        # Shortly after a resume every wake-up is delayed by the thread's drawn delay.
        if process.running and process.sluggish_until > self.now:
            at = item.not_before(self.now + process.wake_delay(item.thread))
            self.call_at(at, item)
        # Other callbacks of its lane have been deferred: this one must not overtake them.
        elif process.ordered_until >= self.now and item.is_behind():
            self.call_at(item.not_before(self.now), item)
        elif process.running:
            self._ready.append(item)
        else:
            process.hold(item)

    def post(self, item: Runnable) -> None:
        """As `make_ready`; a live kernel overrides it so that any thread may call it."""
        self.make_ready(item)

    def call_at(self, at_us: int, item: Runnable) -> None:
        """Let `item` run at `at_us`."""
        self._count += 1
        heap = self._heap if at_us <= self._near_until else self._far
        heappush(heap, (at_us, self._count, item))

    def _come_nearer(self) -> bool:
        """`_heap` is empty: move the next items of `_far` to it. False if there are none."""
        heap, far = self._heap, self._far
        if not far:
            return False
        self._near_until = far[0][0] + NEAR_US
        while far and far[0][0] <= self._near_until:
            heappush(heap, heappop(far))
        return True

    def stop(self) -> None:
        """End `run` after the current step."""
        self._stopping = True

    def run(self, until_us: int = NEVER) -> None:
        """Run until `until_us`, or until `stop`, or (virtual time) until nothing is pending."""
        self._stopping = False
        if self._ready:
            self._drain()
        if self._virtual:
            self._run_virtual(until_us)
        else:
            self._run_by_the_clock(until_us)

    def _run_virtual(self, until_us: int) -> None:
        """Run with a clock that jumps. Usually a single item is due at an instant: it runs without
        being queued."""
        heap, ready = self._heap, self._ready
        while (heap or self._come_nearer()) and not self._stopping:
            due, _, item = heap[0]
            if due > until_us:
                break
            heappop(heap)
            if due > self.now:
                self.now = due
            # A timer has no cause; tasks and actions bring their own.
            self.cause = -1
            now, process = self.now, item.process
            if process.ordered_until >= now and item.is_behind():
                self.call_at(item.not_before(now), item)
            elif not process.running:
                process.hold(item)
            # More items are due at this instant: they run before anything that the first one makes
            # ready.
            elif heap and heap[0][0] <= now:
                ready.append(item)
                self._make_due_ready()
                self._drain()
            else:
                item.run()
                if ready:
                    self._drain()
                self.current = None
        # Nothing else is due before `until_us`, but the clock still advances.
        if until_us < NEVER and not self._stopping:
            self._note_time(until_us)

    def _run_by_the_clock(self, until_us: int) -> None:
        heap, ready = self._heap, self._ready
        while not self._stopping:
            due = heap[0][0] if heap or self._come_nearer() else NEVER
            self._note_time(self.clock.wait(min(due, until_us)))
            self.behind_us = max(0, self.now - due)
            # Items from other threads run first: a response from a socket may cancel a timer that
            # is due at the same instant.
            for callback in self.clock.inbox():
                callback()
            self._make_due_ready()
            if ready:
                self._drain()
            elif self.now >= until_us and not (heap and heap[0][0] <= self.now):
                return

    def _drain(self) -> None:
        ready = self._ready
        while ready and not self._stopping:
            item = ready.popleft()
            if item.process.running:
                item.run()
            else:
                item.process.hold(item)
        self.current = None

    def _note_time(self, now_us: int) -> None:
        """Advance the clock. What happens next has no earlier cause."""
        if now_us > self.now:
            self.now = now_us
        self.cause = -1

    def _make_due_ready(self) -> None:
        """Due items become ready in the order in which they were scheduled."""
        heap, ready, now = self._heap, self._ready, self.now
        while (heap or self._come_nearer()) and heap[0][0] <= now:
            due, _, item = heappop(heap)
            if now - due > self.late_us_max:
                self.late_us_max = now - due
            process = item.process
            if process.ordered_until >= now and item.is_behind():
                self.call_at(item.not_before(now), item)
            elif process.running:
                ready.append(item)
            else:
                process.hold(item)

    def close(self) -> None:
        """Close every task and run its `finally` clauses, which no longer affect the trace. A
        waiting task cannot release a lock that it does not hold, so those assertions are ignored.
        """
        # The sink first: the `finally` clauses below must not add events.
        self.sink.close()
        tasks = [t for process in self.processes.values() for t in process.live_tasks]
        for task in [*tasks, *self.stopped_tasks]:
            with suppress(AssertionError):
                task.stop()
        self.stopped_tasks.clear()
        self._heap.clear()
        self._far.clear()
        self._ready.clear()
