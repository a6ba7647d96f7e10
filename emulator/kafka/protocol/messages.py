"""Requests and responses with Kafka's names (spec §11.3) and the fields that the emulator uses.

Small frozen structs without behaviour; the transport passes them unchanged. Errors are Kafka's
codes.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import msgspec

from emulator.kafka.model.errors import Errors
from emulator.kafka.model.offset_log import Batch, DivergingEpoch
from emulator.kafka.model.producer_state import BatchProducer
from emulator.kafka.protocol.groups import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    GroupRequest,
    GroupResponse,
)
from emulator.trace.values import PartitionState, TopicPartition

NO_EPOCH = -1
"""A leader epoch that the request does not say, and nobody compares."""


# gc=False, here and below: there are very many of these, and none can be part of a reference cycle.
class FetchPartition(msgspec.Struct, frozen=True, gc=False):
    """One partition of a Fetch request."""

    partition: TopicPartition
    # Fenced in both directions (KIP-320): the leader's response is FENCED_LEADER_EPOCH to an older
    # epoch and UNKNOWN_LEADER_EPOCH to a newer one.
    current_leader_epoch: int
    fetch_offset: int
    log_start_offset: int
    max_bytes: int
    last_fetched_epoch: int = -1
    """The epoch of the record before `fetch_offset` (v12, KIP-595); -1: not sent."""


class FetchRequest(msgspec.Struct, frozen=True, gc=False):
    """Fetch v12. `session_epoch` 0 opens a session (full), -1 closes it, else incremental
    (KIP-227)."""

    replica_id: int
    # A fetch without new records gets its response after this time. The next fetch shows the leader
    # that a caught-up follower is alive.
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    session_id: int
    session_epoch: int
    # In an incremental session only the partitions that changed since the last request.
    partitions: tuple[FetchPartition, ...]
    forgotten: tuple[TopicPartition, ...] = ()
    replica_epoch: int = -1
    """The follower's broker epoch (v15, KIP-903)."""
    rack_id: str | None = None
    """The consumer's `client.rack` (v11, KIP-392); None: from a version without it."""


class FetchedPartition(msgspec.Struct, frozen=True, gc=False):
    """One partition of a Fetch response."""

    partition: TopicPartition
    error: Errors
    high_watermark: int
    log_start_offset: int
    batches: tuple[Batch, ...]
    diverging_epoch: DivergingEpoch | None = None
    """Where the logs diverge: the follower has to truncate before it continues (v12, KIP-595)."""
    preferred_read_replica: int = -1
    """The replica that the consumer should read from instead (v11, KIP-392)."""

    @property
    def size(self) -> int:
        size = 0
        for batch in self.batches:
            size += batch.size
        return size


class FetchResponse(msgspec.Struct, frozen=True, gc=False):
    """In an incremental session `partitions` has only the partitions with news."""

    error: Errors
    session_id: int
    partitions: tuple[FetchedPartition, ...]


class ProducePartition(msgspec.Struct, frozen=True, gc=False):
    """Records for one partition: their number and size, and the client's batch, if a client sent
    one."""

    partition: TopicPartition
    records: int
    size: int
    data: bytes = b""
    producer: BatchProducer | None = None
    """None: the client is not idempotent."""


class ProduceRequest(msgspec.Struct, frozen=True, gc=False):
    """`acks`: 0, 1, or -1 for all."""

    acks: int
    timeout_ms: int
    partitions: tuple[ProducePartition, ...]


class ProducedPartition(msgspec.Struct, frozen=True, gc=False):
    """The result for one partition; `base_offset` is -1 on errors."""

    partition: TopicPartition
    error: Errors
    base_offset: int


class ProduceResponse(msgspec.Struct, frozen=True, gc=False):
    """Results in the order of the request."""

    # No response at all is sent for acks 0.
    partitions: tuple[ProducedPartition, ...]


class EpochQuery(NamedTuple):
    """One partition of OffsetsForLeaderEpoch."""

    partition: TopicPartition
    current_leader_epoch: int
    leader_epoch: int


class EpochEndOffset(NamedTuple):
    """The result: the end offset of `leader_epoch`."""

    partition: TopicPartition
    error: Errors
    leader_epoch: int
    end_offset: int


class OffsetsForLeaderEpochRequest(msgspec.Struct, frozen=True):
    """v3."""

    replica_id: int
    partitions: tuple[EpochQuery, ...]


class OffsetsForLeaderEpochResponse(msgspec.Struct, frozen=True):
    """Results in the order of the request."""

    partitions: tuple[EpochEndOffset, ...]


class ListOffsetsRequest(msgspec.Struct, frozen=True):
    """The earliest or latest offset of one partition. Sent by a follower after OFFSET_OUT_OF_RANGE,
    or by a consumer (-1)."""

    replica_id: int
    partition: TopicPartition
    current_leader_epoch: int
    # False: the latest offset. It is the follower's first query, to see whether its own log is
    # longer.
    earliest: bool
    timestamp_ms: int | None = None
    """Consumers only: find the first record with this timestamp or a later one, instead of an
    end."""


class ListOffsetsResponse(msgspec.Struct, frozen=True):
    """-1 with an error."""

    error: Errors
    offset: int
    leader_epoch: int = -1
    timestamp_ms: int = -1


class LiveBroker(NamedTuple):
    """A broker in UpdateMetadata and in metadata caches."""

    broker: int
    host: str
    port: int
    rack: str | None = None


class LeaderAndIsrRequest(msgspec.Struct, frozen=True):
    """v4: become leader or follower."""

    controller_id: int
    # A broker rejects an epoch below the greatest it has seen: that controller was replaced.
    controller_epoch: int
    # The receiver's epoch as the controller knows it: a broker rejects requests meant for an
    # earlier process (2.2, KAFKA-7235). -1: unknown, not checked.
    broker_epoch: int
    states: tuple[PartitionState, ...]
    # Read up to 0.8.2 only. Since then a broker looks up the leader's address in its metadata cache
    # and does not follow a leader that is not in it (H28).
    live_leaders: tuple[LiveBroker, ...]


class LeaderAndIsrResponse(msgspec.Struct, frozen=True):
    """`partitions` has an error for each partition of the request."""

    error: Errors
    partitions: tuple[tuple[TopicPartition, Errors], ...] = ()


class UpdateMetadataRequest(msgspec.Struct, frozen=True):
    """v6: the metadata that all brokers return to clients."""

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    # Leader -2: the topic is being deleted and is removed from the metadata caches.
    states: tuple[PartitionState, ...]
    live_brokers: tuple[LiveBroker, ...]


class UpdateMetadataResponse(msgspec.Struct, frozen=True):
    """Only an error."""

    error: Errors


class StopReplicaPartition(NamedTuple):
    """One partition of StopReplica v3."""

    partition: TopicPartition
    # A broker obeys an epoch greater than its own (KIP-570, 2.6), and always -2 (topic deletion)
    # and -1 (from an older controller).
    leader_epoch: int
    delete: bool


class StopReplicaRequest(msgspec.Struct, frozen=True):
    """v3."""

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partitions: tuple[StopReplicaPartition, ...]


class StopReplicaResponse(msgspec.Struct, frozen=True):
    """`partitions` has an error for each partition of the request."""

    error: Errors
    partitions: tuple[tuple[TopicPartition, Errors], ...] = ()


class ControlledShutdownRequest(msgspec.Struct, frozen=True):
    """v3: a broker announces to the controller that it is about to stop."""

    broker: int
    broker_epoch: int


class ControlledShutdownResponse(msgspec.Struct, frozen=True):
    """`remaining`: the partitions that the broker still leads."""

    error: Errors
    remaining: tuple[TopicPartition, ...] = ()


class AlterIsrPartition(NamedTuple):
    """One partition of AlterIsr: the ISR to replace version `current_isr_version`, and each
    member's broker epoch as the leader knows it (KIP-903; empty: not sent)."""

    partition: TopicPartition
    leader_epoch: int
    # In the leader's order: a list in another order is another ISR (spec §7.4).
    new_isr: tuple[int, ...]
    # The version of the state znode, on which the controller's write is conditional.
    current_isr_version: int
    member_epochs: tuple[int, ...] = ()


class AlterIsrRequest(msgspec.Struct, frozen=True):
    """v0 (2.7), as AlterPartition v1 (3.2) and v2 (3.3): a leader proposes new ISRs to the
    controller."""

    broker: int
    # Must equal the epoch in the controller's cache (spec §7.4).
    broker_epoch: int
    partitions: tuple[AlterIsrPartition, ...]
    version: int = 0


class AlterIsrResult(NamedTuple):
    """One partition of the response: its current state, or an error."""

    partition: TopicPartition
    error: Errors
    leader: int = -1
    leader_epoch: int = -1
    isr: tuple[int, ...] = ()
    zk_version: int = -1


class AlterIsrResponse(msgspec.Struct, frozen=True):
    """`partitions` is empty if the whole request is rejected."""

    error: Errors
    partitions: tuple[AlterIsrResult, ...] = ()


class ApiVersionsRequest(msgspec.Struct, frozen=True):
    """The first request on a client's connection: which API versions does the broker support?"""


class ApiVersionsResponse(msgspec.Struct, frozen=True):
    """`newest`: the newest version of each API, by API key. The emulator's own brokers leave it
    empty; `wire` fills it in."""

    newest: dict[int, int] = {}


class MetadataRequest(msgspec.Struct, frozen=True):
    """An empty `topics` means all topics."""

    topics: tuple[str, ...] = ()
    allow_auto_topic_creation: bool = False


class MetadataResponse(msgspec.Struct, frozen=True):
    """The content of this broker's metadata cache. `version`: the newest Metadata version that it
    supports; versions before 0.10.1 have no cluster id."""

    brokers: tuple[LiveBroker, ...]
    controller_id: int
    partitions: tuple[PartitionState, ...]
    version: int
    cluster_id: str | None = None
    errors: tuple[tuple[str, Errors], ...] = ()
    """Errors of requested topics that are not in the cache, other than
    UNKNOWN_TOPIC_OR_PARTITION."""


class CreateTopicsRequest(msgspec.Struct, frozen=True):
    """One topic. Partition n has the replicas `assignment[n]`; without an assignment the broker
    chooses them (-1: its defaults)."""

    topic: str
    assignment: tuple[tuple[int, ...], ...]
    config: tuple[tuple[str, str], ...]
    timeout_ms: int = 60000
    num_partitions: int = -1
    replication_factor: int = -1


class AlterConfigsRequest(msgspec.Struct, frozen=True):
    """IncrementalAlterConfigs of one entity, SET and (`removed`) DELETE: `entity_type` is `topics`
    or `brokers`."""

    entity_type: str
    entity: str
    config: tuple[tuple[str, str], ...]
    removed: tuple[str, ...] = ()


class DescribeConfigsRequest(msgspec.Struct, frozen=True):
    """The settings of one entity; `names` None means all."""

    entity_type: str
    entity: str
    names: tuple[str, ...] | None = None


class ConfigEntry(NamedTuple):
    """One setting and its source (DescribeConfigsResponse.ConfigSource)."""

    name: str
    value: str
    source: int


class CreatePartitionsRequest(msgspec.Struct, frozen=True):
    """New partitions of one topic with their replicas. Without an assignment `count` is the new
    total number of partitions."""

    topic: str
    assignment: tuple[tuple[int, ...], ...]
    timeout_ms: int = 60000
    count: int = -1


class DeleteTopicsRequest(msgspec.Struct, frozen=True):
    """One topic."""

    topic: str
    timeout_ms: int = 60000


class DeleteRecordsRequest(msgspec.Struct, frozen=True):
    """v1, to the leader: of each partition everything before an offset (-1: its high watermark)."""

    offsets: tuple[tuple[TopicPartition, int], ...]
    timeout_ms: int = 60000


class DeletedRecords(NamedTuple):
    """One partition of the answer: where its log starts in all live replicas."""

    partition: TopicPartition
    error: Errors
    low_watermark: int


class DeleteRecordsResponse(msgspec.Struct, frozen=True):
    """In the order of the request."""

    partitions: tuple[DeletedRecords, ...]


class ElectionType(IntEnum):
    """ElectLeaders v1: the preferred replica, or any live replica (KIP-460)."""

    PREFERRED = 0
    UNCLEAN = 1


class ElectLeadersRequest(msgspec.Struct, frozen=True):
    """Elections by request; None: for all partitions."""

    partitions: tuple[TopicPartition, ...] | None
    election_type: ElectionType = ElectionType.PREFERRED
    timeout_ms: int = 60000


class ElectionResults(NamedTuple):
    """The controller's result of ElectLeaders: the new leaders, and the errors."""

    leaders: dict[TopicPartition, int]
    errors: dict[TopicPartition, Errors]


class AlterPartitionReassignmentsRequest(msgspec.Struct, frozen=True):
    """Targets by partition; None cancels a reassignment."""

    targets: tuple[tuple[TopicPartition, tuple[int, ...] | None], ...]


class ListPartitionReassignmentsRequest(msgspec.Struct, frozen=True):
    """The reassignments in progress; None: of all partitions."""

    partitions: tuple[TopicPartition, ...] | None = None


class Reassignment(NamedTuple):
    """A reassignment in progress."""

    partition: TopicPartition
    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]


class AdminResponse(msgspec.Struct, frozen=True):
    """The response to an admin request. `partitions` has separate results per partition; `configs`
    and `reassignments` are filled by the requests that read them."""

    error: Errors
    message: str = ""
    partitions: tuple[tuple[TopicPartition, Errors], ...] = ()
    configs: tuple[ConfigEntry, ...] = ()
    reassignments: tuple[Reassignment, ...] = ()


class InitProducerIdRequest(msgspec.Struct, frozen=True):
    """Request a producer id: for an idempotent producer, or (`transactional_id`) a transactional
    one."""

    transactional_id: str | None = None


class InitProducerIdResponse(msgspec.Struct, frozen=True):
    """-1 with an error. A new producer id starts with epoch 0."""

    error: Errors
    producer_id: int = -1
    producer_epoch: int = -1


ControlRequest = LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest
Request = (
    FetchRequest
    | ProduceRequest
    | OffsetsForLeaderEpochRequest
    | ListOffsetsRequest
    | DeleteRecordsRequest
    | LeaderAndIsrRequest
    | UpdateMetadataRequest
    | StopReplicaRequest
    | ControlledShutdownRequest
    | AlterIsrRequest
    | ApiVersionsRequest
    | MetadataRequest
    | CreateTopicsRequest
    | CreatePartitionsRequest
    | DeleteTopicsRequest
    | ElectLeadersRequest
    | AlterPartitionReassignmentsRequest
    | ListPartitionReassignmentsRequest
    | AlterConfigsRequest
    | DescribeConfigsRequest
    | InitProducerIdRequest
    | FindCoordinatorRequest
    | GroupRequest
)
Response = (
    FetchResponse
    | ProduceResponse
    | ApiVersionsResponse
    | OffsetsForLeaderEpochResponse
    | ListOffsetsResponse
    | DeleteRecordsResponse
    | LeaderAndIsrResponse
    | UpdateMetadataResponse
    | StopReplicaResponse
    | ControlledShutdownResponse
    | AlterIsrResponse
    | MetadataResponse
    | AdminResponse
    | InitProducerIdResponse
    | FindCoordinatorResponse
    | GroupResponse
)
