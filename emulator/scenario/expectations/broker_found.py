"""`controller finds 1 bounced` (or `new`, `dead`), `controller never finds 1 dead`.

What the controller saw when it compared the registrations with its cache. `new` does not mean a
broker's first start, nor what a controller reads when it is elected. `never` is unknown where no
process of that broker ever ended.
"""

from __future__ import annotations

from typing import get_args

from emulator.scenario.expectations.base import Check, Finding
from emulator.scenario.units import show_us
from emulator.trace.state import registrations


class BrokerFound(Check):
    """What the controller noticed of a broker's life."""

    forms = ("controller finds {broker} {what}", "controller never finds {missed:broker} {what}")
    words = {"what": get_args(registrations.Registration)}
    what: registrations.Registration
    broker: int = 0
    missed: int = 0

    def at_end(self) -> Finding:
        of, broker = self.state.registrations, self.broker or self.missed
        when = [show_us(self.state.clock.since_up(t)) for t in of.times(broker, self.what)]
        seen = f"at {', '.join(when)}" if when else "it never did"
        if self.broker:
            return Finding(bool(when), seen)
        if not when and len(of.starts(broker)) < 2:
            return Finding(None, "no process of it ever ended")
        return Finding(not when, seen)
