"""Up to 3.2 nothing checks that a new ISR member is alive; no version with ZooKeeper checks its
broker epoch."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.eligible_members_join import UnregisteredMember
from emulator.invariants.known.base import Hazard, lacks
from emulator.kafka.profiles.guards.alter_isr import MEMBER_EPOCHS
from emulator.trace import events as e
from emulator.trace.events import AnyEvent


class IsrMemberNotValidated(Hazard):
    """A leader writes its ISR itself, based only on fetches (Partition.scala@2.6.3 maybeExpandIsr);
    AlterIsr identifies members only by id (KIP-841, KIP-903)."""

    name = "ISR member not validated"
    about = (
        "A leader decides to add a follower to the ISR. The follower dies or restarts before the"
        " change is written, and joins on the evidence of its old process (KIP-841, KIP-903)."
    )
    breaks = ("eligible members join",)

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """The member's process or session ended between the leader's decision and the write, and
        the leader's version does not check this."""
        decided = None
        past = events[: violation.facts[1]]
        for event in past:
            match event:
                case e.IsrUpdateStarted(partition=at, change="expand", to_isr=proposed) if (
                    at == violation.partition and violation.broker in proposed
                ):
                    decided = event
        if decided is None or not lacks(MEMBER_EPOCHS, decided, events):
            return False
        # A broker may hear of its registration after ZooKeeper has removed it again.
        is_removal = isinstance(events[violation.facts[0]], e.ZkTransaction)
        if isinstance(violation, UnregisteredMember) and is_removal:
            return True
        return _ended(violation.broker, decided.seq, past)


def _ended(broker: int, decided: int, past: Sequence[AnyEvent]) -> bool:
    """Whether its process or session had ended at the leader's decision, or ended afterwards."""
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
    """Whether the event ends a process or a session."""
    match event:
        case e.ProcessStateChanged(state="paused" | "stopping" | "dead"):
            return True
        case e.ActionApplied(do="expire_session"):
            return True
        case e.ZkTransaction(op="closeSession"):
            return True
    return False
