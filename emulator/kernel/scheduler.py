"""Tasks, processes, lanes and time.

A *task* is one Kafka thread: a coroutine that awaits only the primitives of `sync`. A *process* is
one broker's (or server's) operating-system process: it can be paused (SIGSTOP: nothing of it runs,
what falls due waits), resumed, and crashed (its tasks are parked for ever; a dead JVM runs no
`finally`). A *lane* is a thread of plain callbacks.

Between two awaits nothing else runs. Time is integer microseconds. What is ready goes first come
first served; after a resume, each thread wakes after a drawn delay, because the operating system
decides that in reality. This file knows no Kafka, no ZooKeeper, no wall clock and no randomness of
its own.
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
"""A thread's coroutine: nothing is sent into it, and its result is ignored."""

# Later than any time of a run; it fits 64 bits.
NEVER = 1 << 62
# A wall clock is far from 0, and Kafka's rules compare times with 0.
BASE_MS = 1_000_000_000


class Callback(msgspec.Struct, eq=False):
    """One callback of a lane; also a timer that can be called off. A struct, since every message
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
        # A second pause puts the same callback off again: its place in the lane stays the first.
        if not self._put_off:
            lane.put_off.append(self)
        lane.busy_until = max(lane.busy_until, at_us)
        # Until then the process checks each callback's order (`Kernel.make_ready`); after
        # that nothing is put off any more, and the check costs one comparison.
        process.ordered_until = max(process.ordered_until, lane.busy_until)
        self._put_off = True
        return lane.busy_until

    def is_behind(self) -> bool:
        # One that was put off has its place already, and must not wait for itself.
        if self._put_off:
            return False
        return self._lane.busy_until >= self.process.kernel.now or bool(self._lane.put_off)

    def is_cancelled(self) -> bool:
        return self._fn is None

    def run(self) -> None:
        """One that was put off stands for the first of those: another pause may have put off
        those before it once more."""
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
    """Where time comes from. Virtual: jumps. Live: waits for the wall clock or for the inbox."""

    def wait(self, until_us: int) -> int:
        """Return the present time, at most when `until_us` is reached, earlier when the inbox has
        something."""
        ...

    def inbox(self) -> list[Callable[[], None]]:
        """What other threads have put in since the last call."""
        ...


class VirtualClock:
    """Time that jumps to whatever is next."""

    def wait(self, until_us: int) -> int:
        return until_us

    def inbox(self) -> list[Callable[[], None]]:
        return []


class WakeUpDelays(Protocol):
    """How long, in microseconds, threads take until they run; drawn by the world."""

    def window(self, process: str, waiting: int) -> int:
        """How long a resumed process is sluggish, given the number of things that wait. Drawn
        first.
        """
        ...

    def thread(self, process: str, thread: str) -> int:
        """After a resume."""
        ...

    def step(self, process: str, thread: str) -> int:
        """Each, while the process is sluggish."""
        ...

    def unpark(self, process: str, thread: str) -> int:
        """After the lock that it waited for has become free."""
        ...


class NoDelays:
    """Everything runs at once: the live world, where the machine itself decides."""

    def window(self, process: str, waiting: int) -> int:
        return 0

    def thread(self, process: str, thread: str) -> int:
        return 0

    def step(self, process: str, thread: str) -> int:
        return 0

    def unpark(self, process: str, thread: str) -> int:
        return 0


class HeldHere(Protocol):
    """A hold that was reached: the callbacks of `lane` wait behind it."""

    lane: Lane

    async def stand(self) -> None: ...

    def behind(self, call: Callable[[], object]) -> None: ...


class HoldOrders(Protocol):
    """The interface of `emulator.kernel.holds.Holds` for the kernel and for code that passes a
    place.
    """

    def order(self, place: Place) -> object: ...

    def release(self, place: Place) -> int: ...

    def caught(
        self, process: str, at: At, of: str, which: tuple[str, ...] = ("",), *, peer: str = ""
    ) -> HeldHere | None: ...


class TaskFailed(Exception):
    """A task ended with an uncaught exception: an internal error, which stops the run."""

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
        """SIGCONT: what fell due or arrived meanwhile is ready; each thread wakes after its drawn
        delay."""
        if self.state != "paused":
            return
        kernel = self.kernel
        self.state, self.running = "running", True
        # Each resume draws new wake-up delays for the threads.
        self._awake.clear()
        # What falls due in this very instant queues behind what was held.
        self.ordered_until = max(self.ordered_until, kernel.now)
        held, self._held = self._held, []
        # The world draws by how much there is to catch up with; a timer called off is none of it.
        waiting = sum(not item.is_cancelled() for item in held)
        self.sluggish_until = kernel.now + kernel.wake_up.window(self.name, waiting)
        for item in held:
            kernel.make_ready(item)

    def crash(self) -> None:
        """The process is gone: tasks are parked for ever, without running `finally`."""
        if self.state == "dead":
            return
        self.state, self.running = "dead", False
        self._held.clear()
        # Kept referenced: garbage collection would close the coroutine and run its `finally`.
        self.kernel.stopped_tasks.extend(self.live_tasks)
        self.live_tasks.clear()
        if self.on_death is not None:
            self.on_death(self)

    def hold(self, item: Runnable) -> None:
        """Keep what became ready while the process is paused."""
        # Of a dead process nothing is kept: nobody will ever resume it.
        if self.state == "paused":
            self._held.append(item)

    def wake_delay(self, thread: str) -> int:
        """Microseconds until `thread` gets on, shortly after a resume."""
        kernel = self.kernel
        awake = self._awake.get(thread)
        # Drawn when the thread first has something to do, and once: what it does next is late only
        # by what is left of that.
        if awake is None:
            awake = self._awake[thread] = kernel.now + kernel.wake_up.thread(self.name, thread)
        return max(0, awake - kernel.now) + kernel.wake_up.step(self.name, thread)

    def spawn(self, thread: str, body: Body) -> Task:
        """Start a thread of this process."""
        return self.kernel.spawn(self, thread, body)

    def lane(self, thread: str) -> Lane:
        """A thread of callbacks of this process."""
        return Lane(self, thread)


class Runnable(Protocol):
    """Something that the kernel can run: a task's next step or one callback of a lane."""

    cause: int
    process: Process
    thread: str

    def run(self) -> None: ...

    def not_before(self, at_us: int) -> int:
        """When it would run if due at `at_us`: after everything queued before it."""
        ...

    def is_behind(self) -> bool:
        """Whether something queued before it has been deferred while it has not."""
        ...

    def is_cancelled(self) -> bool:
        """Whether running it would do nothing."""
        ...


class Task:
    """One thread: a coroutine and what it waits for."""

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

    # A thread waits for one thing at a time: there is nothing of its own to overtake.

    def not_before(self, at_us: int) -> int:
        return at_us

    def is_behind(self) -> bool:
        return False

    def is_cancelled(self) -> bool:
        return self.finished

    def run(self) -> None:
        # Stopped after it had been made ready: the queue still holds it.
        if self.finished:
            return
        kernel = self._kernel
        kernel.current, kernel.cause = self, self.cause
        try:
            self.coro.send(None)
            # It waits now, and keeps its cause until it goes on; a promise may give it another.
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
        """End this thread where it stands, running its `finally` clauses (an orderly interrupt)."""
        if self.finished:
            return
        self._end()
        kernel = self._kernel
        # `finally` clauses release locks, which ask who the owner is.
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
        """A callback that the caller will schedule."""
        return Callback(self, fn, cause, self.process, self.thread)

    def post(self, callback: Callable[[], object]) -> None:
        kernel = self._kernel
        kernel.post(Callback(self, callback, kernel.cause, self.process, self.thread))

    def call_later(self, delay_us: int, callback: Callable[[], object]) -> Callback:
        # Not through `call_at`: half of all timers are set here, and none lies in the past.
        kernel = self._kernel
        timer = Callback(self, callback, kernel.cause, self.process, self.thread)
        kernel.call_at(kernel.now + delay_us, timer)
        return timer

    def call_at(self, at_us: int, callback: Callable[[], object]) -> Callback:
        """Run it at `at_us` of the world's clock, or as soon as the process runs after that."""
        kernel = self._kernel
        timer = Callback(self, callback, kernel.cause, self.process, self.thread)
        kernel.call_at(max(kernel.now, at_us), timer)
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
        """How late what is done now may be: 0 in virtual time."""
        self.stopped_tasks: list[Task] = []
        self.checkpoints: dict[str, Callable[[Task], Awaitable[None]]] = {}
        self.holds: HoldOrders | None = None
        self.processes: dict[str, Process] = {}
        self._ready: deque[Runnable] = deque()
        # (due, count, item): the count keeps what is due at one instant in its order, and keeps
        # the heap from comparing items.
        self._heap: list[tuple[int, int, Runnable]] = []
        self._count = 0
        self._stopping = False
        self.world = self.process("world")

    # -- what the core uses ------------------------------------------------------------------------

    def now_ms(self) -> int:
        """Kafka's clock (Time.milliseconds); far from 0, since Kafka's rules compare times with
        0."""
        return BASE_MS + self.now // 1000

    def emit(self, event_type: Callable[..., Event], broker: int, *fields: object) -> None:
        """Put an event on the trace; it becomes the cause of what this thread does next."""
        emit = self._emitters.get(broker)
        if emit is None:
            emit = self._emitters[broker] = self.emitter(broker)
        emit(event_type, *fields)

    def emitter(self, broker: int) -> Callable[..., None]:
        """`emit` for one broker: a closure, since a broker emits most of a run's events."""
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
        """Block this thread until `at_us`; returns at once when that has passed."""
        if at_us <= self.now:
            return
        task = self.this_task()
        task.waiting_for = "sleep"
        self.call_at(at_us, task)
        # A task may be made ready by others too (a stop): only time ends the sleep.
        while self.now < at_us:
            await SUSPEND

    async def checkpoint(self, name: str, what: str = "") -> None:
        """A named place where a world may charge time, and where this thread, with `what` it is
        about, may be held; free otherwise."""
        wait = self.checkpoints.get(name)
        if wait is not None:
            await wait(self.this_task())
        if self.holds is not None:
            hold = self.holds.caught(self.this_task().process.name, "checkpoint", name, (what,))
            if hold is not None:
                await hold.stand()

    def may_wait_at(self, name: str) -> bool:
        """Whether `checkpoint` of this name is more than a call that returns at once."""
        return name in self.checkpoints or self.holds is not None

    # -- what worlds use ---------------------------------------------------------------------------

    def process(self, name: str) -> Process:
        """A new operating-system process; a restarted broker is a new one under the same name."""
        process = self.processes[name] = Process(self, name)
        return process

    def spawn(self, process: Process, thread: str, body: Body) -> Task:
        task = Task(process, thread, body)
        process.live_tasks[task] = None
        self.make_ready(task)
        return task

    def make_ready(self, item: Runnable) -> None:
        """Let `item` run as soon as its process does."""
        process = item.process
        # Shortly after a resume every wake-up costs the thread its drawn delay.
        if process.running and process.sluggish_until > self.now:
            at = item.not_before(self.now + process.wake_delay(item.thread))
            self.call_at(at, item)
        # Other callbacks of its lane have been put off: it must not overtake them.
        elif process.ordered_until >= self.now and item.is_behind():
            self.call_at(item.not_before(self.now), item)
        elif process.running:
            self._ready.append(item)
        else:
            process.hold(item)

    def post(self, item: Runnable) -> None:
        """As `make_ready`; a live kernel overrides it to be callable from any thread."""
        self.make_ready(item)

    def call_at(self, at_us: int, item: Runnable) -> None:
        """Let `item` run at `at_us`."""
        self._count += 1
        heappush(self._heap, (at_us, self._count, item))

    def stop(self) -> None:
        """End `run` after the present step."""
        self._stopping = True

    def run(self, until_us: int = NEVER) -> None:
        """Run until `until_us`, or until `stop`, or (virtual time) until nothing can happen any
        more."""
        self._stopping = False
        if self._ready:
            self._drain()
        if self._virtual:
            self._run_virtual(until_us)
        else:
            self._run_by_the_clock(until_us)

    def _run_virtual(self, until_us: int) -> None:
        """Time jumps from one instant to the next. Hardly ever is there more than one thing to do
        at an instant: it is run without being queued."""
        heap, ready = self._heap, self._ready
        while heap and not self._stopping:
            due, _, item = heap[0]
            if due > until_us:
                break
            heappop(heap)
            if due > self.now:
                self.now = due
            # A timer has no cause; tasks and actions carry their own.
            self.cause = -1
            now, process = self.now, item.process
            if process.ordered_until >= now and item.is_behind():
                self.call_at(item.not_before(now), item)
            elif not process.running:
                process.hold(item)
            # More is due at this instant: it goes before what the first of it makes ready.
            elif heap and heap[0][0] <= now:
                ready.append(item)
                self._make_due_ready()
                self._drain()
            else:
                item.run()
                if ready:
                    self._drain()
                self.current = None
        # Nothing more until then; time passes all the same.
        if until_us < NEVER and not self._stopping:
            self._note_time(until_us)

    def _run_by_the_clock(self, until_us: int) -> None:
        heap, ready = self._heap, self._ready
        while not self._stopping:
            due = heap[0][0] if heap else NEVER
            self._note_time(self.clock.wait(min(due, until_us)))
            self.behind_us = max(0, self.now - due)
            # What other threads handed over goes first: an answer from a socket may call off a
            # timer that is due in the same instant.
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
        """What happens now has no cause before."""
        if now_us > self.now:
            self.now = now_us
        self.cause = -1

    def _make_due_ready(self) -> None:
        """In the order in which it was scheduled."""
        heap, ready, now = self._heap, self._ready, self.now
        while heap and heap[0][0] <= now:
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
        """Close every task. Their `finally` clauses have no effect any more; a waiting task cannot
        release a lock that it has already given up, so those assertions are ignored.
        """
        self.sink.close()
        tasks = [t for process in self.processes.values() for t in process.live_tasks]
        for task in [*tasks, *self.stopped_tasks]:
            with suppress(AssertionError):
                task.stop()
        self.stopped_tasks.clear()
        self._heap.clear()
        self._ready.clear()
