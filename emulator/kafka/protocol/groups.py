"""Requests and responses of consumer groups, with Kafka's names and fields (classic protocol).

Small frozen structs without behaviour. Errors are Kafka's codes. Subscriptions and assignments are
bytes that the broker does not read.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from emulator.kafka.model.errors import Errors
from emulator.trace.values import TopicPartition


class FindCoordinatorRequest(msgspec.Struct, frozen=True):
    """Find the coordinator of a group (`key_type` 0) or of a transactional id (1)."""

    key: str
    key_type: int = 0


class FindCoordinatorResponse(msgspec.Struct, frozen=True):
    """The coordinator; -1 with an error."""

    error: Errors
    message: str = ""
    broker: int = -1
    host: str = ""
    port: int = -1


class JoinGroupRequest(msgspec.Struct, frozen=True):
    """v7. `protocols`: the member's, in order of preference. `requires_known_member_id`: a new
    member gets an id and joins again with it (v4, KIP-394)."""

    group: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    member: str
    instance: str | None
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]
    requires_known_member_id: bool = False


class JoinedMember(NamedTuple):
    """One member, as sent to the group's leader for the assignment."""

    member: str
    instance: str | None
    metadata: bytes


class JoinGroupResponse(msgspec.Struct, frozen=True):
    """`members` is filled only for the group's leader."""

    error: Errors
    generation: int = -1
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    member: str = ""
    members: tuple[JoinedMember, ...] = ()


class SyncGroupRequest(msgspec.Struct, frozen=True):
    """v5. The leader's request has the assignments of all members."""

    group: str
    generation: int
    member: str
    instance: str | None = None
    protocol_type: str | None = None
    protocol: str | None = None
    assignments: tuple[tuple[str, bytes], ...] = ()


class SyncGroupResponse(msgspec.Struct, frozen=True):
    """This member's assignment."""

    error: Errors
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


class HeartbeatRequest(msgspec.Struct, frozen=True):
    """v4."""

    group: str
    generation: int
    member: str
    instance: str | None = None


class HeartbeatResponse(msgspec.Struct, frozen=True):
    """Only an error: REBALANCE_IN_PROGRESS means that the member has to join again."""

    error: Errors


class MemberIdentity(NamedTuple):
    """A member by its id, or a static member by its instance id."""

    member: str
    instance: str | None = None


class LeaveGroupRequest(msgspec.Struct, frozen=True):
    """v4; up to v2 a request has one member."""

    group: str
    members: tuple[MemberIdentity, ...]


class LeaveGroupResponse(msgspec.Struct, frozen=True):
    """`members` has an error for each member of the request."""

    error: Errors
    members: tuple[tuple[MemberIdentity, Errors], ...] = ()


class CommittedOffset(NamedTuple):
    """The offset that a group has committed for one partition; -1 if none.

    The coordinator adds the times. `expire_timestamp_ms` (-1: none) was set at the commit up to
    2.0.
    """

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp_ms: int = -1
    expire_timestamp_ms: int = -1


class OffsetCommitRequest(msgspec.Struct, frozen=True):
    """v8. Generation -1: the consumer assigns partitions itself and only stores its offsets."""

    group: str
    generation: int
    member: str
    instance: str | None
    offsets: tuple[tuple[TopicPartition, CommittedOffset], ...]


class OffsetCommitResponse(msgspec.Struct, frozen=True):
    """An error for each partition of the request."""

    partitions: tuple[tuple[TopicPartition, Errors], ...]


class OffsetFetchRequest(msgspec.Struct, frozen=True):
    """v7. None: all partitions for which the group has an offset."""

    group: str
    partitions: tuple[TopicPartition, ...] | None = None


class OffsetFetchResponse(msgspec.Struct, frozen=True):
    """`offsets` is empty with an error."""

    error: Errors
    offsets: tuple[tuple[TopicPartition, CommittedOffset], ...] = ()


class ListGroupsRequest(msgspec.Struct, frozen=True):
    """v4: this coordinator's groups in the given states (empty: all groups)."""

    states: tuple[str, ...] = ()


class ListedGroup(NamedTuple):
    """One group of the list."""

    group: str
    protocol_type: str
    state: str = ""


class ListGroupsResponse(msgspec.Struct, frozen=True):
    """The groups of one coordinator."""

    error: Errors
    groups: tuple[ListedGroup, ...] = ()


class DescribeGroupsRequest(msgspec.Struct, frozen=True):
    """One group; Kafka's request may name several."""

    group: str


class DescribedMember(NamedTuple):
    """A member; metadata and assignment only if the group is stable."""

    member: str
    instance: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class DescribeGroupsResponse(msgspec.Struct, frozen=True):
    """One group. A group that does not exist is in state Dead."""

    error: Errors
    state: str = ""
    protocol_type: str = ""
    protocol: str = ""
    members: tuple[DescribedMember, ...] = ()


class DeleteGroupsRequest(msgspec.Struct, frozen=True):
    """One group; Kafka's request may name several."""

    group: str


class DeleteGroupsResponse(msgspec.Struct, frozen=True):
    """Only an error."""

    error: Errors


GroupRequest = (
    JoinGroupRequest
    | SyncGroupRequest
    | HeartbeatRequest
    | LeaveGroupRequest
    | OffsetCommitRequest
    | OffsetFetchRequest
    | ListGroupsRequest
    | DescribeGroupsRequest
    | DeleteGroupsRequest
)
GroupResponse = (
    JoinGroupResponse
    | SyncGroupResponse
    | HeartbeatResponse
    | LeaveGroupResponse
    | OffsetCommitResponse
    | OffsetFetchResponse
    | ListGroupsResponse
    | DescribeGroupsResponse
    | DeleteGroupsResponse
)
