"""Up to 0.10.1 a follower ignores a leader that is not in its metadata (KAFKA-4443)."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard, lacks, missing_members, unknown_leaders
from emulator.kafka.profiles.guards.controller import UPDATE_METADATA_FIRST
from emulator.trace.events import AnyEvent, ControllerElected


class UnknownLeader(Hazard):
    """From 0.9 on a broker looks up its new leader in its metadata cache, and does nothing if the
    leader is missing there (ReplicaManager.scala@0.9.0.1 makeFollowers). A newly elected controller
    sends LeaderAndIsr before UpdateMetadata, and does not repeat it (H28)."""

    name = "KAFKA-4443"
    about = (
        "A controller fails over while a broker has no metadata yet. LeaderAndIsr arrives before "
        "the list of live brokers: the broker ignores it, reports no error, and the request is "
        "not repeated."
    )
    breaks = ("replicas return to isr",)

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """Each missing member received a leader that was not in its metadata, and has had no role
        since."""
        elected = {
            one.controller_epoch: one for one in events if isinstance(one, ControllerElected)
        }
        idle = {
            broker
            for broker, (received, _) in unknown_leaders(violation.partition, events).items()
            if lacks(UPDATE_METADATA_FIRST, elected[received.sender_epoch], events)
        }
        return missing_members(violation) <= idle
