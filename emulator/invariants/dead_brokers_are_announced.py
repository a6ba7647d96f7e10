"""A broker whose registration is gone disappears from every broker's metadata."""

from __future__ import annotations

from emulator.invariants.base import Invariant, Violation
from emulator.trace import events as e

_IDS = "/brokers/ids/"
SOON_US = 5_000_000


class UnannouncedDeath(Violation, frozen=True):
    dead_s: float

    sentence = "broker {broker} was dead for {dead_s:.1f} s, and no UpdateMetadata announced it"


class DeadBrokersAreAnnounced(Invariant):
    """A controller that has seen a broker die informs every live broker within five seconds, and
    before it sees the broker again (L3)."""

    def begin(self) -> None:
        self._gone: dict[int, tuple[int, int, int, frozenset[int]]] = {}

    def on_broker_change(self, event: e.BrokerChange) -> None:
        """A broker that is new again was gone: check that its death was announced."""
        for broker in (*event.added, *event.bounced):
            controller, since, seq, informed = self._gone.pop(broker, (0, 0, -1, frozenset()))
            others = {*event.live} - {*event.added, event.broker}
            if controller == event.broker and event.t - since > SOON_US and others and not informed:
                dead_s = (event.t - since) / 1e6
                self.violated(UnannouncedDeath(dead_s, facts=(seq, event.seq), broker=broker))
        for broker in event.deleted:
            self._gone[broker] = event.broker, event.t, event.seq, frozenset()

    def on_controller_elected(self, event: e.ControllerElected) -> None:
        self._gone.clear()

    def on_controller_resigned(self, event: e.ControllerResigned) -> None:
        self._gone.clear()

    def on_metadata_cache_updated(self, event: e.MetadataCacheUpdated) -> None:
        for broker, (controller, since, seq, informed) in self._gone.items():
            if event.sender == controller and broker not in event.live_brokers:
                self._gone[broker] = controller, since, seq, informed | {event.broker}
