"""Requests of a controller to brokers: LeaderAndIsr, UpdateMetadata, StopReplica; and
ControlledShutdown and AlterIsr, which brokers send to the controller.

Sources: LeaderAndIsrRequest.java, UpdateMetadataRequest.java, StopReplicaRequest.java@2.6.3,
AlterIsrRequest.json@2.7.2; spec §7.3, §11.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from emulator.kafka.model.errors import Errors
from emulator.kafka.model.topic_names import illegal_name_reason
from emulator.kafka.protocol import messages as m
from emulator.trace.values import PartitionState, TopicPartition
from emulator.worlds.wire.api import Api
from emulator.worlds.wire.decoder import ENTRIES_OF_CONTROL, MOST_ENTRIES
from emulator.worlds.wire.entities import Entity, Values
from emulator.worlds.wire.tables import (
    ABSENT,
    FieldTable,
    PartitionNumbers,
    PartitionResult,
    PartitionTable,
    Table,
)
from emulator.worlds.wire.topic_ids import learn

PLAINTEXT = {"listener": "PLAINTEXT", "security_protocol": 0}


def _checked(topic: str, partition: int) -> TopicPartition:
    """Reject illegal names: a topic of the controller becomes a folder, and a forged request must
    not choose it."""
    if why := illegal_name_reason(topic):
        raise ValueError(why)
    if partition < 0:
        raise ValueError(f"partition {partition}")
    return TopicPartition(topic, partition)


def _named(partition_of: Callable[[str, int], TopicPartition]) -> FieldTable[TopicPartition]:
    """A partition that is not nested by topic."""
    return FieldTable(partition_of, "topic=topic_name partition=partition_index")


_SENDER = "controller_id controller_epoch broker_epoch"
"""Which controller sends it, and (KIP-380) to which process of the broker."""


def learn_topic_ids(entity: Entity, responses: Sequence[m.Response]) -> None:
    """Of a request that the broker has accepted: a forged one teaches nothing."""
    if all(getattr(response, "error", None) is Errors.NONE for response in responses):
        for topic in getattr(entity, "topic_states", ()):
            learn(topic.topic_name, getattr(topic, "topic_id", None))


class StateTable:
    """Partition states of a request: grouped by topic from 2.2 on, flat before. From 2.8 on a topic
    has its id beside it."""

    def __init__(self, further: str) -> None:
        fields = f"controller_epoch leader leader_epoch isr replicas {further}"
        place = "topic_states.topic_name", "partition_states.partition_index"
        self._grouped = PartitionTable(PartitionState, *place, fields, partition_of=_checked)
        self._single = FieldTable(PartitionState, fields, parts={"partition": _named(_checked)})

    def read(self, entity: Entity) -> tuple[PartitionState, ...]:
        if hasattr(entity, "topic_states"):
            return self._grouped.read(entity)
        return tuple(map(self._single.read, entity.ungrouped_partition_states))

    def write(self, value: Sequence[PartitionState]) -> Values:
        # Both shapes: a version uses the fields that its schema has.
        single = [self._single.write(state) for state in value]
        return {"ungrouped_partition_states": single, **self._grouped.write(value)}


_ERRORS: dict[str, Table] = {
    "partitions": FieldTable(
        PartitionResult, "error=error_code", parts={"partition": _named(TopicPartition)}
    )
}


class RoleErrors:
    """Of LeaderAndIsr: flat up to version 4, then grouped by topic id."""

    def __init__(self) -> None:
        self._single = _ERRORS["partitions"]
        self._grouped = PartitionTable(
            PartitionResult,
            "topics.topic_name",
            "partition_errors.partition_index",
            "error=error_code",
        )

    def read(self, entity: Entity) -> tuple[PartitionResult, ...]:
        if hasattr(entity, "topics"):
            return self._grouped.read(entity)
        return tuple(map(self._single.read, entity.partition_errors))

    def write(self, value: Sequence[PartitionResult]) -> Values:
        single = [self._single.write(result) for result in value]
        return {"partition_errors": single, **self._grouped.write(value)}


class LeaderAndIsr(Api[m.LeaderAndIsrRequest, m.LeaderAndIsrResponse]):
    """Version 5 brought topic ids (2.8), version 6 the state of a leader's recovery (3.2), which is
    not modelled. Ours sends version 4, as a controller does whose topics have no ids."""

    name, key, sends, cap, most_sent = "LeaderAndIsr", 4, m.LeaderAndIsrRequest, 6, 4
    most_entries = ENTRIES_OF_CONTROL
    newest = {"1.0": 1, "2.2": 2, "2.4": 4, "2.8": 5, "3.2": 6}
    request = FieldTable(
        m.LeaderAndIsrRequest,
        f"{_SENDER} live_leaders",
        entries={"live_leaders": FieldTable(m.LiveBroker, "broker=broker_id host=host_name port")},
        parts={
            "states": StateTable(
                "zk_version=partition_epoch adding_replicas removing_replicas is_new"
            )
        },
        # Not all topics of the broker: it is not told to delete others.
        also=lambda _: {"type_": 0},
    )
    response = FieldTable(
        m.LeaderAndIsrResponse, "error=error_code", parts={"partitions": RoleErrors()}
    )

    def write_response(self, entity: Entity, responses: Sequence[m.LeaderAndIsrResponse]) -> Values:
        # First: the response names topics by their ids.
        learn_topic_ids(entity, responses)
        return self.response.write(responses[0])


class LiveBrokers:
    """Clients get a broker's first endpoint."""

    def read(self, entity: Entity) -> tuple[m.LiveBroker, ...]:
        return tuple(
            m.LiveBroker(b.id_, b.endpoints[0].host, b.endpoints[0].port, getattr(b, "rack", None))
            for b in entity.live_brokers
            if b.endpoints
        )

    def write(self, value: Iterable[m.LiveBroker]) -> Values:
        return {
            "live_brokers": [
                {
                    "id_": b.broker,
                    "endpoints": [{"host": b.host, "port": b.port, **PLAINTEXT}],
                    "rack": b.rack,
                }
                for b in value
            ]
        }


class UpdateMetadata(Api[m.UpdateMetadataRequest, m.UpdateMetadataResponse]):
    """Version 7 brought topic ids (2.8); ours sends version 6."""

    name, key, sends, least, cap = "UpdateMetadata", 6, m.UpdateMetadataRequest, 1, 7
    most_sent = 6
    most_entries = ENTRIES_OF_CONTROL
    newest = {"1.0": 4, "2.2": 5, "2.4": 6, "2.8": 7}
    alike_from = 5
    request = FieldTable(
        m.UpdateMetadataRequest,
        _SENDER,
        parts={
            "states": StateTable("zk_version offline_replicas"),
            "live_brokers": LiveBrokers(),
        },
    )
    response = FieldTable(m.UpdateMetadataResponse, "error=error_code")

    def write_response(
        self, entity: Entity, responses: Sequence[m.UpdateMetadataResponse]
    ) -> Values:
        learn_topic_ids(entity, responses)
        return self.response.write(responses[0])


_STOPPED = PartitionTable(
    m.StopReplicaPartition,
    "topic_states.topic_name",
    "partition_states.partition_index",
    "leader_epoch delete=delete_partition",
    partition_of=_checked,
)
_STOPPED_NUMBERS = PartitionNumbers("topics.name", "partition_indexes")
_UNGROUPED = _named(TopicPartition)


class StoppedTable:
    """Three shapes: with leader epochs from version 3 on, grouped by topic from version 1 on."""

    def read(self, entity: Entity) -> tuple[m.StopReplicaPartition, ...]:
        if hasattr(entity, "topic_states"):
            return _STOPPED.read(entity)
        partitions: Iterable[TopicPartition]
        if hasattr(entity, "topics"):
            partitions = _STOPPED_NUMBERS.read(entity) or ()
        else:
            partitions = map(_UNGROUPED.read, entity.ungrouped_partitions)
        delete = entity.delete_partitions
        return tuple(m.StopReplicaPartition(_checked(*one), ABSENT, delete) for one in partitions)

    def write(self, value: Sequence[m.StopReplicaPartition]) -> Values:
        named = [p.partition for p in value]
        return {
            "delete_partitions": all(p.delete for p in value),
            "ungrouped_partitions": [_UNGROUPED.write(partition) for partition in named],
            **_STOPPED_NUMBERS.write(named),
            **_STOPPED.write(value),
        }


class StopReplica(Api[m.StopReplicaRequest, m.StopReplicaResponse]):
    """Up to version 2 one request deletes all of its partitions or none."""

    name, key, sends = "StopReplica", 5, m.StopReplicaRequest
    most_entries = ENTRIES_OF_CONTROL
    newest = {"1.0": 0, "2.2": 1, "2.4": 2, "2.6": 3}
    request = FieldTable(m.StopReplicaRequest, _SENDER, parts={"partitions": StoppedTable()})
    response = FieldTable(
        m.StopReplicaResponse, "error=error_code partitions=partition_errors", entries=_ERRORS
    )


class ControlledShutdown(Api[m.ControlledShutdownRequest, m.ControlledShutdownResponse]):
    """Version 0 has a header without client id. Before 2.2 a request of the broker's last process
    could not be recognized (KIP-380)."""

    name, key, sends = "ControlledShutdown", 7, m.ControlledShutdownRequest
    newest = {"1.0": 1, "2.2": 2, "2.4": 3}
    request = FieldTable(m.ControlledShutdownRequest, "broker=broker_id broker_epoch")
    response = FieldTable(
        m.ControlledShutdownResponse,
        "error=error_code remaining=remaining_partitions",
        entries={"remaining": _named(TopicPartition)},
    )


class AlterIsr(Api[m.AlterIsrRequest, m.AlterIsrResponse]):
    """Version 0; topic ids (version 2, Kafka 3.3) are not known here."""

    name, key, sends, cap = "AlterIsr", 56, m.AlterIsrRequest, 0
    most_entries = MOST_ENTRIES
    newest = {"2.7": 0}
    request = FieldTable(
        m.AlterIsrRequest,
        "broker=broker_id broker_epoch",
        parts={
            "partitions": PartitionTable(
                m.AlterIsrPartition,
                "topics.topic_name",
                "partitions.partition_index",
                "leader_epoch new_isr current_isr_version=partition_epoch",
            )
        },
    )
    response = FieldTable(
        m.AlterIsrResponse,
        "error=error_code",
        parts={
            "partitions": PartitionTable(
                m.AlterIsrResult,
                "topics.topic_name",
                "partitions.partition_index",
                "error=error_code leader=leader_id leader_epoch isr zk_version=partition_epoch",
            )
        },
    )
