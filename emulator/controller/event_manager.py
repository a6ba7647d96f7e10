"""The controller's queue and the one thread that works on it.

One event at a time, in order; every ZooKeeper call is synchronous inside the event. Knows no
event's meaning. Source: controller/ControllerEventManager.scala@2.6.3; spec §6.1.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from emulator.controller.ports import Host
from emulator.kernel.scheduler import Task
from emulator.kernel.sync import Promise, Queue
from emulator.trace import events

SHUTDOWN = "ShutdownEventThread"


class ControllerEvent(NamedTuple):
    """What is to be processed: a name, the work, and what to do if its turn never comes."""

    name: str
    process: Callable[[], Awaitable[None]]
    preempted: Callable[[], None] | None = None


class QueuedEvent(NamedTuple):
    """An event and when it was put."""

    event: ControllerEvent
    queued_us: int


class ControllerEventManager:
    """controller-event-thread."""

    def __init__(self, host: Host, process: Callable[[ControllerEvent], Awaitable[None]]) -> None:
        self._host, self._process = host, process
        self._queue: Queue[QueuedEvent] = Queue(host.kernel)
        self._ended: Promise[None] = Promise(host.kernel)
        self._task: Task | None = None

    def start(self) -> None:
        self._task = self._host.spawn("controller-event-thread", self._run())

    async def close(self) -> None:
        """Whoever waits is told, and the thread ends when it has finished the present event."""
        if self._task is None:
            return
        for dropped in self.clear_and_put(ControllerEvent(SHUTDOWN, _nothing)):
            if dropped.preempted is not None:
                dropped.preempted()
        await self._ended.wait()

    def put(self, event: ControllerEvent) -> None:
        """Behind everything that is queued."""
        self._host.emit(events.ControllerEventQueued, event.name, len(self._queue))
        self._queue.put(QueuedEvent(event, self._host.kernel.now))

    def clear_and_put(self, event: ControllerEvent) -> list[ControllerEvent]:
        """Drop what is queued and put this; returns what was dropped (clearAndPut)."""
        dropped = [queued.event for queued in self._queue.clear()]
        self.put(event)
        return dropped

    async def _run(self) -> None:
        kernel = self._host.kernel
        while True:
            event, queued_us = await self._queue.take()
            if event.name == SHUTDOWN:
                self._ended.resolve(None)
                return
            started_us = kernel.now
            await kernel.checkpoint("controller_event")
            await self._process(event)
            self._host.emit(
                events.ControllerEventProcessed,
                event.name,
                started_us - queued_us,
                kernel.now - started_us,
            )


async def _nothing() -> None:
    return None
