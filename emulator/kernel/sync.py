"""Blocking primitives of threads: Promise, Queue, RwLock, Monitor, Latch, Semaphore.

They have the names of what Kafka's threads block on. A waiter that receives a value (promise,
queue, latch) resumes with the cause of the thread that provided it. A waiter for a lock resumes
with its own cause: it waited for the owner, but not because of what the owner did. Nothing here
depends on time or Kafka.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Generator
from typing import Generic, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from emulator.kernel.scheduler import SUSPEND, Kernel, Task
from zk.wire import labelled

T = TypeVar("T")

_timeout = labelled("timeout")


class _Done:
    """Awaited by the exits of `async with`, and by who finds a monitor free: complete at once,
    without a step of the scheduler."""

    __slots__ = ()

    def __await__(self) -> Generator[None, None, None]:
        return iter(())  # type: ignore[return-value]  # no step, and no frame of Python's


_DONE = _Done()


class Queue(Generic[T]):
    """An unbounded FIFO queue (LinkedBlockingQueue) with any number of consumers, served in the
    order in which they arrived."""

    __slots__ = ("_items", "_kernel", "_waiting_tasks")

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._items: deque[tuple[int, T]] = deque()
        self._waiting_tasks: deque[Task] = deque()

    def __len__(self) -> int:
        return len(self._items)

    @labelled("put")
    def put(self, item: T) -> None:
        self._items.append((self._kernel.cause, item))
        # Wake one consumer per item; it takes the item that is first when it runs.
        if self._waiting_tasks:
            self._kernel.make_ready(self._waiting_tasks.popleft())

    async def take(self) -> T:
        """Block until there is an item, and remove it."""
        kernel = self._kernel
        # Another consumer may have taken the item between the wake-up and now: wait again.
        while not self._items:
            task = kernel.this_task()
            task.waiting_for = "queue"
            self._waiting_tasks.append(task)
            await SUSPEND
        cause, item = self._items.popleft()
        kernel.cause = cause
        return item

    def clear(self) -> list[T]:
        """Remove all items and return them."""
        items = [item for _, item in self._items]
        self._items.clear()
        return items


class RwLock:
    """ReentrantReadWriteLock, non-fair: owner-aware and re-entrant; a writer may take the read lock
    inside.

    As in Java's non-fair lock, a reader that arrives while a writer is first in the queue waits
    behind it. A free lock goes to the first thread that tries, and a waiter must wake up before it
    can try (barging, AbstractQueuedSynchronizer). `readable` says whether a non-blocking read
    section can begin now: there is no writer, and no writer is first in the queue.
    """

    __slots__ = (
        "_kernel",
        "_queue",
        "_readers",
        "_unparking",
        "_writer",
        "_writes",
        "name",
        "read",
        "readable",
        "write",
    )

    def __init__(self, kernel: Kernel, name: str = "lock") -> None:
        self._kernel, self.name = kernel, name
        self.read, self.write = ReadSection(self), WriteSection(self)
        self._writer: Task | None = None
        self._writes = 0
        self._readers: dict[Task, int] = {}
        self._queue: list[tuple[Task, bool]] = []
        self._unparking = False
        self.readable = True

    @property
    def write_owner(self) -> Task | None:
        """The task that holds the write lock."""
        return self._writer

    async def pass_read(self) -> None:
        """Take the read lock and release it. The code that follows, up to the next await, is a read
        section, because nothing else runs in between. For sections that do not block; cheap when
        the lock is free.
        """
        # A writer reads under its own lock: if it waited, it would wait for itself.
        if not self.readable and self._writer is not self._kernel.current:
            await self.acquire_read()
            self.release_read()

    async def acquire_read(self) -> None:
        task = self._kernel.this_task()
        # Re-entered. This also passes a writer that is first in the queue: that writer waits for
        # this task.
        if task in self._readers or self._writer is task:
            self._readers[task] = self._readers.get(task, 0) + 1
        elif self.readable:
            self._readers[task] = 1
        else:
            await self._wait(task, exclusive=False)

    async def acquire_write(self) -> None:
        task = self._kernel.this_task()
        if self._writer is task:
            self._writes += 1
        elif self._writer is None and not self._readers:
            self._writer, self._writes = task, 1
            self.readable = False
        else:
            # Java's lock has no upgrade either: the thread would deadlock with itself.
            assert task not in self._readers, (
                f"{task} would wait for itself: read lock held, write lock wanted"
            )
            await self._wait(task, exclusive=True)

    async def _wait(self, task: Task, *, exclusive: bool) -> None:
        task.waiting_for = self.name
        self._queue.append((task, exclusive))
        # A writer that is now first in the queue must not be passed by new readers.
        self._update_readable()
        # `_grant` makes the task the owner before it wakes: no other thread can take the lock in
        # between.
        while not (self._writer is task if exclusive else task in self._readers):
            await SUSPEND

    def release_read(self) -> None:
        task = self._kernel.this_task()
        held = self._readers[task]
        if held > 1:
            self._readers[task] = held - 1
            return
        del self._readers[task]
        if self._queue:
            self._unpark()

    def release_write(self) -> None:
        task = self._kernel.this_task()
        assert self._writer is task, f"{task} releases {self.name} that {self._writer} holds"
        self._writes -= 1
        if not self._writes:
            self._writer = None
            self._update_readable()
            if self._queue:
                self._unpark()

    def _unpark(self) -> None:
        """Wake the first in the queue; until it runs, any thread may take the lock."""
        # One wake-up at a time: a second release finds the first in the queue already being woken.
        if self._unparking:
            return
        first, _ = self._queue[0]
        us = self._kernel.wake_up.unpark(first.process.name, first.thread)
        if us:
            self._unparking = True
            # On the waiter's own thread: a paused process does not take the lock.
            first.process.lane(first.thread).call_later(us, self._unparked)
        else:
            self._grant()

    @labelled("unparked")
    def _unparked(self) -> None:
        self._unparking = False
        self._grant()

    def _grant(self) -> None:
        """Give a free lock to the first in the queue; consecutive readers get it together."""
        # Another thread may have taken the lock during the wake-up (barging). The first in the
        # queue then stays first and waits for the next release.
        while self._queue and self._writer is None:
            task, exclusive = self._queue[0]
            if exclusive and self._readers:
                break
            self._queue.pop(0)
            if exclusive:
                self._writer, self._writes = task, 1
            else:
                self._readers[task] = 1
            self._kernel.make_ready(task)
        self._update_readable()

    def _update_readable(self) -> None:
        self.readable = self._writer is None and not (self._queue and self._queue[0][1])


class ReadSection:
    """`async with lock.read:`."""

    __slots__ = ("_lock",)

    def __init__(self, lock: RwLock) -> None:
        self._lock = lock

    def __aenter__(self) -> Awaitable[None]:
        return self._lock.acquire_read()

    def __aexit__(self, *_: object) -> Awaitable[None]:
        self._lock.release_read()
        return _DONE


class WriteSection:
    """`async with lock.write:`."""

    __slots__ = ("_lock",)

    def __init__(self, lock: RwLock) -> None:
        self._lock = lock

    def __aenter__(self) -> Awaitable[None]:
        return self._lock.acquire_write()

    def __aexit__(self, *_: object) -> Awaitable[None]:
        self._lock.release_write()
        return _DONE


class Monitor:
    """`synchronized`: exclusive and re-entrant; `async with monitor:`."""

    __slots__ = ("_depth", "_kernel", "_owner", "_queue", "name")

    def __init__(self, kernel: Kernel, name: str = "monitor") -> None:
        self._kernel, self.name = kernel, name
        self._owner: Task | None = None
        self._depth = 0
        self._queue: deque[Task] = deque()

    @property
    def owner(self) -> Task | None:
        return self._owner

    def enter(self) -> Awaitable[None]:
        """Await it at once. Only who has to wait needs a coroutine."""
        task = self._kernel.this_task()
        if self._owner is None:
            self._owner, self._depth = task, 1
        elif self._owner is task:
            self._depth += 1
        else:
            return self._wait(task)
        return _DONE

    async def _wait(self, task: Task) -> None:
        task.waiting_for = self.name
        self._queue.append(task)
        while self._owner is not task:
            await SUSPEND

    def leave(self) -> None:
        task = self._kernel.this_task()
        assert self._owner is task, f"{task} leaves {self.name} that {self._owner} holds"
        self._depth -= 1
        if self._depth:
            return
        # The lock is handed over. Java's monitors promise no order; ours are fair so that a run can
        # be repeated.
        self._owner = self._queue.popleft() if self._queue else None
        if self._owner is not None:
            self._depth = 1
            self._kernel.make_ready(self._owner)

    def __aenter__(self) -> Awaitable[None]:
        return self.enter()

    def __aexit__(self, *_: object) -> Awaitable[None]:
        self.leave()
        return _DONE


class Semaphore:
    """A number of permits (zookeeper.max.in.flight.requests)."""

    __slots__ = ("_kernel", "_permits", "_queue")

    def __init__(self, kernel: Kernel, permits: int) -> None:
        self._kernel, self._permits = kernel, permits
        self._queue: deque[Task] = deque()

    async def acquire(self) -> None:
        while self._permits == 0:
            task = self._kernel.this_task()
            task.waiting_for = "permit"
            self._queue.append(task)
            await SUSPEND
        self._permits -= 1

    def release(self) -> None:
        self._permits += 1
        if self._queue:
            self._kernel.make_ready(self._queue.popleft())


class Condition:
    """A condition of a monitor (ReentrantLock.newCondition): a wait that releases the monitor, with
    a time limit."""

    __slots__ = ("_kernel", "_monitor", "_waiting")

    def __init__(self, kernel: Kernel, monitor: Monitor) -> None:
        self._kernel, self._monitor = kernel, monitor
        self._waiting: list[Promise[None]] = []

    async def wait(self, timeout_us: int) -> None:
        """Release the monitor until a signal or for `timeout_us`, then take it again."""
        task = self._kernel.this_task()
        signalled: Promise[None] = Promise(self._kernel)
        self._waiting.append(signalled)
        # The timer is on the waiter's own lane: a paused process does not time out.
        lane = task.process.lane(task.thread)
        timer = lane.call_later(timeout_us, _timeout(lambda: signalled.resolve(None)))
        self._monitor.leave()
        await signalled.wait()
        timer.cancel()
        # Others may have held the monitor meanwhile: a waiter has to check its condition again.
        await self._monitor.enter()

    def signal_all(self) -> None:
        waiting, self._waiting = self._waiting, []
        for signalled in waiting:
            signalled.resolve(None)


class Promise(msgspec.Struct, Generic[T], eq=False):
    """A value that is set once (CompletableFuture, CountDownLatch(1) with a result). A struct,
    because every request creates one."""

    _kernel: Kernel
    _value: T | UnsetType = UNSET
    _waiters: list[Task] = []
    cause: int = -1

    @property
    def done(self) -> bool:
        return self._value is not UNSET

    def resolve(self, value: T) -> None:
        """Set the value; a second value is ignored (the first response counts)."""
        if self._value is not UNSET:
            return
        self._value = value
        self.cause = self._kernel.cause
        # The waiter resumes because of this value, not because of what made it wait.
        for task in self._waiters:
            task.cause = self.cause
            self._kernel.make_ready(task)
        self._waiters.clear()

    async def wait(self) -> T:
        """Block until the value is set."""
        if self._value is UNSET:
            task = self._kernel.this_task()
            task.waiting_for = "promise"
            self._waiters.append(task)
            # Only the value ends the wait, no matter what makes the task ready.
            while self._value is UNSET:
                await SUSPEND
        return self._value
