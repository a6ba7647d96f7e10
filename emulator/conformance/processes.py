"""The processes of each recorded broker: when each was launched, registered, and ended.

One list serves the scenario that repeats a recording and the search for it. A process that may not
register, because the registration of a killed one still exists, has the time of its attempt.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from emulator.conformance.recording import Fact, Recording
from zk import paths

_ENDS = ("kill", "terminate", "crash", "exited")


@dataclass(frozen=True)
class Process:
    """One process of a broker; times in milliseconds of the recording."""

    broker: int
    launched_ms: int | None
    """None: it ran when the recording began."""
    registers_ms: int | None = None
    """Its registration, or its first attempt; None: it ended before."""
    refused_request: Fact | None = None
    """For its registration, which it did not get."""
    ended_ms: float = math.inf

    @property
    def is_registered(self) -> bool:
        return self.registers_ms is not None and self.refused_request is None

    @property
    def boot_ms(self) -> int | None:
        """From launch to registration."""
        if self.launched_ms is None or self.registers_ms is None:
            return None
        return self.registers_ms - self.launched_ms


def processes_of(real: Recording) -> list[Process]:
    """All processes, in the order in which they registered or, without a registration, ended."""
    launched: dict[int, int] = {}
    done: list[Process] = []
    for fact in real.of("stimulus"):
        do, broker, at_ms = fact["do"], fact.get("broker", 0), fact["t"]
        if do == "start":
            launched[broker] = at_ms
        elif do == "registered":
            done.append(Process(broker, launched.pop(broker, None), at_ms))
        elif do in _ENDS:
            if broker in launched and do == "exited":
                began_ms = launched.pop(broker)
                attempt = _attempt_of(real, broker, began_ms, at_ms)
                tried_ms = None if attempt is None else attempt["t"]
                done.append(Process(broker, began_ms, tried_ms, attempt, at_ms))
            done = [
                replace(one, ended_ms=min(one.ended_ms, at_ms)) if one.broker == broker else one
                for one in done
            ]
    return done


def _attempt_of(real: Recording, broker: int, since_ms: int, until_ms: int) -> Fact | None:
    """A process's first request for its registration; None: it made none."""
    path = paths.broker_id(broker)
    for fact in real.of("zookeeper_request"):
        if fact["broker"] == broker and since_ms <= fact["t"] <= until_ms:
            for op in fact.get("ops", [fact]):
                if op["op"] == "create" and op.get("path") == path:
                    return fact
    return None
