"""The controller's caches: a copy of ZooKeeper, updated at the controller's own moments.

Plain state without threads or requests. Source: controller/ControllerContext.scala@2.6.3; spec
§6.5.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import TypeVar

from emulator.kafka.controller.cache_order import CacheOrder, PartitionAndReplica
from emulator.kafka.protocol.messages import LiveBroker
from emulator.trace.values import TopicPartition
from zk.client.codec import LeaderIsrAndControllerEpoch, ReplicaAssignment

INITIAL_CONTROLLER_EPOCH = 0
INITIAL_CONTROLLER_EPOCH_ZK_VERSION = 0
NO_REPLICAS = ReplicaAssignment(())
UNKNOWN_BROKER_EPOCH = -1
"""The broker epoch in requests and caches before 2.2, where brokers had none."""

K = TypeVar("K")
S = TypeVar("S", bound=Enum)


class PartitionState(Enum):
    """States of the partition state machine."""

    NON_EXISTENT = "NonExistentPartition"
    NEW = "NewPartition"
    ONLINE = "OnlinePartition"
    OFFLINE = "OfflinePartition"


class ReplicaState(Enum):
    """States of the replica state machine."""

    NON_EXISTENT = "NonExistentReplica"
    NEW = "NewReplica"
    ONLINE = "OnlineReplica"
    OFFLINE = "OfflineReplica"
    DELETION_STARTED = "ReplicaDeletionStarted"
    DELETION_SUCCESSFUL = "ReplicaDeletionSuccessful"
    DELETION_INELIGIBLE = "ReplicaDeletionIneligible"


class ControllerContext:
    """The controller's caches. `live_brokers` maps a broker id to (endpoint, broker epoch). Dicts
    with None values are ordered sets."""

    def __init__(self, order: CacheOrder) -> None:
        self.order = order
        self.reset()

    def reset(self) -> None:
        """Forget everything, as after a resignation (resetContext)."""
        self.epoch = INITIAL_CONTROLLER_EPOCH
        self.epoch_zk_version = INITIAL_CONTROLLER_EPOCH_ZK_VERSION
        self.live_brokers: dict[int, tuple[LiveBroker, int]] = {}
        self.shutting_down: dict[int, None] = {}
        self.all_topics: dict[str, None] = {}
        self.assignments: dict[TopicPartition, ReplicaAssignment] = {}
        self.leadership: dict[TopicPartition, LeaderIsrAndControllerEpoch] = {}
        self.partition_states: dict[TopicPartition, PartitionState] = {}
        self.replica_states: dict[PartitionAndReplica, ReplicaState] = {}
        self.being_reassigned: dict[TopicPartition, None] = {}
        self.replicas_on_offline_dirs: dict[int, dict[TopicPartition, None]] = {}
        self.topics_to_be_deleted: dict[str, None] = {}
        self.topics_with_deletion_started: dict[str, None] = {}
        self.topics_ineligible_for_deletion: dict[str, None] = {}

    # -- brokers -----------------------------------------------------------------------------------

    @property
    def live_or_shutting_down(self) -> list[int]:
        return list(self.live_brokers)

    @property
    def live(self) -> list[int]:
        return [b for b in self.live_brokers if b not in self.shutting_down]

    def is_replica_online(self, broker: int, partition: TopicPartition) -> bool:
        """The broker is registered and not shutting down, and the replica's log directory has not
        failed."""
        # A broker that shuts down is still registered but must not be elected any more.
        return broker not in self.shutting_down and self.is_replica_live(broker, partition)

    def is_replica_live(self, broker: int, partition: TopicPartition) -> bool:
        """As `is_replica_online`, but including brokers that shut down."""
        return broker in self.live_brokers and partition not in self.replicas_on_offline_dirs.get(
            broker, ()
        )

    # -- topics and partitions ---------------------------------------------------------------------

    def remove_topic(self, topic: str) -> None:
        """Remove a deleted topic; its entries in `being_reassigned` stay, as in Kafka."""
        self.topics_to_be_deleted.pop(topic, None)
        self.topics_with_deletion_started.pop(topic, None)
        self.all_topics.pop(topic, None)
        for partition in [p for p in self.assignments if p.topic == topic]:
            for replica in self.assignments.pop(partition).replicas:
                self.replica_states.pop(PartitionAndReplica(partition, replica), None)
            self.leadership.pop(partition, None)
            self.partition_states.pop(partition, None)

    def assignment(self, partition: TopicPartition) -> ReplicaAssignment:
        """The assignment; empty for an unknown partition (partitionFullReplicaAssignment)."""
        return self.assignments.get(partition, NO_REPLICAS)

    def replicas(self, partition: TopicPartition) -> tuple[int, ...]:
        return self.assignment(partition).replicas

    def assignment_of_topic(self, topic: str) -> dict[int, ReplicaAssignment]:
        """A topic's assignment as cached, by partition number."""
        return {p.partition: a for p, a in self.assignments.items() if p.topic == topic}

    def replicas_for_partitions(
        self, partitions: Iterable[TopicPartition]
    ) -> list[PartitionAndReplica]:
        return self.order.replicas_as_set(
            PartitionAndReplica(p, r) for p in partitions for r in self.replicas(p)
        )

    def replicas_on_brokers(self, brokers: Iterable[int]) -> list[PartitionAndReplica]:
        assigned = self.order.assigned(self.assignments)
        return self.order.replicas_as_set(
            PartitionAndReplica(p, b)
            for b in brokers
            for p in assigned
            if b in self.assignments[p].replicas
        )

    def partitions_on_broker(self, broker: int) -> list[TopicPartition]:
        assigned = self.order.assigned(self.assignments)
        return self.order.as_set(p for p in assigned if broker in self.assignments[p].replicas)

    def all_partitions(self) -> list[TopicPartition]:
        return self.order.as_set(self.order.assigned(self.assignments))

    def replicas_of_topic(self, topic: str) -> list[PartitionAndReplica]:
        partitions = (p for p in self.assignments if p.topic == topic)
        return self.replicas_for_partitions(self.order.assigned(partitions))

    def replicas_in(self, topic: str, state: ReplicaState) -> list[PartitionAndReplica]:
        """The topic's replicas in this state."""
        return [r for r in self.replicas_of_topic(topic) if self.replica_state(r) is state]

    def any_replica_in(self, topic: str, state: ReplicaState) -> bool:
        return bool(self.replicas_in(topic, state))

    def all_replicas_in(self, topic: str, state: ReplicaState) -> bool:
        replicas = self.replicas_of_topic(topic)
        return all(self.replica_state(r) is state for r in replicas)

    def online_and_offline_replicas(
        self,
    ) -> tuple[list[PartitionAndReplica], list[PartitionAndReplica]]:
        online: list[PartitionAndReplica] = []
        offline: list[PartitionAndReplica] = []
        for replica in self.replicas_for_partitions(self.assignments):
            is_online = self.is_replica_online(replica.replica, replica.partition)
            (online if is_online else offline).append(replica)
        return self.order.replicas_collected(online), self.order.replicas_collected(offline)

    def partitions_with_offline_leader(self) -> list[TopicPartition]:
        """Partitions whose cached leader is not online."""
        return self.order.selected(
            p
            for p, s in self.leadership.items()
            if not self.is_replica_online(s.leader_and_isr.leader, p)
            and p.topic not in self.topics_to_be_deleted
        )

    def partitions_in(self, *states: PartitionState) -> list[TopicPartition]:
        """The partitions in one of these states (partitionsInStates)."""
        return self.order.selected(p for p, s in self.partition_states.items() if s in states)

    def partition_state(self, partition: TopicPartition) -> PartitionState:
        return self.partition_states.get(partition, PartitionState.NON_EXISTENT)

    def replica_state(self, replica: PartitionAndReplica) -> ReplicaState:
        return self.replica_states.get(replica, ReplicaState.NON_EXISTENT)


def put_state(states: dict[K, S], key: K, state: S, non_existent: S) -> S:
    """Set a state and return the previous one. NonExistent is stored as no entry
    (putPartitionState, putReplicaState)."""
    before = states.get(key, non_existent)
    if state is non_existent:
        states.pop(key, None)
    else:
        states[key] = state
    return before
