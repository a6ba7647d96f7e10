"""A connection between two brokers that breaks at a request, which is then sent again."""

from __future__ import annotations

from typing import Literal, get_args

from emulator.scenario.actions.base import Action, World
from emulator.scenario.actions.drawing import Draw
from zk.wire import When

Kind = Literal[
    "Fetch",
    "OffsetsForLeaderEpoch",
    "ListOffsets",
    "LeaderAndIsr",
    "UpdateMetadata",
    "StopReplica",
    "ControlledShutdown",
    "AlterIsr",
]


class BreakConnection(Action, frozen=True, tag="break_connection"):
    """The connection breaks at the next `count` requests from `broker` to `peer`; 0 ends it. `when`
    is `before` the request arrives, or `after` it was processed, so that the response is lost.
    Without a `request`, any kind counts. With `late_ms` the connection breaks at once and the
    request still arrives after this delay; a second copy on a new connection may be processed
    first."""

    broker: int
    peer: int
    when: When
    request: Kind | None = None
    late_ms: int = 0
    count: int = 1

    weight = 8

    @classmethod
    def drawn(cls, draw: Draw) -> Action | None:
        broker = draw.broker
        peer = draw.peer_of(broker)
        kinds: tuple[Kind | None, ...] = (None, *get_args(Kind))
        when: When = draw.one_of(("before", "after"))
        late_ms = draw.spread(10, 4000) if when == "after" and draw.chance(40) else 0
        if peer is None:
            return None
        return cls(broker, peer, when, draw.one_of(kinds), late_ms, draw.between(1, 3))

    def apply(self, world: World) -> None:
        world.links.break_connection(
            self.broker, self.peer, self.when, self.request, self.late_ms, self.count
        )

    def healed(self) -> Action:
        return BreakConnection(self.broker, self.peer, self.when, self.request, self.late_ms, 0)

    def wrong(self) -> str | None:
        if self.late_ms and self.when == "before":
            return "a request that never arrives is not late"
        return None
