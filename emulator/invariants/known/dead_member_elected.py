"""Up to 0.9 a controlled shutdown may elect a broker that is not alive."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard, profile_of, unknown_leaders
from emulator.trace.events import AnyEvent


class DeadMemberElected(Hazard):
    """PartitionLeaderSelector.scala@0.9.0.1 ControlledShutdownLeaderSelector takes the first other
    member of the ISR; it filters replicas by liveness, but not the ISR. Later versions elect among
    live replicas."""

    name = "dead member elected"
    about = (
        "A broker shuts down while the only other ISR member is dead, or paused beyond its session "
        "timeout. That member is elected. The broker that shuts down does not know it as a live "
        "broker, ignores the request without an error, and leads until it ends."
    )
    breaks = ("demoted leaders are informed",)

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """The broker received a leader that was not in its metadata, from a version that elects the
        ISR's first member, and has had no role since."""
        until = violation.facts[1]
        unable = unknown_leaders(violation.partition, events[:until]).get(violation.broker)
        if unable is None:
            return False
        profile = profile_of(unable[0], events)
        return profile is not None and profile.controlled_shutdowns == "isr-first"
