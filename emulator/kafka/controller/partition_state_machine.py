"""The states of partitions, and the elections that bring partitions online.

Owns the transitions and what each writes to ZooKeeper; `leader_selection` decides who is elected.
Source: controller/PartitionStateMachine.scala@2.6.3; spec §6.7.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from emulator.kafka.controller import leader_selection
from emulator.kafka.controller.context import ControllerContext, PartitionState, put_state
from emulator.kafka.controller.errors import ControllerFailure, StateChangeFailed
from emulator.kafka.controller.leader_selection import Elected
from emulator.kafka.controller.ports import Host
from emulator.kafka.controller.request_batch import ControllerBrokerRequestBatch
from emulator.kafka.controller.states import read_states
from emulator.kafka.model.config import unclean_election
from emulator.trace import events
from emulator.trace.values import TopicPartition
from zk.client.codec import LeaderAndIsr, LeaderIsrAndControllerEpoch
from zk.client.kafka_zk_client import KafkaZkClient
from zk.errors import Code, ZooKeeperError

VALID_PREVIOUS = {
    PartitionState.NON_EXISTENT: (PartitionState.OFFLINE,),
    PartitionState.NEW: (PartitionState.NON_EXISTENT,),
    PartitionState.ONLINE: (PartitionState.NEW, PartitionState.ONLINE, PartitionState.OFFLINE),
    PartitionState.OFFLINE: (PartitionState.NEW, PartitionState.ONLINE, PartitionState.OFFLINE),
}

Choice = tuple[Elected | None, tuple[int, ...]]
"""The elected leader and ISR, and the recipients of LeaderAndIsr."""

Strategy = Callable[[TopicPartition, LeaderAndIsr], Choice]


class Election(NamedTuple):
    """The result of one partition's election: the new state, or the error."""

    partition: TopicPartition
    state: LeaderIsrAndControllerEpoch | None
    error: Exception | None = None


class PartitionStateMachine:
    """ZkPartitionStateMachine."""

    def __init__(
        self,
        host: Host,
        context: ControllerContext,
        zk_client: KafkaZkClient,
        batch: ControllerBrokerRequestBatch,
    ) -> None:
        self._host, self._context = host, context
        self._zk_client, self._batch = zk_client, batch
        self._unclean_topics: dict[str, bool | ZooKeeperError] = {}
        # Up to 1.0 a controller finishes one partition before it begins the next.
        self._one_by_one = host.profile.zookeeper_client == "zkclient"

    async def startup(self) -> None:
        """Derive the states from the cache, then bring partitions online that are not."""
        context = self._context
        for partition in context.assignments:
            state = context.leadership.get(partition)
            if state is None:
                # Assigned but never online: the state znode does not exist yet.
                initial = PartitionState.NEW
            elif context.is_replica_online(state.leader_and_isr.leader, partition):
                initial = PartitionState.ONLINE
            else:
                initial = PartitionState.OFFLINE
            context.partition_states[partition] = initial
        await self.trigger_online_partition_state_change()

    async def trigger_online_partition_state_change(
        self, topic: str | None = None
    ) -> list[Election]:
        """Elect a leader for every partition (of the topic) that is Offline or New."""
        waiting = [
            p
            for p in self._context.partitions_in(PartitionState.OFFLINE, PartitionState.NEW)
            if topic in (None, p.topic) and p.topic not in self._context.topics_to_be_deleted
        ]
        online, strategy = PartitionState.ONLINE, self.offline_strategy
        return await self.handle_state_changes(waiting, online, strategy)

    async def handle_state_changes(
        self,
        partitions: Sequence[TopicPartition],
        target: PartitionState,
        strategy: Strategy | None = None,
    ) -> list[Election]:
        """Move partitions to `target` and send the resulting requests; invalid transitions are
        skipped."""
        if not partitions:
            return []
        try:
            # A failed transition leaves its requests in the batch. From then on this raises, and
            # every later transition of this controller fails here (KAFKA-12315, not fixed in 2.6).
            self._batch.new_batch()
            elections = await self._do_handle_state_changes(partitions, target, strategy)
            await self._batch.send(self._context.epoch)
            return elections
        except (ZooKeeperError, ControllerFailure) as error:
            self._host.failed(f"partitions to {target.value}", error)
            return [Election(p, None, error) for p in partitions]

    async def _do_handle_state_changes(
        self,
        partitions: Sequence[TopicPartition],
        target: PartitionState,
        strategy: Strategy | None,
    ) -> list[Election]:
        valid = [
            p for p in partitions if self._context.partition_state(p) in VALID_PREVIOUS[target]
        ]
        profile = self._host.profile
        if target is not PartitionState.ONLINE:
            for partition in valid:
                if target is PartitionState.NEW and profile.new_partitions == "read-again":
                    # assignReplicasToPartitions (0.8) reads the topic's znode again for each
                    # partition.
                    assignments = await self._zk_client.get_full_replica_assignment_for_topics(
                        [partition.topic]
                    )
                    if partition in assignments:
                        self._context.assignments[partition] = assignments[partition]
                self._move(partition, target)
            return []
        fresh = [p for p in valid if self._context.partition_state(p) is PartitionState.NEW]
        elect = [p for p in valid if self._context.partition_state(p) is not PartitionState.NEW]
        for partition in await self._initialize_leader_and_isr(fresh):
            self._move(partition, PartitionState.ONLINE)
        if fresh:
            await self._host.kernel.checkpoint("states_created")
        # electLeaderForPartitions: a write that fails with BADVERSION is repeated at once with the
        # new state (H2). There is no back-off, so a leader that writes often delays this.
        elections: list[Election] = []
        groups = [[p] for p in elect] if self._one_by_one else [elect]
        for waiting in groups:
            done: list[Election] = []
            while waiting:
                finished, waiting = await self._do_elect(waiting, strategy or self.offline_strategy)
                done += finished
            for election in done:
                if election.state is not None:
                    self._move(election.partition, PartitionState.ONLINE)
            elections += done
        return elections

    def _move(self, partition: TopicPartition, target: PartitionState) -> None:
        states, absent = self._context.partition_states, PartitionState.NON_EXISTENT
        before = put_state(states, partition, target, absent)
        self._host.emit(
            events.PartitionStateChanged, self._context.epoch, partition, before.value, target.value
        )

    # -- new partitions ----------------------------------------------------------------------------

    async def _initialize_leader_and_isr(
        self, partitions: Sequence[TopicPartition]
    ) -> list[TopicPartition]:
        """The first live replica leads, and all live replicas are in the ISR. Returns the
        partitions whose state znode was created."""
        states = {}
        for partition in partitions:
            live = self._online(partition)
            # Without a live replica the partition stays New until a broker starts.
            if live:
                leader_and_isr = LeaderAndIsr(live[0], 0, live, 0)
                states[partition] = LeaderIsrAndControllerEpoch(leader_and_isr, self._context.epoch)
        if not states:
            return []
        if not self._one_by_one:
            states = {p: states[p] for p in self._context.order.as_set(states)}
        try:
            replies = await self._zk_client.create_topic_partition_states_raw(
                states, self._context.epoch_zk_version
            )
        except ZooKeeperError as error:
            self._host.failed("creation of partition states", error)
            return []
        # NODEEXISTS fails the transition as well, without a retry (spec §2.5).
        created = [p for p in states if replies[p].code is Code.OK]
        for partition in created:
            state = states[partition]
            # Cache only what ZooKeeper has accepted: requests are made from the cache.
            self.cache(partition, state, "created")
            self._batch.add_leader_and_isr(
                state.leader_and_isr.isr,
                partition,
                state,
                self._context.assignment(partition),
                is_new=True,
            )
        return created

    def cache(
        self, partition: TopicPartition, state: LeaderIsrAndControllerEpoch, why: str
    ) -> None:
        """Put a state into the leadership cache (partitionLeadershipInfo)."""
        self._context.leadership[partition] = state
        it = state.leader_and_isr
        self._host.emit(
            events.ControllerCacheUpdated,
            partition,
            it.leader,
            it.leader_epoch,
            it.isr,
            it.zk_version,
            why,
            self._context.replicas(partition),
            state.controller_epoch,
        )

    # -- elections ---------------------------------------------------------------------------------

    def _online(self, partition: TopicPartition) -> tuple[int, ...]:
        """Online replicas in assignment order."""
        online = self._context.is_replica_online
        return tuple(b for b in self._context.replicas(partition) if online(b, partition))

    def offline_strategy(self, partition: TopicPartition, state: LeaderAndIsr) -> Choice:
        """For partitions without a live leader."""
        # A topic is absent where some ISR member is alive: a clean election needs no configuration.
        allowed = self._unclean_topics.get(partition.topic)
        if isinstance(allowed, Exception):
            return None, self._online(partition)
        return self._elect_offline(partition, state, unclean_allowed=bool(allowed))

    def unclean_strategy(self, partition: TopicPartition, state: LeaderAndIsr) -> Choice:
        """As `offline_strategy`, whatever the topic's configuration is (KIP-460)."""
        return self._elect_offline(partition, state, unclean_allowed=True)

    def _elect_offline(
        self, partition: TopicPartition, state: LeaderAndIsr, *, unclean_allowed: bool
    ) -> Choice:
        online = self._context.is_replica_online
        assignment = self._context.replicas(partition)
        # leaderForOffline keeps online ISR members in the ISR even if they have left the
        # assignment. Such a member cannot lead and gets no requests.
        live = [b for b in dict.fromkeys((*assignment, *state.isr)) if online(b, partition)]
        elected = leader_selection.offline(
            assignment, state.isr, live, unclean_allowed=unclean_allowed
        )
        return elected, self._online(partition)

    def preferred_strategy(self, partition: TopicPartition, state: LeaderAndIsr) -> Choice:
        """Elect the preferred replica."""
        assignment = self._context.replicas(partition)
        elected = leader_selection.preferred(assignment, state.isr, self._online(partition))
        return elected, assignment

    def controlled_shutdown_strategy(
        self, partition: TopicPartition, state: LeaderAndIsr
    ) -> Choice:
        """Move leadership away from brokers that shut down."""
        assignment = self._context.replicas(partition)
        # Brokers that shut down are still live and get the LeaderAndIsr too.
        live = tuple(b for b in assignment if self._context.is_replica_live(b, partition))
        elected = leader_selection.controlled_shutdown(
            assignment,
            state.isr,
            live,
            self._context.shutting_down,
            in_isr_order=self._host.profile.controlled_shutdowns == "isr-first",
        )
        return elected, live

    def reassign_strategy(self, partition: TopicPartition, state: LeaderAndIsr) -> Choice:
        """Elect one of the target replicas."""
        target = self._context.assignment(partition).target_replicas
        live = [b for b in target if self._context.is_replica_online(b, partition)]
        return leader_selection.reassign(target, state.isr, live), target

    async def _do_elect(
        self, partitions: Sequence[TopicPartition], strategy: Strategy
    ) -> tuple[list[Election], list[TopicPartition]]:
        """(finished, to retry): read the states, decide, write (doElectLeaderForPartitions)."""
        await self._host.kernel.checkpoint("elect_leaders")
        # The state comes from ZooKeeper, never from the cache: a leader that writes its ISR itself
        # is ahead of the cache until its notification has been processed (H12).
        read = await read_states(self._zk_client, partitions, self._context.epoch)
        finished = [Election(p, None, error) for p, error in read.failed.items()]
        finished += [
            Election(p, None, StateChangeFailed(f"{p} has no state")) for p in read.missing
        ]
        # Only this strategy depends on the topics' configuration.
        if strategy == self.offline_strategy:
            await self._collect_unclean_election_state(read.states)
        writes: dict[TopicPartition, LeaderAndIsr] = {}
        recipients: dict[TopicPartition, tuple[int, ...]] = {}
        for partition, before in read.states.items():
            elected, recipients[partition] = strategy(partition, before)
            if (
                self._one_by_one
                and strategy == self.preferred_strategy
                and before.leader == self._context.replicas(partition)[0]
            ):
                # LeaderElectionNotNeededException, which is swallowed.
                unchanged = LeaderIsrAndControllerEpoch(before, self._context.epoch)
                finished.append(Election(partition, unchanged))
            elif elected is None:
                nobody = StateChangeFailed(f"no electable replica for {partition}")
                finished.append(Election(partition, None, nobody))
            else:
                # The epoch rises even if leader and ISR stay the same: brokers act only on a
                # LeaderAndIsr with a greater epoch.
                writes[partition] = LeaderAndIsr(
                    elected.leader, before.leader_epoch + 1, elected.isr, before.zk_version
                )
        # A leader may change its ISR between this read and the write: the write then fails with
        # BADVERSION and is in `to_retry`.
        await self._host.kernel.checkpoint("elect_leaders")
        written = await self._zk_client.update_leader_and_isr(
            writes, self._context.epoch, self._context.epoch_zk_version
        )
        await self._host.kernel.checkpoint("leaders_elected")
        for partition, result in written.finished.items():
            if isinstance(result, ZooKeeperError):
                finished.append(Election(partition, None, result))
                continue
            state = LeaderIsrAndControllerEpoch(result, self._context.epoch)
            self.cache(partition, state, "elected")
            self._batch.add_leader_and_isr(
                recipients[partition],
                partition,
                state,
                self._context.assignment(partition),
                is_new=False,
            )
            finished.append(Election(partition, state))
        return finished, written.to_retry

    async def _collect_unclean_election_state(
        self, states: Mapping[TopicPartition, LeaderAndIsr]
    ) -> None:
        """Where no ISR member is live, the topic's configuration decides whether any live replica
        may lead. A configuration that cannot be read forbids it."""
        # Read for each election, without a cache: a change applies from the next election on.
        online = self._context.is_replica_online
        topics = [p.topic for p, s in states.items() if not any(online(b, p) for b in s.isr)]
        configs = await self._zk_client.get_topic_configs(list(dict.fromkeys(topics)))
        default = self._host.config.unclean_leader_election_enable
        self._unclean_topics = {
            topic: config
            if isinstance(config, ZooKeeperError)
            else unclean_election(config, default=default)
            for topic, config in configs.items()
        }
