"""An operator who has the cluster elect another controller, by hand."""

from __future__ import annotations

from emulator.scenario.actions.admin import AdminRequest
from emulator.scenario.actions.base import Action
from emulator.scenario.actions.drawing import Draw


class DeleteController(AdminRequest, frozen=True, tag="delete_controller"):
    """A session of no broker deletes `/controller`: every broker runs for election, while the old
    controller's session lives on and what it has under way goes on until it hears of it."""

    weight = 4

    @classmethod
    def drawn(cls, draw: Draw) -> Action:
        return cls()
