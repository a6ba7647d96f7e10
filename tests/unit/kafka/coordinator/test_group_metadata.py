"""A group's rules by themselves; rebalances are played in tests/interaction/test_groups."""

from __future__ import annotations

from emulator.kafka.coordinator.group_metadata import GroupMetadata, GroupState
from emulator.kafka.protocol.groups import CommittedOffset
from emulator.kernel.scheduler import Kernel
from emulator.trace.sink import Sink
from emulator.trace.values import TopicPartition

ORDERS = TopicPartition("orders", 0)


def test_the_commit_that_stands_later_in_the_log_wins() -> None:
    """Whichever answer comes first."""
    group = GroupMetadata(Kernel(Sink()), "g", lambda: 0)
    for position, offset in ((21, 9), (20, 7)):
        commit(group, offset, position)
        assert group.offsets == {ORDERS: CommittedOffset(9)}
    commit(group, 3, 22)
    assert group.offsets == {ORDERS: CommittedOffset(3)}


def commit(group: GroupMetadata, offset: int, position: int) -> None:
    group.prepare_offset_commit([(ORDERS, CommittedOffset(offset))])
    group.on_offset_committed(ORDERS, CommittedOffset(offset), position)


def test_only_offsets_that_were_there_are_removed() -> None:
    """removeOffsets: each of them gets a tombstone."""
    group = GroupMetadata(Kernel(Sink()), "g", lambda: 0)
    commit(group, 9, 21)
    assert group.remove_offsets([TopicPartition("orders", 1), ORDERS, ORDERS]) == [ORDERS]
    assert not group.has_offsets


def test_a_group_that_has_lost_its_members_supports_every_protocol() -> None:
    """The first consumer left within group.initial.rebalance.delay.ms, and another one joins."""
    group = GroupMetadata(Kernel(Sink()), "g", lambda: 0)
    group.state, group.protocol_type = GroupState.PREPARING_REBALANCE, "consumer"
    assert group.supports_protocols("consumer", ["range"])
    assert not group.supports_protocols("consumer", [])
    assert not group.supports_protocols("connect", ["range"])
