"""A broker announces its stop to the controller and waits until its leaderships have moved.

Owns the retries; the controller's work is in `controller/controlled_shutdown`. Source:
server/KafkaServer.scala@2.6.3 controlledShutdown; spec §6.11.
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
    """True when the controller has moved everything. False after `controlled.shutdown.max.retries`:
    the stop is then unclean. A ZooKeeper error ends the attempts."""
    config, kernel = context.config, context.kernel
    endpoint: EndPoint | None = None
    connection: Connection | None = None

    def close() -> None:
        nonlocal connection
        if connection is not None:
            connection.close()
            connection = None

    for _ in range(config.controlled_shutdown_max_retries):
        # Read from ZooKeeper for each attempt: the metadata cache may be outdated, and the
        # controller may have changed since the last attempt.
        controller = await zk_client.get_controller_id()
        info = None if controller is None else await zk_client.get_broker(controller)
        # If there is no controller at the moment, the last known one gets the request.
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
                # The current epoch: the broker may have registered again since the last attempt.
                request = ControlledShutdownRequest(context.broker, context.broker_epoch)
                response = await connection.send(request, config.request_timeout_ms)
            except Disconnected as error:
                context.failed("controlled shutdown", error)
                close()
            else:
                assert isinstance(response, ControlledShutdownResponse)
                # Partitions remain if no other ISR member could become leader.
                has_moved_all = response.error is Errors.NONE and not response.remaining
                if has_moved_all:
                    close()
                await kernel.checkpoint("shutdown.announced")
                if has_moved_all:
                    return True
        await kernel.sleep(config.controlled_shutdown_retry_backoff_ms * 1000)
    return False
