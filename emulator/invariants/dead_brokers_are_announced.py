"""A broker whose registration is gone disappears from every broker's metadata."""

from __future__ import annotations

import msgspec

from emulator.invariants.base import Invariant, Violation
from emulator.trace import events as e

SOON_US = 5_000_000


class UnannouncedDeath(Violation, frozen=True):
    dead_s: float

    sentence = "broker {broker} was dead for {dead_s:.1f} s, and no UpdateMetadata announced it"


class _Death(msgspec.Struct):
    """A controller saw it at `t`. `handled`: when it had elected other leaders, which takes as
    long as its requests to ZooKeeper do, and sent the first request about it."""

    controller: int
    seq: int
    t: int
    handled: int | None = None
    announced: bool = False


class DeadBrokersAreAnnounced(Invariant):
    """A controller that has seen a broker die informs a live broker within five seconds after the
    first request that this causes, and before it sees the broker again (L3)."""

    def begin(self) -> None:
        self._deaths: dict[int, _Death] = {}

    def on_broker_change(self, event: e.BrokerChange) -> None:
        """A broker that is new again was gone: check that its death was announced."""
        for broker in (*event.added, *event.bounced):
            death = self._deaths.pop(broker, None)
            if death is None or death.controller != event.broker or death.announced:
                continue
            others = {*event.live} - {*event.added, event.broker}
            since = death.t if death.handled is None else death.handled
            if others and event.t - since > SOON_US:
                dead_s = (event.t - death.t) / 1e6
                self.violated(UnannouncedDeath(dead_s, facts=(death.seq, event.seq), broker=broker))
        for broker in event.deleted:
            self._deaths[broker] = _Death(event.broker, event.seq, event.t)

    def on_controller_elected(self, event: e.ControllerElected) -> None:
        self._deaths.clear()

    def on_controller_resigned(self, event: e.ControllerResigned) -> None:
        self._deaths.clear()

    def on_control_request_sent(self, event: e.ControlRequestSent) -> None:
        for death in self._deaths.values():
            if death.handled is None and event.cause > death.seq:
                death.handled = event.t

    def on_metadata_cache_updated(self, event: e.MetadataCacheUpdated) -> None:
        for broker, death in self._deaths.items():
            if event.sender == death.controller and broker not in event.live_brokers:
                death.announced = True
