"""A broker's requests to the controller: one thread, one request at a time, retried until it has a
response.

Owns the assumed controller: taken from the metadata cache, and kept until that broker breaks the
connection or responds NOT_CONTROLLER. Retries are unlimited, and later requests wait. The content
of requests does not matter here. Source: server/BrokerToControllerChannelManager.scala@2.7.2,
common/InterBrokerSendThread.scala; spec §7.2.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import count
from typing import NamedTuple

from emulator.kafka.broker.context import BrokerContext
from emulator.kafka.broker.metadata_cache import MetadataCache
from emulator.kafka.model.errors import Errors, KafkaError
from emulator.kafka.profiles.guards.alter_isr import CONTROLLER_ASKED_FOR_VERSIONS
from emulator.kafka.protocol.messages import AlterIsrRequest, AlterIsrResponse, LiveBroker
from emulator.kafka.protocol.transport import Connection, Disconnected, Network
from emulator.kernel.sync import Queue
from emulator.trace import events

# Kafka polls the metadata cache at this interval while it knows no live controller.
NO_CONTROLLER_BACKOFF_MS = 100
RECONNECT_BACKOFF_MS = 50

OnComplete = Callable[[AlterIsrResponse], Awaitable[None]]


class QueueItem(NamedTuple):
    """A request and the callback for its response."""

    request: AlterIsrRequest
    on_complete: OnComplete


class BrokerToControllerChannelManager:
    """`broker-<b>-to-controller-send-thread`."""

    def __init__(
        self, context: BrokerContext, network: Network, metadata_cache: MetadataCache
    ) -> None:
        self._context, self._network = context, network
        self._metadata_cache = metadata_cache
        self._queue: Queue[QueueItem] = Queue(context.kernel)
        self._controller: LiveBroker | None = None
        self._connection: Connection | None = None

    @property
    def controller(self) -> int | None:
        """The broker that is assumed to be controller."""
        return None if self._controller is None else self._controller.broker

    def start(self) -> None:
        broker = self._context.broker
        self._context.spawn(f"broker-{broker}-to-controller-send-thread", self._run())

    def send(self, request: AlterIsrRequest, on_complete: OnComplete) -> None:
        """Queue a request; the send thread calls `on_complete`."""
        self._queue.put(QueueItem(request, on_complete))

    async def _run(self) -> None:
        # Looked up at start and kept: when the first request is sent, another broker may be
        # controller.
        await self._find_controller()
        while True:
            item = await self._queue.take()
            await self._context.kernel.checkpoint("alter_isr_queued")
            response = await self._send_until_answered(item.request)
            await self._context.kernel.checkpoint("alter_isr_answered")
            # The callback changes partitions under their locks, in this thread: the next request
            # waits for it, as in Kafka.
            try:
                await item.on_complete(response)
            except KafkaError as error:
                self._context.failed("AlterIsr response", error)

    async def _find_controller(self) -> LiveBroker:
        """Check the metadata cache every 100 ms until it names a live controller."""
        while self._controller is None:
            broker = self._metadata_cache.controller_id
            self._controller = None if broker is None else self._metadata_cache.alive_broker(broker)
            if self._controller is None:
                await self._context.kernel.sleep(NO_CONTROLLER_BACKOFF_MS * 1000)
        return self._controller

    async def _send_until_answered(self, request: AlterIsrRequest) -> AlterIsrResponse:
        """Connecting is limited by controller.socket.timeout.ms, the response by
        request.timeout.ms."""
        config = self._context.config
        partitions = tuple(p.partition for p in request.partitions)
        for attempt in count(1):
            controller = await self._find_controller()
            try:
                if self._connection is None or not self._connection.open:
                    client = f"broker-{self._context.broker}-to-controller"
                    self._connection = await self._network.connect(
                        client,
                        controller.host,
                        controller.port,
                        config.controller_socket_timeout_ms,
                    )
                self._context.emit(
                    events.AlterIsrSent,
                    controller.broker,
                    partitions,
                    request.broker_epoch,
                    attempt,
                )
                response = await self._connection.send(request, config.request_timeout_ms)
                assert isinstance(response, AlterIsrResponse)
                # A broker before 2.7 closes the connection when it gets an unknown request. A newer
                # sender knows the broker's API versions and handles the error itself.
                if (
                    response.error is Errors.UNSUPPORTED_VERSION
                    and CONTROLLER_ASKED_FOR_VERSIONS not in self._context.guards
                ):
                    raise Disconnected
            except Disconnected:
                self._forget_controller()
                # The next attempt reads the metadata cache again: the controller may have moved.
                await self._context.kernel.sleep(RECONNECT_BACKOFF_MS * 1000)
                continue
            # Retried at once and forever; later requests wait. An outdated metadata cache names the
            # same broker again, which rejects the request again.
            if not says_not_controller(response):
                return response
            self._forget_controller()
        raise AssertionError("it is tried without limit")

    def _forget_controller(self) -> None:
        self._controller = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def says_not_controller(response: AlterIsrResponse) -> bool:
    """Whether any error of the response is NOT_CONTROLLER (errorCounts)."""
    return response.error is Errors.NOT_CONTROLLER or any(
        p.error is Errors.NOT_CONTROLLER for p in response.partitions
    )
