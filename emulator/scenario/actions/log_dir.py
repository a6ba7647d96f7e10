"""A log directory whose disk fails: writes to it are errors from now on.

The broker notices with its next write; replicas there go offline until it is started again. One
whose only directory fails halts. More than one directory: the setting `log.dirs`, names separated
by commas.
"""

from __future__ import annotations

from emulator.scenario.actions.base import Action, World
from emulator.scenario.actions.drawing import Draw


class FailLogDir(Action, frozen=True, tag="fail_log_dir"):
    """Directory number `directory` of `log.dirs`, from 0, fails."""

    broker: int
    directory: int = 0

    weight = 1

    @classmethod
    def drawn(cls, draw: Draw) -> Action:
        """The only one there is: its broker halts, and finds it repaired when it starts."""
        return cls(draw.broker)

    def apply(self, world: World) -> None:
        world.hosts[self.broker].fail_log_dir(self.directory)

    def healed(self) -> Action:
        return RepairLogDir(self.broker, self.directory)


class RepairLogDir(Action, frozen=True, tag="repair_log_dir"):
    """It can be written again, with what is on it; a broker that runs takes no notice before its
    next start."""

    broker: int
    directory: int = 0

    def apply(self, world: World) -> None:
        world.hosts[self.broker].repair_log_dir(self.directory)
