"""Elections without a failure: by request, by the command znode, and by the automatic rebalance.

Owns which partitions qualify and the errors of the others; the partition state machine does the
election. Source: controller/KafkaController.scala@2.6.3 onReplicaElection,
processReplicaLeaderElection, fetchPendingPreferredReplicaElections,
checkAndTriggerAutoLeaderRebalance; spec §6.12.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from emulator.kafka.controller.context import PartitionState
from emulator.kafka.controller.errors import IllegalState, StateChangeFailed
from emulator.kafka.controller.handlers import NodeChangeHandler
from emulator.kafka.controller.partition_state_machine import Election, Strategy
from emulator.kafka.controller.parts import ControllerParts
from emulator.kafka.controller.rebalance import partitions_to_rebalance
from emulator.kafka.model.errors import Errors
from emulator.kafka.profiles.guards.controller import (
    PREFERRED_ONLY_IF_ELECTABLE,
    PREFERRED_ONLY_WHERE_NEEDED,
)
from emulator.kafka.protocol.messages import ElectionResults, ElectionType
from emulator.trace.values import TopicPartition
from zk import paths
from zk.errors import ControllerMoved


class Elections:
    """Preferred elections, and unclean elections by request."""

    def __init__(self, parts: ControllerParts) -> None:
        self._host, self._context = parts.host, parts.context
        self._partitions, self._zk_client = parts.partitions, parts.zk_client
        self._look_again = partial(parts.put_if_active, "ReplicaLeaderElection", self.by_command)
        self._stays_subscribed = parts.host.profile.zookeeper_client == "zkclient"
        # Up to 1.0 the state machine looks, after it has read the state.
        self._leaves_out = (
            PREFERRED_ONLY_WHERE_NEEDED in parts.host.guards and not self._stays_subscribed
        )
        self._only_electable = PREFERRED_ONLY_IF_ELECTABLE in parts.host.guards
        self.handler = NodeChangeHandler(paths.PREFERRED_REPLICA_ELECTION, created=self._look_again)

    async def by_request(
        self, partitions: Sequence[TopicPartition], election_type: ElectionType
    ) -> ElectionResults:
        """Process ElectLeaders; returns the leaders and the errors."""
        return await self._process(partitions, election_type, is_command=False)

    async def by_command(self) -> None:
        """Watch the command znode and, if it exists, run the elections that it lists."""
        if await self._zk_client.register_and_check_existence(self.handler):
            commanded = await self._zk_client.get_preferred_replica_election()
            await self._process(commanded, ElectionType.PREFERRED, is_command=True)

    async def pending(self, commanded: Sequence[TopicPartition] | None = None) -> None:
        """At fail-over: run the commanded elections that are not done yet. The znode is deleted
        whether or not it exists."""
        # Recorded controllers take this time with a lock as well as with an event queue.
        if commanded is None:
            await self._host.kernel.checkpoint("failover.elections")
            commanded = await self._zk_client.get_preferred_replica_election()
        await self._host.kernel.checkpoint("failover.elections")
        left = [
            p
            for p in commanded
            # Not those without replicas: their topic was deleted after the command was written.
            if (replicas := self._context.replicas(p))
            and self._leader(p) != replicas[0]
            and p.topic not in self._context.topics_to_be_deleted
        ]
        await self._on_replica_election(left, self._partitions.preferred_strategy, is_command=True)

    async def rebalance(self) -> None:
        """Rebalance timer: one election for each broker that leads too few partitions."""
        percentage = self._host.config.leader_imbalance_per_broker_percentage
        for candidates in partitions_to_rebalance(
            self._context, percentage, only_electable=self._only_electable
        ):
            strategy = self._partitions.preferred_strategy
            await self._on_replica_election(candidates, strategy, is_command=False)

    async def _process(
        self,
        partitions: Sequence[TopicPartition],
        election_type: ElectionType,
        *,
        is_command: bool,
    ) -> ElectionResults:
        errors: dict[TopicPartition, Errors] = {}
        elect = []
        for partition in partitions:
            if partition not in self._context.assignments:
                errors[partition] = Errors.UNKNOWN_TOPIC_OR_PARTITION
            elif partition.topic in self._context.topics_to_be_deleted:
                errors[partition] = Errors.INVALID_TOPIC_EXCEPTION
            elif (
                # An unclean election is needed only where no live broker leads.
                self._leaves_out and self._leader(partition) == self._context.replicas(partition)[0]
                if election_type is ElectionType.PREFERRED
                else self._leader(partition) in self._context.live
            ):
                errors[partition] = Errors.ELECTION_NOT_NEEDED
            else:
                elect.append(partition)
        if election_type is ElectionType.PREFERRED:
            strategy = self._partitions.preferred_strategy
        else:
            strategy = self._partitions.unclean_strategy
        leaders = {}
        for election in await self._on_replica_election(elect, strategy, is_command=is_command):
            if election.state is None:
                if not isinstance(election.error, StateChangeFailed):
                    error = Errors.UNKNOWN_SERVER_ERROR
                elif election_type is ElectionType.PREFERRED:
                    error = Errors.PREFERRED_LEADER_NOT_AVAILABLE
                else:
                    error = Errors.ELIGIBLE_LEADERS_NOT_AVAILABLE
                errors[election.partition] = error
            else:
                leaders[election.partition] = election.state.leader_and_isr.leader
        return ElectionResults(leaders, errors)

    def _leader(self, partition: TopicPartition) -> int:
        """The cached leader; without one Kafka's look-up throws, which ends the event."""
        state = self._context.leadership.get(partition)
        if state is None:
            raise IllegalState(f"nothing is known of the leader of {partition}")
        return state.leader_and_isr.leader

    async def _on_replica_election(
        self, partitions: Sequence[TopicPartition], strategy: Strategy, *, is_command: bool
    ) -> list[Election]:
        """Elect; a command counts as done no matter what the result is."""
        try:
            elections = await self._partitions.handle_state_changes(
                partitions, PartitionState.ONLINE, strategy
            )
        # handle_state_changes reports other errors per partition; only this one ends the event.
        except ControllerMoved:
            if is_command:
                await self._remove_command()
            raise
        if is_command:
            await self._remove_command()
        return elections

    async def _remove_command(self) -> None:
        """Delete the command znode and look for a new one
        (removePartitionsFromPreferredReplicaElection)."""
        await self._zk_client.delete_preferred_replica_election(self._context.epoch_zk_version)
        if not self._stays_subscribed:
            # The `exists` of that check sets the watch again; without it the next command is not
            # noticed.
            self._look_again()
