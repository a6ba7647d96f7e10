"""No notification and no administrator's command is pending."""

from __future__ import annotations

from collections.abc import Iterator

from emulator.invariants.base import Invariant, Violation
from zk import paths

_COMMANDS = ("/admin/reassign_partitions", "/admin/preferred_replica_election")


class StillThere(Violation, frozen=True):
    """The znode of a notification or a command."""

    path: str

    sentence = "{path} is still there"


class StillReassigned(Violation, frozen=True):
    """The topic's znode."""

    path: str

    sentence = "{path} is still being reassigned"


class NothingIsLeftToDo(Invariant):
    """No notification, topic deletion, reassignment or election is pending (L4, L12)."""

    liveness = True

    def lacking(self) -> Iterator[Violation]:
        znodes = self.state.znodes
        for parent in ("/isr_change_notification", "/admin/delete_topics"):
            for path in znodes.below(parent):
                yield StillThere(path, facts=(-1, znodes.all[path].seq))
        for path in _COMMANDS:
            if path in znodes.all:
                yield StillThere(path, facts=(-1, znodes.all[path].seq))
        for topic, data in znodes.topics().items():
            if data.adding_replicas or data.removing_replicas:
                path = paths.topic(topic)
                yield StillReassigned(path, facts=(-1, znodes.all[path].seq))
