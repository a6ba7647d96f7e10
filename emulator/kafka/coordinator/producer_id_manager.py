"""Producer ids of one broker, out of blocks of 1000 that brokers claim in ZooKeeper.

A block is claimed by a conditional write of `/latest_producer_id_block`, so that no two brokers
give the same id; what is left of a block when its broker ends is never given. Kafka claims the
first block when it starts, here the first request does. Source:
coordinator/transaction/ProducerIdManager.scala@2.6.3.
"""

from __future__ import annotations

from emulator.kafka.broker.context import BrokerContext
from emulator.kafka.model.errors import IllegalState
from emulator.kernel.sync import Monitor
from zk.client.codec_admin import ProducerIdBlock
from zk.client.kafka_zk_client import KafkaZkClient

BLOCK_SIZE = 1000
"""ProducerIdManager.PidBlockSize."""
MAX_PRODUCER_ID = 2**63 - 1


class ProducerIdManager:
    """The block that this broker has claimed, and the next id of it."""

    def __init__(self, context: BrokerContext, zk_client: KafkaZkClient) -> None:
        self._broker, self._zk_client = context.broker, zk_client
        self._lock = Monitor(context.kernel, "ProducerIdManager")
        self._next = 0
        self._end = -1

    async def generate_producer_id(self) -> int:
        """The next id. Requests wait here for each other while one claims a block."""
        async with self._lock:
            if self._next > self._end:
                block = await self._claim_block()
                self._next, self._end = block.start, block.end
            self._next += 1
            return self._next - 1

    async def _claim_block(self) -> ProducerIdBlock:
        """getNewProducerIdBlock: read who has the last one, and write the next until nobody else
        was faster."""
        while True:
            # Again after each write that lost: the winner's block is the latest then.
            latest, version = await self._zk_client.get_producer_id_block()
            start = 0 if latest is None else latest.end + 1
            if start > MAX_PRODUCER_ID - BLOCK_SIZE:
                raise IllegalState("all producer ids are used up")
            block = ProducerIdBlock(self._broker, start, start + BLOCK_SIZE - 1)
            if await self._zk_client.claim_producer_id_block(block, version):
                return block
