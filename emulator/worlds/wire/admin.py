"""What administrators ask: topics, partitions, settings, elections, reassignments.

Kafka's requests name many topics or resources, ours one: each is given to the broker by itself, and
the answers are put together. Sources: KafkaApis.scala, AdminManager.scala@2.6.3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from emulator.kafka.model.errors import Errors
from emulator.kafka.protocol.messages import (
    AdminResponse,
    AlterConfigsRequest,
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    ElectionType,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
)
from emulator.trace.values import TopicPartition
from emulator.worlds.wire.api import Api, Knows, Sent, error_of
from emulator.worlds.wire.entities import Values, milliseconds

ENTITY_TYPES = {2: "topics", 4: "brokers"}
SET, DELETE = 0, 1
_NOTHING = AdminResponse(Errors.NONE)


def _told(answer: Any) -> AdminResponse:
    """A message comes with it from some version on."""
    return AdminResponse(error_of(answer.error_code), getattr(answer, "error_message", None) or "")


def _message(response: AdminResponse) -> str | None:
    if response.error is Errors.NONE:
        return None
    return response.message or response.error.name


def _named(names: Sequence[str], responses: Sequence[Any]) -> list[Values]:
    return [
        {"name": name, "error_code": r.error, "error_message": _message(r)}
        for name, r in zip(names, responses, strict=True)
    ]


class CreateTopics(Api):
    """An assignment wins over the two numbers, which are -1 then."""

    name, key, sends = "CreateTopics", 19, CreateTopicsRequest
    newest = {"0.11": 2, "2.0": 3, "2.4": 5}

    def arrived(self, entity: Any, knows: Knows) -> Sent:
        only_check = getattr(entity, "validate_only", False)
        timeout = milliseconds(entity.timeout)
        wanted = [] if only_check else [_create(topic, timeout) for topic in entity.topics]
        return Sent(tuple(wanted), tuple(t.name for t in entity.topics))

    def answer(self, entity: Any, sent: Sent, responses: Sequence[Any]) -> Values:
        told = responses or [_NOT_CHECKED] * len(sent.rest)
        rest = {"num_partitions": -1, "replication_factor": -1, "configs": None}
        topics = [{**topic, **rest} for topic in _named(sent.rest, told)]
        return {"throttle_time": 0, "topics": topics}

    def ask(self, request: CreateTopicsRequest, now_ms: int) -> Values:
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

    def response(self, entity: Any, request: Any) -> AdminResponse:
        return _told(entity.topics[0])


_NOT_CHECKED = AdminResponse(Errors.INVALID_REQUEST, "validate_only is not emulated")


def _create(topic: Any, timeout_ms: int) -> CreateTopicsRequest:
    placed = {a.partition_index: tuple(a.broker_ids) for a in topic.assignments}
    if placed and sorted(placed) != list(range(len(placed))):
        placed = {0: ()}  # what is refused as an assignment that has a gap
    return CreateTopicsRequest(
        topic.name,
        tuple(placed[n] for n in sorted(placed)),
        tuple((c.name, c.value or "") for c in topic.configs),
        timeout_ms,
        topic.num_partitions,
        topic.replication_factor,
    )


class CreatePartitions(Api):
    """`count` is the number in all."""

    name, key, sends = "CreatePartitions", 37, CreatePartitionsRequest
    newest = {"1.0": 0, "2.0": 1, "2.4": 2}

    def arrived(self, entity: Any, knows: Knows) -> Sent:
        timeout = milliseconds(entity.timeout)
        wanted = [] if entity.validate_only else [_add(t, timeout) for t in entity.topics]
        return Sent(tuple(wanted), tuple(t.name for t in entity.topics))

    def answer(self, entity: Any, sent: Sent, responses: Sequence[Any]) -> Values:
        told = responses or [_NOT_CHECKED] * len(sent.rest)
        return {"throttle_time": 0, "results": _named(sent.rest, told)}

    def ask(self, request: CreatePartitionsRequest, now_ms: int) -> Values:
        assignments = [{"broker_ids": replicas} for replicas in request.assignment] or None
        topic = {"name": request.topic, "count": request.count, "assignments": assignments}
        return {"topics": [topic], "timeout": request.timeout_ms, "validate_only": False}

    def response(self, entity: Any, request: Any) -> AdminResponse:
        return _told(entity.results[0])


def _add(topic: Any, timeout_ms: int) -> CreatePartitionsRequest:
    placed = tuple(tuple(a.broker_ids) for a in topic.assignments or ())
    return CreatePartitionsRequest(topic.name, placed, timeout_ms, topic.count)


class DeleteTopics(Api):
    """By name."""

    name, key, sends = "DeleteTopics", 20, DeleteTopicsRequest
    newest = {"1.0": 1, "2.0": 2, "2.1": 3, "2.4": 4}

    def arrived(self, entity: Any, knows: Knows) -> Sent:
        names, timeout = tuple(entity.topic_names), milliseconds(entity.timeout)
        return Sent(tuple(DeleteTopicsRequest(name, timeout) for name in names), names)

    def answer(self, entity: Any, sent: Sent, responses: Sequence[Any]) -> Values:
        return {"throttle_time": 0, "responses": _named(sent.rest, responses)}

    def ask(self, request: DeleteTopicsRequest, now_ms: int) -> Values:
        return {"topic_names": [request.topic], "timeout": request.timeout_ms}

    def response(self, entity: Any, request: Any) -> AdminResponse:
        return AdminResponse(error_of(entity.responses[0].error_code))


class _Configs(Api):
    """Settings of topics and of brokers; other resources are refused here."""

    def arrived(self, entity: Any, knows: Knows) -> Sent:
        known = [r for r in entity.resources if r.resource_type in ENTITY_TYPES]
        return Sent(tuple(self.request(r) for r in known), known)

    def request(self, resource: Any) -> Any:
        raise AssertionError(self.name)

    def answers(self, entity: Any, sent: Sent, responses: Sequence[Any]) -> list[dict[str, Any]]:
        told = {id(r): answer for r, answer in zip(sent.rest, responses, strict=True)}
        refused = AdminResponse(
            Errors.INVALID_REQUEST, "only topics and brokers have settings here"
        )
        results = []
        for resource in entity.resources:
            answer = told.get(id(resource), refused)
            results.append(
                {
                    "error_code": answer.error,
                    "error_message": _message(answer),
                    "resource_type": resource.resource_type,
                    "resource_name": resource.resource_name,
                    "configs": [_entry(c) for c in answer.configs],
                }
            )
        return results


def _entry(entry: Any) -> Values:
    return {
        "name": entry.name,
        "value": entry.value,
        "read_only": False,
        "is_default": entry.source == 5,
        "config_source": entry.source,
        "is_sensitive": False,
        "synonyms": (),
        "config_type": 0,
        "documentation": None,
    }


class DescribeConfigs(_Configs):
    """Settings and where they come from (1: the topic's own, 2: a broker's dynamic one, 4: the
    broker's file, 5: the default)."""

    name, key, sends = "DescribeConfigs", 32, DescribeConfigsRequest
    newest = {"1.0": 0, "1.1": 1, "2.0": 2, "2.6": 3}

    def request(self, resource: Any) -> DescribeConfigsRequest:
        keys = resource.configuration_keys
        names = None if keys is None else tuple(keys)
        return DescribeConfigsRequest(
            ENTITY_TYPES[resource.resource_type], resource.resource_name, names
        )

    def answer(self, entity: Any, sent: Sent, responses: Sequence[Any]) -> Values:
        return {"throttle_time": 0, "results": self.answers(entity, sent, responses)}


class IncrementalAlterConfigs(_Configs):
    """SET and DELETE."""

    name, key, sends = "IncrementalAlterConfigs", 44, AlterConfigsRequest
    newest = {"2.3": 0, "2.4": 1}

    def arrived(self, entity: Any, knows: Knows) -> Sent:
        for resource in entity.resources:
            if any(c.config_operation not in (SET, DELETE) for c in resource.configs):
                raise ValueError("only SET and DELETE are known")
        return super().arrived(entity, knows)

    def request(self, resource: Any) -> AlterConfigsRequest:
        kept = [c for c in resource.configs if c.config_operation == SET]
        gone = [c for c in resource.configs if c.config_operation == DELETE]
        return AlterConfigsRequest(
            ENTITY_TYPES[resource.resource_type],
            resource.resource_name,
            tuple((c.name, c.value or "") for c in kept),
            tuple(c.name for c in gone),
        )

    def answer(self, entity: Any, sent: Sent, responses: Sequence[Any]) -> Values:
        return {"throttle_time": 0, "responses": self.answers(entity, sent, responses)}

    def ask(self, request: AlterConfigsRequest, now_ms: int) -> Values:
        numbers = {kind: number for number, kind in ENTITY_TYPES.items()}
        kept = [(name, SET, value) for name, value in request.config]
        gone = [(name, DELETE, None) for name in request.removed]
        configs = [{"name": n, "config_operation": o, "value": v} for n, o, v in kept + gone]
        resource = {
            "resource_type": numbers[request.entity_type],
            "resource_name": request.entity,
            "configs": configs,
        }
        return {"resources": [resource], "validate_only": False}

    def response(self, entity: Any, request: Any) -> AdminResponse:
        return AdminResponse(error_of(entity.responses[0].error_code))


def _by_topic(
    results: Mapping[TopicPartition, Any], entry: Callable[[int, Any], Values]
) -> list[tuple[str, list[Values]]]:
    found: dict[str, list[Values]] = {}
    for partition, result in results.items():
        found.setdefault(partition.topic, []).append(entry(partition.partition, result))
    return list(found.items())


class ElectLeaders(Api):
    """Version 0 knows preferred elections alone."""

    name, key, sends = "ElectLeaders", 43, ElectLeadersRequest
    newest = {"2.2": 0, "2.4": 2}

    def arrived(self, entity: Any, knows: Knows) -> Sent:
        topics = entity.topic_partitions
        wanted = (
            None
            if topics is None
            else tuple(TopicPartition(t.topic, n) for t in topics for n in t.partitions)
        )
        kind = ElectionType(getattr(entity, "election_type", 0))
        return Sent((ElectLeadersRequest(wanted, kind, milliseconds(entity.timeout)),))

    def answer(self, entity: Any, sent: Sent, responses: Sequence[Any]) -> Values:
        (response,) = responses

        def entry(number: int, error: Errors) -> Values:
            message = None if error is Errors.NONE else error.name
            return {"partition_id": number, "error_code": error, "error_message": message}

        results = [
            {"topic": t, "partition_result": parts}
            for t, parts in _by_topic(dict(response.partitions), entry)
        ]
        whole = Errors.NONE if response.partitions else response.error
        return {"throttle_time": 0, "error_code": whole, "replica_election_results": results}

    def ask(self, request: ElectLeadersRequest, now_ms: int) -> Values:
        topics: dict[str, list[int]] = {}
        for topic, number in request.partitions or ():
            topics.setdefault(topic, []).append(number)
        named = [{"topic": t, "partitions": numbers} for t, numbers in topics.items()]
        return {
            "election_type": request.election_type.value,
            "topic_partitions": None if request.partitions is None else named,
            "timeout": request.timeout_ms,
        }

    def response(self, entity: Any, request: Any) -> AdminResponse:
        errors = [
            error_of(p.error_code)
            for t in entity.replica_election_results
            for p in t.partition_result
        ]
        whole = error_of(entity.error_code) if hasattr(entity, "error_code") else Errors.NONE
        return AdminResponse(next((e for e in [whole, *errors] if e is not Errors.NONE), whole))


class AlterPartitionReassignments(Api):
    """No replicas: the reassignment is cancelled."""

    name, key, sends = "AlterPartitionReassignments", 45, AlterPartitionReassignmentsRequest
    newest = {"2.4": 0}

    def arrived(self, entity: Any, knows: Knows) -> Sent:
        targets = tuple(
            (
                TopicPartition(t.name, p.partition_index),
                None if p.replicas is None else tuple(p.replicas),
            )
            for t in entity.topics
            for p in t.partitions
        )
        return Sent((AlterPartitionReassignmentsRequest(targets),))

    def answer(self, entity: Any, sent: Sent, responses: Sequence[Any]) -> Values:
        (response,) = responses

        def entry(number: int, error: Errors) -> Values:
            message = None if error is Errors.NONE else error.name
            return {"partition_index": number, "error_code": error, "error_message": message}

        topics = [
            {"name": t, "partitions": parts}
            for t, parts in _by_topic(dict(response.partitions), entry)
        ]
        whole = response.error if not response.partitions else _whole(response.partitions)
        message = None if whole is Errors.NONE else whole.name
        return {
            "throttle_time": 0,
            "error_code": whole,
            "error_message": message,
            "responses": topics,
        }

    def ask(self, request: AlterPartitionReassignmentsRequest, now_ms: int) -> Values:
        topics = [
            {"name": t, "partitions": parts}
            for t, parts in _by_topic(
                dict(request.targets), lambda n, to: {"partition_index": n, "replicas": to}
            )
        ]
        return {"timeout": 60_000, "topics": topics}

    def response(self, entity: Any, request: Any) -> AdminResponse:
        errors = [error_of(p.error_code) for t in entity.responses for p in t.partitions]
        whole = error_of(entity.error_code)
        return AdminResponse(next((e for e in [whole, *errors] if e is not Errors.NONE), whole))


def _whole(partitions: Sequence[tuple[TopicPartition, Errors]]) -> Errors:
    """Who is not controller says it of the whole request."""
    errors = [error for _, error in partitions]
    return Errors.NOT_CONTROLLER if Errors.NOT_CONTROLLER in errors else Errors.NONE


class ListPartitionReassignments(Api):
    """Null: all."""

    name, key, sends = "ListPartitionReassignments", 46, ListPartitionReassignmentsRequest
    newest = {"2.4": 0}

    def arrived(self, entity: Any, knows: Knows) -> Sent:
        topics = entity.topics
        wanted = (
            None
            if topics is None
            else tuple(TopicPartition(t.name, n) for t in topics for n in t.partition_indexes)
        )
        return Sent((ListPartitionReassignmentsRequest(wanted),))

    def answer(self, entity: Any, sent: Sent, responses: Sequence[Any]) -> Values:
        (response,) = responses
        if not hasattr(response, "reassignments"):
            return {"throttle_time": 0, "error_code": response.error, "error_message": None}
        topics = [
            {"name": t, "partitions": parts}
            for t, parts in _by_topic({r.partition: r for r in response.reassignments}, _ongoing)
        ]
        return {
            "throttle_time": 0,
            "error_code": response.error,
            "error_message": None,
            "topics": topics,
        }


def _ongoing(number: int, reassignment: Any) -> Values:
    return {
        "partition_index": number,
        "replicas": reassignment.replicas,
        "adding_replicas": reassignment.adding_replicas,
        "removing_replicas": reassignment.removing_replicas,
    }
