"""The records of `__consumer_offsets`: committed offsets, and groups with their members.

Keys and values have Kafka's format, so that emulated and real brokers can read each other's logs.
The profile defines the written versions. Source: GroupMetadataManager.scala@2.6.3
(GROUP_METADATA_VALUE_SCHEMA_V0 to V3, OFFSET_COMMIT_VALUE_SCHEMA_V0 to V3).
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import msgspec

from emulator.kafka.protocol.groups import CommittedOffset
from emulator.trace.values import TopicPartition

OFFSET_KEY, GROUP_KEY = 1, 2
"""The newest versions of the two kinds of keys; version 0 is an offset key too."""


class OffsetKey(NamedTuple):
    group: str
    partition: TopicPartition


class GroupKey(NamedTuple):
    group: str


class StoredMember(NamedTuple):
    """A member as stored with its group."""

    member: str
    instance: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


class StoredGroup(msgspec.Struct, frozen=True):
    """A generation of a group; `protocol` and `leader` are None if it is empty."""

    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    members: tuple[StoredMember, ...]
    timestamp_ms: int = -1


class UnknownRecord(Exception):
    """The key or value has an unknown version."""


def offset_key(group: str, partition: TopicPartition) -> bytes:
    number = struct.pack(">i", partition.partition)
    return struct.pack(">h", OFFSET_KEY) + _text(group) + _text(partition.topic) + number


def group_key(group: str) -> bytes:
    return struct.pack(">h", GROUP_KEY) + _text(group)


def offset_value(committed: CommittedOffset, version: int) -> bytes:
    """Version 1 has an expiry time (-1: none), 2 does not, 3 has the leader epoch."""
    start = struct.pack(">hq", version, committed.offset)
    if version >= 3:
        start += struct.pack(">i", committed.leader_epoch)
    end = struct.pack(">q", committed.commit_timestamp_ms)
    if version == 1:
        end += struct.pack(">q", committed.expire_timestamp_ms)
    return start + _text(committed.metadata) + end


def group_value(group: StoredGroup, version: int) -> bytes:
    """Version 1 has the members' rebalance timeouts, 2 a timestamp, 3 static members."""
    out = [struct.pack(">h", version), _text(group.protocol_type)]
    out += [struct.pack(">i", group.generation), _text(group.protocol), _text(group.leader)]
    if version >= 2:
        out.append(struct.pack(">q", group.timestamp_ms))
    out.append(struct.pack(">i", len(group.members)))
    for member in group.members:
        out.append(_text(member.member))
        if version >= 3:
            out.append(_text(member.instance))
        out += [_text(member.client_id), _text(member.client_host)]
        if version >= 1:
            out.append(struct.pack(">i", member.rebalance_timeout_ms))
        out.append(struct.pack(">i", member.session_timeout_ms))
        out += [_bytes(member.subscription), _bytes(member.assignment)]
    return b"".join(out)


def read_key(data: bytes) -> OffsetKey | GroupKey:
    """Raises UnknownRecord."""
    reader = _Reader(data)
    match reader.number(">h"):
        case 0 | 1:
            group, topic = reader.required_text(), reader.required_text()
            return OffsetKey(group, TopicPartition(topic, reader.number(">i")))
        case 2:
            return GroupKey(reader.required_text())
        case version:
            raise UnknownRecord(f"a key of version {version}")


def read_offset(data: bytes) -> CommittedOffset:
    """Raises UnknownRecord."""
    reader = _Reader(data)
    version = reader.number(">h")
    if not 0 <= version <= 3:
        raise UnknownRecord(f"an offset of version {version}")
    offset = reader.number(">q")
    epoch = reader.number(">i") if version >= 3 else -1
    metadata, committed_ms = reader.required_text(), reader.number(">q")
    expires_ms = reader.number(">q") if version == 1 else -1
    return CommittedOffset(offset, epoch, metadata, committed_ms, expires_ms)


def read_group(data: bytes) -> StoredGroup:
    """Raises UnknownRecord."""
    reader = _Reader(data)
    version = reader.number(">h")
    if not 0 <= version <= 3:
        raise UnknownRecord(f"a group of version {version}")
    protocol_type, generation = reader.required_text(), reader.number(">i")
    protocol, leader = reader.text(), reader.text()
    timestamp = reader.number(">q") if version >= 2 else -1
    members = []
    for _ in range(reader.number(">i")):
        member = reader.required_text()
        instance = reader.text() if version >= 3 else None
        client_id, client_host = reader.required_text(), reader.required_text()
        rebalance = reader.number(">i") if version >= 1 else -1
        session = reader.number(">i")
        subscription, assignment = reader.data(), reader.data()
        members.append(
            StoredMember(
                member,
                instance,
                client_id,
                client_host,
                # Version 0 has one timeout for both.
                session if rebalance < 0 else rebalance,
                session,
                subscription,
                assignment,
            )
        )
    return StoredGroup(protocol_type, generation, protocol, leader, tuple(members), timestamp)


def _text(text: str | None) -> bytes:
    if text is None:
        return struct.pack(">h", -1)
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _bytes(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


class _Reader:
    """Reads fields one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def number(self, form: str) -> int:
        try:
            (value,) = struct.unpack_from(form, self._data, self._at)
        except struct.error:
            raise UnknownRecord(f"{len(self._data)} bytes that end too early") from None
        self._at += struct.calcsize(form)
        return int(value)

    def _take(self, length: int) -> bytes:
        # Beyond the end the slice is too short; reading the next number reports that.
        self._at += length
        return self._data[self._at - length : self._at]

    def text(self) -> str | None:
        length = self.number(">h")
        return None if length < 0 else self._take(length).decode("utf-8", "replace")

    def required_text(self) -> str:
        return self.text() or ""

    def data(self) -> bytes:
        return self._take(max(0, self.number(">i")))
