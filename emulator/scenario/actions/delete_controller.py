"""An operator forces the election of another controller."""

from __future__ import annotations

from emulator.scenario.actions.admin import AdminRequest
from emulator.scenario.actions.base import Action
from emulator.scenario.actions.drawing import Draw


class DeleteController(AdminRequest, frozen=True, tag="delete_controller"):
    """A session of no broker deletes `/controller`, so every broker runs for election. The old
    controller's session lives on, and its pending work continues until it learns of the
    election."""

    by_shell = True
    weight = 4

    @classmethod
    def drawn(cls, draw: Draw) -> Action:
        return cls()
