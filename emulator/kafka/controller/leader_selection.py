"""The four leader election rules: plain functions over replicas, ISR and live brokers.

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
    """The first replica in assignment order that is live and in the ISR; else, if allowed, the
    first live one."""
    for replica in assignment:
        if replica in live and replica in isr:
            return Elected(replica, tuple(b for b in isr if b in live))
    if unclean_allowed:
        # The new ISR has one member: the other replicas may have records that the leader lacks, and
        # must truncate.
        for replica in assignment:
            if replica in live:
                return Elected(replica, (replica,), unclean=True)
    return None


def reassign(target: Sequence[int], isr: Sequence[int], live: Collection[int]) -> Elected | None:
    """The first target replica that is live and in the ISR."""
    for replica in target:
        if replica in live and replica in isr:
            # The ISR stays: replicas to be removed leave it when they go offline.
            return Elected(replica, tuple(isr))
    return None


def preferred(
    assignment: Sequence[int], isr: Sequence[int], live: Collection[int]
) -> Elected | None:
    """The first replica of the assignment, if it is live and in the ISR."""
    for head in assignment[:1]:
        if head in live and head in isr:
            return Elected(head, tuple(isr))
    return None


def controlled_shutdown(
    assignment: Sequence[int],
    isr: Sequence[int],
    live_or_shutting_down: Collection[int],
    shutting_down: Collection[int],
    *,
    in_isr_order: bool = False,
) -> Elected | None:
    """The first replica in assignment order (up to 0.9: the first ISR member) that is in the ISR
    and not shutting down. Brokers that shut down leave the ISR."""
    staying = tuple(b for b in isr if b not in shutting_down)
    if in_isr_order:
        return Elected(staying[0], staying) if staying else None
    for replica in assignment:
        if replica in live_or_shutting_down and replica in staying:
            return Elected(replica, staying)
    return None
