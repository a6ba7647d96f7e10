"""The state of a running cluster according to its ZooKeeper, and the differences of two states.

Owns the meaning of znodes to an observer: controller, brokers, partitions, pending notifications,
commands. Derived from a copy of the znodes (`zk.real.mirror`). An unreadable znode is named in
`malformed`; everything else is shown. It knows neither how the copy was made nor how the state is
drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TypeVar

import msgspec

from emulator.trace.state.gauges import is_under_replicated
from emulator.view.event_text import ids
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
    """A partition's state; some sources do not have all fields."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    zk_version: int | None = None
    controller_epoch: int | None = None


class SeenPartition(msgspec.Struct, frozen=True):
    """A partition of a topic's assignment; `state` None: the controller has not created it yet."""

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
        """As its leader's gauge has it; see `trace.state.gauges`."""
        return self.state is not None and is_under_replicated(
            self.state.leader, self.state.isr, self.replicas, self.adding
        )

    @property
    def is_offline(self) -> bool:
        return self.state is not None and self.state.leader < 0


class Seen(msgspec.Struct, frozen=True):
    """The complete state at one moment."""

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
    """One difference: its subject, its text, and its values."""

    kind: str
    about: str
    text: str
    facts: Mapping[str, object] = {}


def seen(nodes: Nodes, children: Children) -> Seen:
    """The state that these znodes represent."""
    malformed: list[str] = []

    def read(path: str, decode: Callable[[bytes], T]) -> T | None:
        """None if the znode does not exist or is unreadable."""
        node = nodes.get(path)
        if node is None:
            return None
        try:
            return decode(node.data)
        except MalformedZNode as error:
            malformed.append(str(error))
            return None

    controller = read(paths.CONTROLLER, codec.decode_controller)
    epoch = read(paths.CONTROLLER_EPOCH, codec.decode_controller_epoch)
    brokers: dict[int, SeenBroker] = {}
    for name in children.get(paths.BROKER_IDS, ()):
        path = f"{paths.BROKER_IDS}/{name}"
        info = read(path, partial(codec_admin.decode_broker, path))
        if info is None or not name.isdecimal():
            continue
        host, port = next(((e.host, e.port) for e in info.endpoints), ("", -1))
        czxid = nodes[path].stat.czxid
        brokers[int(name)] = SeenBroker(int(name), host, port, info.jmx_port, czxid)
    partitions: dict[str, SeenPartition] = {}
    for topic in sorted(children.get(paths.TOPICS, ())):
        path = paths.topic(topic)
        assigned = read(path, partial(codec.decode_topic, path))
        for partition, replicas in sorted((assigned or {}).items()):
            path = paths.topic_partition_state(topic, partition)
            state = None
            if path in nodes:
                version = nodes[path].stat.version
                decoded = read(path, partial(codec.decode_state, path, zk_version=version))
                if decoded is not None:
                    it, by = decoded.leader_and_isr, decoded.controller_epoch
                    state = SeenState(it.leader, it.leader_epoch, it.isr, version, by)
            one = SeenPartition(
                topic,
                partition,
                replicas.replicas,
                replicas.adding_replicas,
                replicas.removing_replicas,
                state,
            )
            partitions[one.name] = one
    notifications: dict[str, tuple[str, ...]] = {}
    for name in sorted(children.get(paths.ISR_CHANGE_NOTIFICATION, ())):
        path = f"{paths.ISR_CHANGE_NOTIFICATION}/{name}"
        about = read(path, partial(codec.decode_isr_change, path))
        notifications[name] = tuple(map(str, about or ()))
    return Seen(
        controller=controller.broker_id if controller else None,
        controller_epoch=epoch,
        brokers=dict(sorted(brokers.items())),
        partitions=partitions,
        notifications=notifications,
        deleting=tuple(sorted(children.get(paths.DELETE_TOPICS, ()))),
        reassigning=paths.REASSIGN_PARTITIONS in nodes,
        electing=paths.PREFERRED_REPLICA_ELECTION in nodes,
        malformed=tuple(malformed),
    )


# -- differences -----------------------------------------------------------------------------------


_COMMANDS = {"reassigning": "reassignment", "electing": "preferred leader election"}


def changes(before: Seen, after: Seen) -> Iterator[Change]:
    """The differences, most important first: controller, brokers, partitions."""
    if (before.controller, before.controller_epoch) != (after.controller, after.controller_epoch):
        facts = {"controller": after.controller, "epoch": after.controller_epoch}
        who = "none" if after.controller is None else f"broker {after.controller}"
        yield Change("controller", "controller", f"{who}, epoch {after.controller_epoch}", facts)
    for broker in sorted(before.brokers.keys() | after.brokers.keys()):
        was, now = before.brokers.get(broker), after.brokers.get(broker)
        about = f"broker {broker}"
        if now is None:
            yield Change(
                "broker", about, "is no longer registered", {"broker": broker, "there": False}
            )
        elif was != now:
            how = "is registered" if was is None else "is registered again"
            text = f"{how}, {now.host}:{now.port}, epoch {now.epoch}"
            facts = {"broker": broker, "there": True, "epoch": now.epoch}
            yield Change("broker", about, text, facts)
    yield from _partition_changes(before, after)
    for name in sorted(before.notifications.keys() ^ after.notifications.keys()):
        present = name in after.notifications
        names = (after if present else before).notifications[name]
        text = f"pending: {', '.join(names)}" if present else "deleted"
        yield Change("notification", name, text, {"there": present, "partitions": list(names)})
    for topic in sorted(set(after.deleting) - set(before.deleting)):
        yield Change("deletion", topic, "queued for deletion", {"topic": topic})
    for what, command in _COMMANDS.items():
        if getattr(before, what) != getattr(after, what):
            progress = "requested" if getattr(after, what) else "finished"
            yield Change(what, "command", f"{command} {progress}", {})
    for text in after.malformed:
        if text not in before.malformed:
            yield Change("malformed", "znode", text, {})


def _partition_changes(before: Seen, after: Seen) -> Iterator[Change]:
    for name in sorted(before.partitions.keys() | after.partitions.keys()):
        was, now = before.partitions.get(name), after.partitions.get(name)
        if now is None:
            yield Change("partition", name, "deleted", {"there": False})
        elif was != now:
            text = "; ".join(_differences(was, now))
            yield Change("partition", name, text, msgspec.to_builtins(now))


def _differences(was: SeenPartition | None, now: SeenPartition) -> Iterator[str]:
    if was is None or was.replicas != now.replicas:
        yield f"replicas {ids(now.replicas)}"
    if now.adding or now.removing:
        yield f"being reassigned (+{ids(now.adding)} -{ids(now.removing)})"
    elif was is not None and (was.adding or was.removing):
        yield "reassigned"
    old, new = was.state if was else None, now.state
    if new is None:
        yield "no state yet" if old is None else "state missing"
    elif old != new:
        yield _state_change(old, new)


def _state_change(old: SeenState | None, new: SeenState) -> str:
    if old is None:
        leads = f"leader {leader_name(new.leader)} (epoch {new.leader_epoch})"
        return f"{leads} ISR {ids(new.isr)} v{new.zk_version}"
    words = []
    leads = leader_name(new.leader)
    if old.leader != new.leader:
        words.append(f"leader {leader_name(old.leader)} → {leads} (epoch {new.leader_epoch})")
    elif old.leader_epoch != new.leader_epoch:
        words.append(f"leader {leads} (epoch {old.leader_epoch} → {new.leader_epoch})")
    if old.isr != new.isr:
        how = "shrinks" if set(new.isr) < set(old.isr) else "expands"
        how = how if set(new.isr) < set(old.isr) or set(new.isr) > set(old.isr) else "becomes"
        words.append(f"ISR {how} {ids(old.isr)} → {ids(new.isr)}")
    if old.controller_epoch != new.controller_epoch:
        words.append(f"controller epoch {new.controller_epoch}")
    unseen = (new.zk_version or 0) - (old.zk_version or 0) - 1
    skipped = f", {unseen} in between not seen" if unseen > 0 else ""
    return f"{', '.join(words) or 'rewritten'} v{old.zk_version}→v{new.zk_version}{skipped}"


def leader_name(leader: int) -> str:
    """`none` for a state without a leader (-1) or one that is being deleted (-2)."""
    return str(leader) if leader >= 0 else "none"
