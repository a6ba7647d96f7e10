"""`leader of orders-0 becomes 2 between 11s and 13s`: an election, in the scenario's time.

Held when some version of the state znode, written in that time, has this leader and its predecessor
another one (or none). Not held otherwise.
"""

from __future__ import annotations

import itertools

from emulator.scenario.expectations.base import Check, Finding
from emulator.scenario.units import show_us
from emulator.trace.values import TopicPartition


class LeaderBecomes(Check):
    forms = (
        "leader of {partition} becomes {leader} between {low_us:duration} and {high_us:duration}",
    )
    partition: TopicPartition
    leader: int
    low_us: int
    high_us: int

    def at_end(self) -> Finding:
        states = self.state.partitions.of(self.partition).states
        when = [
            self.state.clock.since_up(after.from_us)
            for before, after in itertools.pairwise(states)
            if after.leader == self.leader != before.leader
        ]
        if not when:
            return Finding(False, "it never did")
        held = any(self.low_us <= t <= self.high_us for t in when)
        return Finding(held, "at " + ", ".join(map(show_us, when[:5])))
