"""The order in which the partitions of a LeaderAndIsr take their roles and are added to fetchers.

It is that of Kafka's hash tables, not the request's. Of two partitions that a restarted broker
fetches from the same leader, the one that is requested first is back in the ISR first. Hashes and
tables were compared with those of the releases' own classes. Sources: server/ReplicaManager.scala
becomeLeaderOrFollower, makeFollowers (bytecode of all recorded releases); spec §6.15.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from emulator.kafka.broker.fetch_state import InitialFetchState, end_point_hash
from emulator.kafka.broker.partition import Partition
from emulator.kafka.profiles.base import HASH_MAPS, Profile
from emulator.kafka.profiles.guards.following import FETCH_FENCING
from emulator.trace.values import PartitionState, TopicPartition
from zk.scala.java_hash import java_hash
from zk.scala.library import LIBRARIES, immutable_set
from zk.scala.murmur import topic_and_partition_hash
from zk.scala.scala_order import topic_partition_hash

_MASK = 0xFFFFFFFF

Role = tuple[Partition, PartitionState]


def by_partition(roles: Iterable[Role], profile: Profile) -> list[Role]:
    """A mutable HashMap whose keys are Partition objects."""
    order = LIBRARIES[profile.scala].map_order
    return order(roles, lambda role: partition_hash(role[0].partition))


def as_added(
    states: Mapping[TopicPartition, InitialFetchState],
    profile: Profile,
    draw: Callable[[int], int],
) -> dict[TopicPartition, InitialFetchState]:
    """From a Set of Partition objects to what the fetcher manager gets: a Set of pairs, then an
    immutable Map. The Sets are mutable from 0.9 on. Where a pair has the topic's random id, too,
    its hash is drawn: `draw(n)` returns a number below n."""
    library = LIBRARIES[profile.scala]
    pairs = tuple(states.items())
    if profile.leaders_in_request:
        pairs, _ = immutable_set(pairs, library, lambda pair: partition_hash(pair[0]))
    else:
        partitions = library.set_order(pairs, lambda pair: partition_hash(pair[0]))
        if profile.fetch_order == "topic-ids":
            hashes = {partition: draw(1 << 32) for partition, _ in partitions}
        else:
            hashes = {pair[0]: pair_hash(*pair, profile) for pair in partitions}
        pairs = tuple(library.set_order(partitions, lambda pair: hashes[pair[0]]))
    return dict(immutable_set(pairs, library, lambda pair: topic_partition_hash(*pair[0]))[0])


def partition_hash(partition: TopicPartition) -> int:
    """Partition.scala hashCode."""
    return 31 + java_hash(partition.topic) + 17 * partition.partition & _MASK


def pair_hash(partition: TopicPartition, state: InitialFetchState, profile: Profile) -> int:
    """The hash of Tuple2(partition, BrokerAndInitialOffset), since 2.1 InitialFetchState."""
    case_class_hash = LIBRARIES[profile.scala].case_class_hash
    leader, offset = end_point_hash(state.leader, profile), state.init_offset
    if FETCH_FENCING in profile.guards:
        initial = case_class_hash("InitialFetchState", (leader, state.current_leader_epoch, offset))
    else:
        initial = case_class_hash("BrokerAndInitialOffset", (leader, offset))
    of_partition = topic_partition_hash
    if profile.fetch_order in HASH_MAPS:
        of_partition = topic_and_partition_hash
    return case_class_hash("Tuple2", (of_partition(*partition), initial))
