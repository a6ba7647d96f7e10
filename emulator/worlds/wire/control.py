"""What a controller asks brokers: LeaderAndIsr, UpdateMetadata, StopReplica; and ControlledShutdown
and AlterIsr, which brokers ask the controller.

Sources: LeaderAndIsrRequest.java, UpdateMetadataRequest.java, StopReplicaRequest.java@2.6.3,
AlterIsrRequest.json@2.7.2; spec §7.3, §11.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from emulator.kafka.model.errors import Errors
from emulator.kafka.model.topic_names import illegal_name_reason
from emulator.kafka.protocol.messages import (
    AlterIsrPartition,
    AlterIsrRequest,
    AlterIsrResponse,
    AlterIsrResult,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    ControlRequest,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LiveBroker,
    StopReplicaPartition,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from emulator.trace.values import PartitionState, TopicPartition
from emulator.worlds.wire.api import Api, Sent
from emulator.worlds.wire.decoder import MOST_ENTRIES
from emulator.worlds.wire.entities import Entity, Values
from emulator.worlds.wire.partitions import ABSENT, PartitionTable, error_of, numbers_by_topic

PLAINTEXT = {"listener": "PLAINTEXT", "security_protocol": 0}


def _checked(topic: str, number: int) -> TopicPartition:
    """Refuse illegal names: a controller's topic becomes a folder, and a forged request must not
    choose which."""
    if why := illegal_name_reason(topic):
        raise ValueError(why)
    if number < 0:
        raise ValueError(f"partition {number}")
    return TopicPartition(topic, number)


def _state_table(further: str) -> PartitionTable[PartitionState]:
    fields = f"controller_epoch leader leader_epoch isr replicas {further}"
    place = "topic_states.topic_name", "partition_states.partition_index"
    return PartitionTable(PartitionState, *place, fields, partition_of=_checked)


_LEADER_AND_ISR = _state_table(
    "zk_version=partition_epoch adding_replicas removing_replicas is_new"
)
_METADATA = _state_table("zk_version offline_replicas")


def _read_states(
    entity: Entity, table: PartitionTable[PartitionState]
) -> tuple[PartitionState, ...]:
    """Grouped by topic from 2.2 on, and before it not."""
    if hasattr(entity, "topic_states"):
        return table.read(entity)
    return tuple(table.read_entry(s.topic_name, s) for s in entity.ungrouped_partition_states)


def _write_states(
    states: Sequence[PartitionState], table: PartitionTable[PartitionState]
) -> dict[str, list[Values]]:
    ungrouped: list[Values] = [
        {"topic_name": s.partition.topic, **table.write_entry(s)} for s in states
    ]
    return {"ungrouped_partition_states": ungrouped, **table.write(states)}


def _sender_in(entity: Entity) -> tuple[int, int, int]:
    """Controller id, controller epoch, and the broker epoch of the receiver (KIP-380)."""
    epoch = getattr(entity, "broker_epoch", ABSENT)
    return entity.controller_id, entity.controller_epoch, epoch


def _sender(request: ControlRequest) -> dict[str, int]:
    return {
        "controller_id": request.controller_id,
        "controller_epoch": request.controller_epoch,
        "broker_epoch": request.broker_epoch,
    }


def _write_errors(response: LeaderAndIsrResponse | StopReplicaResponse) -> Values:
    errors = [
        {"topic_name": topic, "partition_index": number, "error_code": error}
        for (topic, number), error in response.partitions
    ]
    return {"error_code": response.error, "partition_errors": errors}


def _errors_in(entity: Entity) -> tuple[tuple[TopicPartition, Errors], ...]:
    return tuple(
        (TopicPartition(e.topic_name, e.partition_index), error_of(e.error_code))
        for e in entity.partition_errors
    )


class LeaderAndIsr(Api[LeaderAndIsrRequest, LeaderAndIsrResponse]):
    """Topic ids (version 5, Kafka 2.8) are not known here."""

    name, key, sends, cap = "LeaderAndIsr", 4, LeaderAndIsrRequest, 4
    most_entries = MOST_ENTRIES
    newest = {"1.0": 1, "2.2": 2, "2.4": 4}

    def read_request(self, entity: Entity) -> Sent:
        live = tuple(LiveBroker(b.broker_id, b.host_name, b.port) for b in entity.live_leaders)
        states = _read_states(entity, _LEADER_AND_ISR)
        return Sent((LeaderAndIsrRequest(*_sender_in(entity), states, live),))

    def write_response(self, entity: Entity, responses: Sequence[LeaderAndIsrResponse]) -> Values:
        return _write_errors(responses[0])

    def write_request(self, request: LeaderAndIsrRequest) -> Values:
        live = [
            {"broker_id": b.broker, "host_name": b.host, "port": b.port}
            for b in request.live_leaders
        ]
        states = _write_states(request.states, _LEADER_AND_ISR)
        return {**_sender(request), **states, "live_leaders": live}

    def read_response(self, entity: Entity, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        return LeaderAndIsrResponse(error_of(entity.error_code), _errors_in(entity))


class UpdateMetadata(Api[UpdateMetadataRequest, UpdateMetadataResponse]):
    """Clients learn a broker's first end point. Topic ids (version 7, Kafka 2.8) are not
    supported."""

    name, key, sends, least, cap = "UpdateMetadata", 6, UpdateMetadataRequest, 1, 6
    most_entries = MOST_ENTRIES
    newest = {"1.0": 4, "2.2": 5, "2.4": 6}

    def read_request(self, entity: Entity) -> Sent:
        live = tuple(
            LiveBroker(b.id_, b.endpoints[0].host, b.endpoints[0].port)
            for b in entity.live_brokers
            if b.endpoints
        )
        states = _read_states(entity, _METADATA)
        return Sent((UpdateMetadataRequest(*_sender_in(entity), states, live),))

    def write_response(self, entity: Entity, responses: Sequence[UpdateMetadataResponse]) -> Values:
        return {"error_code": responses[0].error}

    def write_request(self, request: UpdateMetadataRequest) -> Values:
        live = [
            {
                "id_": b.broker,
                "endpoints": [{"host": b.host, "port": b.port, **PLAINTEXT}],
                "rack": None,
            }
            for b in request.live_brokers
        ]
        states = _write_states(request.states, _METADATA)
        return {**_sender(request), **states, "live_brokers": live}

    def read_response(
        self, entity: Entity, request: UpdateMetadataRequest
    ) -> UpdateMetadataResponse:
        return UpdateMetadataResponse(error_of(entity.error_code))


_STOPPED = PartitionTable(
    StopReplicaPartition,
    "topic_states.topic_name",
    "partition_states.partition_index",
    "leader_epoch delete=delete_partition",
    partition_of=_checked,
)


class StopReplica(Api[StopReplicaRequest, StopReplicaResponse]):
    """Up to version 2 one request deletes all of its partitions or none."""

    name, key, sends = "StopReplica", 5, StopReplicaRequest
    most_entries = MOST_ENTRIES
    newest = {"1.0": 0, "2.2": 1, "2.4": 2, "2.6": 3}

    def read_request(self, entity: Entity) -> Sent:
        partitions: Iterable[StopReplicaPartition]
        if hasattr(entity, "topic_states"):
            partitions = _STOPPED.read(entity)
        else:
            if hasattr(entity, "topics"):
                named = [(t.name, n) for t in entity.topics for n in t.partition_indexes]
            else:
                named = [(p.topic_name, p.partition_index) for p in entity.ungrouped_partitions]
            delete = entity.delete_partitions
            partitions = (StopReplicaPartition(_checked(*one), ABSENT, delete) for one in named)
        return Sent((StopReplicaRequest(*_sender_in(entity), tuple(partitions)),))

    def write_response(self, entity: Entity, responses: Sequence[StopReplicaResponse]) -> Values:
        return _write_errors(responses[0])

    def write_request(self, request: StopReplicaRequest) -> Values:
        named = [p.partition for p in request.partitions]
        # All shapes that versions 0 to 3 have; the schema of the one that is sent takes its own.
        return {
            **_sender(request),
            "delete_partitions": all(p.delete for p in request.partitions),
            "ungrouped_partitions": [
                {"topic_name": topic, "partition_index": number} for topic, number in named
            ],
            "topics": [
                {"name": topic, "partition_indexes": numbers}
                for topic, numbers in numbers_by_topic(named)
            ],
            **_STOPPED.write(request.partitions),
        }

    def read_response(self, entity: Entity, request: StopReplicaRequest) -> StopReplicaResponse:
        return StopReplicaResponse(error_of(entity.error_code), _errors_in(entity))


class ControlledShutdown(Api[ControlledShutdownRequest, ControlledShutdownResponse]):
    """Version 0 has a header without client id."""

    name, key, sends = "ControlledShutdown", 7, ControlledShutdownRequest
    newest = {"1.0": 1, "2.2": 2, "2.4": 3}

    def read_request(self, entity: Entity) -> Sent:
        # Before 2.2 a request of the broker's last process could not be recognized (KIP-380).
        epoch = getattr(entity, "broker_epoch", ABSENT)
        return Sent((ControlledShutdownRequest(entity.broker_id, epoch),))

    def write_response(
        self, entity: Entity, responses: Sequence[ControlledShutdownResponse]
    ) -> Values:
        (response,) = responses
        remaining = [
            {"topic_name": topic, "partition_index": number} for topic, number in response.remaining
        ]
        return {"error_code": response.error, "remaining_partitions": remaining}

    def write_request(self, request: ControlledShutdownRequest) -> Values:
        return {"broker_id": request.broker, "broker_epoch": request.broker_epoch}

    def read_response(
        self, entity: Entity, request: ControlledShutdownRequest
    ) -> ControlledShutdownResponse:
        remaining = tuple(
            TopicPartition(p.topic_name, p.partition_index) for p in entity.remaining_partitions
        )
        return ControlledShutdownResponse(error_of(entity.error_code), remaining)


_PROPOSED = PartitionTable(
    AlterIsrPartition,
    "topics.topic_name",
    "partitions.partition_index",
    "leader_epoch new_isr current_isr_version=partition_epoch",
)
_ALTERED = PartitionTable(
    AlterIsrResult,
    "topics.topic_name",
    "partitions.partition_index",
    "error=error_code leader=leader_id leader_epoch isr zk_version=partition_epoch",
)


class AlterIsr(Api[AlterIsrRequest, AlterIsrResponse]):
    """Version 0; topic ids (version 2, Kafka 3.3) are not known here."""

    name, key, sends, cap = "AlterIsr", 56, AlterIsrRequest, 0
    most_entries = MOST_ENTRIES
    newest = {"2.7": 0}

    def read_request(self, entity: Entity) -> Sent:
        partitions = _PROPOSED.read(entity)
        return Sent((AlterIsrRequest(entity.broker_id, entity.broker_epoch, partitions),))

    def write_response(self, entity: Entity, responses: Sequence[AlterIsrResponse]) -> Values:
        (response,) = responses
        topics = _ALTERED.write(response.partitions)
        return {"throttle_time": 0, "error_code": response.error, **topics}

    def write_request(self, request: AlterIsrRequest) -> Values:
        broker = {"broker_id": request.broker, "broker_epoch": request.broker_epoch}
        return {**broker, **_PROPOSED.write(request.partitions)}

    def read_response(self, entity: Entity, request: AlterIsrRequest) -> AlterIsrResponse:
        return AlterIsrResponse(error_of(entity.error_code), _ALTERED.read(entity))
