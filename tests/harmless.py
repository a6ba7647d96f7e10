"""Faults for containers that do not lose records by themselves, for long runs whose records must
all survive."""

from __future__ import annotations

from emulator.scenario.actions.base import Action
from emulator.scenario.capabilities import Capabilities, ClusterCapabilities, Unsupported
from emulator.worlds.processes.host import SeparateProcess
from emulator.worlds.zookeeper import OwnEnsemble


class KeepsItsDisk(SeparateProcess):
    def lose_from_disk(self, what: str) -> None:
        if what != "nothing":
            raise Unsupported("records would be gone")


class NoClients(Capabilities):
    subject = "clients, which are no fault,"


_HARMLESS = ClusterCapabilities.of_one_kind(KeepsItsDisk(), OwnEnsemble(), NoClients())


def is_harmless(action: Action) -> bool:
    return not _HARMLESS.refusal(action)
