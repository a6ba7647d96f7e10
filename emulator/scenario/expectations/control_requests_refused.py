"""`control requests of 3 refused: at least 1 (STALE_CONTROLLER_EPOCH)`; the error may be left out.

Held when brokers refused this many whole requests of this controller, because of its controller
epoch or because of their broker epoch (`STALE_BROKER_EPOCH`).
"""

from __future__ import annotations

from emulator.scenario.expectations.base import Check, Finding
from emulator.scenario.expectations.forms import Amount
from emulator.trace import events as e


class ControlRequestsRefused(Check):
    """Fencing of control requests by brokers."""

    forms = (
        "control requests of {broker} refused: {amount} ({error})",
        "control requests of {broker} refused: {amount}",
    )
    broker: int
    amount: Amount
    error: str | None = None

    def take(self, **arguments: object) -> None:
        super().take(**arguments)
        self.refused: list[e.ControlRequestRefused] = []

    def on_control_request_refused(self, event: e.ControlRequestRefused) -> None:
        if event.sender == self.broker and self.error in (None, event.error):
            self.refused.append(event)

    def at_end(self) -> Finding:
        count, (low, high) = len(self.refused), self.amount
        held = low <= count and (high is None or count <= high)
        by = ", ".join(sorted({f"{one.request} by {one.broker}" for one in self.refused}))
        if held and not count:
            return Finding(None, "none; whether any was sent is not known")
        return Finding(held, f"{count}{': ' if by else ''}{by}")
