"""A group's rules by themselves; rebalances are played in tests/interaction/test_groups."""

from __future__ import annotations

from emulator.kafka.coordinator.group_metadata import GroupMetadata
from emulator.kafka.protocol.groups import CommittedOffset
from emulator.kernel.scheduler import Kernel
from emulator.trace.sink import Sink
from emulator.trace.values import TopicPartition

ORDERS = TopicPartition("orders", 0)


def test_the_commit_that_stands_later_in_the_log_wins() -> None:
    """Whichever answer comes first."""
    group = GroupMetadata(Kernel(Sink()), "g", lambda: 0)
    group.on_offset_committed(ORDERS, CommittedOffset(9), base_offset=21)
    group.on_offset_committed(ORDERS, CommittedOffset(7), base_offset=20)
    assert group.offsets == {ORDERS: CommittedOffset(9)}
    group.on_offset_committed(ORDERS, CommittedOffset(3), base_offset=22)
    assert group.offsets == {ORDERS: CommittedOffset(3)}
