"""Up to 2.6.0 a follower may request an epoch without records forever (KAFKA-10706)."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard, lacks, missing_members
from emulator.kafka.profiles.guards.following import EPOCHS_DROPPED_AT_LOG_END
from emulator.trace import events as e
from emulator.trace.events import AnyEvent


class EpochWithoutRecord(Hazard):
    """Log.scala@2.6.0 truncateTo returns early at the log end: the epoch that begins there stays
    the follower's latest one (fixed in 2.6.1)."""

    name = "KAFKA-10706"
    about = (
        "A follower led an epoch without a record, and its leader has records of an epoch that it "
        "never had. It asks for its own epoch again and again, and does not fetch."
    )
    breaks = ("followers fetch", "replicas return to isr")

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """Each broker outside the ISR was leader without appending a record, in such a version, and
        has neither restarted nor fetched since."""
        return all(_is_stuck(broker, violation, events) for broker in missing_members(violation))


def _is_stuck(broker: int, violation: Violation, events: Sequence[AnyEvent]) -> bool:
    led_without_record, followed = False, None
    for event in events:
        if event.broker != broker:
            continue
        match event:
            case e.BrokerStarting():
                led_without_record, followed = False, None
            case e.BecomesLeader(partition=partition) if partition == violation.partition:
                led_without_record, followed = True, None
            case e.RecordsAppended(partition=partition) if partition == violation.partition:
                led_without_record = False
            case e.BecomesFollower(partition=partition) if partition == violation.partition:
                followed = event
            case e.FetchSent(offsets=offsets) if any(
                offset.partition == violation.partition for offset in offsets
            ):
                led_without_record = False
    return (
        led_without_record
        and followed is not None
        and lacks(EPOCHS_DROPPED_AT_LOG_END, followed, events)
    )
