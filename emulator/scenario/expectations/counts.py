"""`notifications: 2`, `isr changes: at least 30`, `leader elections: 1`, `records lost: 0` ...

Held when the count is in the range. Unknown when no ISR ever changed and the range has 0 in it:
then a count of 0 says nothing. `records lost` are acknowledged ones, with acks=all or acks=1, that
the final leader does not have. What real Kafka does not tell of is unknown: what logs hold, how
ZooKeeper answered, what a controller did with a notification.
"""

from __future__ import annotations

from collections.abc import Callable

from emulator.scenario.expectations.base import UNSEEN, Check, Finding
from emulator.scenario.expectations.forms import Amount
from emulator.trace.state import Observed

COUNTERS: dict[str, Callable[[Observed], int]] = {
    "notifications": lambda o: o.counts.notifications,
    "isr changes": lambda o: o.counts.isr_changes,
    "isr shrinks": lambda o: o.counts.shrinks.total(),
    "isr expands": lambda o: o.counts.expands.total(),
    "failed isr updates": lambda o: o.counts.failed.total(),
    "conflicts": lambda o: o.counts.conflicts,
    "controller elections": lambda o: o.counts.controller_elections,
    "versions never shown": lambda o: o.metadata.never_shown,
    "truncations": lambda o: o.logs.truncations,
    "records truncated": lambda o: o.logs.truncated,
    "records lost": lambda o: o.records.lost() + o.records.lost(acks="1"),
    "leader elections": lambda o: o.counts.leader_elections,
    "unclean elections": lambda o: o.counts.unclean_elections,
    "sessions expired": lambda o: len(o.sessions.expired),
    "notifications deleted unread": lambda o: o.counts.notifications_unread,
}


class Counts(Check):
    """A count in a range."""

    forms = ("{what:counter}: {amount}",)
    words = {"counter": tuple(COUNTERS)}
    what: str
    amount: Amount

    def at_end(self) -> Finding:
        count = COUNTERS[self.what](self.observed)
        low, high = self.amount
        if self.what == "records lost" and self.observed.records.unseen:
            return Finding(None, UNSEEN)
        if self.what in ("conflicts", "notifications deleted unread") and self._only_logged:
            return Finding(None, "brokers' logs do not tell")
        held = low <= count and (high is None or count <= high)
        if held and low == 0 and not self.observed.counts.isr_changes:
            return Finding(None, f"{count}, and no ISR ever changed")
        return Finding(held, str(count))

    @property
    def _only_logged(self) -> bool:
        counts = self.observed.counts
        return bool(counts.controller_elections) and not counts.controller_events
