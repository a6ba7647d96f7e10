"""The controller's event queue and the one thread that processes it.

Events are processed one at a time, in order; every ZooKeeper call blocks the event. Up to 0.10
there is no such thread: listeners, timers and request handlers do the work themselves under
controllerLock. Each of them waits for the lock, and ZkClient's event thread waits for its own work
to finish. That equals this queue, plus an event thread that waits until the queue is empty. The
manager does not know what an event means. Source: controller/ControllerEventManager.scala@2.6.3,
utils/ZkUtils.scala@0.10.2.2; spec §6.1.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from emulator.kafka.controller.ports import Host
from emulator.kernel.scheduler import Task
from emulator.kernel.sync import Promise, Queue
from emulator.trace import events

SHUTDOWN = "ShutdownEventThread"
EVENT_THREAD, ZKCLIENT_THREAD = "controller-event-thread", "ZkClient-EventThread"


class ControllerEvent(NamedTuple):
    """An event to process: its name, its work, and a callback if it is dropped."""

    name: str
    process: Callable[[], Awaitable[None]]
    preempted: Callable[[], None] | None = None


class QueuedEvent(NamedTuple):
    """An event and the time at which it was queued (µs)."""

    event: ControllerEvent
    queued_us: int


class ControllerEventManager:
    """controller-event-thread."""

    def __init__(self, host: Host, process: Callable[[ControllerEvent], Awaitable[None]]) -> None:
        self._host, self._process = host, process
        self._queue: Queue[QueuedEvent] = Queue(host.kernel)
        self._running = True
        self._ended: Promise[None] = Promise(host.kernel)
        self._task: Task | None = None
        self._at_work = False
        self._drained: list[Promise[None]] = []

    def start(self) -> None:
        in_zkclient_thread = self._host.profile.controller_threads == "callbacks"
        thread = ZKCLIENT_THREAD if in_zkclient_thread else EVENT_THREAD
        self._task = self._host.spawn(thread, self._run())

    async def drained(self) -> None:
        """Wait until the queue is empty and no event is being processed."""
        if self._at_work or len(self._queue):
            empty: Promise[None] = Promise(self._host.kernel)
            self._drained.append(empty)
            await empty.wait()

    async def close(self) -> None:
        """Cancel queued events and notify their callers; the thread ends after the current
        event."""
        if self._task is None:
            return
        # The event only wakes the thread up. It may be dropped itself, when the session expires
        # before the thread has taken it.
        self._running = False
        for dropped in self.clear_and_put(ControllerEvent(SHUTDOWN, take_turn)):
            if dropped.preempted is not None:
                dropped.preempted()
        await self._ended.wait()

    def put(self, event: ControllerEvent) -> None:
        """Append to the queue."""
        self._host.emit(events.ControllerEventQueued, event.name, len(self._queue))
        self._queue.put(QueuedEvent(event, self._host.kernel.now))

    def clear_and_put(self, event: ControllerEvent) -> list[ControllerEvent]:
        """Drop all queued events and append this one; returns the dropped events (clearAndPut)."""
        dropped = [queued.event for queued in self._queue.clear()]
        self.put(event)
        return dropped

    async def _run(self) -> None:
        kernel = self._host.kernel
        while self._running:
            if not len(self._queue):
                # Up to 0.10 ZkClient's event thread waits in `drained` until its own work is
                # finished.
                self._at_work = False
                drained, self._drained = self._drained, []
                for empty in drained:
                    empty.resolve(None)
            event, queued_us = await self._queue.take()
            self._at_work = True
            if event.name == SHUTDOWN:
                break
            # Taken before the checkpoint: a hold there counts as processing time, not as queue
            # time.
            started_us = kernel.now
            await kernel.checkpoint("controller_event", event.name)
            await self._process(event)
            self._host.emit(
                events.ControllerEventProcessed,
                event.name,
                started_us - queued_us,
                kernel.now - started_us,
            )
        self._ended.resolve(None)


async def take_turn() -> None:
    """The work of an event whose only purpose is to pass through the queue."""
