"""No controller-event-thread is stuck: it has processed its whole queue."""

from __future__ import annotations

from collections.abc import Iterator

from emulator.invariants.base import Invariant, Violation
from emulator.trace import events as e


class EventsWait(Violation, frozen=True):
    events: int
    last: str

    sentence = "the controller of broker {broker} has {events} queued events; the last is {last}"


class ControllersKeepUp(Invariant):
    """The controller-event-thread of every registered broker has processed its whole queue
    (L10)."""

    liveness = True

    def begin(self) -> None:
        self._left: dict[int, tuple[int, str, int]] = {}

    def on_broker_starting(self, event: e.BrokerStarting) -> None:
        self._left.pop(event.broker, None)

    def on_controller_event_queued(self, event: e.ControllerEventQueued) -> None:
        """`behind` is the whole queue: an expired session may have cleared it."""
        self._left[event.broker] = event.behind + 1, event.event, event.seq

    def on_controller_event_processed(self, event: e.ControllerEventProcessed) -> None:
        left, name, seq = self._left.get(event.broker, (1, "", -1))
        if left > 1:
            self._left[event.broker] = left - 1, name, seq
        else:
            self._left.pop(event.broker, None)

    def lacking(self) -> Iterator[Violation]:
        for broker, (left, name, seq) in sorted(self._left.items()):
            if self.state.znodes.is_registered(broker):
                yield EventsWait(left, name, facts=(-1, seq), broker=broker)
