"""`controller finds 1 bounced` (or `new`, `dead`), `controller never finds 1 dead`.

How the controller classified a broker when it compared registrations with its cache. A broker's
first start does not count as `new`, nor does what a controller reads at its election. `never` is
unknown if no process of that broker ever ended.
"""

from __future__ import annotations

from typing import get_args

from emulator.scenario.expectations.base import Check, Finding
from emulator.scenario.units import show_us
from emulator.trace.state import registrations


class BrokerFound(Check):
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
