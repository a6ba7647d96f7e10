"""The APIs of consumer groups, classic protocol.

Some of Kafka's requests name many groups, ours one: each is given to the broker by itself. Sources:
JoinGroupRequest.json and its neighbours, KafkaApis.scala@2.6.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from emulator.kafka.model.errors import Errors
from emulator.kafka.protocol.groups import (
    CommittedOffset,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinedMember,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
    MemberIdentity,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from emulator.trace.values import TopicPartition
from emulator.worlds.wire.api import Api, Sent
from emulator.worlds.wire.entities import Entity, Values, milliseconds
from emulator.worlds.wire.partitions import ABSENT, PartitionTable, error_of, numbers_by_topic

NO_OPERATIONS = -(1 << 31)
"""Authorized operations that nobody has asked for."""
GROUP = 0
"""FindCoordinatorRequest.CoordinatorType; the only one before version 1."""


class FindCoordinator(Api[FindCoordinatorRequest, FindCoordinatorResponse]):
    """One key per request (up to version 3)."""

    name, key, sends = "FindCoordinator", 10, FindCoordinatorRequest
    newest = {"1.0": 1, "2.0": 2, "2.4": 3}

    def read_request(self, entity: Entity) -> Sent:
        return Sent((FindCoordinatorRequest(entity.key, getattr(entity, "key_type", GROUP)),))

    def write_response(
        self, entity: Entity, responses: Sequence[FindCoordinatorResponse]
    ) -> Values:
        (response,) = responses
        return {
            "throttle_time": 0,
            "error_code": response.error,
            "error_message": response.message or None,
            "node_id": response.broker,
            "host": response.host,
            "port": response.port,
        }

    def write_request(self, request: FindCoordinatorRequest) -> Values:
        return {"key": request.key, "key_type": request.key_type}

    def read_response(
        self, entity: Entity, request: FindCoordinatorRequest
    ) -> FindCoordinatorResponse:
        message = getattr(entity, "error_message", None) or ""
        error = error_of(entity.error_code)
        return FindCoordinatorResponse(error, message, entity.node_id, entity.host, entity.port)


class JoinGroup(Api[JoinGroupRequest, JoinGroupResponse]):
    """A new member joins twice from version 4 on (KIP-394)."""

    name, key, sends = "JoinGroup", 11, JoinGroupRequest
    newest = {"1.0": 2, "2.0": 3, "2.2": 4, "2.3": 5, "2.4": 6, "2.5": 7}

    def read_request(self, entity: Entity) -> Sent:
        session = milliseconds(entity.session_timeout)
        rebalance = getattr(entity, "rebalance_timeout", None)
        instance = getattr(entity, "group_instance_id", None)
        request = JoinGroupRequest(
            entity.group_id,
            session,
            session if rebalance is None else milliseconds(rebalance),
            entity.member_id,
            instance,
            entity.protocol_type,
            tuple((p.name, bytes(p.metadata)) for p in entity.protocols),
            entity.__version__ >= 4 and instance is None,
        )
        return Sent((request,))

    def write_response(self, entity: Entity, responses: Sequence[JoinGroupResponse]) -> Values:
        (response,) = responses
        name = response.protocol
        # Null only from version 7 on.
        absent = None if entity.__version__ >= 7 else ""
        return {
            "throttle_time": 0,
            "error_code": response.error,
            "generation_id": response.generation,
            "protocol_type": response.protocol_type,
            "protocol_name": absent if name is None else name,
            "leader": response.leader,
            "member_id": response.member,
            "members": [
                {"member_id": m.member, "group_instance_id": m.instance, "metadata": m.metadata}
                for m in response.members
            ],
        }

    def write_request(self, request: JoinGroupRequest) -> Values:
        return {
            "group_id": request.group,
            "session_timeout": request.session_timeout_ms,
            "rebalance_timeout": request.rebalance_timeout_ms,
            "member_id": request.member,
            "group_instance_id": request.instance,
            "protocol_type": request.protocol_type,
            "protocols": [{"name": name, "metadata": data} for name, data in request.protocols],
        }

    def read_response(self, entity: Entity, request: JoinGroupRequest) -> JoinGroupResponse:
        return JoinGroupResponse(
            error_of(entity.error_code),
            entity.generation_id,
            getattr(entity, "protocol_type", None),
            entity.protocol_name,
            entity.leader,
            entity.member_id,
            tuple(
                JoinedMember(m.member_id, getattr(m, "group_instance_id", None), bytes(m.metadata))
                for m in entity.members
            ),
        )


class SyncGroup(Api[SyncGroupRequest, SyncGroupResponse]):
    """The answer waits until the leader has sent the assignment."""

    name, key, sends = "SyncGroup", 14, SyncGroupRequest
    newest = {"1.0": 1, "2.0": 2, "2.3": 3, "2.4": 4, "2.5": 5}

    def read_request(self, entity: Entity) -> Sent:
        request = SyncGroupRequest(
            entity.group_id,
            entity.generation_id,
            entity.member_id,
            getattr(entity, "group_instance_id", None),
            getattr(entity, "protocol_type", None),
            getattr(entity, "protocol_name", None),
            tuple((a.member_id, bytes(a.assignment)) for a in entity.assignments),
        )
        return Sent((request,))

    def write_response(self, entity: Entity, responses: Sequence[SyncGroupResponse]) -> Values:
        (response,) = responses
        return {
            "throttle_time": 0,
            "error_code": response.error,
            "protocol_type": response.protocol_type,
            "protocol_name": response.protocol,
            "assignment": response.assignment,
        }

    def write_request(self, request: SyncGroupRequest) -> Values:
        return {
            "group_id": request.group,
            "generation_id": request.generation,
            "member_id": request.member,
            "group_instance_id": request.instance,
            "protocol_type": request.protocol_type,
            "protocol_name": request.protocol,
            "assignments": [
                {"member_id": member, "assignment": data} for member, data in request.assignments
            ],
        }

    def read_response(self, entity: Entity, request: SyncGroupRequest) -> SyncGroupResponse:
        return SyncGroupResponse(
            error_of(entity.error_code),
            getattr(entity, "protocol_type", None),
            getattr(entity, "protocol_name", None),
            bytes(entity.assignment),
        )


class Heartbeat(Api[HeartbeatRequest, HeartbeatResponse]):
    """How a member learns that it is to join again."""

    name, key, sends = "Heartbeat", 12, HeartbeatRequest
    newest = {"1.0": 1, "2.0": 2, "2.3": 3, "2.4": 4}

    def read_request(self, entity: Entity) -> Sent:
        instance = getattr(entity, "group_instance_id", None)
        request = HeartbeatRequest(
            entity.group_id, entity.generation_id, entity.member_id, instance
        )
        return Sent((request,))

    def write_response(self, entity: Entity, responses: Sequence[HeartbeatResponse]) -> Values:
        return {"throttle_time": 0, "error_code": responses[0].error}

    def write_request(self, request: HeartbeatRequest) -> Values:
        return {
            "group_id": request.group,
            "generation_id": request.generation,
            "member_id": request.member,
            "group_instance_id": request.instance,
        }

    def read_response(self, entity: Entity, request: HeartbeatRequest) -> HeartbeatResponse:
        return HeartbeatResponse(error_of(entity.error_code))


class LeaveGroup(Api[LeaveGroupRequest, LeaveGroupResponse]):
    """One member up to version 2, several behind it."""

    name, key, sends = "LeaveGroup", 13, LeaveGroupRequest
    newest = {"1.0": 1, "2.0": 2, "2.4": 4}

    def read_request(self, entity: Entity) -> Sent:
        if entity.__version__ < 3:
            members: tuple[MemberIdentity, ...] = (MemberIdentity(entity.member_id),)
        else:
            members = tuple(
                MemberIdentity(m.member_id, m.group_instance_id) for m in entity.members
            )
        return Sent((LeaveGroupRequest(entity.group_id, members),))

    def write_response(self, entity: Entity, responses: Sequence[LeaveGroupResponse]) -> Values:
        (response,) = responses
        error = response.error
        if entity.__version__ < 3 and error is Errors.NONE:
            error = response.members[0][1]
        return {
            "throttle_time": 0,
            "error_code": error,
            "members": [
                {
                    "member_id": member.member,
                    "group_instance_id": member.instance,
                    "error_code": result,
                }
                for member, result in response.members
            ],
        }

    def write_request(self, request: LeaveGroupRequest) -> Values:
        return {
            "group_id": request.group,
            "member_id": request.members[0].member,
            "members": [
                {"member_id": m.member, "group_instance_id": m.instance} for m in request.members
            ],
        }

    def read_response(self, entity: Entity, request: LeaveGroupRequest) -> LeaveGroupResponse:
        members = tuple(
            (MemberIdentity(m.member_id, m.group_instance_id), error_of(m.error_code))
            for m in getattr(entity, "members", ())
        )
        return LeaveGroupResponse(error_of(entity.error_code), members)


class OffsetEntry(msgspec.Struct, frozen=True):
    """A partition of OffsetCommit and OffsetFetch, flat as `PartitionTable` has it."""

    partition: TopicPartition
    offset: int
    leader_epoch: int = ABSENT
    metadata: str | None = ""
    error: Errors = Errors.NONE


class OffsetResult(msgspec.Struct, frozen=True):
    partition: TopicPartition
    error: Errors


_PARTITIONS = "topics.name", "partitions.partition_index"
_COMMITTED = PartitionTable(
    OffsetEntry,
    *_PARTITIONS,
    "offset=committed_offset leader_epoch=committed_leader_epoch metadata=committed_metadata",
    also=lambda _: {"commit_timestamp": -1},
)
_RESULTS = PartitionTable(OffsetResult, *_PARTITIONS, "error=error_code")
_OFFSETS = PartitionTable(
    OffsetEntry,
    *_PARTITIONS,
    "offset=committed_offset leader_epoch=committed_leader_epoch metadata error=error_code",
)


Offsets = Iterable[tuple[TopicPartition, CommittedOffset]]


def _entries(offsets: Offsets, error: Errors = Errors.NONE) -> list[OffsetEntry]:
    return [OffsetEntry(p, o.offset, o.leader_epoch, o.metadata, error) for p, o in offsets]


def _offsets(entries: Iterable[OffsetEntry]) -> tuple[tuple[TopicPartition, CommittedOffset], ...]:
    return tuple(
        (e.partition, CommittedOffset(e.offset, e.leader_epoch, e.metadata or "")) for e in entries
    )


class OffsetCommit(Api[OffsetCommitRequest, OffsetCommitResponse]):
    """From version 1 on: version 0 keeps offsets in ZooKeeper."""

    name, key, sends, least = "OffsetCommit", 8, OffsetCommitRequest, 1
    newest = {"1.0": 3, "2.0": 4, "2.1": 6, "2.3": 7, "2.4": 8}

    def read_request(self, entity: Entity) -> Sent:
        request = OffsetCommitRequest(
            entity.group_id,
            entity.generation_id_or_member_epoch,
            entity.member_id,
            getattr(entity, "group_instance_id", None),
            _offsets(_COMMITTED.read(entity)),
        )
        return Sent((request,))

    def write_response(self, entity: Entity, responses: Sequence[OffsetCommitResponse]) -> Values:
        results = [OffsetResult(p, error) for p, error in responses[0].partitions]
        return {"throttle_time": 0, **_RESULTS.write(results)}

    def write_request(self, request: OffsetCommitRequest) -> Values:
        return {
            "group_id": request.group,
            "generation_id_or_member_epoch": request.generation,
            "member_id": request.member,
            "group_instance_id": request.instance,
            "retention_time": -1,
            **_COMMITTED.write(_entries(request.offsets)),
        }

    def read_response(self, entity: Entity, request: OffsetCommitRequest) -> OffsetCommitResponse:
        return OffsetCommitResponse(tuple((r.partition, r.error) for r in _RESULTS.read(entity)))


class OffsetFetch(Api[OffsetFetchRequest, OffsetFetchResponse]):
    """From version 1 on; an error of the group has a place of its own from version 2 on."""

    name, key, sends, least = "OffsetFetch", 9, OffsetFetchRequest, 1
    newest = {"1.0": 3, "2.0": 4, "2.1": 5, "2.4": 6, "2.5": 7}

    def read_request(self, entity: Entity) -> Sent:
        # Version 1 has no null: there an empty list asks for nothing.
        partitions = None if entity.topics is None else _requested(entity)
        return Sent((OffsetFetchRequest(entity.group_id, partitions),))

    def write_response(self, entity: Entity, responses: Sequence[OffsetFetchResponse]) -> Values:
        (response,) = responses
        entries = _entries(response.offsets)
        if response.error is not Errors.NONE and entity.__version__ < 2:
            nothing = [(p, CommittedOffset(-1)) for p in _requested(entity)]
            entries = _entries(nothing, response.error)
        return {"throttle_time": 0, "error_code": response.error, **_OFFSETS.write(entries)}

    def write_request(self, request: OffsetFetchRequest) -> Values:
        topics = None
        if request.partitions is not None:
            topics = [
                {"name": topic, "partition_indexes": numbers}
                for topic, numbers in numbers_by_topic(request.partitions)
            ]
        return {"group_id": request.group, "topics": topics, "require_stable": False}

    def read_response(self, entity: Entity, request: OffsetFetchRequest) -> OffsetFetchResponse:
        error = error_of(entity.error_code) if hasattr(entity, "error_code") else Errors.NONE
        return OffsetFetchResponse(error, _offsets(_OFFSETS.read(entity)))


def _requested(entity: Entity) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(t.name, n) for t in entity.topics for n in t.partition_indexes)


class ListGroups(Api[ListGroupsRequest, ListGroupsResponse]):
    """Of this coordinator alone: a client asks every broker."""

    name, key, sends = "ListGroups", 16, ListGroupsRequest
    newest = {"1.0": 1, "2.0": 2, "2.4": 3, "2.6": 4}

    def read_request(self, entity: Entity) -> Sent:
        return Sent((ListGroupsRequest(tuple(getattr(entity, "states_filter", ()))),))

    def write_response(self, entity: Entity, responses: Sequence[ListGroupsResponse]) -> Values:
        (response,) = responses
        return {
            "throttle_time": 0,
            "error_code": response.error,
            "groups": [
                {"group_id": g.group, "protocol_type": g.protocol_type, "group_state": g.state}
                for g in response.groups
            ],
        }

    def write_request(self, request: ListGroupsRequest) -> Values:
        return {"states_filter": request.states}

    def read_response(self, entity: Entity, request: ListGroupsRequest) -> ListGroupsResponse:
        groups = tuple(
            ListedGroup(g.group_id, g.protocol_type, getattr(g, "group_state", ""))
            for g in entity.groups
        )
        return ListGroupsResponse(error_of(entity.error_code), groups)


class DescribeGroups(Api[DescribeGroupsRequest, DescribeGroupsResponse]):
    """Many groups in one request."""

    name, key, sends = "DescribeGroups", 15, DescribeGroupsRequest
    newest = {"1.0": 1, "2.0": 2, "2.3": 3, "2.4": 5}

    def read_request(self, entity: Entity) -> Sent:
        return Sent(tuple(DescribeGroupsRequest(group) for group in entity.groups))

    def write_response(self, entity: Entity, responses: Sequence[DescribeGroupsResponse]) -> Values:
        return {
            "throttle_time": 0,
            "groups": [
                {
                    "error_code": response.error,
                    "group_id": group,
                    "group_state": response.state,
                    "protocol_type": response.protocol_type,
                    "protocol_data": response.protocol,
                    "members": [
                        {
                            "member_id": m.member,
                            "group_instance_id": m.instance,
                            "client_id": m.client_id,
                            "client_host": m.client_host,
                            "member_metadata": m.metadata,
                            "member_assignment": m.assignment,
                        }
                        for m in response.members
                    ],
                    "authorized_operations": NO_OPERATIONS,
                }
                for group, response in zip(entity.groups, responses, strict=True)
            ],
        }

    def write_request(self, request: DescribeGroupsRequest) -> Values:
        return {"groups": [request.group], "include_authorized_operations": False}

    def read_response(
        self, entity: Entity, request: DescribeGroupsRequest
    ) -> DescribeGroupsResponse:
        group = entity.groups[0]
        return DescribeGroupsResponse(
            error_of(group.error_code),
            group.group_state,
            group.protocol_type,
            group.protocol_data,
            tuple(
                DescribedMember(
                    m.member_id,
                    getattr(m, "group_instance_id", None),
                    m.client_id,
                    m.client_host,
                    bytes(m.member_metadata),
                    bytes(m.member_assignment),
                )
                for m in group.members
            ),
        )


class DeleteGroups(Api[DeleteGroupsRequest, DeleteGroupsResponse]):
    """Many groups in one request."""

    name, key, sends = "DeleteGroups", 42, DeleteGroupsRequest
    newest = {"1.1": 0, "2.0": 1, "2.4": 2}

    def read_request(self, entity: Entity) -> Sent:
        return Sent(tuple(DeleteGroupsRequest(group) for group in entity.groups_names))

    def write_response(self, entity: Entity, responses: Sequence[DeleteGroupsResponse]) -> Values:
        results = [
            {"group_id": group, "error_code": response.error}
            for group, response in zip(entity.groups_names, responses, strict=True)
        ]
        return {"throttle_time": 0, "results": results}

    def write_request(self, request: DeleteGroupsRequest) -> Values:
        return {"groups_names": [request.group]}

    def read_response(self, entity: Entity, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
        return DeleteGroupsResponse(error_of(entity.results[0].error_code))
