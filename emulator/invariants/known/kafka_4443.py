"""Up to 0.10.1 a follower ignores a leader that is not in its metadata (KAFKA-4443)."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard, lacks, missing_members
from emulator.kafka.profiles.guards.controller import UPDATE_METADATA_FIRST
from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.values import TopicPartition


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
        return missing_members(violation) <= _idle(violation.partition, events)


def _idle(partition: TopicPartition | None, events: Sequence[AnyEvent]) -> set[int]:
    """The brokers that could not follow a leader they received, and have had no role since."""
    live, elected, idle = dict[int, tuple[int, ...]](), dict[int, AnyEvent](), set[int]()
    for event in events:
        match event:
            case e.ControllerElected():
                elected[event.controller_epoch] = event
            case e.BrokerStarting():
                live.pop(event.broker, None)
                idle.discard(event.broker)
            case e.MetadataCacheUpdated():
                live[event.broker] = event.live_brokers
            case e.LeaderAndIsr(state=state, sender_epoch=epoch) if state.partition == partition:
                unknown = state.leader not in live.get(event.broker, ())
                if unknown and lacks(UPDATE_METADATA_FIRST, elected[epoch], events):
                    idle.add(event.broker)
            case e.BecomesLeader() | e.BecomesFollower() if event.partition == partition:
                idle.discard(event.broker)
    return idle
