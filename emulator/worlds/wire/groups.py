"""The APIs of consumer groups, classic protocol.

Some of Kafka's requests may name many groups, the emulator's only one: each is passed to the broker
separately. Sources: JoinGroupRequest.json and the other group requests, KafkaApis.scala@2.6.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from emulator.kafka.model.errors import Errors
from emulator.kafka.protocol import groups as g
from emulator.trace.values import TopicPartition
from emulator.worlds.wire.api import Api, Sent
from emulator.worlds.wire.entities import Entity, Values
from emulator.worlds.wire.tables import (
    ABSENT,
    FieldTable,
    PartitionNumbers,
    PartitionResult,
    PartitionTable,
    error_of,
)

NO_OPERATIONS = -(1 << 31)
"""Authorized operations that nobody has asked for."""
IDENTITY = "member=member_id instance=group_instance_id"
IN_GENERATION = f"group=group_id generation=generation_id {IDENTITY}"
PROTOCOL = "protocol_type protocol=protocol_name"


class NamedBytes(NamedTuple):
    """A protocol and its metadata, or a member and its assignment."""

    name: str
    data: bytes


class FindCoordinator(Api[g.FindCoordinatorRequest, g.FindCoordinatorResponse]):
    """One key per request (up to version 3)."""

    name, key, sends = "FindCoordinator", 10, g.FindCoordinatorRequest
    newest = {"1.0": 1, "2.0": 2, "2.4": 3}
    request = FieldTable(g.FindCoordinatorRequest, "key key_type")
    response = FieldTable(
        g.FindCoordinatorResponse,
        "error=error_code message=error_message broker=node_id host port",
    )


class JoinGroup(Api[g.JoinGroupRequest, g.JoinGroupResponse]):
    """A new member joins twice from version 4 on (KIP-394)."""

    name, key, sends = "JoinGroup", 11, g.JoinGroupRequest
    newest = {"1.0": 2, "2.0": 3, "2.2": 4, "2.3": 5, "2.4": 6, "2.5": 7}
    request = FieldTable(
        g.JoinGroupRequest,
        f"group=group_id session_timeout_ms=session_timeout {IDENTITY}"
        " rebalance_timeout_ms=rebalance_timeout protocol_type protocols",
        entries={"protocols": FieldTable(NamedBytes, "name data=metadata")},
    )
    response = FieldTable(
        g.JoinGroupResponse,
        f"error=error_code generation=generation_id {PROTOCOL} leader member=member_id members",
        entries={"members": FieldTable(g.JoinedMember, f"{IDENTITY} metadata")},
    )

    def read_request(self, entity: Entity) -> Sent:
        request = self.request.read(entity)
        if entity.__version__ == 0:  # one timeout for both
            request = msgspec.structs.replace(
                request, rebalance_timeout_ms=request.session_timeout_ms
            )
        joins_twice = entity.__version__ >= 4 and request.instance is None
        return Sent((msgspec.structs.replace(request, requires_known_member_id=joins_twice),))

    def write_response(self, entity: Entity, responses: Sequence[g.JoinGroupResponse]) -> Values:
        (response,) = responses
        if response.protocol is None and entity.__version__ < 7:  # null only from version 7 on
            response = msgspec.structs.replace(response, protocol="")
        return self.response.write(response)


class SyncGroup(Api[g.SyncGroupRequest, g.SyncGroupResponse]):
    """The response waits until the leader has sent the assignment."""

    name, key, sends = "SyncGroup", 14, g.SyncGroupRequest
    newest = {"1.0": 1, "2.0": 2, "2.3": 3, "2.4": 4, "2.5": 5}
    request = FieldTable(
        g.SyncGroupRequest,
        f"{IN_GENERATION} {PROTOCOL} assignments",
        entries={"assignments": FieldTable(NamedBytes, "name=member_id data=assignment")},
    )
    response = FieldTable(g.SyncGroupResponse, f"error=error_code {PROTOCOL} assignment")


class Heartbeat(Api[g.HeartbeatRequest, g.HeartbeatResponse]):
    """A member learns from it that it has to join again."""

    name, key, sends = "Heartbeat", 12, g.HeartbeatRequest
    newest = {"1.0": 1, "2.0": 2, "2.3": 3, "2.4": 4}
    request = FieldTable(g.HeartbeatRequest, IN_GENERATION)
    response = FieldTable(g.HeartbeatResponse, "error=error_code")


_MEMBER = FieldTable(g.MemberIdentity, IDENTITY)


class LeaveGroup(Api[g.LeaveGroupRequest, g.LeaveGroupResponse]):
    """One member up to version 2, several from version 3 on."""

    name, key, sends = "LeaveGroup", 13, g.LeaveGroupRequest
    newest = {"1.0": 1, "2.0": 2, "2.4": 4}

    def read_request(self, entity: Entity) -> Sent:
        members = [entity] if entity.__version__ < 3 else entity.members
        return Sent((g.LeaveGroupRequest(entity.group_id, tuple(map(_MEMBER.read, members))),))

    def write_response(self, entity: Entity, responses: Sequence[g.LeaveGroupResponse]) -> Values:
        (response,) = responses
        error = response.error
        # Up to version 2 the member's error is the error of the whole response.
        if entity.__version__ < 3 and error is Errors.NONE:
            error = response.members[0][1]
        members = [{**_MEMBER.write(m), "error_code": result} for m, result in response.members]
        return {"error_code": error, "members": members}

    def write_request(self, request: g.LeaveGroupRequest) -> Values:
        return {
            "group_id": request.group,
            # For versions with a single member.
            "member_id": request.members[0].member,
            "members": [_MEMBER.write(member) for member in request.members],
        }

    def read_response(self, entity: Entity, request: g.LeaveGroupRequest) -> g.LeaveGroupResponse:
        entries = getattr(entity, "members", ())
        members = tuple((_MEMBER.read(entry), error_of(entry.error_code)) for entry in entries)
        return g.LeaveGroupResponse(error_of(entity.error_code), members)


class OffsetEntry(msgspec.Struct, frozen=True):
    """A partition of OffsetCommit and OffsetFetch, flat as in `PartitionTable`."""

    partition: TopicPartition
    offset: int
    leader_epoch: int = ABSENT
    metadata: str | None = ""
    error: Errors = Errors.NONE


_PARTITIONS = "topics.name", "partitions.partition_index"
_REQUESTED = PartitionNumbers("topics.name", "partition_indexes")
Offsets = Iterable[tuple[TopicPartition, g.CommittedOffset]]


class OffsetTable:
    """The committed offsets of a message, each with its partition."""

    def __init__(self, fields: str, **also: object) -> None:
        self._entries = PartitionTable(OffsetEntry, *_PARTITIONS, fields, also=lambda _: also)

    def read(self, entity: Entity) -> tuple[tuple[TopicPartition, g.CommittedOffset], ...]:
        return tuple(
            (e.partition, g.CommittedOffset(e.offset, e.leader_epoch, e.metadata or ""))
            for e in self._entries.read(entity)
        )

    def write(self, value: Offsets, error: Errors = Errors.NONE) -> Values:
        return self._entries.write(
            OffsetEntry(p, o.offset, o.leader_epoch, o.metadata, error) for p, o in value
        )


class OffsetCommit(Api[g.OffsetCommitRequest, g.OffsetCommitResponse]):
    """From version 1 on: version 0 stores offsets in ZooKeeper."""

    name, key, sends, least = "OffsetCommit", 8, g.OffsetCommitRequest, 1
    newest = {"1.0": 3, "2.0": 4, "2.1": 6, "2.3": 7, "2.4": 8}
    request = FieldTable(
        g.OffsetCommitRequest,
        f"group=group_id generation=generation_id_or_member_epoch {IDENTITY}",
        parts={
            "offsets": OffsetTable(
                "offset=committed_offset leader_epoch=committed_leader_epoch"
                " metadata=committed_metadata",
                commit_timestamp=-1,
            )
        },
        also=lambda _: {"retention_time": -1},
    )
    response = FieldTable(
        g.OffsetCommitResponse,
        "",
        parts={"partitions": PartitionTable(PartitionResult, *_PARTITIONS, "error=error_code")},
    )


class OffsetFetch(Api[g.OffsetFetchRequest, g.OffsetFetchResponse]):
    """From version 1 on; from version 2 on there is a field for the group's error."""

    name, key, sends, least = "OffsetFetch", 9, g.OffsetFetchRequest, 1
    newest = {"1.0": 3, "2.0": 4, "2.1": 5, "2.4": 6, "2.5": 7}
    # Version 1 has no null: an empty list requests nothing.
    request = FieldTable(
        g.OffsetFetchRequest,
        "group=group_id",
        parts={"partitions": _REQUESTED},
        also=lambda _: {"require_stable": False},
    )
    offsets = OffsetTable(
        "offset=committed_offset leader_epoch=committed_leader_epoch metadata error=error_code"
    )
    response = FieldTable(
        g.OffsetFetchResponse,
        "error=error_code",
        parts={"offsets": offsets},
        absent={"error": Errors.NONE},
    )

    def write_response(self, entity: Entity, responses: Sequence[g.OffsetFetchResponse]) -> Values:
        (response,) = responses
        if response.error is Errors.NONE or entity.__version__ >= 2:
            return self.response.write(response)
        nothing = [(p, g.CommittedOffset(-1)) for p in _REQUESTED.read(entity) or ()]
        return self.offsets.write(nothing, response.error)


class ListGroups(Api[g.ListGroupsRequest, g.ListGroupsResponse]):
    """Only this coordinator's groups: a client queries every broker."""

    name, key, sends = "ListGroups", 16, g.ListGroupsRequest
    newest = {"1.0": 1, "2.0": 2, "2.4": 3, "2.6": 4}
    request = FieldTable(g.ListGroupsRequest, "states=states_filter")
    response = FieldTable(
        g.ListGroupsResponse,
        "error=error_code groups",
        entries={
            "groups": FieldTable(g.ListedGroup, "group=group_id protocol_type state=group_state")
        },
    )


_DESCRIBED = FieldTable(
    g.DescribeGroupsResponse,
    "error=error_code state=group_state protocol_type protocol=protocol_data members",
    entries={
        "members": FieldTable(
            g.DescribedMember,
            f"{IDENTITY} client_id client_host metadata=member_metadata"
            " assignment=member_assignment",
        )
    },
    also=lambda _: {"authorized_operations": NO_OPERATIONS},
)


class DescribeGroups(Api[g.DescribeGroupsRequest, g.DescribeGroupsResponse]):
    """Many groups in one request."""

    name, key, sends = "DescribeGroups", 15, g.DescribeGroupsRequest
    newest = {"1.0": 1, "2.0": 2, "2.3": 3, "2.4": 5}

    def read_request(self, entity: Entity) -> Sent:
        return Sent(tuple(map(g.DescribeGroupsRequest, entity.groups)))

    def write_response(
        self, entity: Entity, responses: Sequence[g.DescribeGroupsResponse]
    ) -> Values:
        pairs = zip(entity.groups, responses, strict=True)
        return {"groups": [{"group_id": group, **_DESCRIBED.write(r)} for group, r in pairs]}

    def write_request(self, request: g.DescribeGroupsRequest) -> Values:
        return {"groups": [request.group], "include_authorized_operations": False}

    def read_response(
        self, entity: Entity, request: g.DescribeGroupsRequest
    ) -> g.DescribeGroupsResponse:
        return _DESCRIBED.read(entity.groups[0])


class DeleteGroups(Api[g.DeleteGroupsRequest, g.DeleteGroupsResponse]):
    """Many groups in one request."""

    name, key, sends = "DeleteGroups", 42, g.DeleteGroupsRequest
    newest = {"1.1": 0, "2.0": 1, "2.4": 2}

    def read_request(self, entity: Entity) -> Sent:
        return Sent(tuple(map(g.DeleteGroupsRequest, entity.groups_names)))

    def write_response(self, entity: Entity, responses: Sequence[g.DeleteGroupsResponse]) -> Values:
        pairs = zip(entity.groups_names, responses, strict=True)
        return {"results": [{"group_id": group, "error_code": r.error} for group, r in pairs]}

    def write_request(self, request: g.DeleteGroupsRequest) -> Values:
        return {"groups_names": [request.group]}

    def read_response(
        self, entity: Entity, request: g.DeleteGroupsRequest
    ) -> g.DeleteGroupsResponse:
        return g.DeleteGroupsResponse(error_of(entity.results[0].error_code))
