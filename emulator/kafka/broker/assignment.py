"""Replica assignment: automatic assignment, and the validation of given ones.

Plain functions; randomness is passed in as two numbers. Sources: admin/AdminUtils.scala@2.6.3
assignReplicasToBrokers (no racks), zk/AdminZkClient.scala@2.6.3 validateTopicCreate, addPartitions,
validateReplicaAssignment.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from emulator.kafka.model.errors import Errors, KafkaError

Assignment = tuple[tuple[int, ...], ...]


def assign_replicas_to_brokers(
    brokers: Sequence[int],
    partitions: int,
    replication_factor: int,
    start_index: int,
    shift: int,
    first_partition: int = 0,
) -> Assignment:
    """Leaders are assigned around the brokers from `start_index`. Followers are placed `shift`
    brokers further, plus one for each complete round."""
    count = len(brokers)
    if partitions <= 0:
        raise KafkaError(Errors.INVALID_PARTITIONS)
    if not 0 < replication_factor <= count:
        raise KafkaError(Errors.INVALID_REPLICATION_FACTOR)
    assigned = []
    for partition in range(first_partition, first_partition + partitions):
        # Each round shifts the followers by one; otherwise the same pairs of brokers would share
        # all their partitions.
        if partition > 0 and partition % count == 0:
            shift += 1
        first = (partition + start_index) % count
        others = [1 + (shift + n) % (count - 1) for n in range(replication_factor - 1)]
        assigned.append(tuple(brokers[(first + off) % count] for off in (0, *others)))
    return tuple(assigned)


def check_new_topic(assignment: Assignment) -> None:
    """All partitions have the same number of replicas, and no broker twice. The brokers need not be
    registered: a partition without a live replica has no leader."""
    if len({len(replicas) for replicas in assignment}) != 1:
        raise KafkaError(Errors.INVALID_REPLICA_ASSIGNMENT)
    if any(len(set(replicas)) < len(replicas) for replicas in assignment):
        raise KafkaError(Errors.INVALID_REPLICA_ASSIGNMENT)


def check_added_partitions(
    assignment: Assignment, replication_factor: int, brokers: Collection[int]
) -> None:
    """As many replicas as partition 0 has, each broker once, and all brokers registered."""
    for replicas in assignment:
        if len(replicas) != replication_factor or len(set(replicas)) < len(replicas):
            raise KafkaError(Errors.INVALID_REPLICA_ASSIGNMENT)
        if any(b not in brokers for b in replicas):
            raise KafkaError(Errors.INVALID_REPLICA_ASSIGNMENT)
