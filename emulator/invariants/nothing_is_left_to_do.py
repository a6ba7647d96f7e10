"""No notification waits for the controller, and no command of an administrator."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from emulator.invariants.base import Invariant, Violation

_COMMANDS = ("/admin/reassign_partitions", "/admin/preferred_replica_election")


class _Topic(msgspec.Struct):
    adding_replicas: dict[str, tuple[int, ...]] = {}
    removing_replicas: dict[str, tuple[int, ...]] = {}


class StillThere(Violation, frozen=True):
    """The znode of a notification or a command."""

    path: str

    sentence = "{path} is still there"


class StillReassigned(Violation, frozen=True):
    """The topic's znode."""

    path: str

    sentence = "{path} is still being reassigned"


class NothingIsLeftToDo(Invariant):
    """No notification waits for the controller, no topic to be deleted, no reassignment, no
    election (L4, L12)."""

    liveness = True

    def lacking(self) -> Iterator[Violation]:
        znodes = self.facts.znodes
        for parent in ("/isr_change_notification", "/admin/delete_topics"):
            for path in znodes.below(parent):
                yield StillThere(path, facts=(-1, znodes.all[path].seq))
        for path in _COMMANDS:
            if path in znodes.all:
                yield StillThere(path, facts=(-1, znodes.all[path].seq))
        for path in znodes.below("/brokers/topics"):
            try:
                topic = msgspec.json.decode(znodes.all[path].data, type=_Topic)
            except msgspec.DecodeError:
                continue
            if topic.adding_replicas or topic.removing_replicas:
                yield StillReassigned(path, facts=(-1, znodes.all[path].seq))
