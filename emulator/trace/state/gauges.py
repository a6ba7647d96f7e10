"""Kafka's gauges of partitions that lack replicas, and for how long.

UnderReplicatedPartitions, UnderMinIsrPartitionCount and AtMinIsrPartitionCount are gauges of the
leader, so a partition without a leader is in none of them. A partition is under-replicated if its
ISR is smaller than its replica set without those that a reassignment is adding
(Partition.scala@2.6.3 isUnderReplicated, OngoingReassignmentState.replicationFactor).
OfflinePartitionsCount is the controller's and excludes topics whose deletion has begun
(KafkaController.scala@2.6.3 updateMetrics).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from emulator.trace import events as e
from emulator.trace.state.partitions import Partition, Partitions, State
from emulator.trace.values import TopicPartition

MIN_ISR = "min.insync.replicas"
_DELETIONS = "/admin/delete_topics/"


def is_under_replicated(
    leader: int, isr: Sequence[int], replicas: Sequence[int], adding: Sequence[int]
) -> bool:
    """Whether a partition in this state counts in UnderReplicatedPartitions."""
    return leader >= 0 and len(isr) < len(set(replicas) - set(adding))


class Gauges:
    """Current values and maxima; times in microseconds, summed over partitions."""

    def __init__(self, partitions: Partitions, settings: Mapping[str, str]) -> None:
        self.partitions = partitions
        self._default = int(settings.get(MIN_ISR, "1"))
        self._min_isr: dict[str, int] = {}
        self._under: dict[TopicPartition, int] = {}
        self._under_us: dict[TopicPartition, int] = {}
        self._below: dict[TopicPartition, int] = {}
        self._below_us: dict[TopicPartition, int] = {}
        self._deleting: dict[str, None] = {}
        self.under_replicated_max = 0
        self.under_min_isr_max = 0
        partitions.listen(self._changed)
        partitions.listen_to_deletions(self._deleted)

    def min_isr(self, topic: str) -> int:
        return self._min_isr.get(topic, self._default)

    @property
    def under_replicated(self) -> int:
        """UnderReplicatedPartitions."""
        return len(self._under)

    @property
    def under_min_isr(self) -> int:
        """UnderMinIsrPartitionCount."""
        return len(self._below)

    @property
    def at_min_isr(self) -> int:
        """AtMinIsrPartitionCount."""
        return sum(
            p.now.leader >= 0 and len(p.now.isr) == self.min_isr(p.name.topic)
            for p in self.partitions.all.values()
            if p.now
        )

    @property
    def offline(self) -> int:
        """OfflinePartitionsCount."""
        return sum(
            p.now.leader < 0 and p.name.topic not in self._deleting
            for p in self.partitions.all.values()
            if p.now
        )

    def under_replicated_us(self, name: TopicPartition, end_us: int) -> int:
        """How long the partition was under-replicated."""
        return _time(name, self._under, self._under_us, end_us)

    def under_min_isr_us(self, end_us: int) -> int:
        """How long partitions with a leader had an ISR smaller than `min.insync.replicas`."""
        names = self._below.keys() | self._below_us.keys()
        return sum(_time(name, self._below, self._below_us, end_us) for name in names)

    def on_action_applied(self, event: e.ActionApplied) -> None:
        if event.do not in ("create_topic", "topic_config"):
            return
        topic, config = event.parameters.topic, event.parameters.config or {}
        if MIN_ISR in config:
            self._min_isr[topic] = int(config[MIN_ISR])
            for partition in self.partitions.of_topic(topic):
                self._measure(partition, event.t)

    def on_leader_and_isr(self, event: e.LeaderAndIsr) -> None:
        """The assignment may become known after the partition's state."""
        self._measure(self.partitions.of(event.state.partition), event.t)

    def on_zk_transaction(self, event: e.ZkTransaction) -> None:
        for op in event.ops or (event,):
            path = op.path
            if path is None or op.code or not path.startswith(_DELETIONS):
                continue
            topic = path.removeprefix(_DELETIONS)
            if op.op == "create":
                self._deleting[topic] = None
            elif op.op == "delete":
                self._deleting.pop(topic, None)

    def _changed(self, partition: Partition, state: State) -> None:
        self._measure(partition, state.from_us)

    def _deleted(self, partition: Partition) -> None:
        for state in partition.history[-1:]:
            _end(partition.name, self._under, self._under_us, state.to_us)
            _end(partition.name, self._below, self._below_us, state.to_us)

    def _measure(self, partition: Partition, t_us: int) -> None:
        name, state = partition.name, partition.now
        if state is None:
            return
        if is_under_replicated(state.leader, state.isr, partition.replicas, partition.adding):
            self._under.setdefault(name, t_us)
        else:
            _end(name, self._under, self._under_us, t_us)
        if state.leader >= 0 and len(state.isr) < self.min_isr(name.topic):
            self._below.setdefault(name, t_us)
        else:
            _end(name, self._below, self._below_us, t_us)
        self.under_replicated_max = max(self.under_replicated_max, self.under_replicated)
        self.under_min_isr_max = max(self.under_min_isr_max, self.under_min_isr)


def _end(
    name: TopicPartition,
    since: dict[TopicPartition, int],
    spent: dict[TopicPartition, int],
    t_us: int,
) -> None:
    if name in since:
        spent[name] = spent.get(name, 0) + t_us - since.pop(name)


def _time(
    name: TopicPartition,
    since: dict[TopicPartition, int],
    spent: dict[TopicPartition, int],
    end_us: int,
) -> int:
    running = end_us - since[name] if name in since else 0
    return spent.get(name, 0) + running
