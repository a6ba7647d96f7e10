"""KAFKA-14704: a follower applies the leader's high watermark before it truncates its own log."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard, lacks
from emulator.kafka.profiles.guards.following import TRUNCATION_BEFORE_WATERMARK
from emulator.trace import events as e
from emulator.trace.events import AnyEvent


class WatermarkBeforeTruncation(Hazard):
    """AbstractFetcherThread.scala@3.3.2 processFetchRequest processes the partition's data first,
    and truncates at the end of the response (fixed in 3.2.4, 3.3.3, 3.4.1 and 3.5.0)."""

    name = "KAFKA-14704"
    about = (
        "A follower that learns from a fetch where to truncate first takes over the leader's high "
        "watermark. Until it truncates, records that no other replica has count as committed."
    )
    breaks = ("logs agree",)

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """The thread that raised the high watermark truncates below it before it fetches again."""
        raised = events[violation.facts[1]]
        assert isinstance(raised, e.HwAdvanced)
        for event in events[raised.seq + 1 :]:
            if (event.broker, event.thread) != (raised.broker, raised.thread):
                continue
            match event:
                case e.LogTruncated(partition=partition) if partition == violation.partition:
                    is_removed = event.to_offset < raised.hw
                    return is_removed and lacks(TRUNCATION_BEFORE_WATERMARK, raised, events)
                case e.FetchSent():
                    return False
        return False
