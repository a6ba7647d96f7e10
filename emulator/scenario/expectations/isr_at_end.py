"""`isr of orders-0 at end is {1, 2, 3}` (a set) or `[1, 3, 2]` (in order), after a different one.

Held when the last version of the state znode has this ISR and an earlier one had other members.
Unknown when the members never changed, so that there was nothing to return from.
"""

from __future__ import annotations

from emulator.scenario.expectations.base import Check, Finding
from emulator.trace.values import TopicPartition


class IsrAtEnd(Check):
    forms = (
        "isr of {partition} at end is {isr}",
        "isr of {partition} at end is {members}",
        "isr of {partition} returns to {members}",
    )
    partition: TopicPartition
    isr: tuple[int, ...] = ()
    members: tuple[int, ...] = ()

    def at_end(self) -> Finding:
        history = self.state.partitions.of(self.partition).isr_history
        if not history:
            return Finding(None, "there is no such partition")
        last = history[-1]
        right = last == self.isr if self.isr else tuple(sorted(last)) == self.members
        if right and len({frozenset(isr) for isr in history}) == 1:
            return Finding(None, f"its members were always {list(last)}")
        return Finding(right, f"it is {list(last)}")
