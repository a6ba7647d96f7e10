"""Faults that matter only together and in an order: what single draws hardly ever hit.

A situation is drawn with its brokers in a random order, because a schedule does not know who leads
or who is the controller. It has the whole cluster for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import msgspec

from emulator.kernel.rng import Stream
from emulator.scenario.actions.base import Action
from emulator.scenario.actions.disk import DiskFault
from emulator.scenario.actions.life import Kill, Terminate
from emulator.scenario.actions.link import CutLink, CutZookeeperLink, DelayLink
from emulator.scenario.actions.pause import Pause

ROLL_EVERY_MS = 15_000
"""The interval between two brokers of a rolling restart."""


class Moment(msgspec.Struct, frozen=True):
    """A fault, so long after the situation's start, and how long it lasts."""

    after_ms: int
    action: Action
    lasts_ms: int


Brokers = tuple[int, int, int]
Moments = list[Moment]


class Situation(msgspec.Struct, frozen=True):
    """`kinds`: the faults that it needs."""

    kinds: tuple[type[Action], ...]
    moments: Callable[[Brokers, Stream], Moments]


def _disks_full(brokers: Brokers, stream: Stream) -> Moments:
    """All brokers write to one disk, and it fills up: each tears the same record."""
    lasts_ms = stream.between(10_000, 20_000)
    return [Moment(0, DiskFault(broker, "full"), lasts_ms) for broker in brokers]


def _all_killed(brokers: Brokers, stream: Stream) -> Moments:
    lasts_ms = stream.between(1_500, 12_000)
    return [Moment(0, Kill(broker), lasts_ms) for broker in brokers]


def _rolling_restart(brokers: Brokers, _: Stream) -> Moments:
    return [
        Moment(n * ROLL_EVERY_MS, Terminate(broker), 3_000)
        for n, broker in enumerate(sorted(brokers))
    ]


def _deposed_leader_writes(brokers: Brokers, stream: Stream) -> Moments:
    """A leader loses everybody, and the others elect another. It reaches ZooKeeper again before it
    reaches them, with an ISR to write: must be refused. Then all restart, and believe ZooKeeper."""
    leader, *others = brokers
    links = [Moment(0, CutLink(leader, other), 16_000) for other in others]
    killed_ms = 12_000 + stream.below(3_000)
    return [
        *links,
        Moment(0, CutZookeeperLink(leader), 9_000),
        *(Moment(killed_ms, Kill(broker), 3_000) for broker in brokers),
    ]


def _follower_misses_elections(brokers: Brokers, _: Stream) -> Moments:
    """A follower without ZooKeeper misses that its leader is deposed and elected again. It has
    records that the leader of that time lacked. A fetch of its old epoch must be refused: it does
    not know that it has to truncate. Then it is elected itself."""
    leader, other, follower = brokers
    return [
        Moment(0, DelayLink(leader, other, 1_000), 6_000),
        Moment(2_000, CutZookeeperLink(follower), 32_000),
        Moment(4_000, Pause(leader), 10_000),
        Moment(22_000, Kill(other), 20_000),
        Moment(37_000, Kill(leader), 12_000),
    ]


SITUATIONS = (
    Situation((DiskFault,), _disks_full),
    Situation((Kill,), _all_killed),
    Situation((Terminate,), _rolling_restart),
    Situation((CutLink, CutZookeeperLink, Kill), _deposed_leader_writes),
    Situation((DelayLink, CutZookeeperLink, Pause, Kill), _follower_misses_elections),
)


def situations_of(kinds: Collection[type[Action]]) -> list[Situation]:
    """Those that these faults suffice for."""
    return [one for one in SITUATIONS if set(one.kinds) <= set(kinds)]
