"""How many partitions lack replicas, and for how long.

Owns what Kafka's gauges UnderReplicatedPartitions, UnderMinIsrPartitionCount,
AtMinIsrPartitionCount and OfflinePartitionsCount show over a run, and the time below
`min.insync.replicas`. Follows the states of the znodes, and `min.insync.replicas` through creation
and alteration of topics.
"""

from __future__ import annotations

from collections.abc import Mapping

from emulator.trace import events as e
from emulator.trace.state.partitions import Partition, Partitions, State
from emulator.trace.values import TopicPartition

MIN_ISR = "min.insync.replicas"


class IsrTimes:
    """Gauges now, and their greatest values; times in microseconds, summed over partitions."""

    def __init__(self, partitions: Partitions, settings: Mapping[str, str]) -> None:
        self.partitions = partitions
        self._default = int(settings.get(MIN_ISR, "1"))
        self._min_isr: dict[str, int] = {}
        self._below_since: dict[TopicPartition, int] = {}
        self._under: dict[TopicPartition, None] = {}
        self._below_us: dict[TopicPartition, int] = {}
        self.under_replicated_max = 0
        self.under_min_isr_max = 0
        partitions.listen(self._changed)

    def min_isr(self, topic: str) -> int:
        """`min.insync.replicas` of the topic."""
        return self._min_isr.get(topic, self._default)

    @property
    def under_replicated(self) -> int:
        """UnderReplicatedPartitions."""
        return len(self._under)

    @property
    def under_min_isr(self) -> int:
        """UnderMinIsrPartitionCount."""
        return len(self._below_since)

    @property
    def at_min_isr(self) -> int:
        """AtMinIsrPartitionCount."""
        return sum(
            len(p.now.isr) == self.min_isr(p.name.topic)
            for p in self.partitions.all.values()
            if p.now
        )

    @property
    def offline(self) -> int:
        """OfflinePartitionsCount."""
        return sum(p.now.leader < 0 for p in self.partitions.all.values() if p.now)

    def under_min_isr_us(self, end_us: int) -> int:
        """The time that partitions spent with fewer in sync than `min.insync.replicas`."""
        running = sum(end_us - since for since in self._below_since.values())
        return running + sum(self._below_us.values())

    def on_stimulus(self, event: e.Stimulus) -> None:
        if event.do not in ("create_topic", "topic_config"):
            return
        topic, config = event.parameters.topic, event.parameters.config or {}
        if MIN_ISR in config:
            self._min_isr[topic] = int(config[MIN_ISR])
            for partition in self.partitions.of_topic(topic):
                self._measure(partition, event.t)

    def on_leader_and_isr(self, event: e.LeaderAndIsr) -> None:
        """An assignment may become known after the state was."""
        self._measure(self.partitions.of(event.state.partition), event.t)

    def _changed(self, partition: Partition, state: State) -> None:
        self._measure(partition, state.t_us)

    def _measure(self, partition: Partition, t_us: int) -> None:
        name, state = partition.name, partition.now
        if state is None:
            return
        if len(state.isr) < len(partition.replicas):
            self._under[name] = None
        else:
            self._under.pop(name, None)
        if len(state.isr) < self.min_isr(name.topic):
            self._below_since.setdefault(name, t_us)
        elif name in self._below_since:
            spent = t_us - self._below_since.pop(name)
            self._below_us[name] = self._below_us.get(name, 0) + spent
        self.under_replicated_max = max(self.under_replicated_max, self.under_replicated)
        self.under_min_isr_max = max(self.under_min_isr_max, self.under_min_isr)
