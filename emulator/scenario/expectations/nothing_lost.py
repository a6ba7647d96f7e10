"""`no acknowledged record of orders is lost`: the final leader's log has them all.

Only records acknowledged with acks=all count.

Not held when a record is missing for which a producer with acks=all received `ok`. Unknown when
there is no such record, when the trace has no log (real Kafka), or when nothing threatened the
records: no ISR of the topic ever changed.
"""

from __future__ import annotations

from emulator.scenario.expectations.base import UNSEEN, Check, Finding


class NothingLost(Check):
    """The guarantee of acks=all."""

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
