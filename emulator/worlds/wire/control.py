"""What a controller asks brokers: LeaderAndIsr, UpdateMetadata, StopReplica; and ControlledShutdown
and AlterIsr, which brokers ask the controller.

Sources: LeaderAndIsrRequest.java, UpdateMetadataRequest.java, StopReplicaRequest.java@2.6.3,
AlterIsrRequest.json@2.7.2; spec §7.3, §11.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from emulator.kafka.model.errors import Errors
from emulator.kafka.model.topic_names import why_illegal
from emulator.kafka.protocol.messages import (
    AlteredIsr,
    AlterIsrPartition,
    AlterIsrRequest,
    AlterIsrResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
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
from emulator.worlds.wire.api import Api, Knows, Sent, by_topic, error_of
from emulator.worlds.wire.entities import Values

PLAINTEXT = {"listener": "PLAINTEXT", "security_protocol": 0}


def _state(state: PartitionState) -> Values:
    return {
        "topic_name": state.partition.topic,
        "partition_index": state.partition.partition,
        "controller_epoch": state.controller_epoch,
        "leader": state.leader,
        "leader_epoch": state.leader_epoch,
        "isr": state.isr,
        "partition_epoch": state.zk_version,
        "zk_version": state.zk_version,
        "replicas": state.replicas,
        "adding_replicas": state.adding_replicas,
        "removing_replicas": state.removing_replicas,
        "is_new": state.is_new,
        "offline_replicas": state.offline_replicas,
    }


def _states(states: Sequence[PartitionState]) -> dict[str, Any]:
    """Both shapes: grouped by topic, and (before 2.2) not."""
    return {
        "ungrouped_partition_states": [_state(s) for s in states],
        "topic_states": [
            {"topic_name": t, "partition_states": [_state(s) for s in some]}
            for t, some in by_topic(states)
        ],
    }


def _states_in(entity: Any) -> tuple[PartitionState, ...]:
    if hasattr(entity, "topic_states"):
        return tuple(
            _state_in(topic.topic_name, s)
            for topic in entity.topic_states
            for s in topic.partition_states
        )
    return tuple(_state_in(s.topic_name, s) for s in entity.ungrouped_partition_states)


def _state_in(topic: str, state: Any) -> PartitionState:
    version = state.partition_epoch if hasattr(state, "partition_epoch") else state.zk_version
    return PartitionState(
        _partition_in(topic, state.partition_index),
        state.controller_epoch,
        state.leader,
        state.leader_epoch,
        tuple(state.isr),
        version,
        tuple(state.replicas),
        tuple(getattr(state, "adding_replicas", ())),
        tuple(getattr(state, "removing_replicas", ())),
        getattr(state, "is_new", False),
        tuple(getattr(state, "offline_replicas", ())),
    )


def _partition_in(topic: str, number: int) -> TopicPartition:
    """What a controller names becomes a folder. Whoever forges one may not choose which."""
    if why := why_illegal(topic):
        raise ValueError(why)
    if number < 0:
        raise ValueError(f"partition {number}")
    return TopicPartition(topic, number)


def _partition_errors(errors: Iterable[tuple[TopicPartition, Errors]]) -> list[Values]:
    return [
        {"topic_name": p.topic, "partition_index": p.partition, "error_code": error}
        for p, error in errors
    ]


def _errors_in(entity: Any) -> tuple[tuple[TopicPartition, Errors], ...]:
    return tuple(
        (TopicPartition(e.topic_name, e.partition_index), error_of(e.error_code))
        for e in entity.partition_errors
    )


class LeaderAndIsr(Api):
    """Topic ids (version 5, Kafka 2.8) are not known here."""

    name, key, sends, cap = "LeaderAndIsr", 4, LeaderAndIsrRequest, 4
    newest = {"1.0": 1, "2.2": 2, "2.4": 4}

    def arrived(self, entity: Any, knows: Knows) -> Sent:
        live = tuple(LiveBroker(b.broker_id, b.host_name, b.port) for b in entity.live_leaders)
        request = LeaderAndIsrRequest(
            entity.controller_id,
            entity.controller_epoch,
            getattr(entity, "broker_epoch", -1),
            _states_in(entity),
            live,
        )
        return Sent((request,))

    def answer(self, entity: Any, sent: Sent, responses: Sequence[Any]) -> Values:
        (response,) = responses
        errors = _partition_errors(response.partitions)
        return {"error_code": response.error, "partition_errors": errors}

    def ask(self, request: LeaderAndIsrRequest, now_ms: int) -> Values:
        return {
            "controller_id": request.controller_id,
            "controller_epoch": request.controller_epoch,
            "broker_epoch": request.broker_epoch,
            **_states(request.states),
            "live_leaders": [
                {"broker_id": b.broker, "host_name": b.host, "port": b.port}
                for b in request.live_leaders
            ],
        }

    def response(self, entity: Any, request: Any) -> LeaderAndIsrResponse:
        return LeaderAndIsrResponse(error_of(entity.error_code), _errors_in(entity))


class UpdateMetadata(Api):
    """A broker's first end point is the one that clients are told. Topic ids (version 7, Kafka 2.8)
    are not known here."""

    name, key, sends, least, cap = "UpdateMetadata", 6, UpdateMetadataRequest, 1, 6
    newest = {"1.0": 4, "2.2": 5, "2.4": 6}

    def arrived(self, entity: Any, knows: Knows) -> Sent:
        live = tuple(
            LiveBroker(b.id_, b.endpoints[0].host, b.endpoints[0].port)
            for b in entity.live_brokers
            if b.endpoints
        )
        request = UpdateMetadataRequest(
            entity.controller_id,
            entity.controller_epoch,
            getattr(entity, "broker_epoch", -1),
            _states_in(entity),
            live,
        )
        return Sent((request,))

    def answer(self, entity: Any, sent: Sent, responses: Sequence[Any]) -> Values:
        return {"error_code": responses[0].error}

    def ask(self, request: UpdateMetadataRequest, now_ms: int) -> Values:
        return {
            "controller_id": request.controller_id,
            "controller_epoch": request.controller_epoch,
            "broker_epoch": request.broker_epoch,
            **_states(request.states),
            "live_brokers": [
                {
                    "id_": b.broker,
                    "endpoints": [{"host": b.host, "port": b.port, **PLAINTEXT}],
                    "rack": None,
                }
                for b in request.live_brokers
            ],
        }

    def response(self, entity: Any, request: Any) -> UpdateMetadataResponse:
        return UpdateMetadataResponse(error_of(entity.error_code))


class StopReplica(Api):
    """Up to version 2 one request deletes all of its partitions or none."""

    name, key, sends = "StopReplica", 5, StopReplicaRequest
    newest = {"1.0": 0, "2.2": 1, "2.4": 2, "2.6": 3}

    def arrived(self, entity: Any, knows: Knows) -> Sent:
        request = StopReplicaRequest(
            entity.controller_id,
            entity.controller_epoch,
            getattr(entity, "broker_epoch", -1),
            tuple(_stopped(entity)),
        )
        return Sent((request,))

    def answer(self, entity: Any, sent: Sent, responses: Sequence[Any]) -> Values:
        (response,) = responses
        errors = _partition_errors(response.partitions)
        return {"error_code": response.error, "partition_errors": errors}

    def ask(self, request: StopReplicaRequest, now_ms: int) -> Values:
        topics = by_topic(request.partitions)
        return {
            "controller_id": request.controller_id,
            "controller_epoch": request.controller_epoch,
            "broker_epoch": request.broker_epoch,
            "delete_partitions": all(p.delete for p in request.partitions),
            "ungrouped_partitions": [
                {"topic_name": p.partition.topic, "partition_index": p.partition.partition}
                for p in request.partitions
            ],
            "topics": [
                {"name": t, "partition_indexes": [p.partition.partition for p in parts]}
                for t, parts in topics
            ],
            "topic_states": [
                {"topic_name": t, "partition_states": [_stop(p) for p in parts]}
                for t, parts in topics
            ],
        }

    def response(self, entity: Any, request: Any) -> StopReplicaResponse:
        return StopReplicaResponse(error_of(entity.error_code), _errors_in(entity))


def _stop(stop: StopReplicaPartition) -> Values:
    return {
        "partition_index": stop.partition.partition,
        "leader_epoch": stop.leader_epoch,
        "delete_partition": stop.delete,
    }


def _stopped(entity: Any) -> Iterable[StopReplicaPartition]:
    if hasattr(entity, "topic_states"):
        for topic in entity.topic_states:
            for p in topic.partition_states:
                partition = _partition_in(topic.topic_name, p.partition_index)
                yield StopReplicaPartition(partition, p.leader_epoch, p.delete_partition)
        return
    delete = entity.delete_partitions
    if hasattr(entity, "topics"):
        named = [(t.name, n) for t in entity.topics for n in t.partition_indexes]
    else:
        named = [(p.topic_name, p.partition_index) for p in entity.ungrouped_partitions]
    for topic_name, number in named:
        yield StopReplicaPartition(_partition_in(topic_name, number), -1, delete)


class ControlledShutdown(Api):
    """Version 0 has a header without client id."""

    name, key, sends = "ControlledShutdown", 7, ControlledShutdownRequest
    newest = {"1.0": 1, "2.2": 2, "2.4": 3}

    def arrived(self, entity: Any, knows: Knows) -> Sent:
        epoch = getattr(entity, "broker_epoch", -1)
        return Sent((ControlledShutdownRequest(entity.broker_id, epoch),))

    def answer(self, entity: Any, sent: Sent, responses: Sequence[Any]) -> Values:
        (response,) = responses
        remaining = [
            {"topic_name": p.topic, "partition_index": p.partition} for p in response.remaining
        ]
        return {"error_code": response.error, "remaining_partitions": remaining}

    def ask(self, request: ControlledShutdownRequest, now_ms: int) -> Values:
        return {"broker_id": request.broker, "broker_epoch": request.broker_epoch}

    def response(self, entity: Any, request: Any) -> ControlledShutdownResponse:
        remaining = tuple(
            TopicPartition(p.topic_name, p.partition_index) for p in entity.remaining_partitions
        )
        return ControlledShutdownResponse(error_of(entity.error_code), remaining)


class AlterIsr(Api):
    """Version 0; topic ids (version 2, Kafka 3.3) are not known here."""

    name, key, sends, cap = "AlterIsr", 56, AlterIsrRequest, 0
    newest = {"2.7": 0}

    def arrived(self, entity: Any, knows: Knows) -> Sent:
        partitions = tuple(
            AlterIsrPartition(
                TopicPartition(t.topic_name, p.partition_index),
                p.leader_epoch,
                tuple(p.new_isr),
                p.partition_epoch,
            )
            for t in entity.topics
            for p in t.partitions
        )
        return Sent((AlterIsrRequest(entity.broker_id, entity.broker_epoch, partitions),))

    def answer(self, entity: Any, sent: Sent, responses: Sequence[Any]) -> Values:
        (response,) = responses
        topics = [
            {"topic_name": t, "partitions": [_altered(p) for p in parts]}
            for t, parts in by_topic(response.partitions)
        ]
        return {"throttle_time": 0, "error_code": response.error, "topics": topics}

    def ask(self, request: AlterIsrRequest, now_ms: int) -> Values:
        topics = [
            {
                "topic_name": t,
                "partitions": [
                    {
                        "partition_index": p.partition.partition,
                        "leader_epoch": p.leader_epoch,
                        "new_isr": p.new_isr,
                        "partition_epoch": p.current_isr_version,
                    }
                    for p in parts
                ],
            }
            for t, parts in by_topic(request.partitions)
        ]
        epoch = request.broker_epoch
        return {"broker_id": request.broker, "broker_epoch": epoch, "topics": topics}

    def response(self, entity: Any, request: Any) -> AlterIsrResponse:
        altered = tuple(
            AlteredIsr(
                TopicPartition(t.topic_name, p.partition_index),
                error_of(p.error_code),
                p.leader_id,
                p.leader_epoch,
                tuple(p.isr),
                p.partition_epoch,
            )
            for t in entity.topics
            for p in t.partitions
        )
        return AlterIsrResponse(error_of(entity.error_code), altered)


def _altered(altered: AlteredIsr) -> Values:
    return {
        "partition_index": altered.partition.partition,
        "error_code": altered.error,
        "leader_id": altered.leader,
        "leader_epoch": altered.leader_epoch,
        "isr": altered.isr,
        "partition_epoch": altered.zk_version,
    }
