"""Requests and responses, with Kafka's names and fields (spec §11.3), as far as this design uses
them.

Small frozen structs without behaviour; the transport carries them as they are. Errors are Kafka's
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


# gc=False, here and below: there are very many of these, and none can be part of a cycle.
class FetchPartition(msgspec.Struct, frozen=True, gc=False):
    """One partition of a Fetch request."""

    partition: TopicPartition
    # Fences both ways (KIP-320): a leader answers FENCED_LEADER_EPOCH to an older one, and
    # UNKNOWN_LEADER_EPOCH to one that it has not heard of yet.
    current_leader_epoch: int
    fetch_offset: int
    log_start_offset: int
    max_bytes: int
    last_fetched_epoch: int = -1
    """Of the record before `fetch_offset` (v12, KIP-595); -1: not said."""


class FetchRequest(msgspec.Struct, frozen=True):
    """Fetch v12. `session_epoch` 0 opens a session (full), -1 closes it, else incremental
    (KIP-227)."""

    replica_id: int
    # A fetch that finds nothing is answered after this all the same: that it comes again is how
    # the leader knows that a follower which has everything is alive.
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    session_id: int
    session_epoch: int
    # Of an incremental session only those that have changed since the last request.
    partitions: tuple[FetchPartition, ...]
    forgotten: tuple[TopicPartition, ...] = ()
    replica_epoch: int = -1
    """The follower's broker epoch (v15, KIP-903)."""


class FetchedPartition(msgspec.Struct, frozen=True, gc=False):
    """One partition of a Fetch response."""

    partition: TopicPartition
    error: Errors
    high_watermark: int
    log_start_offset: int
    batches: tuple[Batch, ...]
    diverging_epoch: DivergingEpoch | None = None
    """Where the follower has to truncate to before it can go on (v12, KIP-595)."""

    @property
    def size(self) -> int:
        size = 0
        for batch in self.batches:
            size += batch.size
        return size


class FetchResponse(msgspec.Struct, frozen=True):
    """`partitions` of an incremental session: those with something to say."""

    error: Errors
    session_id: int
    partitions: tuple[FetchedPartition, ...]


class ProducePartition(msgspec.Struct, frozen=True, gc=False):
    """Records for one partition: how many, and their bytes; and what a client sent, where one
    did."""

    partition: TopicPartition
    records: int
    size: int
    data: bytes = b""
    producer: BatchProducer | None = None
    """None: the client is not idempotent."""


class ProduceRequest(msgspec.Struct, frozen=True):
    """`acks`: 0, 1, or -1 for all."""

    acks: int
    timeout_ms: int
    partitions: tuple[ProducePartition, ...]


class ProducedPartition(msgspec.Struct, frozen=True, gc=False):
    """The result for one partition; `base_offset` is -1 on errors."""

    partition: TopicPartition
    error: Errors
    base_offset: int


class ProduceResponse(msgspec.Struct, frozen=True):
    """Results in the order of the request."""

    # No response at all is sent for acks 0.
    partitions: tuple[ProducedPartition, ...]


class EpochQuery(NamedTuple):
    """One partition of OffsetsForLeaderEpoch."""

    partition: TopicPartition
    current_leader_epoch: int
    leader_epoch: int


class EpochEndOffset(NamedTuple):
    """The answer: where `leader_epoch` ended."""

    partition: TopicPartition
    error: Errors
    leader_epoch: int
    end_offset: int


class OffsetsForLeaderEpochRequest(msgspec.Struct, frozen=True):
    """v3."""

    replica_id: int
    partitions: tuple[EpochQuery, ...]


class OffsetsForLeaderEpochResponse(msgspec.Struct, frozen=True):
    """In the order of the request."""

    partitions: tuple[EpochEndOffset, ...]


class ListOffsetsRequest(msgspec.Struct, frozen=True):
    """One partition's earliest or latest offset, as a follower asks after OFFSET_OUT_OF_RANGE, or a
    consumer (-1)."""

    replica_id: int
    partition: TopicPartition
    current_leader_epoch: int
    # Else the latest: a follower's first query, to see whether its own log is ahead.
    earliest: bool
    timestamp_ms: int | None = None
    """A consumer's: the first record that is not older, in place of both."""


class ListOffsetsResponse(msgspec.Struct, frozen=True):
    """-1 with an error."""

    error: Errors
    offset: int
    leader_epoch: int = -1
    timestamp_ms: int = -1


class LiveBroker(NamedTuple):
    """A broker in UpdateMetadata, and in metadata caches."""

    broker: int
    host: str
    port: int


class LeaderAndIsrRequest(msgspec.Struct, frozen=True):
    """v4: become leader or follower."""

    controller_id: int
    # A broker refuses what is below the greatest it has seen: that controller was replaced.
    controller_epoch: int
    # The receiver's, as the controller knows it: what is meant for a process before is refused
    # (2.2, KAFKA-7235; -1: unknown, not tested).
    broker_epoch: int
    states: tuple[PartitionState, ...]
    # Read up to 0.8.2: since then a broker looks for the leader's address in its metadata cache,
    # and does not follow a leader that is not there (H28).
    live_leaders: tuple[LiveBroker, ...]


class LeaderAndIsrResponse(msgspec.Struct, frozen=True):
    """`partitions` has an error for each partition of the request."""

    error: Errors
    partitions: tuple[tuple[TopicPartition, Errors], ...] = ()


class UpdateMetadataRequest(msgspec.Struct, frozen=True):
    """v6: what all brokers shall tell clients."""

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    # Leader -2: the topic is being deleted, and leaves the metadata caches.
    states: tuple[PartitionState, ...]
    live_brokers: tuple[LiveBroker, ...]


class UpdateMetadataResponse(msgspec.Struct, frozen=True):
    """Only an error."""

    error: Errors


class StopReplicaPartition(NamedTuple):
    """One partition of StopReplica v3."""

    partition: TopicPartition
    # A broker obeys one that is newer than its own (KIP-570, 2.6), and always -2 (its topic is
    # being deleted) and -1 (sent by an older controller).
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
    """v3: a broker tells the controller that it is about to stop."""

    broker: int
    broker_epoch: int


class ControlledShutdownResponse(msgspec.Struct, frozen=True):
    """`remaining` are partitions that the broker still leads."""

    error: Errors
    remaining: tuple[TopicPartition, ...] = ()


class AlterIsrPartition(NamedTuple):
    """One partition of AlterIsr: the ISR that is to replace version `current_isr_version`, and the
    broker epoch of each member as the leader knows it (KIP-903; empty: not told)."""

    partition: TopicPartition
    leader_epoch: int
    # In the leader's order: a list that differs only in its order is another ISR (spec §7.4).
    new_isr: tuple[int, ...]
    # The state znode's version, on which the controller's write is conditional.
    current_isr_version: int
    member_epochs: tuple[int, ...] = ()


class AlterIsrRequest(msgspec.Struct, frozen=True):
    """v0 (2.7), as AlterPartition v1 (3.2) and v2 (3.3): a leader asks the controller for other
    ISRs."""

    broker: int
    # Must be what the controller has cached, neither older nor newer (spec §7.4).
    broker_epoch: int
    partitions: tuple[AlterIsrPartition, ...]
    version: int = 0


class AlterIsrResult(NamedTuple):
    """One partition of the answer: its state as it is now, or an error."""

    partition: TopicPartition
    error: Errors
    leader: int = -1
    leader_epoch: int = -1
    isr: tuple[int, ...] = ()
    zk_version: int = -1


class AlterIsrResponse(msgspec.Struct, frozen=True):
    """`partitions` is empty when the whole request is refused."""

    error: Errors
    partitions: tuple[AlterIsrResult, ...] = ()


class ApiVersionsRequest(msgspec.Struct, frozen=True):
    """What can you do? The first request on a client's connection."""


class ApiVersionsResponse(msgspec.Struct, frozen=True):
    """`newest`: of each API (by its key) the newest version; brokers of ours leave it to `wire`."""

    newest: dict[int, int] = {}


class MetadataRequest(msgspec.Struct, frozen=True):
    """All topics when `topics` is empty."""

    topics: tuple[str, ...] = ()
    allow_auto_topic_creation: bool = False


class MetadataResponse(msgspec.Struct, frozen=True):
    """What this broker's metadata cache says. `version` is the newest Metadata that it can;
    versions before 0.10.1 have no cluster id."""

    brokers: tuple[LiveBroker, ...]
    controller_id: int
    partitions: tuple[PartitionState, ...]
    version: int
    cluster_id: str | None = None
    errors: tuple[tuple[str, Errors], ...] = ()
    """Of topics that are asked for and not there, where it is not UNKNOWN_TOPIC_OR_PARTITION."""


class CreateTopicsRequest(msgspec.Struct, frozen=True):
    """One topic: partition n has the replicas `assignment[n]`; without an assignment the broker
    makes one (-1: its defaults)."""

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
    """The settings of one entity; `names` None: all."""

    entity_type: str
    entity: str
    names: tuple[str, ...] | None = None


class ConfigEntry(NamedTuple):
    """One setting, and where it comes from (DescribeConfigsResponse.ConfigSource)."""

    name: str
    value: str
    source: int


class CreatePartitionsRequest(msgspec.Struct, frozen=True):
    """Further partitions of one topic, each with its replicas; or, without an assignment, as many
    partitions as `count` says in all."""

    topic: str
    assignment: tuple[tuple[int, ...], ...]
    timeout_ms: int = 60000
    count: int = -1


class DeleteTopicsRequest(msgspec.Struct, frozen=True):
    """One topic."""

    topic: str
    timeout_ms: int = 60000


class ElectionType(IntEnum):
    """ElectLeaders v1: the first of the assignment, or anybody who is live (KIP-460)."""

    PREFERRED = 0
    UNCLEAN = 1


class ElectLeadersRequest(msgspec.Struct, frozen=True):
    """Elections by hand; None: for all partitions."""

    partitions: tuple[TopicPartition, ...] | None
    election_type: ElectionType = ElectionType.PREFERRED
    timeout_ms: int = 60000


class ElectionResults(NamedTuple):
    """What the controller says of an ElectLeaders request: who was elected, and why not."""

    leaders: dict[TopicPartition, int]
    errors: dict[TopicPartition, Errors]


class AlterPartitionReassignmentsRequest(msgspec.Struct, frozen=True):
    """Targets by partition; None cancels."""

    targets: tuple[tuple[TopicPartition, tuple[int, ...] | None], ...]


class ListPartitionReassignmentsRequest(msgspec.Struct, frozen=True):
    """What is under way; None: everywhere."""

    partitions: tuple[TopicPartition, ...] | None = None


class Reassignment(NamedTuple):
    """One that is under way."""

    partition: TopicPartition
    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]


class AdminResponse(msgspec.Struct, frozen=True):
    """The answer to an admin request; `partitions` where each has a result of its own, `configs`
    and `reassignments` where they were asked for."""

    error: Errors
    message: str = ""
    partitions: tuple[tuple[TopicPartition, Errors], ...] = ()
    configs: tuple[ConfigEntry, ...] = ()
    reassignments: tuple[Reassignment, ...] = ()


class InitProducerIdRequest(msgspec.Struct, frozen=True):
    """A producer id for an idempotent producer, or (`transactional_id`) for a transactional one."""

    transactional_id: str | None = None


class InitProducerIdResponse(msgspec.Struct, frozen=True):
    """-1 with an error. A producer that gets an id begins with epoch 0."""

    error: Errors
    producer_id: int = -1
    producer_epoch: int = -1


ControlRequest = LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest
Request = (
    FetchRequest
    | ProduceRequest
    | OffsetsForLeaderEpochRequest
    | ListOffsetsRequest
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
