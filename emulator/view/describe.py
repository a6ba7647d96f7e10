"""One moment of a run, like `kafka-topics --describe`: every partition in the views of ZooKeeper,
the controller and each broker, with their differences.

Owns the comparisons: every view with ZooKeeper's; a replica's own log end offset with the one known
to its leader; its high watermark with the leader's. The views come from `trace.state`;
`describe_text` formats them.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from emulator.trace.state import TraceState
from emulator.trace.state.fetches import FetcherThread, ThreadKey
from emulator.trace.state.processes import DEAD
from emulator.trace.state.replicas import FOLLOWER, LEADER, HostedReplica
from emulator.trace.values import PartitionState, ProcessState, TopicPartition

COMPARED = ("leader", "leader_epoch", "controller_epoch", "zk_version", "replicas", "isr", "osr")


class View(msgspec.Struct):
    """A partition's state in one view. `differs`: the fields that differ from ZooKeeper's; None in
    a field: not part of this view. `proposed`: the ISR in a leader's pending AlterIsr."""

    of: str
    broker: int | None
    leader: int
    leader_epoch: int
    controller_epoch: int | None
    zk_version: int
    replicas: tuple[int, ...] | None
    isr: tuple[int, ...] | None
    osr: tuple[int, ...] | None = None
    differs: tuple[str, ...] = ()
    proposed: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.replicas is not None:
            in_sync = self.isr or ()
            self.osr = tuple(replica for replica in self.replicas if replica not in in_sync)


class Replica(msgspec.Struct):
    """A replica, and the leader's view of it. `differs`: whether `leo` or `hw` differ from the
    leader's."""

    broker: int
    process: ProcessState | None
    role: str = "none"
    leader: int | None = None
    leader_epoch: int | None = None
    leo: int | None = None
    leader_sees_leo: int | None = None
    hw: int | None = None
    leader_hw: int | None = None
    differs: tuple[str, ...] = ()


class DescribedPartition(msgspec.Struct):
    """All views of one partition. The first is ZooKeeper's, if the znode exists."""

    partition: TopicPartition
    views: list[View]
    replicas: list[Replica]

    @property
    def agrees(self) -> bool:
        """Whether the znode exists and all views are equal."""
        return (
            bool(self.views)
            and self.views[0].of == ZOOKEEPER
            and not any(view.differs for view in self.views)
        )


class DescribedBroker(msgspec.Struct):
    """`controller_epoch`: if it believes it is the controller; `broker_epoch`: if it is
    registered."""

    broker: int
    process: ProcessState | None
    broker_epoch: int | None
    controller_epoch: int | None
    live_brokers: tuple[int, ...]


class FetchedPartition(msgspec.Struct):
    """A partition in a fetcher thread; `delayed_ms`: the remaining delay of its next fetch."""

    partition: TopicPartition
    offset: int
    delayed_ms: float = 0
    reason: str = ""


class DescribedFetcher(msgspec.Struct):
    """A fetcher thread and its partitions, in the order in which they were added."""

    broker: int
    thread: str
    leader: int
    fetcher_id: int
    sent_ms_ago: float | None = msgspec.field(name="asked_ms_ago")
    session_epoch: int
    partitions: list[FetchedPartition]


class DescribedTopic(msgspec.Struct):
    """A topic's own znodes."""

    topic: str
    partitions: int
    replication: int
    config: dict[str, str]


class Description(msgspec.Struct):
    """The complete description; `at_ms` since the cluster was up."""

    at_ms: float
    controller: int | None
    controller_epoch: int | None
    brokers: list[DescribedBroker]
    topics: list[DescribedTopic]
    partitions: list[DescribedPartition]
    fetchers: list[DescribedFetcher]
    waiting: dict[int, list[TopicPartition]]


ZOOKEEPER = "ZooKeeper"


class _Moment(msgspec.Struct):
    """The state of a moment; `live` brokers have a process with memory."""

    state: TraceState
    live: list[int]
    hosted: dict[int, dict[TopicPartition, HostedReplica]]
    metadata: dict[int, dict[TopicPartition, PartitionState]]
    assignments: dict[TopicPartition, tuple[int, ...]]


def describe(state: TraceState, at_us: int, origin_us: int) -> Description:
    """Describe `state`, which has received all events until `at_us`."""
    brokers = sorted(
        {
            *state.processes.history,
            *state.metadata.entries,
            *state.controller.caches,
            *state.replicas.brokers,
            *state.fetches.threads,
        }
    )
    moment = _Moment(
        state,
        live=[broker for broker in brokers if state.processes.state(broker) != DEAD],
        hosted={broker: state.replicas.serving(broker) for broker in brokers},
        metadata={broker: state.metadata.shown(broker) for broker in brokers},
        assignments=state.znodes.assignments(),
    )
    names = {name for name, one in state.partitions.all.items() if one.in_zookeeper is not None}
    for broker in brokers:
        names.update(moment.hosted[broker], moment.metadata[broker])
    waiting = {broker: _waiting(moment, broker) for broker in moment.live}
    return Description(
        at_ms=(at_us - origin_us) / 1000,
        controller=state.znodes.controller,
        controller_epoch=state.znodes.controller_epoch,
        brokers=[
            DescribedBroker(
                broker,
                state.processes.state(broker),
                state.znodes.broker_epoch(broker),
                state.controller.epochs.get(broker),
                state.metadata.live_brokers(broker),
            )
            for broker in brokers
        ],
        topics=[
            DescribedTopic(
                name,
                len(topic.partitions),
                max(map(len, topic.partitions.values())),
                state.znodes.config(name),
            )
            for name, topic in state.znodes.topics().items()
            if topic.partitions
        ],
        partitions=[_partition(moment, name) for name in sorted(names)],
        fetchers=[
            _fetcher(broker, key, thread, at_us)
            for broker, threads in sorted(state.fetches.threads.items())
            for key, thread in sorted(threads.items())
        ],
        waiting={broker: names for broker, names in waiting.items() if names},
    )


def _partition(moment: _Moment, name: TopicPartition) -> DescribedPartition:
    views = list(_views(moment, name))
    truth = views[0] if views and views[0].of == ZOOKEEPER else None
    for view in views[1:] if truth else ():
        view.differs = tuple(
            field
            for field in COMPARED
            if getattr(view, field) is not None and getattr(view, field) != getattr(truth, field)
        )
    return DescribedPartition(name, views, list(_replicas(moment, name, truth)))


def _views(moment: _Moment, name: TopicPartition) -> Iterator[View]:
    """ZooKeeper's view, then those of brokers that believe they are the controller, of leaders, and
    of metadata caches."""
    znode = moment.state.partitions.of(name).in_zookeeper
    if znode is not None:
        yield View(
            ZOOKEEPER,
            None,
            znode.leader,
            znode.leader_epoch,
            znode.controller_epoch if znode.controller_epoch >= 0 else None,
            znode.version,
            moment.assignments.get(name),
            znode.isr,
        )
    for broker in sorted(moment.state.controller.epochs):
        update = moment.state.controller.caches[broker].get(name)
        if update is not None:
            yield View(
                "controller",
                broker,
                update.leader,
                update.leader_epoch,
                # An UpdateMetadata without replicas has no controller epoch either.
                update.controller_epoch if update.replicas else None,
                update.zk_version,
                update.replicas or None,
                update.isr,
            )
    for broker in moment.live:
        replica = moment.hosted[broker].get(name)
        if replica is not None and replica.role == LEADER:
            yield View(
                "leader",
                broker,
                replica.leader,
                replica.leader_epoch,
                replica.controller_epoch,
                replica.zk_version,
                replica.replicas,
                replica.isr,
                proposed=replica.proposed,
            )
    for broker, metadata in moment.metadata.items():
        cached = metadata.get(name)
        if cached is not None:
            yield View(
                "metadata",
                broker,
                cached.leader,
                cached.leader_epoch,
                cached.controller_epoch,
                cached.zk_version,
                cached.replicas,
                cached.isr,
            )


def _replicas(moment: _Moment, name: TopicPartition, truth: View | None) -> Iterator[Replica]:
    """Assigned replicas in order, then any others. The leader is ZooKeeper's."""
    hosted, water_levels = moment.hosted, moment.state.water_levels
    leader = hosted.get(truth.leader, {}).get(name) if truth else None
    if leader is not None and leader.role != LEADER:
        leader = None
    assigned = (truth.replicas or ()) if truth else ()
    others = [b for b, replicas in hosted.items() if name in replicas and b not in assigned]
    for broker in (*assigned, *others):
        process = moment.state.processes.state(broker)
        replica = hosted.get(broker, {}).get(name)
        described = Replica(broker, process)
        if replica is not None:
            described.role = replica.role
            described.leader, described.leader_epoch = replica.leader, replica.leader_epoch
            described.leo, described.hw = water_levels.now(name, broker)
        if leader is not None and broker != leader.leader:
            if leader.leader in moment.live:
                described.leader_sees_leo = leader.follower_leos.get(broker)
            _, described.leader_hw = water_levels.now(name, leader.leader)
            pairs = (
                ("leo", described.leo, described.leader_sees_leo),
                ("hw", described.hw, described.leader_hw),
            )
            described.differs = tuple(
                field for field, own, its in pairs if None not in (own, its) and own != its
            )
        yield described


def _fetcher(broker: int, key: ThreadKey, thread: FetcherThread, now_us: int) -> DescribedFetcher:
    leader, fetcher_id = key
    partitions = []
    for name, offset in thread.offsets.items():
        delay = thread.delays.get(name)
        left_us = delay.until_us - now_us if delay is not None else 0
        reason = delay.reason if delay is not None and left_us > 0 else ""
        partitions.append(FetchedPartition(name, offset, max(0, left_us) / 1000, reason))
    return DescribedFetcher(
        broker=broker,
        thread=f"ReplicaFetcherThread-{fetcher_id}-{leader}",
        leader=leader,
        fetcher_id=fetcher_id,
        sent_ms_ago=(now_us - thread.sent_us) / 1000 if thread.sent_us is not None else None,
        session_epoch=thread.session_epoch,
        partitions=partitions,
    )


def _waiting(moment: _Moment, broker: int) -> list[TopicPartition]:
    """Partitions that the broker follows but has not fetched yet."""
    threads = moment.state.fetches.threads.get(broker, {}).values()
    fetched = {name for thread in threads for name in thread.offsets}
    replicas = moment.hosted[broker].items()
    return [name for name, replica in replicas if replica.role == FOLLOWER and name not in fetched]


def as_json(description: Description) -> dict[str, object]:
    """Plain values; partitions by name, and whether all views agree."""
    partitions = [
        msgspec.structs.asdict(one) | {"partition": str(one.partition), "agrees": one.agrees}
        for one in description.partitions
    ]
    fetchers = [
        msgspec.structs.asdict(one)
        | {
            "partitions": [
                msgspec.structs.asdict(part) | {"partition": str(part.partition)}
                for part in one.partitions
            ]
        }
        for one in description.fetchers
    ]
    waiting = {
        str(broker): [str(name) for name in names] for broker, names in description.waiting.items()
    }
    return msgspec.structs.asdict(description) | {
        "partitions": partitions,
        "fetchers": fetchers,
        "waiting": waiting,
    }
