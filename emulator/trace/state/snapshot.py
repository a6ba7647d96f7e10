"""The cluster at one moment, as each of its members has it: read off the trace, event by event.

Owns what each event changes in whose memory: ZooKeeper's znodes, each controller's cache, each
broker's metadata cache, the replicas that it hosts, what a leader thinks of its followers, fetcher
threads. Whoever is dead keeps what it last had, marked as such. It must know nothing of the core
that produced the trace, and nothing of how two of these views are compared or drawn.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from emulator.trace import events as e
from emulator.trace.events import ROLLED_BACK, AnyEvent
from emulator.trace.handlers import Dispatch
from emulator.trace.state.partitions import applied_ops, state_partition
from emulator.trace.state.processes import DEAD, STARTING
from emulator.trace.values import LoggedOp, PartitionState, ProcessState, TopicPartition

LEADER, FOLLOWER, OFFLINE = "leader", "follower", "offline"
_TOPIC = re.compile(r"/brokers/topics/([^/]+)")
_CONFIG = re.compile(r"/config/topics/([^/]+)")
_BROKER = re.compile(r"/brokers/ids/(\d+)")
_FETCHER = re.compile(r"ReplicaFetcherThread-(\d+)-(\d+)")

Replicas = tuple[int, ...]


class State(msgspec.Struct):
    """What somebody holds to be the state of a partition; None: nobody told it that much."""

    leader: int
    leader_epoch: int
    isr: Replicas
    zk_version: int
    controller_epoch: int | None = None
    replicas: Replicas | None = None


class Hosted(msgspec.Struct):
    """A replica on a broker. `sees`: the log end offsets that a leader thinks its followers
    have; `proposed`: the ISR that it asked the controller for, and has no answer to."""

    role: str
    state: State
    leo: int | None = None
    hw: int | None = None
    sees: dict[int, int] = {}
    proposed: Replicas | None = None


class Asked(msgspec.Struct):
    """A partition in a fetcher thread: the offset last asked for, or why it is left out until
    when."""

    offset: int
    delayed_until_us: int = 0
    reason: str = ""


class Fetcher(msgspec.Struct):
    """A fetcher thread of a broker; `asked_us` is when it last sent a Fetch."""

    leader: int
    fetcher_id: int
    asked_us: int = -1
    session_epoch: int = -1
    partitions: dict[TopicPartition, Asked] = {}


class Stopped(msgspec.Struct):
    """What a StopReplica took away, in case that it is not obeyed."""

    hosted: Hosted
    asked: dict[tuple[int, int], Asked]


class Member(msgspec.Struct):
    """One broker: its process (None: unknown) and what it has in memory. `controller_epoch`: in
    which it thinks itself controller, with the `cache` that goes with it."""

    broker: int
    process: ProcessState | None = None
    controller_epoch: int | None = None
    live_brokers: Replicas = ()
    metadata: dict[TopicPartition, State] = {}
    cache: dict[TopicPartition, State] = {}
    hosted: dict[TopicPartition, Hosted] = {}
    fetchers: dict[tuple[int, int], Fetcher] = {}
    told: dict[TopicPartition, PartitionState] = {}
    stopped: dict[TopicPartition, Stopped] = {}


class Topic(msgspec.Struct):
    """A topic's znodes: each partition's replicas, and its settings."""

    replicas: dict[int, Replicas] = {}
    config: dict[str, str] = {}


class Snapshot:
    """All members at the time of the last event read."""

    def __init__(self) -> None:
        self.now_us = 0
        self.members: dict[int, Member] = {}
        self.states: dict[TopicPartition, State] = {}
        self.topics: dict[str, Topic] = {}
        self.registered: dict[int, int] = {}
        self.controller: int | None = None
        self.controller_epoch: int | None = None
        self._dispatch = Dispatch([self])

    def read(self, event: AnyEvent) -> None:
        """Take one event in; events come in their order."""
        self.now_us = event.t
        self._dispatch(event)

    def member(self, broker: int) -> Member:
        """A broker that something was heard of."""
        if broker not in self.members:
            self.members[broker] = Member(broker)
        return self.members[broker]

    @property
    def partitions(self) -> list[TopicPartition]:
        """What ZooKeeper has, and what anybody thinks that there is."""
        known = {
            *self.states,
            *(p for m in self.members.values() for p in (*m.metadata, *m.hosted)),
        }
        return sorted(known)

    # -- processes ---------------------------------------------------------------------------------

    def on_process_state_changed(self, event: e.ProcessStateChanged) -> None:
        member = self.member(event.broker)
        member.process = event.state
        if event.state in (DEAD, STARTING):
            self._lose(member)
        if event.state == STARTING:
            member.hosted.clear()

    def _lose(self, member: Member) -> None:
        """A process that has ended has no memory; what its disk has is what it last had."""
        member.controller_epoch, member.live_brokers = None, ()
        for memory in (member.metadata, member.cache, member.fetchers, member.told):
            memory.clear()
        for hosted in member.hosted.values():
            hosted.sees.clear()

    # -- ZooKeeper ---------------------------------------------------------------------------------

    def on_zk_transaction(self, event: e.ZkTransaction) -> None:
        for path in event.removed:
            self._removed(path)
        for op in applied_ops(event):
            if op.op == "delete":
                self._removed(op.path or "")
            elif op.op in ("create", "setData"):
                self._written(event, op, op.path or "")

    def _written(self, event: e.ZkTransaction, op: LoggedOp, path: str) -> None:
        partition = state_partition(path)
        if partition is not None:
            self._state(partition, op)
        elif found := _TOPIC.fullmatch(path):
            self._topic(found[1]).replicas = _assignment(op.data)
        elif found := _CONFIG.fullmatch(path):
            self._topic(found[1]).config = _decoded(op.data, _ConfigData).config
        elif found := _BROKER.fullmatch(path):
            self.registered[int(found[1])] = event.zxid
        elif path == "/controller":
            self.controller = _decoded(op.data, _ControllerData).brokerid
        elif path == "/controller_epoch":
            self.controller_epoch = _decoded(op.data, int)

    def _removed(self, path: str) -> None:
        partition = state_partition(path)
        if partition is not None:
            self.states.pop(partition, None)
        elif found := _TOPIC.fullmatch(path):
            self.topics.pop(found[1], None)
        elif found := _BROKER.fullmatch(path):
            self.registered.pop(int(found[1]), None)
        elif path == "/controller":
            self.controller = None

    def _topic(self, name: str) -> Topic:
        return self.topics.setdefault(name, Topic())

    def _state(self, partition: TopicPartition, op: LoggedOp) -> None:
        before = self.states.get(partition)
        version = -1 if before is None else before.zk_version
        version = op.version if op.op == "setData" and op.version is not None else version + 1
        it = _decoded(op.data, _StateData)
        self.states[partition] = State(
            it.leader, it.leader_epoch, it.isr, 0 if op.op == "create" else version
        )
        self.states[partition].controller_epoch = it.controller_epoch

    def zookeeper_state(self, partition: TopicPartition) -> State | None:
        """The state znode, with the replicas of the topic's."""
        state = self.states.get(partition)
        if state is not None:
            topic = self.topics.get(partition.topic, Topic())
            state.replicas = topic.replicas.get(partition.partition)
        return state

    # -- the controller ----------------------------------------------------------------------------

    def on_controller_elected(self, event: e.ControllerElected) -> None:
        member = self.member(event.broker)
        member.controller_epoch = event.controller_epoch
        member.cache.clear()

    def on_controller_resigned(self, event: e.ControllerResigned) -> None:
        member = self.member(event.broker)
        member.controller_epoch = None
        member.cache.clear()

    def on_controller_cache_updated(self, event: e.ControllerCacheUpdated) -> None:
        state = State(event.leader, event.leader_epoch, event.isr, event.zk_version)
        if event.replicas:
            state.replicas, state.controller_epoch = event.replicas, event.controller_epoch
        self.member(event.broker).cache[event.partition] = state

    # -- control requests at a broker --------------------------------------------------------------

    def on_metadata_cache_updated(self, event: e.MetadataCacheUpdated) -> None:
        member = self.member(event.broker)
        member.live_brokers = event.live_brokers
        for partition in event.removed:
            member.metadata.pop(partition, None)
        for state in event.states:
            member.metadata[state.partition] = _of_request(state)

    def on_leader_and_isr(self, event: e.LeaderAndIsr) -> None:
        self.member(event.broker).told[event.state.partition] = event.state

    def on_becomes_leader(self, event: e.BecomesLeader) -> None:
        hosted = self._becomes(event, LEADER, event.broker)
        hosted.state.isr = self._isr_told(event)
        self._out_of_fetchers(event.broker, event.partition)

    def _isr_told(self, event: e.BecomesLeader) -> Replicas:
        told = self.member(event.broker).told.get(event.partition)
        return told.isr if told is not None else ()

    def on_becomes_follower(self, event: e.BecomesFollower) -> None:
        member = self.member(event.broker)
        before = member.hosted.get(event.partition)
        goes_on = before is not None and (before.state.leader, before.state.leader_epoch) == (
            event.leader,
            event.leader_epoch,
        )
        hosted = self._becomes(event, FOLLOWER, event.leader)
        hosted.state.isr = ()
        hosted.sees.clear()
        if not goes_on:
            self._out_of_fetchers(event.broker, event.partition)

    def _becomes(
        self, event: e.BecomesLeader | e.BecomesFollower, role: str, leader: int
    ) -> Hosted:
        """What the LeaderAndIsr said that led to it; a leader that stays one keeps what it saw."""
        member = self.member(event.broker)
        told, before = member.told.get(event.partition), member.hosted.get(event.partition)
        sees = before.sees if before is not None and before.role == role == LEADER else {}
        state = State(leader, event.leader_epoch, (), -1)
        if told is not None and told.leader_epoch == event.leader_epoch:
            state = _of_request(told)
            state.leader = leader
        is_known = event.leo >= 0
        leo, hw = (event.leo, event.hw) if is_known else (None, None)
        hosted = Hosted(role, state, leo, hw, sees)
        member.hosted[event.partition] = hosted
        return hosted

    def on_isr_updated(self, event: e.IsrUpdated) -> None:
        hosted = self.member(event.broker).hosted.get(event.partition)
        if hosted is not None:
            hosted.state.isr, hosted.state.zk_version = event.isr, event.zk_version
            hosted.proposed = None

    def on_alter_isr_proposed(self, event: e.AlterIsrProposed) -> None:
        hosted = self.member(event.broker).hosted.get(event.partition)
        if hosted is not None:
            hosted.proposed = event.isr

    def on_alter_isr_failed(self, event: e.AlterIsrFailed) -> None:
        hosted = self.member(event.broker).hosted.get(event.partition)
        if hosted is not None and event.outcome == ROLLED_BACK:
            hosted.proposed = None

    def on_stop_replica(self, event: e.StopReplica) -> None:
        member = self.member(event.broker)
        hosted = member.hosted.pop(event.partition, None)
        asked = self._out_of_fetchers(event.broker, event.partition)
        if hosted is not None:
            member.stopped[event.partition] = Stopped(hosted, asked)

    def on_stop_replica_ignored(self, event: e.StopReplicaIgnored) -> None:
        member = self.member(event.broker)
        before = member.stopped.pop(event.partition, None)
        if before is not None:
            member.hosted[event.partition] = before.hosted
            for key, asked in before.asked.items():
                member.fetchers[key].partitions[event.partition] = asked

    def on_log_dir_failed(self, event: e.LogDirFailed) -> None:
        for partition in event.partitions:
            self._out_of_fetchers(event.broker, partition)
            hosted = self.member(event.broker).hosted.get(partition)
            if hosted is not None:
                hosted.role = OFFLINE
                hosted.sees.clear()

    # -- logs --------------------------------------------------------------------------------------

    def _hosted(self, event: Any) -> Hosted | None:
        return self.member(event.broker).hosted.get(event.partition)

    def on_records_appended(self, event: e.RecordsAppended) -> None:
        if hosted := self._hosted(event):
            hosted.leo = event.leo

    def on_hw_advanced(self, event: e.HwAdvanced) -> None:
        if hosted := self._hosted(event):
            hosted.hw = event.hw

    def on_log_truncated(self, event: e.LogTruncated) -> None:
        if hosted := self._hosted(event):
            hosted.leo = event.to_offset

    def on_follower_state_updated(self, event: e.FollowerStateUpdated) -> None:
        if hosted := self._hosted(event):
            hosted.sees[event.replica] = event.leo

    # -- fetchers ----------------------------------------------------------------------------------

    def _fetcher(self, event: AnyEvent) -> Fetcher | None:
        """The thread in which this happens; None: in none of those."""
        found = _FETCHER.fullmatch(event.thread)
        if found is None:
            return None
        key = int(found[2]), int(found[1])
        return self.member(event.broker).fetchers.setdefault(key, Fetcher(*key))

    def on_fetcher_started(self, event: e.FetcherStarted) -> None:
        key = event.leader, event.fetcher_id
        self.member(event.broker).fetchers[key] = Fetcher(*key)

    def on_fetcher_stopped(self, event: e.FetcherStopped) -> None:
        self.member(event.broker).fetchers.pop((event.leader, event.fetcher_id), None)

    def on_fetch_sent(self, event: e.FetchSent) -> None:
        fetcher = self._fetcher(event)
        if fetcher is None:
            return
        fetcher.asked_us, fetcher.session_epoch = event.t, event.session_epoch
        for partition, offset in event.offsets:
            fetcher.partitions[partition] = Asked(offset)

    def on_partition_delayed(self, event: e.PartitionDelayed) -> None:
        fetcher = self._fetcher(event)
        if fetcher is not None:
            asked = fetcher.partitions.setdefault(event.partition, Asked(-1))
            asked.delayed_until_us = event.t + event.delay_ms * 1000
            asked.reason = event.reason

    def _out_of_fetchers(
        self, broker: int, partition: TopicPartition
    ) -> dict[tuple[int, int], Asked]:
        """Take it out of the threads that have it; what they had."""
        fetchers = self.member(broker).fetchers
        having = [key for key, fetcher in fetchers.items() if partition in fetcher.partitions]
        return {key: fetchers[key].partitions.pop(partition) for key in having}


def snapshot(events: Iterable[AnyEvent], at_us: int) -> Snapshot:
    """The cluster when everything of `at_us` has happened. Events are in their order."""
    found = Snapshot()
    for event in events:
        if event.t > at_us:
            break
        found.read(event)
    found.now_us = at_us
    return found


# -- payloads --------------------------------------------------------------------------------------


class _StateData(msgspec.Struct):
    leader: int = -1
    leader_epoch: int = -1
    isr: Replicas = ()
    controller_epoch: int | None = None


class _TopicData(msgspec.Struct):
    partitions: dict[str, Replicas] = {}


class _ConfigData(msgspec.Struct):
    config: dict[str, str] = {}


class _ControllerData(msgspec.Struct):
    brokerid: int | None = None


def _decoded(data: str | None, kind: type[Any]) -> Any:
    """What cannot be read says nothing: an empty one, or 0."""
    try:
        return msgspec.json.decode(data or "{}", type=kind)
    except msgspec.DecodeError:
        return kind()


def _assignment(data: str | None) -> dict[int, Replicas]:
    partitions: dict[str, Replicas] = _decoded(data, _TopicData).partitions
    return {int(number): replicas for number, replicas in partitions.items() if number.isdecimal()}


def _of_request(state: PartitionState) -> State:
    return State(
        state.leader,
        state.leader_epoch,
        state.isr,
        state.zk_version,
        state.controller_epoch,
        state.replicas,
    )
