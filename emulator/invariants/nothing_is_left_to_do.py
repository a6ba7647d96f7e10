"""No notification and no administrator's command is pending."""

from __future__ import annotations

from collections.abc import Iterator

from emulator.invariants.base import Invariant, Violation
from emulator.invariants.replicas_return_to_isr import ReplicasReturnToIsr
from emulator.trace.values import TopicPartition
from zk import paths

_ELECTION = "/admin/preferred_replica_election"


class StillThere(Violation, frozen=True):
    """The znode of a notification or a command."""

    path: str

    sentence = "{path} is still there"


class StillReassigned(Violation, frozen=True):
    """The znode with the partition's reassignment: the topic's, or the command."""

    path: str

    sentence = "{path} is still being reassigned"


class StillCommanded(StillReassigned, frozen=True):
    """The command to reassign partitions."""

    sentence = "{path} is still there"


class NothingIsLeftToDo(Invariant):
    """No notification, topic deletion, reassignment or election is pending (L4, L12)."""

    liveness = True

    def lacking(self) -> Iterator[Violation]:
        znodes = self.state.znodes
        for parent in ("/isr_change_notification", "/admin/delete_topics"):
            for path in znodes.below(parent):
                yield StillThere(path, facts=(-1, znodes.all[path].seq))
        if _ELECTION in znodes.all:
            yield StillThere(_ELECTION, facts=(-1, znodes.all[_ELECTION].seq))
        if paths.REASSIGN_PARTITIONS in znodes.all:
            yield from self._commanded()
        yield from self._reassigned()

    def _commanded(self) -> Iterator[Violation]:
        path = paths.REASSIGN_PARTITIONS
        facts = -1, self.state.znodes.all[path].seq
        command = self.state.znodes.reassignment_command()
        if not command:
            yield StillThere(path, facts=facts)
        for name, target in command.items():
            cause = self._obstacle(name, target)
            yield StillCommanded(path, facts=facts, partition=name, follows_from=cause)

    def _reassigned(self) -> Iterator[Violation]:
        znodes = self.state.znodes
        for topic, data in znodes.topics().items():
            path = paths.topic(topic)
            for number in sorted({*data.adding_replicas, *data.removing_replicas}):
                name = TopicPartition(topic, int(number))
                removed = data.removing_replicas.get(number, ())
                target = tuple(b for b in data.partitions.get(number, ()) if b not in removed)
                cause, facts = self._obstacle(name, target), (-1, znodes.all[path].seq)
                yield StillReassigned(path, facts=facts, partition=name, follows_from=cause)

    def _obstacle(self, name: TopicPartition, target: tuple[int, ...]) -> Violation | None:
        """What keeps the target replicas out of the ISR: a reassignment waits for them."""
        state = self.state.partitions.of(name).now
        if state is None or set(target) <= set(state.isr):
            return None
        replicas = ReplicasReturnToIsr(self.state)
        return next((one for one in replicas.lacking() if one.partition == name), None)
