"""`leader of orders-0 goes 1 -> none -> 2`: the complete history of leaders.

Held when the leaders of the state znode's versions are exactly these; `none` is a version without a
leader, which the controller writes when no ISR member is alive. Unknown if the partition does not
exist.
"""

from __future__ import annotations

from emulator.scenario.expectations.base import Check, Finding
from emulator.trace.values import TopicPartition

SHOWN = 12


class LeaderHistory(Check):
    forms = ("leader of {partition} goes {leaders}",)
    partition: TopicPartition
    leaders: tuple[int, ...]

    def at_end(self) -> Finding:
        history = self.state.partitions.of(self.partition).leader_history
        if not history:
            return Finding(None, "there is no such partition")
        shown = " -> ".join(_name(leader) for leader in history[:SHOWN])
        more = f" -> ... ({len(history)})" if len(history) > SHOWN else ""
        return Finding(tuple(history) == self.leaders, shown + more)


def _name(leader: int) -> str:
    return str(leader) if leader >= 0 else "none"
