"""Telling the controller about ISR changes: the set of changed partitions, and when it is sent.

A change waits for 5 s without another change of any partition of this broker, or until 60 s have
passed since the last propagation; a task looks every 2.5 s. The monitor is held across the write to
ZooKeeper. Source: server/ReplicaManager.scala@2.6.3 recordIsrChange, maybePropagateIsrChanges; spec
§4.2.
"""

from __future__ import annotations

from emulator.kafka.broker.context import BrokerContext
from emulator.kernel.sync import Monitor
from emulator.trace import events
from emulator.trace.values import TopicPartition
from zk.client.kafka_zk_client import KafkaZkClient
from zk.errors import ZooKeeperError

# Constants in Kafka, too: no setting changes them.
ISR_CHANGE_PROPAGATION_BLACK_OUT_MS = 5000
ISR_CHANGE_PROPAGATION_INTERVAL_MS = 60000
ISR_CHANGE_PROPAGATION_PERIOD_MS = 2500


def propagation_is_due(quiet_ms: int, since_propagation_ms: int) -> bool:
    """Quiet for more than 5 s, or more than 60 s since the last propagation; both strict."""
    return (
        quiet_ms > ISR_CHANGE_PROPAGATION_BLACK_OUT_MS
        or since_propagation_ms > ISR_CHANGE_PROPAGATION_INTERVAL_MS
    )


class IsrPropagation:
    """isrChangeSet with its two clocks, which start with the process; memory only, a crash loses
    it."""

    def __init__(self, context: BrokerContext, zk_client: KafkaZkClient) -> None:
        self._context, self._zk_client = context, zk_client
        self.monitor = Monitor(context.kernel, "isrChangeSet")
        self._changed: dict[TopicPartition, None] = {}
        # Both clocks start with the process. On a broker that has propagated nothing for a minute
        # the first change goes out with the next run, without the quiet 5 s.
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
        """Called with the partition's write lock held; blocks while a notification is being
        written."""
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
            # A set: a partition that has changed twice is named once, and the controller reads its
            # state as it is by then.
            changed = tuple(self._changed)
            if not propagation_is_due(quiet_ms, since_propagation_ms):
                self._context.emit(events.IsrChangeHeld, changed, quiet_ms, since_propagation_ms)
                return
            try:
                # With the monitor held: leaders that record a change meanwhile wait here, with the
                # write lock of their partition (spec §4.2).
                path = await self._zk_client.propagate_isr_changes(changed)
            except ZooKeeperError as error:
                # The set and both clocks stay as they are: the next run tries again.
                self._context.failed("isr-change-propagation", error)
                return
            self._context.emit(
                events.IsrChangeNotified, path, changed, quiet_ms, since_propagation_ms
            )
            # The time from before the write: a slow ZooKeeper does not delay the next one.
            self._changed.clear()
            self._last_propagation_ms = now_ms
