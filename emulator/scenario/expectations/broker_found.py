"""`controller finds 1 bounced` (or `new`, `dead`), `controller never finds 1 dead`.

What the controller saw when it compared the registrations with its cache. `new` does not mean a
broker's first start, nor what a controller reads when it is elected. `never` is unknown where no
process of that broker ever ended.
"""

from __future__ import annotations

from emulator.scenario.expectations.base import Check, Finding
from emulator.scenario.units import show_us
from emulator.trace import events as e

_LISTS = {"new": "added", "dead": "deleted", "bounced": "bounced"}


class BrokerFound(Check):
    """What the controller noticed of a broker's life."""

    forms = ("controller finds {broker} {what}", "controller never finds {missed:broker} {what}")
    words = {"what": tuple(_LISTS)}
    what: str
    broker: int = 0
    missed: int = 0

    def take(self, **arguments: object) -> None:
        super().take(**arguments)
        self.times: list[int] = []
        self.starts = 0

    def on_broker_starting(self, event: e.BrokerStarting) -> None:
        self.starts += event.broker == (self.broker or self.missed)

    def on_broker_change(self, event: e.BrokerChange) -> None:
        if self.starts > 1 or self.what == "dead":
            who = getattr(event, _LISTS[self.what])
            if (self.broker or self.missed) in who:
                self.times.append(event.t)

    def at_end(self) -> Finding:
        when = [show_us(self.state.clock.since_up(t)) for t in self.times]
        seen = f"at {', '.join(when)}" if when else "it never did"
        if self.broker:
            return Finding(bool(when), seen)
        if not when and self.starts < 2:
            return Finding(None, "no process of it ever ended")
        return Finding(not when, seen)
