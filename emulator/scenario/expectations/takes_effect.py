"""`the slowest isr change of orders takes at least 60ms to take effect`, or `at most`.

The time from the leader's decision until it has the new ISR: the duration of the write by the
leader or the controller. Unknown if no ISR of the topic changed.
"""

from __future__ import annotations

from emulator.scenario.expectations.base import Check, Finding
from emulator.scenario.units import show_us


class TakesEffect(Check):
    forms = ("the slowest isr change of {topic} takes {bound} {us:duration} to take effect",)
    words = {"bound": ("at least", "at most")}
    topic: str
    bound: str
    us: int

    def at_end(self) -> Finding:
        decided = self.state.propagation.decided
        own = [one for one in decided if one.attempt.started.partition.topic == self.topic]
        if not own:
            return Finding(None, "no ISR changed")
        slowest_us = max(one.leader_us for one in own)
        is_held = slowest_us >= self.us if self.bound == "at least" else slowest_us <= self.us
        return Finding(is_held, show_us(slowest_us))
