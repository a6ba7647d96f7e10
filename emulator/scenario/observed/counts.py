"""How often something happened: ISR changes, notifications, conflicts, elections.

Owns plain counts, those of partitions by partition. `conflicts` are conditional writes that
ZooKeeper answered with BadVersion; `failed_isr_updates` are ISR changes that the leader gave up
because of one (FailedIsrUpdatesPerSec), which a lost reply alone does not cause.
"""

from __future__ import annotations

from collections import Counter

from emulator.trace import events as e
from emulator.trace.values import TopicPartition

BAD_VERSION = -103


class Counts:
    """Counts since the beginning of the trace."""

    def __init__(self) -> None:
        self.events = 0
        self.shrinks: Counter[TopicPartition] = Counter()
        self.expands: Counter[TopicPartition] = Counter()
        self.failed: Counter[TopicPartition] = Counter()
        self.notifications = 0
        self.notified: list[tuple[TopicPartition, ...]] = []
        self.conflicts = 0
        self.controller_elections = 0
        self.leader_changes = 0
        self.malformed_znodes = 0
        self.failed_threads = 0

    @property
    def isr_changes(self) -> int:
        return self.shrinks.total() + self.expands.total()

    def on_isr_updated(self, event: e.IsrUpdated) -> None:
        changes = self.shrinks if event.change == "shrink" else self.expands
        changes[event.partition] += 1

    def on_isr_update_rejected(self, event: e.IsrUpdateRejected) -> None:
        self.failed[event.partition] += 1

    def on_isr_change_notified(self, event: e.IsrChangeNotified) -> None:
        self.notifications += 1
        self.notified.append(event.partitions)

    def on_zk_reply(self, event: e.ZkReply) -> None:
        self.conflicts += event.code == BAD_VERSION

    def on_controller_elected(self, event: e.ControllerElected) -> None:
        self.controller_elections += 1

    def on_becomes_leader(self, event: e.BecomesLeader) -> None:
        self.leader_changes += event.leader_epoch > 0

    def on_znode_malformed(self, event: e.ZnodeMalformed) -> None:
        self.malformed_znodes += 1

    def on_thread_failed(self, event: e.ThreadFailed) -> None:
        self.failed_threads += 1
