"""The request queue and the handler threads that process it.

`num.io.threads` threads take requests from one queue; a handler that blocks (on a lock, on
ZooKeeper) is not available for others. Source: server/KafkaRequestHandler.scala@2.6.3,
network/RequestChannel.scala@2.6.3.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from emulator.kafka.broker.context import BrokerContext
from emulator.kafka.protocol.messages import Request
from emulator.kafka.protocol.transport import ServerConnection
from emulator.kernel.sync import Promise, Queue


class Received(msgspec.Struct, frozen=True):
    """A request, and the connection for its response."""

    request: Request
    connection: ServerConnection


class RequestHandlerPool:
    """data-plane-kafka-request-handler-0 … N-1."""

    def __init__(self, context: BrokerContext) -> None:
        self._queue: Queue[Received | None] = Queue(context.kernel)
        self._context = context
        self._ended: list[Promise[None]] = []

    def start(self, handle: Callable[[Received], Awaitable[None]]) -> None:
        """Start the handlers; requests that waited in the queue are processed now."""

        async def run(ended: Promise[None]) -> None:
            while (received := await self._queue.take()) is not None:
                await handle(received)
            ended.resolve(None)

        for n in range(self._context.config.num_io_threads):
            ended: Promise[None] = Promise(self._context.kernel)
            self._ended.append(ended)
            self._context.spawn(f"data-plane-kafka-request-handler-{n}", run(ended))

    def receive(self, request: Request, connection: ServerConnection) -> None:
        """A network thread has read a request."""
        self._queue.put(Received(request, connection))

    @property
    def waiting(self) -> int:
        """The number of requests in the queue (RequestQueueSize)."""
        return len(self._queue)

    async def shutdown(self) -> None:
        """Drop the waiting requests with their connections (RequestChannel.clear); each handler
        ends after its current request."""
        self._queue.clear()
        # One per handler, like Kafka's ShutdownRequest.
        for _ in self._ended:
            self._queue.put(None)
        for ended in self._ended:
            await ended.wait()
