"""How a world can fail to play at all."""

from __future__ import annotations

from emulator.scenario.errors import UserError


class DidNotComeUp(Exception):
    """A broker did not start, or the brokers did not hear of each other."""


class TooFast(UserError):
    """Time is scaled more than ZooKeeper's whole milliseconds, or this machine, can follow."""

    def __init__(self, time_scale: int, why: str) -> None:
        super().__init__(f"--time-scale {time_scale}: {why}; try a smaller one")
