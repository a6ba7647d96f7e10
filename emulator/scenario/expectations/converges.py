"""`the cluster converges`: at the end every broker knows ZooKeeper's state, and nothing is pending.

The liveness invariants define this in detail. Unknown if nothing was done to the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping

from emulator.invariants.base import Monitor, Violation
from emulator.scenario.expectations.base import Check, Finding
from emulator.trace import events as e
from emulator.trace.state import TraceState


class Converges(Check):
    """Held when all liveness invariants are satisfied at the end."""

    forms = ("the cluster converges",)

    def __init__(self, arguments: Mapping[str, object], state: TraceState) -> None:
        super().__init__(arguments, state)
        self.monitor = Monitor(state, safety=False, liveness=True)
        self._starts = self._elections = 0

    @property
    def parts(self) -> tuple[object, ...]:
        return (*self.monitor.parts, self)

    def on_broker_starting(self, event: e.BrokerStarting) -> None:
        self._starts += 1

    def on_controller_elected(self, event: e.ControllerElected) -> None:
        self._elections += 1

    @property
    def _disturbed(self) -> bool:
        """Whether a state, the controller or a broker ever changed."""
        partitions, started = self.state.partitions.all.values(), self.state.metadata.started
        changed = any(len(p.states) > 1 or p.deleted for p in partitions)
        return changed or self._elections > 1 or self._starts > len(started)

    def at_end(self) -> Finding:
        lacking = self.monitor.lacking()
        if lacking:
            return Finding(
                False, f"{len(lacking)} things are missing, such as: {describe(lacking[0])}"
            )
        return Finding(True if self._disturbed else None, "all of it has come about")


def describe(violation: Violation) -> str:
    """The place and the text of the violation."""
    where = str(violation.partition) if violation.partition else ""
    at = f"broker {violation.broker}:" if violation.broker else ""
    return " ".join(word for word in (where, at, violation.text) if word)
