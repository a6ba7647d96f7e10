"""A broker announces its stop to the controller and waits until its leaderships have moved.

Owns the retries; the controller's work is in `controller/controlled_shutdown`. Source:
server/KafkaServer.scala@2.6.3 controlledShutdown; spec §6.11.
"""

from __future__ import annotations

from emulator.kafka.broker.context import BrokerContext
from emulator.kafka.broker.metadata_cache import MetadataCache
from emulator.kafka.model.errors import Errors
from emulator.kafka.protocol.messages import ControlledShutdownRequest, ControlledShutdownResponse
from emulator.kafka.protocol.transport import Connection, Disconnected, Network
from zk.client.kafka_zk_client import KafkaZkClient


async def controlled_shutdown(
    context: BrokerContext,
    zk_client: KafkaZkClient,
    metadata_cache: MetadataCache,
    network: Network,
) -> bool:
    """True when the controller has moved everything. False after `controlled.shutdown.max.retries`:
    the stop is then unclean. A ZooKeeper error ends the attempts."""
    config, kernel = context.config, context.kernel
    address: tuple[str, int] | None = None
    connection: Connection | None = None

    def close() -> None:
        nonlocal connection
        if connection is not None:
            connection.close()
            connection = None

    for _ in range(config.controlled_shutdown_max_retries):
        # Looked for at each attempt: the controller may have changed since the last one.
        if context.profile.controller_from_metadata:
            address_now = _address_in_metadata(metadata_cache)
        else:
            address_now = await _address_in_zookeeper(zk_client)
        # If there is no controller at the moment, the last known one gets the request.
        if address_now is not None and address_now != address:
            address = address_now
            close()
        if address is not None:
            await kernel.checkpoint("shutdown.announce")
            try:
                if connection is None or not connection.open:
                    connection = await network.connect(
                        f"broker-{context.broker}-shutdown",
                        *address,
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


async def _address_in_zookeeper(zk_client: KafkaZkClient) -> tuple[str, int] | None:
    controller = await zk_client.get_controller_id()
    info = None if controller is None else await zk_client.get_broker(controller)
    return None if info is None else (info.endpoints[0].host, info.endpoints[0].port)


def _address_in_metadata(metadata_cache: MetadataCache) -> tuple[str, int] | None:
    controller = metadata_cache.controller_id
    live = None if controller is None else metadata_cache.alive_broker(controller)
    return None if live is None else (live.host, live.port)
