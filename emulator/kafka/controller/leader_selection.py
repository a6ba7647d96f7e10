"""Who leads: the four election rules. Plain functions over replicas, ISR and who is live.

Source: controller/PartitionStateMachine.scala@2.6.3 PartitionLeaderElectionAlgorithms; spec §6.7.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

NO_LEADER = -1


class Elected(NamedTuple):
    """The new leader, the new ISR in order, and whether the election was unclean."""

    leader: int
    isr: tuple[int, ...]
    unclean: bool = False


def offline(
    assignment: Sequence[int],
    isr: Sequence[int],
    live: Collection[int],
    *,
    unclean_allowed: bool,
) -> Elected | None:
    """First in assignment order that is live and in the ISR; else, where allowed, first that is
    live."""
    for replica in assignment:
        if replica in live and replica in isr:
            return Elected(replica, tuple(b for b in isr if b in live))
    if unclean_allowed:
        # An ISR of one: the others may have records that this one has not, and must truncate.
        for replica in assignment:
            if replica in live:
                return Elected(replica, (replica,), unclean=True)
    return None


def reassign(target: Sequence[int], isr: Sequence[int], live: Collection[int]) -> Elected | None:
    """First of the target replicas that is live and in the ISR."""
    for replica in target:
        if replica in live and replica in isr:
            # The ISR as it is: those that are to be removed leave it when they go offline.
            return Elected(replica, tuple(isr))
    return None


def preferred(
    assignment: Sequence[int], isr: Sequence[int], live: Collection[int]
) -> Elected | None:
    """The first of the assignment, if it is live and in the ISR."""
    for head in assignment[:1]:
        if head in live and head in isr:
            return Elected(head, tuple(isr))
    return None


def controlled_shutdown(
    assignment: Sequence[int],
    isr: Sequence[int],
    live_or_shutting_down: Collection[int],
    shutting_down: Collection[int],
) -> Elected | None:
    """First in assignment order that is in the ISR and does not shut down; those that do leave the
    ISR."""
    for replica in assignment:
        if replica in live_or_shutting_down and replica in isr and replica not in shutting_down:
            return Elected(replica, tuple(b for b in isr if b not in shutting_down))
    return None
