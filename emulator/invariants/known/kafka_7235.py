"""Up to 2.1 a control request does not identify the process of the broker that it is for
(KAFKA-7235)."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.followers_fetch import DoesNotFetch
from emulator.invariants.known.base import Hazard, lacks, missing_members
from emulator.invariants.replicas_return_to_isr import MissingReplicas
from emulator.invariants.requests_reach_the_intended_process import ObeysForPredecessor
from emulator.kafka.profiles.guards.controller import BROKER_EPOCHS
from emulator.trace import events as e
from emulator.trace.events import AnyEvent


class RequestOfAFormerLife(Hazard):
    """KIP-380: queued requests for a broker reach any process at its address."""

    name = "KAFKA-7235"
    about = (
        "A control request sent to a broker before it restarted is obeyed by the new process: "
        "nothing in the request identifies the process. A StopReplica ends its fetches until "
        "the next role."
    )
    breaks = (
        "requests reach the intended process",
        "followers fetch",
        "replicas return to isr",
    )

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """The broker that applied the request runs a version without broker epochs. Each replica
        that stays out of the ISR was stopped like that, and has had no role since."""
        if isinstance(violation, MissingReplicas | DoesNotFetch):
            return missing_members(violation) <= _stopped(violation, events).keys()
        return isinstance(violation, ObeysForPredecessor) and lacks(
            BROKER_EPOCHS, events[violation.facts[1]], events
        )


def _stopped(violation: Violation, events: Sequence[AnyEvent]) -> dict[int, int]:
    """The brokers that a StopReplica for an earlier process of theirs stopped, and when it came. A
    role that came before it may be taken after it: both wait for the same lock."""
    began, role, stopped = dict[int, int](), dict[int, int](), dict[int, int]()
    for event in events:
        match event:
            case e.BrokerStarting():
                began[event.broker] = event.seq
                stopped.pop(event.broker, None)
            case e.StopReplica(partition=violation.partition):
                request = events[event.cause] if event.cause >= 0 else None
                if (
                    isinstance(request, e.ControlRequestSent)
                    and request.cause < began.get(event.broker, -1)
                    and lacks(BROKER_EPOCHS, event, events)
                ):
                    stopped[event.broker] = event.seq
            case e.LeaderAndIsr() if event.state.partition == violation.partition:
                role[event.broker] = event.seq
            case e.BecomesLeader() | e.BecomesFollower() if event.partition == violation.partition:
                if role.get(event.broker, -1) > stopped.get(event.broker, event.seq):
                    del stopped[event.broker]
    return stopped
