"""A controller epoch has one controller, and no broker obeys an older one after a newer one."""

from __future__ import annotations

from emulator.invariants.base import Invariant, Violation
from emulator.trace import events as e


class ElectedTwice(Violation, frozen=True):
    epoch: int
    owner: int

    sentence = "controller epoch {epoch} belongs to broker {owner}"


class AnotherObeyed(Violation, frozen=True):
    obeyed: int
    epoch: int
    owner: int

    sentence = (
        "broker {broker} obeys {obeyed} with controller epoch {epoch}, which belongs to {owner}"
    )


class OlderObeyed(Violation, frozen=True):
    before: int
    now: int

    sentence = "broker {broker} obeyed controller epoch {before}, and now {now}"


class OneControllerPerEpoch(Invariant):
    """A controller epoch has one controller: brokers obey no other broker with that epoch. A
    broker that has obeyed a controller obeys no older one (S11)."""

    def begin(self) -> None:
        self._elected: dict[int, tuple[int, int]] = {}
        self._obeyed: dict[int, tuple[int, int]] = {}

    def on_broker_starting(self, event: e.BrokerStarting) -> None:
        self._obeyed.pop(event.broker, None)

    def on_controller_elected(self, event: e.ControllerElected) -> None:
        known = self._elected.setdefault(event.controller_epoch, (event.broker, event.seq))
        if known[1] != event.seq:
            facts = known[1], event.seq
            self.violated(
                ElectedTwice(event.controller_epoch, known[0], facts=facts, broker=event.broker)
            )

    def on_metadata_cache_updated(self, event: e.MetadataCacheUpdated) -> None:
        owner, elected = self._elected.get(event.sender_epoch, (event.sender, -1))
        if owner != event.sender:
            self.violated(
                AnotherObeyed(
                    event.sender,
                    event.sender_epoch,
                    owner,
                    facts=(elected, event.seq),
                    broker=event.broker,
                )
            )
        epoch, seq = self._obeyed.get(event.broker, (-1, -1))
        if event.sender_epoch < epoch:
            facts = seq, event.seq
            self.violated(OlderObeyed(epoch, event.sender_epoch, facts=facts, broker=event.broker))
        elif event.sender_epoch > epoch:
            self._obeyed[event.broker] = event.sender_epoch, event.seq
