"""Replica assignment: automatic assignment, and the validation of given ones.

Plain functions; randomness is passed in as two numbers. Sources: admin/AdminUtils.scala@2.6.3
assignReplicasToBrokers, zk/AdminZkClient.scala@2.6.3 validateTopicCreate, addPartitions,
validateReplicaAssignment.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import zip_longest

from emulator.kafka.model.errors import Errors, KafkaError

Assignment = tuple[tuple[int, ...], ...]
_RACKS_MISSING = "Not all brokers have rack information for replica rack aware assignment."


def assign_replicas_to_brokers(
    brokers: Sequence[int],
    partitions: int,
    replication_factor: int,
    start_index: int,
    shift: int,
    first_partition: int = 0,
    racks: Mapping[int, str] = {},
) -> Assignment:
    """Leaders are assigned around the brokers from `start_index`. Followers are placed `shift`
    brokers further, plus one for each complete round. With `racks` every rack gets a replica before
    any gets a second one (KIP-36)."""
    count = len(brokers)
    if partitions <= 0:
        raise KafkaError(Errors.INVALID_PARTITIONS)
    if not 0 < replication_factor <= count:
        raise KafkaError(Errors.INVALID_REPLICATION_FACTOR)
    if racks:
        if any(broker not in racks for broker in brokers):
            raise KafkaError(Errors.UNKNOWN_SERVER_ERROR, _RACKS_MISSING)
        brokers = rack_alternated(brokers, racks)
    assigned = []
    for partition in range(first_partition, first_partition + partitions):
        # Each round shifts the followers by one; otherwise the same pairs of brokers would share
        # all their partitions.
        if partition > 0 and partition % count == 0:
            shift += 1
        first = (partition + start_index) % count
        if racks:
            assigned.append(_over_racks(brokers, racks, first, shift, replication_factor))
            continue
        others = [1 + (shift + n) % (count - 1) for n in range(replication_factor - 1)]
        assigned.append(tuple(brokers[(first + off) % count] for off in (0, *others)))
    return tuple(assigned)


def rack_alternated(brokers: Sequence[int], racks: Mapping[int, str]) -> list[int]:
    """One broker of each rack, in the order of their names, then the next of each
    (getRackAlternatedBrokerList)."""
    in_rack: dict[str, list[int]] = {}
    for broker in sorted(brokers):
        in_rack.setdefault(racks[broker], []).append(broker)
    rounds = zip_longest(*(in_rack[rack] for rack in sorted(in_rack)))
    return [broker for one in rounds for broker in one if broker is not None]


def _over_racks(
    brokers: Sequence[int], racks: Mapping[int, str], first: int, shift: int, factor: int
) -> tuple[int, ...]:
    """One partition's replicas (assignReplicasToBrokersRackAware). A broker is passed over while
    its rack has a replica and another rack has none."""
    count, rack_count = len(brokers), len({racks[broker] for broker in brokers})
    replicas, used = [brokers[first]], {racks[brokers[first]]}
    step = 0
    while len(replicas) < factor:
        off = 1 + (shift * rack_count + step) % (count - 1)
        broker = brokers[(first + off) % count]
        step += 1
        if broker not in replicas and (racks[broker] not in used or len(used) == rack_count):
            replicas.append(broker)
            used.add(racks[broker])
    return tuple(replicas)


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
