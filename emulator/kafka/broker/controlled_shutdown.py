"""A broker tells the controller that it is about to stop, and waits until its leaderships moved.

Owns the retries; what the controller does is its own. Source: server/KafkaServer.scala@2.6.3
controlledShutdown; spec §6.11.
"""

from __future__ import annotations

from emulator.kafka.broker.context import BrokerContext
from emulator.kafka.model.errors import Errors
from emulator.kafka.protocol.messages import ControlledShutdownRequest, ControlledShutdownResponse
from emulator.kafka.protocol.transport import Connection, Disconnected, Network
from zk.client.codec_admin import EndPoint
from zk.client.kafka_zk_client import KafkaZkClient


async def controlled_shutdown(
    context: BrokerContext, zk_client: KafkaZkClient, network: Network
) -> bool:
    """True when the controller has moved everything; False after
    `controlled.shutdown.max.retries`, and the stop is an unclean one. An error of ZooKeeper ends
    it."""
    config, kernel = context.config, context.kernel
    endpoint: EndPoint | None = None
    connection: Connection | None = None

    def close() -> None:
        nonlocal connection
        if connection is not None:
            connection.close()
            connection = None

    for _ in range(config.controlled_shutdown_max_retries):
        # Looked up in ZooKeeper each time: the metadata cache may be behind, and the controller may
        # have moved since the last try.
        controller = await zk_client.get_controller_id()
        info = None if controller is None else await zk_client.get_broker(controller)
        # Where there is no controller now, the last one known is asked again.
        if info is not None and info.endpoints[0] != endpoint:
            endpoint = info.endpoints[0]
            close()
        if endpoint is not None:
            await kernel.checkpoint("shutdown.announce")
            try:
                if connection is None or not connection.open:
                    connection = await network.connect(
                        f"broker-{context.broker}-shutdown",
                        endpoint.host,
                        endpoint.port,
                        config.controller_socket_timeout_ms,
                    )
                # The epoch of now: the broker may have registered again since the last try.
                request = ControlledShutdownRequest(context.broker, context.broker_epoch)
                response = await connection.send(request, config.request_timeout_ms)
            except Disconnected as error:
                context.failed("controlled shutdown", error)
                close()
            else:
                assert isinstance(response, ControlledShutdownResponse)
                # Partitions remain where no other member of the ISR could take over.
                has_moved_all = response.error is Errors.NONE and not response.remaining
                if has_moved_all:
                    close()
                await kernel.checkpoint("shutdown.announced")
                if has_moved_all:
                    return True
        await kernel.sleep(config.controlled_shutdown_retry_backoff_ms * 1000)
    return False
