"""Counts of ISR changes, notifications, conflicts, elections and refusals.

Some are counted per partition. `conflicts` are conditional writes that ZooKeeper answered with
BadVersion. `failed_isr_updates` are ISR changes that the leader abandoned because of one (a lost
reply alone does not cause that) or that the controller refused (FailedIsrUpdatesPerSec). An
election is `unclean` when the new leader was not in the previous ISR. A notification is `unread`
when a newly elected controller deletes it, because it reads every state anyway.
"""

from __future__ import annotations

from collections import Counter

from emulator.trace import events as e
from emulator.trace.events import IGNORED
from emulator.trace.state.partitions import Partition, Partitions, State
from emulator.trace.values import TopicPartition

BAD_VERSION = -103
_READING = "IsrChangeNotification"


class Counts:
    """Counts since the beginning of the trace."""

    def __init__(self, partitions: Partitions) -> None:
        partitions.listen(self._state)
        self.events = 0
        self.shrinks: Counter[TopicPartition] = Counter()
        self.expands: Counter[TopicPartition] = Counter()
        self.failed: Counter[TopicPartition] = Counter()
        self.notifications = 0
        self.notified: list[tuple[TopicPartition, ...]] = []
        self.conflicts = 0
        self.controller_elections = 0
        self.leader_elections = 0
        self.unclean_elections = 0
        self.notifications_unread = 0
        self.control_requests_refused = 0
        self.update_metadata_requests = 0
        self.alter_isr_requests = 0
        self.controller_events = 0
        self._cleared: Counter[int] = Counter()
        self.malformed_znodes = 0
        self.failed_threads = 0

    @property
    def is_logged_only(self) -> bool:
        """Whether the trace comes from real Kafka, whose logs contain neither ZooKeeper's responses
        nor a controller's handling of notifications."""
        return bool(self.controller_elections) and not self.controller_events

    @property
    def isr_changes(self) -> int:
        return self.shrinks.total() + self.expands.total()

    def on_isr_updated(self, event: e.IsrUpdated) -> None:
        changes = self.shrinks if event.change == "shrink" else self.expands
        changes[event.partition] += 1

    def on_controller_shrink_counted(self, event: e.ControllerShrinkCounted) -> None:
        self.shrinks[event.partition] += 1

    def on_isr_update_rejected(self, event: e.IsrUpdateRejected) -> None:
        self.failed[event.partition] += 1

    def on_alter_isr_failed(self, event: e.AlterIsrFailed) -> None:
        """Kafka marks no meter for a response to a proposal that is no longer pending."""
        self.failed[event.partition] += event.outcome != IGNORED

    def on_isr_change_notified(self, event: e.IsrChangeNotified) -> None:
        self.notifications += 1
        self.notified.append(event.partitions)

    def on_zk_reply(self, event: e.ZkReply) -> None:
        self.conflicts += event.code == BAD_VERSION

    def on_controller_elected(self, event: e.ControllerElected) -> None:
        self.controller_elections += 1

    def _state(self, partition: Partition, now: State) -> None:
        """Counts an election if the leader changed; a partition's first leader is not an
        election."""
        before = partition.states[-2] if len(partition.states) > 1 else None
        if before is None or now.leader < 0 or now.leader == before.leader:
            return
        self.leader_elections += 1
        self.unclean_elections += partition.is_unclean

    def on_isr_change_cleared(self, event: e.IsrChangeCleared) -> None:
        self._cleared[event.broker] += len(event.paths)

    def on_controller_event_processed(self, event: e.ControllerEventProcessed) -> None:
        self.controller_events += 1
        cleared = self._cleared.pop(event.broker, 0)
        self.notifications_unread += cleared if event.event != _READING else 0

    def on_control_request_sent(self, event: e.ControlRequestSent) -> None:
        self.update_metadata_requests += event.request == "UpdateMetadata"

    def on_alter_isr_sent(self, event: e.AlterIsrSent) -> None:
        self.alter_isr_requests += 1

    def on_control_request_refused(self, event: e.ControlRequestRefused) -> None:
        self.control_requests_refused += 1

    def on_znode_malformed(self, event: e.ZnodeMalformed) -> None:
        self.malformed_znodes += 1

    def on_thread_failed(self, event: e.ThreadFailed) -> None:
        self.failed_threads += 1
