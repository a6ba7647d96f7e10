"""Records of `__consumer_offsets`: as Kafka writes them, and read again in every version."""

from __future__ import annotations

import pytest

from emulator.kafka.coordinator.group_records import (
    GroupKey,
    OffsetKey,
    StoredGroup,
    StoredMember,
    UnknownRecord,
    group_key,
    group_value,
    offset_key,
    offset_value,
    read_group,
    read_key,
    read_offset,
)
from emulator.kafka.protocol.groups import CommittedOffset
from emulator.trace.values import TopicPartition

ORDERS = TopicPartition("orders", 7)
MEMBER = StoredMember("m-1", "i", "client", "/127.0.0.1", 60_000, 10_000, b"sub", b"part")
GROUP = StoredGroup("consumer", 3, "range", "m-1", (MEMBER,), 99)


def test_keys_are_kafkas_bytes() -> None:
    assert offset_key("g", ORDERS).hex() == "000100016700066f726465727300000007"
    assert group_key("g").hex() == "0002000167"
    assert read_key(offset_key("g", ORDERS)) == OffsetKey("g", ORDERS)
    assert read_key(group_key("g")) == GroupKey("g")


@pytest.mark.parametrize(("version", "epoch", "expires"), [(1, -1, 100), (2, -1, -1), (3, 4, -1)])
def test_an_offset_is_read_in_every_version(version: int, epoch: int, expires: int) -> None:
    """Only version 1 says when it expires, only version 3 has the leader epoch."""
    value = offset_value(CommittedOffset(5, 4, "note", 99, 100), version)
    assert read_offset(value) == CommittedOffset(5, epoch, "note", 99, expires)
    assert len(value) == {1: 32, 2: 24, 3: 28}[version]


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_a_group_is_read_in_every_version(version: int) -> None:
    """Without a rebalance time-out of its own (version 0) a member has its session's."""
    read = read_group(group_value(GROUP, version))
    member = MEMBER._replace(
        instance="i" if version >= 3 else None,
        rebalance_timeout_ms=60_000 if version >= 1 else 10_000,
    )
    assert read.members == (member,)
    assert (read.generation, read.protocol, read.leader) == (3, "range", "m-1")
    assert read.timestamp_ms == (99 if version >= 2 else -1)


@pytest.mark.parametrize("read", [read_key, read_offset, read_group])
@pytest.mark.parametrize("data", [b"", b"\0", b"\0\x09", b"\0\1\0", b"\xff\xff"])
def test_what_is_not_known_is_said_and_nothing_else(read: object, data: bytes) -> None:
    with pytest.raises(UnknownRecord):
        read(data)  # type: ignore[operator]
