"""The controller's queue and the one thread that works on it.

One event at a time, in order; every ZooKeeper call is synchronous inside the event. Up to 0.10
there is no such thread: listeners, timers and handlers do their work themselves, under one lock
(controllerLock). As each waits for its turn and the event thread of ZkClient for its own work, that
is the same queue, of which the event thread waits to be worked off. Knows no event's meaning.
Source: controller/ControllerEventManager.scala@2.6.3, utils/ZkUtils.scala@0.10.2.2; spec §6.1.
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
        self._at_work = False
        self._drained: list[Promise[None]] = []

    def start(self) -> None:
        in_zkclient_thread = self._host.profile.controller_threads == "callbacks"
        thread = ZKCLIENT_THREAD if in_zkclient_thread else EVENT_THREAD
        self._task = self._host.spawn(thread, self._run())

    async def drained(self) -> None:
        """Wait until nothing is queued and nothing is worked on."""
        if self._at_work or len(self._queue):
            empty: Promise[None] = Promise(self._host.kernel)
            self._drained.append(empty)
            await empty.wait()

    async def close(self) -> None:
        """Queued events are cancelled and their callers notified; the thread ends after the current
        event.
        """
        if self._task is None:
            return
        for dropped in self.clear_and_put(ControllerEvent(SHUTDOWN, take_turn)):
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
            if not len(self._queue):
                self._at_work = False
                drained, self._drained = self._drained, []
                for empty in drained:
                    empty.resolve(None)
            event, queued_us = await self._queue.take()
            self._at_work = True
            # Its turn has come: the event before it was finished, and nothing is behind it.
            if event.name == SHUTDOWN:
                self._ended.resolve(None)
                return
            started_us = kernel.now
            await kernel.checkpoint("controller_event", event.name)
            await self._process(event)
            self._host.emit(
                events.ControllerEventProcessed,
                event.name,
                started_us - queued_us,
                kernel.now - started_us,
            )


async def take_turn() -> None:
    """The work of an event that does nothing but take its turn."""
