"""How controllers classified brokers when they compared registrations with their cache."""

from __future__ import annotations

from typing import Literal

from emulator.trace import events as e
from emulator.trace.state.processes import STARTING, Processes

Registration = Literal["new", "dead", "bounced"]


class Registrations:
    def __init__(self, processes: Processes) -> None:
        self.comparisons: list[e.BrokerChange] = []
        self._processes = processes

    def on_broker_change(self, event: e.BrokerChange) -> None:
        self.comparisons.append(event)

    def starts(self, broker: int) -> list[int]:
        """When the broker's processes started."""
        lives = self._processes.history.get(broker, ())
        return [life.from_us for life in lives if life.state == STARTING]

    def times(self, broker: int, registration: Registration) -> list[int]:
        """When a comparison classified the broker like this. The first start of a broker does not
        count: it is always new."""
        again_us = [*self.starts(broker), *2 * [1 << 62]][1]
        return [
            one.t
            for one in self.comparisons
            if (registration == "dead" and broker in one.deleted)
            or (registration == "new" and broker in one.added and one.t >= again_us)
            or (registration == "bounced" and broker in one.bounced and one.t >= again_us)
        ]
