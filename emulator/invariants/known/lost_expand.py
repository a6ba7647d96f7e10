"""An expand is in ZooKeeper, but the leader lost the response with its session and keeps the old
ISR."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard
from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.values import TopicPartition


class LostExpand(Hazard):
    """A write during the expiry of the session throws (KafkaZkClient.scala@2.6.3
    conditionalUpdatePath), whether it was applied or not, and the leader keeps its old ISR. Its
    high watermark does not wait for the new member, which the controller may elect."""

    name = "lost expand"
    about = (
        "A leader adds an ISR member and loses both the response and its session. ZooKeeper has "
        "the new ISR, but the leader's high watermark waits for the old one. Records that it then "
        "serves and acknowledges may be missing at the elected member."
    )
    breaks = (
        "committed records survive",
        "hw within isr",
        "logs agree",
        "reads are consistent",
    )

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """A leader's high watermark advanced although the leader had not adopted its own expand,
        which ZooKeeper has. While the response is pending this is impossible, because the lock is
        held."""
        name = violation.partition
        if name is None:
            return False
        proposed: dict[int, tuple[int, tuple[int, ...]]] = {}
        without: set[int] = set()
        for event in events[: violation.facts[1] + 1]:
            broker = event.broker
            match event:
                case e.IsrUpdateStarted(partition=at, change="expand") if at == name:
                    proposed[broker] = event.zk_version + 1, event.to_isr
                case e.ZkTransaction():
                    if broker in proposed and proposed[broker] == _written(event, name):
                        without.add(broker)
                case e.HwAdvanced(partition=at, role="leader") if at == name and broker in without:
                    return True
                case (
                    e.IsrUpdated(partition=at)
                    | e.BecomesLeader(partition=at)
                    | e.BecomesFollower(partition=at)
                ) if at == name:
                    proposed.pop(broker, None)
                    without.discard(broker)
        return False


class _State(msgspec.Struct):
    isr: tuple[int, ...] = ()


def _written(event: e.ZkTransaction, name: TopicPartition) -> tuple[int, tuple[int, ...]]:
    """The version and the ISR that a leader's write gave the partition; empty for other
    transactions."""
    path = f"/brokers/topics/{name.topic}/partitions/{name.partition}/state"
    if event.op != "setData" or event.path != path or event.code:
        return -1, ()
    return event.version or 0, msgspec.json.decode(event.data or "{}", type=_State).isr
