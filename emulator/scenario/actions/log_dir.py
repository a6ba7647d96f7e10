"""A log directory whose disk fails: all writes to it fail from now on.

The broker notices at its next write. The directory's replicas go offline until the broker restarts;
if it was the only directory, the broker halts. For several directories, set `log.dirs` to names
separated by commas.
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
        """Directory 0. In random worlds it is the only one, so the broker halts."""
        return cls(draw.broker)

    def apply(self, world: World) -> None:
        world.hosts[self.broker].fail_log_dir(self.directory)

    def healed(self) -> Action:
        return RepairLogDir(self.broker, self.directory)


class RepairLogDir(Action, frozen=True, tag="repair_log_dir"):
    """The directory is writable again with its content. A running broker uses it only after its
    next start."""

    broker: int
    directory: int = 0

    def apply(self, world: World) -> None:
        world.hosts[self.broker].repair_log_dir(self.directory)
