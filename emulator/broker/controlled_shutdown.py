"""A broker tells the controller that it is about to stop, and waits until its leaderships moved.

Owns the retries; what the controller does is its own. The controller is looked up in ZooKeeper, not
in the metadata cache. Source: server/KafkaServer.scala@2.6.3 controlledShutdown; spec §6.11.
"""

from __future__ import annotations

from collections.abc import Callable

from emulator.broker.context import BrokerContext
from emulator.model.errors import Errors
from emulator.protocol.messages import ControlledShutdownRequest, ControlledShutdownResponse
from emulator.protocol.transport import Disconnected, Network
from zk.errors import ZooKeeperError
from zk.kafka_zk_client import KafkaZkClient


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

    async def run(self) -> bool:
        """True when the controller has moved everything; else the stop is an unclean one."""
        config = self._context.config
        for _ in range(config.controlled_shutdown_max_retries):
            if await self._announce():
                return True
            await self._context.kernel.sleep(config.controlled_shutdown_retry_backoff_ms * 1000)
        return False

    async def _announce(self) -> bool:
        try:
            controller = await self._zk_client.get_controller_id()
            info = None if controller is None else await self._zk_client.get_broker(controller)
            if info is None:
                return False
            await self._context.kernel.checkpoint("shutdown.announce")
            where, timeout_ms = info.endpoints[0], self._context.config.controller_socket_timeout_ms
            client = f"broker-{self._context.broker}-shutdown"
            connection = await self._network.connect(client, where.host, where.port, timeout_ms)
            request = ControlledShutdownRequest(self._context.broker, self._broker_epoch())
            response = await connection.send(request, timeout_ms)
            connection.close()
            await self._context.kernel.checkpoint("shutdown.announced")
        except (Disconnected, ZooKeeperError) as error:
            self._context.failed("controlled shutdown", error)
            return False
        assert isinstance(response, ControlledShutdownResponse)
        return response.error is Errors.NONE and not response.remaining
