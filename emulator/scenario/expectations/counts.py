"""`notifications: 2`, `isr changes: at least 30`, `leader elections: 1`, `records lost: 0` ...

Held when the count is in the range. Unknown when no ISR ever changed and the range contains 0: then
a count of 0 proves nothing. `records lost` are acknowledged records, with acks=all or acks=1, that
the final leader lacks. Values that real Kafka does not log are unknown: log contents, ZooKeeper's
responses, a controller's handling of notifications.
"""

from __future__ import annotations

from collections.abc import Callable

from emulator.scenario.expectations.base import UNSEEN, Check, Finding
from emulator.scenario.expectations.forms import Amount
from emulator.trace.state import TraceState

COUNTERS: dict[str, Callable[[TraceState], int]] = {
    "notifications": lambda state: state.counts.notifications,
    "isr changes": lambda state: state.counts.isr_changes,
    "isr shrinks": lambda state: state.counts.shrinks.total(),
    "isr expands": lambda state: state.counts.expands.total(),
    "failed isr updates": lambda state: state.counts.failed.total(),
    "conflicts": lambda state: state.counts.conflicts,
    "controller elections": lambda state: state.counts.controller_elections,
    "versions never shown": lambda state: state.propagation.never_shown,
    "truncations": lambda state: state.logs.truncations,
    "records truncated": lambda state: state.logs.truncated,
    "records lost": lambda state: state.records.lost() + state.records.lost(acks="1"),
    "leader elections": lambda state: state.counts.leader_elections,
    "unclean elections": lambda state: state.counts.unclean_elections,
    "sessions expired": lambda o: len(o.sessions.expired),
    "notifications deleted unread": lambda state: state.counts.notifications_unread,
}


class Counts(Check):
    forms = ("{what:counter}: {amount}",)
    words = {"counter": tuple(COUNTERS)}
    what: str
    amount: Amount

    def at_end(self) -> Finding:
        count = COUNTERS[self.what](self.state)
        low, high = self.amount
        if self.what == "records lost" and self.state.records.unseen:
            return Finding(None, UNSEEN)
        if (
            self.what in ("conflicts", "notifications deleted unread")
            and self.state.counts.is_logged_only
        ):
            return Finding(None, "brokers' logs do not tell")
        held = low <= count and (high is None or count <= high)
        if held and low == 0 and not self.state.counts.isr_changes:
            return Finding(None, f"{count}, and no ISR ever changed")
        return Finding(held, str(count))
