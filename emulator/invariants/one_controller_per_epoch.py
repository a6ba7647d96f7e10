"""A controller epoch has one controller, and no broker obeys an older one after a newer."""

from __future__ import annotations

from emulator.invariants.base import Invariant
from emulator.trace import events as e


class OneControllerPerEpoch(Invariant):
    """A controller epoch has one controller: nobody else is obeyed with it; and a broker that has
    obeyed one obeys no older one (S11)."""

    def begin(self) -> None:
        self._elected: dict[int, tuple[int, int]] = {}
        self._obeyed: dict[int, tuple[int, int]] = {}

    def on_broker_starting(self, event: e.BrokerStarting) -> None:
        self._obeyed.pop(event.broker, None)

    def on_controller_elected(self, event: e.ControllerElected) -> None:
        known = self._elected.setdefault(event.controller_epoch, (event.broker, event.seq))
        if known[1] != event.seq:
            text = f"controller epoch {event.controller_epoch} was {known[0]}'s"
            self.violated(text, known[1], event.seq, None, event.broker)

    def on_metadata_cache_updated(self, event: e.MetadataCacheUpdated) -> None:
        owner, elected = self._elected.get(event.sender_epoch, (event.sender, -1))
        if owner != event.sender:
            text = f"broker {event.broker} obeys {event.sender} with controller epoch "
            text += f"{event.sender_epoch}, which is {owner}'s"
            self.violated(text, elected, event.seq, None, event.broker)
        epoch, seq = self._obeyed.get(event.broker, (-1, -1))
        if event.sender_epoch < epoch:
            text = f"broker {event.broker} obeyed controller epoch {epoch}, and now "
            text += str(event.sender_epoch)
            self.violated(text, seq, event.seq, None, event.broker)
        elif event.sender_epoch > epoch:
            self._obeyed[event.broker] = event.sender_epoch, event.seq
