"""`no acknowledged record of orders is lost`: the final leader's log has them all.

Only records acknowledged with acks=all count.

Not held when a record that a producer with acks=all got `ok` for is missing. Unknown when
there is no such record, when what logs hold was not seen (real Kafka), or when nothing threatened
them: no ISR of the topic ever changed.
"""

from __future__ import annotations

from emulator.scenario.expectations.base import UNSEEN, Check, Finding


class NothingLost(Check):
    """The promise of acks=all."""

    forms = ("no acknowledged record of {topic} is lost",)
    topic: str

    def at_end(self) -> Finding:
        records, partitions = self.state.records, self.state.partitions
        promised, lost = records.promised(self.topic), records.lost(topic=self.topic)
        if records.unseen:
            return Finding(None, UNSEEN)
        if lost:
            return Finding(False, f"{lost} of {promised} are")
        if not promised:
            return Finding(None, "none was acknowledged with acks=all")
        if all(len(p.isr_history) < 2 for p in partitions.of_topic(self.topic)):
            return Finding(None, f"none of {promised}, but no ISR ever changed")
        return Finding(True, f"none of {promised}")
