"""What several invariants need to know of a trace: state znodes, logs, each broker's own view, and
what is committed.

A view is what a broker itself believes of a partition: its role, epoch, ISR and zkVersion, from the
LeaderAndIsr that it obeyed and its own ISR changes. A broker that starts anew believes nothing.
Committed is what a leader once had below its high watermark.
"""

from __future__ import annotations

import msgspec

from emulator.trace import events as e
from emulator.trace.state import TraceState
from emulator.trace.state.caches import ControllerCache, MetadataCaches
from emulator.trace.state.logs import Logs
from emulator.trace.state.partitions import Partition, Partitions, State
from emulator.trace.state.replica_log import ReplicaLog
from emulator.trace.values import PartitionState, TopicPartition


class View(msgspec.Struct):
    """One broker's belief about one partition, since the event `seq`; `leader` is who it thinks
    leads."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    zk_version: int
    seq: int


class Views:
    """All brokers' views."""

    def __init__(self) -> None:
        self.all: dict[TopicPartition, dict[int, View]] = {}
        self._arrived: dict[tuple[TopicPartition, int], PartitionState] = {}

    def of(self, name: TopicPartition, broker: int) -> View | None:
        return self.all.get(name, {}).get(broker)

    def on_broker_starting(self, event: e.BrokerStarting) -> None:
        for views in self.all.values():
            views.pop(event.broker, None)

    def on_leader_and_isr(self, event: e.LeaderAndIsr) -> None:
        self._arrived[event.state.partition, event.broker] = event.state

    def on_becomes_leader(self, event: e.BecomesLeader) -> None:
        self._becomes(event, event.broker)

    def on_becomes_follower(self, event: e.BecomesFollower) -> None:
        self._becomes(event, event.leader)

    def _becomes(self, event: e.BecomesLeader | e.BecomesFollower, leader: int) -> None:
        state = self._arrived.get((event.partition, event.broker))
        isr: tuple[int, ...] = ()
        version = -1
        if state is not None and state.leader_epoch == event.leader_epoch:
            isr, version = state.isr, state.zk_version
        view = View(leader, event.leader_epoch, isr, version, event.seq)
        self.all.setdefault(event.partition, {})[event.broker] = view

    def on_isr_updated(self, event: e.IsrUpdated) -> None:
        view = self.of(event.partition, event.broker)
        if view is not None:
            view.isr, view.zk_version, view.seq = event.isr, event.zk_version, event.seq

    def on_stop_replica(self, event: e.StopReplica) -> None:
        """What is to be deleted is forgotten."""
        if event.delete:
            self.all.get(event.partition, {}).pop(event.broker, None)


class Znode(msgspec.Struct):
    """A znode's data, and the event that wrote it."""

    data: str
    seq: int


class _Topic(msgspec.Struct):
    partitions: dict[str, tuple[int, ...]]


class Znodes:
    """What ZooKeeper has below `/brokers/ids`, `/admin`, `/isr_change_notification`, of topics
    (without partitions), and `/controller`."""

    def __init__(self) -> None:
        self.all: dict[str, Znode] = {}

    def below(self, parent: str) -> list[str]:
        """Paths of children, in order of their names."""
        return sorted(p for p in self.all if p.rpartition("/")[0] == parent)

    def assignments(self) -> dict[TopicPartition, tuple[int, ...]]:
        """Every partition's replicas, as the topics' znodes have them."""
        found = {}
        for path in self.below("/brokers/topics"):
            topic = path.rpartition("/")[2]
            try:
                partitions = msgspec.json.decode(self.all[path].data, type=_Topic).partitions
            except msgspec.DecodeError:
                continue
            for number, replicas in partitions.items():
                found[TopicPartition(topic, int(number))] = replicas
        return found

    def on_zk_transaction(self, event: e.ZkTransaction) -> None:
        for path in event.removed:
            self.all.pop(path, None)
        for op in event.ops or (event,):
            path = op.path or ""
            if op.code or not path.startswith(_KEPT) or "/partitions" in path:
                continue
            if op.op == "delete":
                self.all.pop(path, None)
            elif op.op in ("create", "setData"):
                self.all[path] = Znode(op.data or "", event.seq)


_KEPT = (
    "/brokers/ids/",
    "/brokers/topics/",
    "/controller",
    "/admin/",
    "/isr_change_notification/",
)


class CommittedLog(msgspec.Struct):
    """The records below the highest high watermark that a leader had, and the event that set it."""

    log: ReplicaLog
    seq: int = -1


class Committed:
    """What has to last, by partition. An unclean election gives it up: what its leader has counts
    from there on, and what older leaders go on committing does not."""

    def __init__(self, partitions: Partitions, logs: Logs, views: Views) -> None:
        self._partitions, self._logs, self._views = partitions, logs, views
        self.all: dict[TopicPartition, CommittedLog] = {}
        self._unclean_epoch: dict[TopicPartition, int] = {}
        partitions.listen(self._written)
        partitions.listen_to_deletions(self._deleted)

    def of(self, name: TopicPartition) -> CommittedLog | None:
        return self.all.get(name)

    def _deleted(self, partition: Partition) -> None:
        self.all.pop(partition.name, None)
        self._unclean_epoch.pop(partition.name, None)

    def _written(self, partition: Partition, state: State) -> None:
        states = partition.states
        if len(states) > 1 and state.leader >= 0 and state.leader not in states[-2].isr:
            self.all.pop(partition.name, None)
            self._unclean_epoch[partition.name] = state.leader_epoch

    def on_hw_advanced(self, event: e.HwAdvanced) -> None:
        name = event.partition
        if event.role != "leader":
            return
        if self._unclean_epoch and self.is_deposed(name, event.broker):
            return
        committed = self.all.get(name)
        if committed is None:
            committed = self.all[name] = CommittedLog(ReplicaLog())
        if event.hw > committed.log.leo:
            committed.log.append_from(self._logs.of(name, event.broker), event.hw)
            committed.seq = event.seq

    def is_deposed(self, name: TopicPartition, broker: int) -> bool:
        """Whether an unclean election has taken the lead from it, whatever it believes."""
        unclean_epoch = self._unclean_epoch.get(name)
        if unclean_epoch is None:
            return False
        view = self._views.of(name, broker)
        return view is None or view.leader_epoch < unclean_epoch


class Facts:
    """What invariants need of one trace: parts of `state`, where somebody keeps one, and those that
    only they need. Without a `state` it has parts of its own, and no histories."""

    def __init__(self, state: TraceState | None = None) -> None:
        self.partitions = state.partitions if state is not None else Partitions()
        self.logs = state.logs if state is not None else Logs()
        self.metadata = state.metadata if state is not None else MetadataCaches(self.partitions)
        self.controller = (
            state.controller if state is not None else ControllerCache(self.partitions)
        )
        self.views = Views()
        self.znodes = Znodes()
        self.committed = Committed(self.partitions, self.logs, self.views)
        own = (self.views, self.znodes, self.committed)
        shared = (self.partitions, self.logs, self.metadata, self.controller)
        self.parts: tuple[object, ...] = own if state is not None else (*shared, *own)
        """All that has to hear events for it, in order."""
