"""The metadata that this broker returns to clients: partitions and live brokers as the controller
last sent them.

An update is applied as a whole under a write lock. (Kafka replaces a snapshot; both are the same if
nothing runs in between.) Responses are cached until the next update. The last accepted request
wins; epochs and versions are not compared. Source: server/MetadataCache.scala@2.6.3; spec §4.5.
"""

from __future__ import annotations

from emulator.kafka.broker.context import BrokerContext
from emulator.kafka.model.errors import Errors
from emulator.kafka.profiles.guards.metadata import KNOWN_BY_PARTITION
from emulator.kafka.protocol.messages import LiveBroker, MetadataResponse, UpdateMetadataRequest
from emulator.kernel.sync import RwLock
from emulator.trace import events
from emulator.trace.values import PartitionState, TopicPartition

LEADER_DURING_DELETE = -2
ANSWERS_KEPT = 1000
"""Clients use few sets of topics; this limits the memory for a client that always sends new
ones."""


class MetadataCache:
    """partitionStates, aliveBrokers and controllerId."""

    def __init__(self, context: BrokerContext) -> None:
        self._context = context
        self._version = context.profile.request_versions.get("Metadata", 0)
        self._lock = RwLock(context.kernel, "partitionMetadataLock")
        self._by_partition = KNOWN_BY_PARTITION in context.guards
        self._partitions: dict[TopicPartition, PartitionState] = {}
        self._topics: set[str] | None = None
        """The topics of these partitions, which each fetch needs up to 1.1; None until the next use
        after a change."""
        self._by_topics: dict[tuple[str, ...], tuple[PartitionState, ...]] = {}
        self._brokers: dict[int, LiveBroker] = {}
        self.controller_id: int | None = None

    async def update(self, request: UpdateMetadataRequest) -> tuple[TopicPartition, ...]:
        """Merge partitions, replace live brokers and controller; returns the removed partitions."""
        async with self._lock.write:
            # A negative id means that the controller is unknown (MetadataCache.scala@2.6.3
            # updateMetadata).
            self.controller_id = request.controller_id if request.controller_id >= 0 else None
            self._brokers = {b.broker: b for b in request.live_brokers}
            removed: list[TopicPartition] = []
            # A request without partitions replaces only the brokers.
            if request.states:
                self._by_topics.clear()
            for state in request.states:
                if state.leader == LEADER_DURING_DELETE:
                    self._partitions.pop(state.partition, None)
                    removed.append(state.partition)
                    self._topics = None
                else:
                    if state.partition not in self._partitions:
                        self._topics = None
                    # Neither leader epoch nor version is compared (spec §4.5).
                    self._partitions[state.partition] = state
            self._context.emit(
                events.MetadataCacheUpdated,
                request.controller_id,
                request.controller_epoch,
                tuple(self._brokers),
                tuple(s for s in request.states if s.leader != LEADER_DURING_DELETE),
                tuple(removed),
            )
            return tuple(removed)

    def alive_broker(self, broker: int) -> LiveBroker | None:
        """The endpoint of a broker, if the cache lists it as live."""
        return self._brokers.get(broker)

    def alive_brokers(self) -> list[int]:
        """Ids of the live brokers in the cache, ascending."""
        return sorted(self._brokers)

    @property
    def racks(self) -> dict[int, str]:
        """The racks of the live brokers that have one."""
        return {broker: it.rack for broker, it in self._brokers.items() if it.rack is not None}

    def partitions(self) -> tuple[TopicPartition, ...]:
        """All partitions in the cache."""
        return tuple(self._partitions)

    def partition(self, partition: TopicPartition) -> PartitionState | None:
        return self._partitions.get(partition)

    def topics(self) -> set[str]:
        """Names of the topics in the cache."""
        if self._topics is None:
            self._topics = {p.topic for p in self._partitions}
        return self._topics

    def contains(self, partition: TopicPartition) -> bool:
        """Whether this broker knows the partition; up to 1.1 it asks only about its topic."""
        if self._by_partition:
            return partition in self._partitions
        return partition.topic in self.topics()

    def error_of_unhosted(self, partition: TopicPartition) -> Errors:
        """The error for a partition of which this broker has no replica."""
        if self._by_partition and partition in self._partitions:
            return Errors.NOT_LEADER_OR_FOLLOWER
        return Errors.UNKNOWN_TOPIC_OR_PARTITION

    def metadata(self, topics: tuple[str, ...]) -> MetadataResponse:
        """The response to a Metadata request: leader and ISR as cached, even if outdated."""
        # Clients repeat the same topics; between two updates the result is the same.
        partitions = self._by_topics.get(topics)
        if partitions is None:
            names = frozenset(topics)
            if len(self._by_topics) >= ANSWERS_KEPT:
                self._by_topics.clear()
            partitions = self._by_topics[topics] = tuple(
                s for p, s in self._partitions.items() if not names or p.topic in names
            )
        return MetadataResponse(
            tuple(self._brokers.values()),
            -1 if self.controller_id is None else self.controller_id,
            partitions,
            self._version,
            self._context.cluster_id,
        )
