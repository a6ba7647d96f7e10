"""Up to 3.2 nobody asks whether a new member of an ISR lives, and never which life of it was
seen."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard, lacks
from emulator.kafka.profiles.guards.alter_isr import MEMBER_EPOCHS
from emulator.trace import events as e
from emulator.trace.events import AnyEvent


class UncheckedMember(Hazard):
    """A leader writes its ISR itself and looks at fetches alone (Partition.scala@2.6.3
    maybeExpandIsr); AlterIsr names members by their ids (KIP-841, KIP-903)."""

    name = "unchecked member"
    about = (
        "A leader decides to take a follower in, which dies, or is started anew, before it is"
        " written: the follower joins on the word of what it was (KIP-841, KIP-903)."
    )
    breaks = ("eligible members join",)

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """The member's process ended or lost its session between the leader's decision and the
        write, and the leader runs a version that does not ask."""
        decided = None
        past = events[: violation.facts[1]]
        for event in past:
            match event:
                case e.IsrUpdateStarted(partition=at, change="expand", to_isr=wanted) if (
                    at == violation.partition and violation.broker in wanted
                ):
                    decided = event
        if decided is None or not lacks(MEMBER_EPOCHS, decided, events):
            return False
        return _ended(violation.broker, decided.seq, past)


def _ended(broker: int, decided: int, past: Sequence[AnyEvent]) -> bool:
    """Its process or its session had ended when the leader decided, or did so afterwards."""
    ended = False
    for event in past:
        if event.broker != broker:
            continue
        if isinstance(event, e.BrokerRegistered) and event.seq < decided:
            ended = False
        elif isinstance(event, e.BrokerStarting) or _ends(event):
            ended = True
    return ended


def _ends(event: AnyEvent) -> bool:
    """Its process ends, or its session does."""
    match event:
        case e.ProcessStateChanged(state="paused" | "stopping" | "dead"):
            return True
        case e.ActionApplied(do="expire_session"):
            return True
        case e.ZkTransaction(op="closeSession"):
            return True
    return False
