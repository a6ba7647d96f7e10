"""Elections that nobody's failure calls for: by hand, and the automatic rebalance.

Owns which partitions qualify; the election itself is the partition state machine's.
Source: controller/KafkaController.scala@2.6.3 onReplicaElection, processReplicaLeaderElection,
checkAndTriggerAutoLeaderRebalance; spec §6.12.
"""

from __future__ import annotations

from collections.abc import Sequence

from emulator.controller.context import PartitionState
from emulator.controller.machinery import Machinery
from emulator.controller.rebalance import partitions_to_rebalance
from emulator.model.errors import Errors
from emulator.trace.values import TopicPartition


class Elections:
    """Preferred elections."""

    def __init__(self, machinery: Machinery) -> None:
        self._host, self._context = machinery.host, machinery.context
        self._partitions = machinery.partitions

    async def elect_preferred(
        self, partitions: Sequence[TopicPartition] | None
    ) -> dict[TopicPartition, Errors]:
        """Per partition (None: all of them) what came of it; those that need none say so."""
        context = self._context
        wanted = list(context.assignments) if partitions is None else list(partitions)
        results: dict[TopicPartition, Errors] = {}
        elect = []
        for partition in wanted:
            state = context.leadership.get(partition)
            if state is None or partition.topic in context.topics_to_be_deleted:
                results[partition] = Errors.UNKNOWN_TOPIC_OR_PARTITION
            elif state.leader_and_isr.leader == context.replicas(partition)[0]:
                results[partition] = Errors.ELECTION_NOT_NEEDED
            else:
                elect.append(partition)
        done = await self._partitions.handle_state_changes(
            elect, PartitionState.ONLINE, self._partitions.preferred_strategy
        )
        for election in done:
            elected = election.state is not None
            results[election.partition] = (
                Errors.NONE if elected else Errors.PREFERRED_LEADER_NOT_AVAILABLE
            )
        return results

    async def rebalance(self) -> None:
        """The timer's: only where the preferred replica is live and in the ISR, and not while a
        reassignment runs."""
        if not self._context.being_reassigned:
            percentage = self._host.config.leader_imbalance_per_broker_percentage
            await self.elect_preferred(partitions_to_rebalance(self._context, percentage))
