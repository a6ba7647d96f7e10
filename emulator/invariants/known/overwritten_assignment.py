"""AddPartitions writes a topic's assignment back as it read it, over a reassignment."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard
from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.state.znodes import TopicData, Znodes


class OverwrittenAssignment(Hazard):
    """AdminZkClient.scala addPartitions reads the topic's znode, and KafkaZkClient.scala
    setTopicAssignment writes it without a version (MatchAnyVersion, in 0.8.2 to 3.3)."""

    name = "overwritten assignment"
    about = (
        "A broker adds partitions to a topic while the controller writes a reassignment of another "
        "of its partitions. The broker read the assignment before and writes it after, without a "
        "version. The znode has the old replicas again; the new ones fetch and join the ISR."
    )
    breaks = ("isr within assignment",)

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """The last write that changed this partition's replicas also added a partition, which no
        controller does."""
        partition = violation.partition
        if partition is None:
            return False
        znodes, number, overwritten = Znodes(), str(partition.partition), False
        before = TopicData()
        for event in events[: violation.facts[0] + 1]:
            if not isinstance(event, e.ZkTransaction):
                continue
            znodes.on_zk_transaction(event)
            after = znodes.topics().get(partition.topic, TopicData())
            if number in before.partitions and (
                before.partitions[number] != after.partitions.get(number)
            ):
                overwritten = len(after.partitions) > len(before.partitions)
            before = after
        return overwritten
