"""A broker tells the controller that it is about to stop, and waits until its leaderships moved.

Owns the retries; what the controller does is its own. The controller is looked up in ZooKeeper, not
in the metadata cache. Source: server/KafkaServer.scala@2.6.3 controlledShutdown; spec §6.11.
"""

from __future__ import annotations

from collections.abc import Callable

from emulator.kafka.broker.context import BrokerContext
from emulator.kafka.model.errors import Errors
from emulator.kafka.protocol.messages import ControlledShutdownRequest, ControlledShutdownResponse
from emulator.kafka.protocol.transport import Connection, Disconnected, Network
from zk.client.codec_admin import EndPoint
from zk.client.kafka_zk_client import KafkaZkClient


class ControlledShutdown:
    """One announcement, tried `controlled.shutdown.max.retries` times."""

    def __init__(
        self,
        context: BrokerContext,
        zk_client: KafkaZkClient,
        network: Network,
        broker_epoch: Callable[[], int],
    ) -> None:
        self._context, self._zk_client = context, zk_client
        self._network, self._broker_epoch = network, broker_epoch
        self._controller: EndPoint | None = None
        self._connection: Connection | None = None

    async def run(self) -> bool:
        """True when the controller has moved everything; else the stop is an unclean one. An error
        of ZooKeeper ends it."""
        config = self._context.config
        for _ in range(config.controlled_shutdown_max_retries):
            controller = await self._zk_client.get_controller_id()
            info = None if controller is None else await self._zk_client.get_broker(controller)
            # Where there is no controller now, the last one known is asked again.
            if info is not None and info.endpoints[0] != self._controller:
                self._controller = info.endpoints[0]
                self._close()
            if self._controller is not None and await self._announce(self._controller):
                return True
            await self._context.kernel.sleep(config.controlled_shutdown_retry_backoff_ms * 1000)
        return False

    async def _announce(self, controller: EndPoint) -> bool:
        """One request; True when the controller has moved everything."""
        config, kernel = self._context.config, self._context.kernel
        await kernel.checkpoint("shutdown.announce")
        try:
            if self._connection is None or not self._connection.open:
                self._connection = await self._network.connect(
                    f"broker-{self._context.broker}-shutdown",
                    controller.host,
                    controller.port,
                    config.controller_socket_timeout_ms,
                )
            request = ControlledShutdownRequest(self._context.broker, self._broker_epoch())
            response = await self._connection.send(request, config.request_timeout_ms)
        except Disconnected as error:
            self._context.failed("controlled shutdown", error)
            self._close()
            return False
        assert isinstance(response, ControlledShutdownResponse)
        has_moved_all = response.error is Errors.NONE and not response.remaining
        if has_moved_all:
            self._close()
        await kernel.checkpoint("shutdown.announced")
        return has_moved_all

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
