"""A running cluster as its ZooKeeper shows it, and what has changed between two looks.

Owns what znodes mean to somebody who watches: controller, brokers, partitions, notifications that
wait, commands. Made from a copy of the znodes (`zk.real.mirror`); a znode that cannot be read is
named in `malformed`, and all else is shown. Knows neither how the copy came about nor how this is
drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TypeVar

import msgspec

from zk import paths
from zk.client import codec, codec_admin
from zk.errors import MalformedZNode
from zk.real.mirror import ZNode

Nodes = Mapping[str, ZNode]
Children = Mapping[str, tuple[str, ...]]

T = TypeVar("T")


class SeenBroker(msgspec.Struct, frozen=True):
    """A registration; `epoch` is the znode's czxid (KIP-380)."""

    broker: int
    host: str
    port: int
    page_port: int
    epoch: int


class SeenState(msgspec.Struct, frozen=True):
    """A partition's state; whoever told it may not know all of it."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    zk_version: int | None = None
    controller_epoch: int | None = None


class SeenPartition(msgspec.Struct, frozen=True):
    """A partition of a topic's assignment; `state` None: no controller has made it yet."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    state: SeenState | None

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def is_under_replicated(self) -> bool:
        return self.state is None or len(self.state.isr) < len(self.replicas)

    @property
    def is_offline(self) -> bool:
        return self.state is None or self.state.leader < 0


class Seen(msgspec.Struct, frozen=True):
    """Everything at one moment."""

    controller: int | None = None
    controller_epoch: int | None = None
    brokers: dict[int, SeenBroker] = {}
    partitions: dict[str, SeenPartition] = {}
    notifications: dict[str, tuple[str, ...]] = {}
    deleting: tuple[str, ...] = ()
    reassigning: bool = False
    electing: bool = False
    malformed: tuple[str, ...] = ()


class Change(msgspec.Struct, frozen=True):
    """One difference: what it is about, in words, and as values."""

    kind: str
    about: str
    text: str
    facts: Mapping[str, object] = {}


def seen(nodes: Nodes, children: Children) -> Seen:
    """What these znodes say."""
    return _Reading(nodes, children).seen()


class _Reading:
    def __init__(self, nodes: Nodes, children: Children) -> None:
        self._nodes, self._children = nodes, children
        self._malformed: list[str] = []

    def seen(self) -> Seen:
        controller = self._decode(paths.CONTROLLER, codec.decode_controller)
        epoch = self._decode(paths.CONTROLLER_EPOCH, codec.decode_controller_epoch)
        return Seen(
            controller=controller.broker_id if controller else None,
            controller_epoch=epoch,
            brokers=dict(sorted(self._brokers())),
            partitions={one.name: one for one in self._partitions()},
            notifications=dict(self._notifications()),
            deleting=tuple(sorted(self._children.get(paths.DELETE_TOPICS, ()))),
            reassigning=paths.REASSIGN_PARTITIONS in self._nodes,
            electing=paths.PREFERRED_REPLICA_ELECTION in self._nodes,
            malformed=tuple(self._malformed),
        )

    def _decode(self, path: str, decode: Callable[[bytes], T]) -> T | None:
        """None where there is no such znode, or nothing that can be read."""
        node = self._nodes.get(path)
        if node is None:
            return None
        try:
            return decode(node.data)
        except MalformedZNode as error:
            self._malformed.append(str(error))
            return None

    def _brokers(self) -> Iterator[tuple[int, SeenBroker]]:
        for name in self._children.get(paths.BROKER_IDS, ()):
            path = f"{paths.BROKER_IDS}/{name}"
            info = self._decode(path, partial(codec_admin.decode_broker, path))
            if info is None or not name.isdecimal():
                continue
            host, port = next(((e.host, e.port) for e in info.endpoints), ("", -1))
            epoch = self._nodes[path].stat.czxid
            yield int(name), SeenBroker(int(name), host, port, info.jmx_port, epoch)

    def _partitions(self) -> Iterator[SeenPartition]:
        for topic in sorted(self._children.get(paths.TOPICS, ())):
            path = paths.topic(topic)
            assigned = self._decode(path, partial(codec.decode_topic, path))
            for partition, replicas in sorted((assigned or {}).items()):
                yield SeenPartition(
                    topic,
                    partition,
                    replicas.replicas,
                    replicas.adding_replicas,
                    replicas.removing_replicas,
                    self._state(paths.topic_partition_state(topic, partition)),
                )

    def _state(self, path: str) -> SeenState | None:
        if path not in self._nodes:
            return None
        version = self._nodes[path].stat.version
        found = self._decode(path, lambda data: codec.decode_state(path, data, version))
        if found is None:
            return None
        it = found.leader_and_isr
        return SeenState(it.leader, it.leader_epoch, it.isr, version, found.controller_epoch)

    def _notifications(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        for name in sorted(self._children.get(paths.ISR_CHANGE_NOTIFICATION, ())):
            path = f"{paths.ISR_CHANGE_NOTIFICATION}/{name}"
            about = self._decode(path, partial(codec.decode_isr_change, path))
            yield name, tuple(map(str, about or ()))


# -- between two looks -----------------------------------------------------------------------------


def changes(before: Seen, after: Seen) -> list[Change]:
    """What is different, in the order in which people look: who rules, who is there, what."""
    return [
        *_controller_changes(before, after),
        *_broker_changes(before, after),
        *_partition_changes(before, after),
        *_other_changes(before, after),
    ]


def _controller_changes(before: Seen, after: Seen) -> Iterator[Change]:
    if (before.controller, before.controller_epoch) == (after.controller, after.controller_epoch):
        return
    facts = {"controller": after.controller, "epoch": after.controller_epoch}
    who = "nobody" if after.controller is None else f"broker {after.controller}"
    yield Change("controller", "controller", f"{who}, epoch {after.controller_epoch}", facts)


def _broker_changes(before: Seen, after: Seen) -> Iterator[Change]:
    for broker in sorted(before.brokers.keys() | after.brokers.keys()):
        was, now = before.brokers.get(broker), after.brokers.get(broker)
        if was == now:
            continue
        about = f"broker {broker}"
        if now is None:
            yield Change("broker", about, "is gone", {"broker": broker, "there": False})
            continue
        facts = {"broker": broker, "there": True, "epoch": now.epoch}
        how = "is there" if was is None else "registered anew"
        yield Change("broker", about, f"{how}, {now.host}:{now.port}, epoch {now.epoch}", facts)


def _partition_changes(before: Seen, after: Seen) -> Iterator[Change]:
    for name in sorted(before.partitions.keys() | after.partitions.keys()):
        was, now = before.partitions.get(name), after.partitions.get(name)
        if was == now:
            continue
        if now is None:
            yield Change("partition", name, "is gone", {"there": False})
            continue
        text = "; ".join(_differences(was, now))
        yield Change("partition", name, text, msgspec.to_builtins(now))


def _differences(was: SeenPartition | None, now: SeenPartition) -> Iterator[str]:
    if was is None or was.replicas != now.replicas:
        yield f"replicas {_ids(now.replicas)}"
    if now.adding or now.removing:
        yield f"being reassigned (+{_ids(now.adding)} -{_ids(now.removing)})"
    elif was is not None and (was.adding or was.removing):
        yield "reassigned"
    old, new = was.state if was else None, now.state
    if new is None:
        yield "no state yet" if old is None else "its state is gone"
    elif old != new:
        yield _state_change(old, new)


def _state_change(old: SeenState | None, new: SeenState) -> str:
    if old is None:
        leads = f"leader {leader_name(new.leader)} (epoch {new.leader_epoch})"
        return f"{leads} ISR {_ids(new.isr)} v{new.zk_version}"
    words = []
    leads = leader_name(new.leader)
    if old.leader != new.leader:
        words.append(f"leader {leader_name(old.leader)} → {leads} (epoch {new.leader_epoch})")
    elif old.leader_epoch != new.leader_epoch:
        words.append(f"leader {leads} (epoch {old.leader_epoch} → {new.leader_epoch})")
    if old.isr != new.isr:
        how = "shrinks" if set(new.isr) < set(old.isr) else "expands"
        how = how if set(new.isr) < set(old.isr) or set(new.isr) > set(old.isr) else "becomes"
        words.append(f"ISR {how} {_ids(old.isr)} → {_ids(new.isr)}")
    if old.controller_epoch != new.controller_epoch:
        words.append(f"controller epoch {new.controller_epoch}")
    unseen = (new.zk_version or 0) - (old.zk_version or 0) - 1
    skipped = f", {unseen} between not seen" if unseen > 0 else ""
    return f"{', '.join(words) or 'written again'} v{old.zk_version}→v{new.zk_version}{skipped}"


def _other_changes(before: Seen, after: Seen) -> Iterator[Change]:
    for name in sorted(before.notifications.keys() | after.notifications.keys()):
        if (name in before.notifications) != (name in after.notifications):
            there = name in after.notifications
            about = (after if there else before).notifications[name]
            text = f"waits: {', '.join(about)}" if there else "was read"
            facts = {"there": there, "partitions": list(about)}
            yield Change("notification", name, text, facts)
    for topic in sorted(set(after.deleting) - set(before.deleting)):
        yield Change("deletion", topic, "is to be deleted", {"topic": topic})
    for what in ("reassigning", "electing"):
        if getattr(before, what) != getattr(after, what):
            there = getattr(after, what)
            yield Change(what, "command", f"{what} {'asked for' if there else 'is over'}", {})
    for text in after.malformed:
        if text not in before.malformed:
            yield Change("malformed", "znode", text, {})


def leader_name(leader: int) -> str:
    """`none` where a state has no leader (-1) or one that is to be deleted (-2)."""
    return str(leader) if leader >= 0 else "none"


def _ids(brokers: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, brokers))}]"
