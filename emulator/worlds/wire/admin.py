"""Admin requests: topics, partitions, settings, elections, reassignments.

Kafka's requests may name many topics or resources, the emulator's only one: each is passed to the
broker separately, and the responses are combined. Sources: KafkaApis.scala,
AdminManager.scala@2.6.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from emulator.kafka.model.errors import Errors
from emulator.kafka.protocol import messages as m
from emulator.trace.values import TopicPartition
from emulator.worlds.wire.api import Api, Sent
from emulator.worlds.wire.entities import Entity, Values, milliseconds
from emulator.worlds.wire.tables import (
    FieldTable,
    PartitionNumbers,
    PartitionResult,
    PartitionTable,
    error_of,
)

ENTITY_TYPES = {2: "topics", 4: "brokers"}
"""ConfigResource.java: the kinds of resources that have settings here, by their numbers."""
SET, DELETE = 0, 1
DEFAULT_CONFIG = 5
"""DescribeConfigsResponse.java ConfigSource: nobody has set it."""
_NOT_CHECKED = m.AdminResponse(Errors.INVALID_REQUEST, "validate_only is not emulated")
_NO_SETTINGS = m.AdminResponse(Errors.INVALID_REQUEST, "only topics and brokers have settings here")


def _result(entry: Entity) -> m.AdminResponse:
    """From some version on an error has a message."""
    return m.AdminResponse(error_of(entry.error_code), getattr(entry, "error_message", None) or "")


def _error(error: Errors, message: str = "") -> Values:
    text = None if error is Errors.NONE else message or error.name
    return {"error_code": error, "error_message": text}


def _each(
    topics: Iterable[Entity], requests: Iterable[m.Request], *, validate_only: bool = False
) -> Sent:
    """One of our requests for each topic of Kafka's."""
    if validate_only:
        # Rejected and not carried out: validate_only must not create the topic.
        return Sent((), tuple(_NOT_CHECKED for _ in topics))
    return Sent(tuple(requests))


def _named(names: Iterable[str], responses: Sequence[m.AdminResponse]) -> list[dict[str, object]]:
    return [
        {"name": name, **_error(response.error, response.message)}
        for name, response in zip(names, responses, strict=True)
    ]


class CreateTopics(Api[m.CreateTopicsRequest, m.AdminResponse]):
    """An assignment takes precedence over the two numbers, which are -1 then."""

    name, key, sends = "CreateTopics", 19, m.CreateTopicsRequest
    newest = {"0.11": 2, "2.0": 3, "2.4": 5}

    def read_request(self, entity: Entity) -> Sent:
        requests = []
        for topic in entity.topics:
            replicas = {a.partition_index: a.broker_ids for a in topic.assignments}
            if replicas and sorted(replicas) != list(range(len(replicas))):
                # An assignment with a gap, which our request cannot represent: one without replicas
                # is rejected with the same error.
                replicas = {0: ()}
            requests.append(
                m.CreateTopicsRequest(
                    topic.name,
                    tuple(replicas[n] for n in sorted(replicas)),
                    tuple((c.name, c.value or "") for c in topic.configs),
                    milliseconds(entity.timeout),
                    topic.num_partitions,
                    topic.replication_factor,
                )
            )
        only = getattr(entity, "validate_only", False)
        return _each(entity.topics, requests, validate_only=only)

    def write_response(self, entity: Entity, responses: Sequence[m.AdminResponse]) -> Values:
        topics = _named((topic.name for topic in entity.topics), responses)
        # Not sent, as for a client that may not describe the topic (KIP-525).
        described = {"num_partitions": -1, "replication_factor": -1, "configs": None}
        return {"topics": [{**topic, **described} for topic in topics]}

    def write_request(self, request: m.CreateTopicsRequest) -> Values:
        topic = {
            "name": request.topic,
            "num_partitions": request.num_partitions,
            "replication_factor": request.replication_factor,
            "assignments": [
                {"partition_index": n, "broker_ids": replicas}
                for n, replicas in enumerate(request.assignment)
            ],
            "configs": [{"name": key, "value": value} for key, value in request.config],
        }
        return {"topics": [topic], "timeout": request.timeout_ms, "validate_only": False}

    def read_response(self, entity: Entity, request: m.CreateTopicsRequest) -> m.AdminResponse:
        return _result(entity.topics[0])


class CreatePartitions(Api[m.CreatePartitionsRequest, m.AdminResponse]):
    """`count` is the total number."""

    name, key, sends = "CreatePartitions", 37, m.CreatePartitionsRequest
    newest = {"1.0": 0, "2.0": 1, "2.4": 2}

    def read_request(self, entity: Entity) -> Sent:
        timeout = milliseconds(entity.timeout)
        requests = []
        for topic in entity.topics:
            replicas = tuple(a.broker_ids for a in topic.assignments or ())
            requests.append(m.CreatePartitionsRequest(topic.name, replicas, timeout, topic.count))
        return _each(entity.topics, requests, validate_only=entity.validate_only)

    def write_response(self, entity: Entity, responses: Sequence[m.AdminResponse]) -> Values:
        results = _named((topic.name for topic in entity.topics), responses)
        return {"results": results}

    def write_request(self, request: m.CreatePartitionsRequest) -> Values:
        # Null: the controller chooses. An empty list would assign no replicas.
        assignments = [{"broker_ids": replicas} for replicas in request.assignment] or None
        topic = {"name": request.topic, "count": request.count, "assignments": assignments}
        return {"topics": [topic], "timeout": request.timeout_ms, "validate_only": False}

    def read_response(self, entity: Entity, request: m.CreatePartitionsRequest) -> m.AdminResponse:
        return _result(entity.results[0])


class DeleteTopics(Api[m.DeleteTopicsRequest, m.AdminResponse]):
    """Topics by name."""

    name, key, sends = "DeleteTopics", 20, m.DeleteTopicsRequest
    newest = {"1.0": 1, "2.0": 2, "2.1": 3, "2.4": 4}

    def read_request(self, entity: Entity) -> Sent:
        timeout = milliseconds(entity.timeout)
        return Sent(tuple(m.DeleteTopicsRequest(name, timeout) for name in entity.topic_names))

    def write_response(self, entity: Entity, responses: Sequence[m.AdminResponse]) -> Values:
        return {"responses": _named(entity.topic_names, responses)}

    def write_request(self, request: m.DeleteTopicsRequest) -> Values:
        return {"topic_names": [request.topic], "timeout": request.timeout_ms}

    def read_response(self, entity: Entity, request: m.DeleteTopicsRequest) -> m.AdminResponse:
        return _result(entity.responses[0])


def _config_results(
    entity: Entity, responses: Sequence[m.AdminResponse]
) -> list[dict[str, object]]:
    """Settings of topics and of brokers; other resources are rejected here, at their position."""
    answers = iter(responses)
    results = []
    for resource in entity.resources:
        response = next(answers) if resource.resource_type in ENTITY_TYPES else _NO_SETTINGS
        results.append(
            {
                **_error(response.error, response.message),
                "resource_type": resource.resource_type,
                "resource_name": resource.resource_name,
                "configs": [
                    {
                        "name": entry.name,
                        "value": entry.value,
                        "read_only": False,
                        "is_default": entry.source == DEFAULT_CONFIG,
                        "config_source": entry.source,
                        "is_sensitive": False,
                        "synonyms": (),
                        "config_type": 0,
                        "documentation": None,
                    }
                    for entry in response.configs
                ],
            }
        )
    return results


class DescribeConfigs(Api[m.DescribeConfigsRequest, m.AdminResponse]):
    """Settings and their sources (1: the topic's own, 2: a broker's dynamic one, 4: the broker's
    file, 5: the default)."""

    name, key, sends = "DescribeConfigs", 32, m.DescribeConfigsRequest
    newest = {"1.0": 0, "1.1": 1, "2.0": 2, "2.6": 3}

    def read_request(self, entity: Entity) -> Sent:
        return Sent(
            tuple(
                m.DescribeConfigsRequest(
                    ENTITY_TYPES[r.resource_type], r.resource_name, r.configuration_keys
                )
                for r in entity.resources
                if r.resource_type in ENTITY_TYPES
            )
        )

    def write_response(self, entity: Entity, responses: Sequence[m.AdminResponse]) -> Values:
        return {"results": _config_results(entity, responses)}


class IncrementalAlterConfigs(Api[m.AlterConfigsRequest, m.AdminResponse]):
    """SET and DELETE."""

    name, key, sends = "IncrementalAlterConfigs", 44, m.AlterConfigsRequest
    newest = {"2.3": 0, "2.4": 1}

    def read_request(self, entity: Entity) -> Sent:
        requests = []
        for r in entity.resources:
            if any(c.config_operation not in (SET, DELETE) for c in r.configs):
                # APPEND and SUBTRACT are for lists, and this module does not know which settings
                # are lists.
                raise ValueError("only SET and DELETE are known")
            if r.resource_type in ENTITY_TYPES:
                config = [(c.name, c.value or "") for c in r.configs if c.config_operation == SET]
                removed = [c.name for c in r.configs if c.config_operation == DELETE]
                kind = ENTITY_TYPES[r.resource_type]
                requests.append(
                    m.AlterConfigsRequest(kind, r.resource_name, tuple(config), tuple(removed))
                )
        return Sent(tuple(requests))

    def write_response(self, entity: Entity, responses: Sequence[m.AdminResponse]) -> Values:
        return {"responses": _config_results(entity, responses)}

    def write_request(self, request: m.AlterConfigsRequest) -> Values:
        numbers = {kind: number for number, kind in ENTITY_TYPES.items()}
        changes = [
            *((name, SET, value) for name, value in request.config),
            *((name, DELETE, None) for name in request.removed),
        ]
        configs = [{"name": n, "config_operation": o, "value": v} for n, o, v in changes]
        resource = {
            "resource_type": numbers[request.entity_type],
            "resource_name": request.entity,
            "configs": configs,
        }
        return {"resources": [resource], "validate_only": False}

    def read_response(self, entity: Entity, request: m.AlterConfigsRequest) -> m.AdminResponse:
        return m.AdminResponse(error_of(entity.responses[0].error_code))


def _result_table(topics: str, partitions: str) -> PartitionTable[PartitionResult]:
    return PartitionTable(
        PartitionResult, topics, partitions, "error=error_code", also=lambda r: _error(r.error)
    )


def _first_error(entity: Entity, results: Iterable[PartitionResult]) -> m.AdminResponse:
    """The error of the whole request, or of the first failed partition."""
    # Version 0 of ElectLeaders has no error for the whole request.
    whole = error_of(entity.error_code) if hasattr(entity, "error_code") else Errors.NONE
    errors = [whole, *(result.error for result in results)]
    return m.AdminResponse(next((error for error in errors if error is not Errors.NONE), whole))


class ElectLeaders(Api[m.ElectLeadersRequest, m.AdminResponse]):
    """Version 0 supports only preferred elections."""

    name, key, sends = "ElectLeaders", 43, m.ElectLeadersRequest
    newest = {"2.2": 0, "2.4": 2}

    request = FieldTable(
        m.ElectLeadersRequest,
        "election_type timeout_ms=timeout",
        parts={"partitions": PartitionNumbers("topic_partitions.topic", "partitions")},
    )
    results = _result_table("replica_election_results.topic", "partition_result.partition_id")

    def read_request(self, entity: Entity) -> Sent:
        request = self.request.read(entity)
        kind = m.ElectionType(request.election_type)  # a number, in the message
        return Sent((msgspec.structs.replace(request, election_type=kind),))

    def write_response(self, entity: Entity, responses: Sequence[m.AdminResponse]) -> Values:
        (response,) = responses
        # Partitions have their own errors; the request's error is for the case that none was
        # processed.
        whole = Errors.NONE if response.partitions else response.error
        return {"error_code": whole, **self.results.write(response.partitions)}

    def read_response(self, entity: Entity, request: m.ElectLeadersRequest) -> m.AdminResponse:
        return _first_error(entity, self.results.read(entity))


class Target(NamedTuple):
    """A partition of AlterPartitionReassignments."""

    partition: TopicPartition
    replicas: tuple[int, ...] | None


class AlterPartitionReassignments(Api[m.AlterPartitionReassignmentsRequest, m.AdminResponse]):
    """Without replicas the reassignment is cancelled."""

    name, key, sends = "AlterPartitionReassignments", 45, m.AlterPartitionReassignmentsRequest
    newest = {"2.4": 0}

    request = FieldTable(
        m.AlterPartitionReassignmentsRequest,
        "",
        parts={
            "targets": PartitionTable(
                Target, "topics.name", "partitions.partition_index", "replicas"
            )
        },
        also=lambda _: {"timeout": 60_000},
    )
    results = _result_table("responses.name", "partitions.partition_index")

    def write_response(self, entity: Entity, responses: Sequence[m.AdminResponse]) -> Values:
        (response,) = responses
        whole = response.error
        if response.partitions:
            # NOT_CONTROLLER is the error of the whole request, where clients look for it.
            errors = {error for _, error in response.partitions}
            whole = Errors.NOT_CONTROLLER if Errors.NOT_CONTROLLER in errors else Errors.NONE
        return {**_error(whole), **self.results.write(response.partitions)}

    def read_response(
        self, entity: Entity, request: m.AlterPartitionReassignmentsRequest
    ) -> m.AdminResponse:
        return _first_error(entity, self.results.read(entity))


class ListPartitionReassignments(Api[m.ListPartitionReassignmentsRequest, m.AdminResponse]):
    """Null means all partitions."""

    name, key, sends = "ListPartitionReassignments", 46, m.ListPartitionReassignmentsRequest
    newest = {"2.4": 0}
    request = FieldTable(
        m.ListPartitionReassignmentsRequest,
        "",
        parts={"partitions": PartitionNumbers("topics.name", "partition_indexes")},
    )
    reassignments = PartitionTable(
        m.Reassignment,
        "topics.name",
        "partitions.partition_index",
        "replicas adding_replicas removing_replicas",
    )

    def write_response(self, entity: Entity, responses: Sequence[m.AdminResponse]) -> Values:
        (response,) = responses
        return {**_error(response.error), **self.reassignments.write(response.reassignments)}
