"""One moment of a run in the manner of `kafka-topics --describe`: every partition as ZooKeeper, the
controller and each broker have it, and where they do not agree.

Owns what is compared with what: every view with ZooKeeper's; a replica's own log end offset with
what its leader thinks it is; its high watermark with the leader's. Who had what at that moment is
`snapshot`'s business, how it looks is `describe_text`'s.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from emulator.trace.state.processes import DEAD
from emulator.trace.state.snapshot import FOLLOWER, LEADER, Fetcher, Member, Snapshot, State
from emulator.trace.values import ProcessState, TopicPartition

COMPARED = ("leader", "leader_epoch", "controller_epoch", "zk_version", "replicas", "isr", "osr")


class View(msgspec.Struct):
    """A partition's state as one holds it. `differs` names the fields that ZooKeeper has
    otherwise; None in a field: this view does not say. `proposed`: what a leader has asked the
    controller for, and has no answer to."""

    of: str
    broker: int | None
    leader: int
    leader_epoch: int
    controller_epoch: int | None
    zk_version: int
    replicas: tuple[int, ...] | None
    isr: tuple[int, ...] | None
    osr: tuple[int, ...] | None
    differs: tuple[str, ...] = ()
    proposed: tuple[int, ...] | None = None


class Replica(msgspec.Struct):
    """A replica, and what the leader thinks of it. `differs`: of `leo` and `hw`, those that the
    leader has otherwise."""

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
    """All views of one partition. The first is ZooKeeper's, where there is a znode."""

    partition: TopicPartition
    views: list[View]
    replicas: list[Replica]

    @property
    def agrees(self) -> bool:
        """All views are the same, and there is a znode."""
        return (
            bool(self.views)
            and self.views[0].of == ZOOKEEPER
            and not any(view.differs for view in self.views)
        )


class DescribedBroker(msgspec.Struct):
    """`controller_epoch` where it thinks itself controller; `broker_epoch` where it is
    registered."""

    broker: int
    process: ProcessState | None
    broker_epoch: int | None
    controller_epoch: int | None
    live_brokers: tuple[int, ...]


class FetchedPartition(msgspec.Struct):
    """A partition in a fetcher thread; `delayed_ms` more until it is asked for again."""

    partition: TopicPartition
    offset: int
    delayed_ms: float = 0
    reason: str = ""


class DescribedFetcher(msgspec.Struct):
    """A fetcher thread and its partitions, in the order in which it came to know them."""

    broker: int
    thread: str
    leader: int
    fetcher_id: int
    asked_ms_ago: float | None
    session_epoch: int
    partitions: list[FetchedPartition]


class DescribedTopic(msgspec.Struct):
    """A topic's own znodes."""

    topic: str
    partitions: int
    replication: int
    config: dict[str, str]


class Description(msgspec.Struct):
    """All of it; `at_ms` since the cluster was up."""

    at_ms: float
    controller: int | None
    controller_epoch: int | None
    brokers: list[DescribedBroker]
    topics: list[DescribedTopic]
    partitions: list[DescribedPartition]
    fetchers: list[DescribedFetcher]
    waiting: dict[int, list[TopicPartition]]


ZOOKEEPER = "ZooKeeper"


def describe(moment: Snapshot, origin_us: int) -> Description:
    """Everything that a snapshot holds."""
    members = [moment.members[broker] for broker in sorted(moment.members)]
    return Description(
        at_ms=(moment.now_us - origin_us) / 1000,
        controller=moment.controller,
        controller_epoch=moment.controller_epoch,
        brokers=[
            DescribedBroker(
                member.broker,
                member.process,
                moment.registered.get(member.broker),
                member.controller_epoch,
                member.live_brokers,
            )
            for member in members
        ],
        topics=[
            DescribedTopic(
                name, len(topic.replicas), max(map(len, topic.replicas.values())), topic.config
            )
            for name, topic in sorted(moment.topics.items())
            if topic.replicas
        ],
        partitions=[_partition(name, moment, members) for name in moment.partitions],
        fetchers=[
            _fetcher(member, member.fetchers[key], moment.now_us)
            for member in members
            for key in sorted(member.fetchers)
        ],
        waiting={m.broker: names for m in members if (names := _waiting(m))},
    )


def _partition(name: TopicPartition, moment: Snapshot, members: list[Member]) -> DescribedPartition:
    """ZooKeeper's view, of each broker that thinks itself controller, of each leader's own
    partition, and every metadata cache; then the replicas."""
    views = []
    state = moment.zookeeper_state(name)
    if state is not None:
        views.append(_view(ZOOKEEPER, None, state))
    views += [
        _view("controller", member.broker, member.cache[name])
        for member in members
        if member.controller_epoch is not None and name in member.cache
    ]
    for member in members:
        hosted = member.hosted.get(name)
        if hosted is not None and hosted.role == LEADER and member.process != DEAD:
            view = _view("leader", member.broker, hosted.state)
            view.proposed = hosted.proposed
            views.append(view)
    views += [
        _view("metadata", member.broker, member.metadata[name])
        for member in members
        if name in member.metadata
    ]
    truth = views[0] if state is not None else None
    for view in views[1:] if truth else ():
        view.differs = tuple(
            field
            for field in COMPARED
            if getattr(view, field) is not None and getattr(view, field) != getattr(truth, field)
        )
    return DescribedPartition(name, views, list(_replicas(name, moment, members, truth)))


def _view(of: str, broker: int | None, state: State) -> View:
    replicas = state.replicas
    return View(
        of=of,
        broker=broker,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        controller_epoch=state.controller_epoch,
        zk_version=state.zk_version,
        replicas=replicas,
        isr=state.isr,
        osr=tuple(r for r in replicas if r not in state.isr) if replicas is not None else None,
    )


def _replicas(
    name: TopicPartition, moment: Snapshot, members: list[Member], truth: View | None
) -> Iterator[Replica]:
    """Assigned ones in their order, then whoever else has one. The leader is who ZooKeeper says."""
    leader = moment.members.get(truth.leader) if truth else None
    leads = leader.hosted.get(name) if leader is not None else None
    leads = leads if leads is not None and leads.role == LEADER else None
    assigned = (truth.replicas or ()) if truth else ()
    hosting = [m.broker for m in members if name in m.hosted and m.broker not in assigned]
    for broker in (*assigned, *hosting):
        member = moment.members.get(broker)
        one = Replica(broker, member.process if member is not None else None)
        hosted = member.hosted.get(name) if member is not None else None
        if hosted is not None:
            one.role, one.leo, one.hw = hosted.role, hosted.leo, hosted.hw
            one.leader, one.leader_epoch = hosted.state.leader, hosted.state.leader_epoch
        if leads is not None and leader is not None and broker != leader.broker:
            one.leader_sees_leo, one.leader_hw = leads.sees.get(broker), leads.hw
            pairs = (("leo", one.leo, one.leader_sees_leo), ("hw", one.hw, one.leader_hw))
            one.differs = tuple(
                field for field, own, its in pairs if None not in (own, its) and own != its
            )
        yield one


def _fetcher(member: Member, fetcher: Fetcher, now_us: int) -> DescribedFetcher:
    partitions = [
        FetchedPartition(
            name,
            asked.offset,
            max(0, asked.delayed_until_us - now_us) / 1000,
            asked.reason if asked.delayed_until_us > now_us else "",
        )
        for name, asked in fetcher.partitions.items()
    ]
    return DescribedFetcher(
        broker=member.broker,
        thread=f"ReplicaFetcherThread-{fetcher.fetcher_id}-{fetcher.leader}",
        leader=fetcher.leader,
        fetcher_id=fetcher.fetcher_id,
        asked_ms_ago=(now_us - fetcher.asked_us) / 1000 if fetcher.asked_us >= 0 else None,
        session_epoch=fetcher.session_epoch,
        partitions=partitions,
    )


def _waiting(member: Member) -> list[TopicPartition]:
    """Followed, but no Fetch has asked for them yet."""
    asked = {name for fetcher in member.fetchers.values() for name in fetcher.partitions}
    return [
        name
        for name, hosted in sorted(member.hosted.items())
        if hosted.role == FOLLOWER and name not in asked and member.process != DEAD
    ]


def as_json(description: Description) -> dict[str, object]:
    """Plain values; partitions by their names, and whether all views of one agree."""
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
