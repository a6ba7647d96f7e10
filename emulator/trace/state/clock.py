"""When the cluster was up, and conversion to scenario time.

Trace time starts when the world begins; scenario time starts when all initial brokers are
registered and started. The action `up` marks that moment; without one, the last `broker_started` of
those brokers does.
"""

from __future__ import annotations

from emulator.trace import events as e


class Clock:
    """Times in microseconds; `up_us` is None until the cluster is up."""

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
        """Convert trace time to scenario time."""
        return t_us - (self.up_us or 0)
