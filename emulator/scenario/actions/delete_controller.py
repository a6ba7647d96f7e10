"""An operator who has the cluster elect another controller, by hand."""

from __future__ import annotations

from emulator.scenario.actions.base import Action, World
from emulator.scenario.actions.drawing import Draw


class DeleteController(Action, frozen=True, tag="delete_controller"):
    """A session of no broker deletes `/controller`: every broker runs for election, while the old
    controller's session lives on and what it has under way goes on until it hears of it."""

    weight = 4

    @classmethod
    def drawn(cls, draw: Draw) -> Action:
        return cls()

    def apply(self, world: World) -> None:
        world.clients.admin(self)
