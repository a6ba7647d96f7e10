"""Up to 2.0.0 a follower joins the ISR before it has all committed records of older leaders
(KAFKA-7128)."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard, lacks
from emulator.kafka.profiles.guards.isr import JOIN_PAST_EPOCH_START
from emulator.trace import events as e
from emulator.trace.events import AnyEvent


class JoinsTooEarly(Hazard):
    """Partition.scala@2.0.0 maybeExpandIsr checks only the high watermark (H16)."""

    name = "KAFKA-7128"
    about = (
        "A new leader does not know yet how much its predecessor had committed. A follower that "
        "has reached the old high watermark joins the ISR without the rest, and may be elected."
    )
    breaks = ("committed records survive", "hw within isr", "logs agree", "reads are consistent")

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """A follower joined this partition's ISR below the start offset of the leader's epoch."""
        starts: dict[int, int] = {}
        followers: dict[tuple[int, int], int] = {}
        for event in events[: violation.facts[1] + 1]:
            if getattr(event, "partition", None) != violation.partition:
                continue
            match event:
                case e.BecomesLeader(broker=leader, leo=leo):
                    starts[leader], followers = leo, {}
                case e.FollowerStateUpdated(broker=leader, replica=replica, leo=leo):
                    followers[leader, replica] = leo
                case e.IsrUpdateStarted(broker=leader, change="expand"):
                    joining = [one for one in event.to_isr if one not in event.from_isr]
                    leos = [followers.get((leader, one), -1) for one in joining]
                    if min(leos) < starts.get(leader, 0):
                        return lacks(JOIN_PAST_EPOCH_START, event, events)
        return False
