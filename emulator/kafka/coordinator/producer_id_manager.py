"""Producer ids of one broker, from blocks of 1000 that brokers claim in ZooKeeper.

A block is claimed with a conditional write of `/latest_producer_id_block`, so that no two brokers
assign the same id. The rest of a block is never used after its broker's end. Up to 2.8 a broker
claims its first block at its start; in 3.3, where Kafka asks the controller for blocks (KIP-730),
the first request does. Source: coordinator/transaction/ProducerIdManager.scala@2.6.3.
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
    """The claimed block, and its next id."""

    def __init__(self, context: BrokerContext, zk_client: KafkaZkClient) -> None:
        self._broker, self._zk_client = context.broker, zk_client
        self._lock = Monitor(context.kernel, "ProducerIdManager")
        self._next = 0
        self._end = -1

    async def startup(self) -> None:
        """Claim the first block."""
        async with self._lock:
            await self._new_block()

    async def generate_producer_id(self) -> int:
        """The next id. While one request claims a block, others wait here."""
        async with self._lock:
            if self._next > self._end:
                await self._new_block()
            self._next += 1
            return self._next - 1

    async def _new_block(self) -> None:
        block = await self._claim_block()
        self._next, self._end = block.start, block.end

    async def _claim_block(self) -> ProducerIdBlock:
        """getNewProducerIdBlock: read the last block and write the next one, until no other broker
        was faster."""
        while True:
            # Read again after a failed write: the winner's block is then the latest.
            latest, version = await self._zk_client.get_producer_id_block()
            start = 0 if latest is None else latest.end + 1
            if start > MAX_PRODUCER_ID - BLOCK_SIZE:
                raise IllegalState("all producer ids are used up")
            block = ProducerIdBlock(self._broker, start, start + BLOCK_SIZE - 1)
            if await self._zk_client.claim_producer_id_block(block, version):
                return block
