"""Requests from the controller to brokers: one send thread and one FIFO queue per broker.

A thread retries one request forever, and the requests behind it wait. When a broker leaves, its
queue is dropped. There is no order between brokers. Source:
controller/ControllerChannelManager.scala@2.6.3; spec §6.10.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from emulator.kafka.controller.ports import Host
from emulator.kafka.profiles.guards.controller import (
    SEND_THREAD_SHUTDOWN_ENDS_REQUEST,
    UNBOUNDED_SEND_QUEUES,
)
from emulator.kafka.profiles.guards.following import CLOSED_CONNECTIONS_NOTICED
from emulator.kafka.protocol.messages import (
    ControlRequest,
    LiveBroker,
    Response,
    StopReplicaRequest,
)
from emulator.kafka.protocol.transport import Connection, Disconnected, Network
from emulator.kernel.scheduler import Task
from emulator.kernel.sync import Monitor, Promise, Queue
from emulator.trace import events

QUEUE_SIZE = 10
"""controller.message.queue.size up to 0.8.1. From 0.8.2 on it is configurable and unlimited by
default."""

OnResponse = Callable[[Response], None]


class QueueItem(NamedTuple):
    """A request and the callback for its response."""

    request: ControlRequest
    on_response: OnResponse | None


class RequestSendThread:
    """`Controller-<c>-to-broker-<b>-send-thread`."""

    def __init__(self, host: Host, network: Network, to: LiveBroker) -> None:
        self._host, self._network, self.to = host, network, to
        self.queue: Queue[QueueItem] = Queue(host.kernel)
        unbounded = UNBOUNDED_SEND_QUEUES in host.guards
        self._room_for = host.config.controller_message_queue_size if unbounded else QUEUE_SIZE
        self._room: Promise[None] = Promise(host.kernel)
        self._connection: Connection | None = None
        self._in_flight: Promise[None] | None = None
        self._running = True
        name = f"Controller-{host.broker}-to-broker-{to.broker}-send-thread"
        self._task: Task = host.spawn(name, self._run())

    async def put(self, item: QueueItem) -> None:
        """Wait for room in the queue. The caller keeps its locks meanwhile."""
        while len(self.queue) >= self._room_for:
            await self._room.wait()
        self.queue.put(item)

    async def _run(self) -> None:
        while self._running:
            item = await self.queue.take()
            # Wake the callers that wait for room, each of which checks the length again.
            room, self._room = self._room, Promise(self._host.kernel)
            room.resolve(None)
            response = await self._send_until_answered(item.request)
            if response is not None and item.on_response is not None and self._running:
                item.on_response(response)

    async def _send_until_answered(self, request: ControlRequest) -> Response | None:
        """Connect, send and wait for the response. On a failure close, sleep 100 ms (300 ms up to
        0.10.0) and repeat. None: the thread was shut down (doWork)."""
        backoff_us = self._host.profile.send_backoff_ms * 1000
        attempt = 0
        while self._running:
            attempt += 1
            try:
                return await self._send(request, attempt)
            except Disconnected:
                self._close()
                # The same request is repeated until the broker's registration goes, and everything
                # behind it waits. The broker may have carried it out already: the epochs in it make
                # a second time harmless.
                await self._host.kernel.sleep(backoff_us)
        return None

    async def _send(self, request: ControlRequest, attempt: int) -> Response:
        config = self._host.config
        is_closed = self._connection is not None and not self._connection.open
        if is_closed and CLOSED_CONNECTIONS_NOTICED not in self._host.guards:
            raise Disconnected("the broker had closed the connection")
        if self._connection is None or not self._connection.open:
            client = f"controller-{self._host.broker}"
            self._connection = await self._network.connect(
                client, self.to.host, self.to.port, config.controller_socket_timeout_ms
            )
        entries = request.partitions if isinstance(request, StopReplicaRequest) else request.states
        # One event for each attempt: a repeated request is one more message on the wire.
        self._host.emit(
            events.ControlRequestSent,
            self.to.broker,
            type(request).__name__.removesuffix("Request"),
            tuple(entry.partition for entry in entries),
            attempt,
        )
        self._in_flight = Promise(self._host.kernel)
        try:
            return await self._connection.send(request, config.request_timeout_ms)
        finally:
            self._in_flight.resolve(None)
            self._in_flight = None

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def shutdown(self) -> None:
        """The queue is dropped; a request in flight may still reach its broker."""
        self._running = False
        waits = SEND_THREAD_SHUTDOWN_ENDS_REQUEST not in self._host.guards
        if waits and self._in_flight is not None:
            await self._in_flight.wait()
        # A bounced broker's queue is not sent to its next process. The queue of a controller that
        # resigns is lost: its successor sends everything again.
        self.queue.clear()
        self._task.stop()
        self._close()


class ControllerChannelManager:
    """The send threads by broker."""

    def __init__(self, host: Host, network: Network) -> None:
        self._host, self._network = host, network
        self._lock = Monitor(host.kernel, "brokerLock")
        self.threads: dict[int, RequestSendThread] = {}

    async def startup(self, brokers: list[LiveBroker]) -> None:
        for broker in brokers:
            await self.add_broker(broker)

    async def add_broker(self, broker: LiveBroker) -> None:
        async with self._lock:
            if broker.broker not in self.threads:
                await self._host.kernel.checkpoint("add_broker")
                self.threads[broker.broker] = RequestSendThread(self._host, self._network, broker)

    async def remove_broker(self, broker: int) -> None:
        async with self._lock:
            thread = self.threads.pop(broker, None)
            if thread is not None:
                await thread.shutdown()

    async def send_request(
        self, broker: int, request: ControlRequest, on_response: OnResponse | None = None
    ) -> None:
        """Queue a request; a request to a broker without a thread is dropped."""
        async with self._lock:
            thread = self.threads.get(broker)
            if thread is not None:
                # Up to 0.8.1 the queue is bounded: the controller waits here and holds brokerLock.
                await thread.put(QueueItem(request, on_response))

    async def shutdown(self) -> None:
        """End all threads."""
        for broker in list(self.threads):
            await self.remove_broker(broker)
