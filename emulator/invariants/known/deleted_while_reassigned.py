"""A topic is deleted while one of its partitions is reassigned: the command stays."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard
from emulator.invariants.nothing_is_left_to_do import StillCommanded
from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.state.partitions import applied_ops
from zk import paths


class DeletedWhileReassigned(Hazard):
    """KafkaController.scala processTopicDeletion marks such topics as ineligible, but
    TopicDeletionManager.scala markTopicIneligibleForDeletion ignores topics that are not queued
    yet, and they are queued afterwards. ControllerContext.scala removeTopic forgets no
    reassignment (read from the bytecode of 1.1.1, 2.4.1, 2.6.3 and 3.3.2)."""

    name = "deleted while reassigned"
    about = (
        "A topic is deleted while a partition is reassigned through the znode. The deletion does "
        "not wait, and the move can never complete. The command stays until the next fail-over."
    )
    breaks = ("nothing is left to do",)

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """The topic was deleted after the command was created, and no controller was elected
        since: a new one removes partitions without a topic."""
        if not isinstance(violation, StillCommanded) or violation.partition is None:
            return False
        topic = paths.topic(violation.partition.topic)
        commanded = deleted = False
        for event in events:
            match event:
                case e.ControllerElected():
                    deleted = False
                case e.ZkTransaction():
                    for op in applied_ops(event):
                        match op.op, op.path:
                            case "create", violation.path:
                                commanded, deleted = True, False
                            case "delete", path if path == topic:
                                deleted = commanded
                            case "create", path if path == topic:
                                deleted = False
        return deleted
