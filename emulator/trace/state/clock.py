"""When the cluster was up, and what time it is.

Owns the step from the trace's time (since the world began) to the scenario's (since all brokers
that boot at first are registered and started). An action `up` says it; where none does, the last
of those brokers' `broker_started` does.
"""

from __future__ import annotations

from emulator.trace import events as e


class Clock:
    """Microseconds; `up_us` is None until the cluster is up."""

    def __init__(self, brokers: frozenset[int]) -> None:
        self.now_us = 0
        self.up_us: int | None = None
        self._awaited = set(brokers)

    def on_broker_started(self, event: e.BrokerStarted) -> None:
        self._awaited.discard(event.broker)
        if not self._awaited and self.up_us is None:
            self.up_us = event.t

    def on_action_applied(self, event: e.ActionApplied) -> None:
        if event.do == "up":
            self.up_us = event.t

    def since_up(self, t_us: int) -> int:
        """A moment of the trace in the scenario's time."""
        return t_us - (self.up_us or 0)
