"""Notifies the controller of ISR changes: the set of changed partitions, and when it is sent.

Changes are sent after 5 s without another change on this broker, or when the last propagation is 60
s old; a task checks every 2.5 s. The monitor is held during the write to ZooKeeper. Source:
server/ReplicaManager.scala@2.6.3 recordIsrChange, maybePropagateIsrChanges; spec §4.2.
"""

from __future__ import annotations

from emulator.kafka.broker.context import BrokerContext
from emulator.kernel.sync import Monitor
from emulator.trace import events
from emulator.trace.values import TopicPartition
from zk.client.kafka_zk_client import KafkaZkClient
from zk.errors import ZooKeeperError

# Constants in Kafka too: no setting changes them.
ISR_CHANGE_PROPAGATION_BLACK_OUT_MS = 5000
ISR_CHANGE_PROPAGATION_INTERVAL_MS = 60000
ISR_CHANGE_PROPAGATION_PERIOD_MS = 2500


def propagation_is_due(quiet_ms: int, since_propagation_ms: int) -> bool:
    """More than 5 s without a change, or more than 60 s since the last propagation; both strict."""
    return (
        quiet_ms > ISR_CHANGE_PROPAGATION_BLACK_OUT_MS
        or since_propagation_ms > ISR_CHANGE_PROPAGATION_INTERVAL_MS
    )


class IsrPropagation:
    """isrChangeSet with its two clocks; in memory only, so a crash loses it."""

    def __init__(self, context: BrokerContext, zk_client: KafkaZkClient) -> None:
        self._context, self._zk_client = context, zk_client
        self.monitor = Monitor(context.kernel, "isrChangeSet")
        self._changed: dict[TopicPartition, None] = {}
        # Both clocks start with the process. If a broker has propagated nothing for a minute, its
        # next change is sent by the next run, without the wait of 5 s.
        self._last_change_ms = context.now_ms()
        self._last_propagation_ms = context.now_ms()

    def start(self) -> None:
        """isr-change-propagation."""
        self._context.scheduler.schedule(
            "isr-change-propagation",
            self.maybe_propagate_isr_changes,
            ISR_CHANGE_PROPAGATION_PERIOD_MS,
        )

    async def record_isr_change(self, partition: TopicPartition) -> None:
        """Called with the partition's write lock held; blocks while a notification is written."""
        async with self.monitor:
            self._changed[partition] = None
            self._last_change_ms = self._context.now_ms()

    async def maybe_propagate_isr_changes(self) -> None:
        """One run of the task."""
        async with self.monitor:
            if not self._changed:
                return
            now_ms = self._context.now_ms()
            quiet_ms = now_ms - self._last_change_ms
            since_propagation_ms = now_ms - self._last_propagation_ms
            # A set: a partition that changed twice is listed once, and the controller reads its
            # latest state.
            changed = tuple(self._changed)
            if not propagation_is_due(quiet_ms, since_propagation_ms):
                self._context.emit(events.IsrChangeHeld, changed, quiet_ms, since_propagation_ms)
                return
            try:
                # With the monitor held: a leader that records a change now waits here and holds its
                # partition's write lock (spec §4.2).
                path = await self._zk_client.propagate_isr_changes(changed)
            except ZooKeeperError as error:
                # The set and both clocks stay unchanged, so the next run tries again.
                self._context.failed("isr-change-propagation", error)
                return
            self._context.emit(
                events.IsrChangeNotified, path, changed, quiet_ms, since_propagation_ms
            )
            # The time from before the write: a slow ZooKeeper does not delay the next propagation.
            self._changed.clear()
            self._last_propagation_ms = now_ms
