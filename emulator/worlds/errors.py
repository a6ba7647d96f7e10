"""Why a world cannot play."""

from __future__ import annotations

from emulator.scenario.errors import UserError


class DidNotComeUp(Exception):
    """A broker did not start, or the brokers did not learn of each other."""


class TooFast(UserError):
    """Time runs faster than ZooKeeper's whole milliseconds, or this machine, allow."""

    def __init__(self, time_scale: int, why: str) -> None:
        super().__init__(f"--time-scale {time_scale}: {why}; try a smaller one")
