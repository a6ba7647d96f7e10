"""ZooKeeper's current content except partition states: registrations, topics, commands,
notifications, `/controller`. Unreadable data is ignored.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from emulator.trace import events as e
from emulator.trace.untrusted_json import decode_untrusted
from emulator.trace.values import TopicPartition
from zk import paths

T = TypeVar("T")

_TOPICS, _CONFIGS = "/brokers/topics", "/config/topics"
_PREFIXES = (
    "/brokers/ids/",
    f"{_TOPICS}/",
    f"{_CONFIGS}/",
    "/controller",
    "/admin/",
    "/isr_change_notification/",
)


class Znode(msgspec.Struct):
    """A znode's data, with the event and the transaction that wrote it."""

    data: str
    seq: int
    zxid: int


class TopicData(msgspec.Struct):
    """The content of a topic's znode, by partition."""

    partitions: dict[str, tuple[int, ...]] = {}
    adding_replicas: dict[str, tuple[int, ...]] = {}
    removing_replicas: dict[str, tuple[int, ...]] = {}


class _Move(msgspec.Struct):
    topic: str
    partition: int
    replicas: tuple[int, ...]


class _CommandData(msgspec.Struct):
    partitions: tuple[_Move, ...] = ()


class _ConfigData(msgspec.Struct):
    config: dict[str, str] = {}


class _ControllerData(msgspec.Struct):
    brokerid: int = 0


class Znodes:
    """Znodes by path. Those below `/brokers/topics/T/partitions` are in `Partitions`."""

    def __init__(self) -> None:
        self.all: dict[str, Znode] = {}

    def below(self, parent: str) -> list[str]:
        """The paths of the children in order of their names."""
        return sorted(p for p in self.all if p.rpartition("/")[0] == parent)

    def topics(self) -> dict[str, TopicData]:
        names = [path.rpartition("/")[2] for path in self.below(_TOPICS)]
        return {name: self._decoded(f"{_TOPICS}/{name}", TopicData()) for name in names}

    def assignments(self) -> dict[TopicPartition, tuple[int, ...]]:
        """Every partition's assignment, from the topics' znodes."""
        return {
            TopicPartition(topic, int(number)): replicas
            for topic, data in self.topics().items()
            for number, replicas in data.partitions.items()
            if number.isdecimal()
        }

    def reassignment_command(self) -> dict[TopicPartition, tuple[int, ...]]:
        """The target of each partition in `/admin/reassign_partitions`."""
        command = self._decoded(paths.REASSIGN_PARTITIONS, _CommandData())
        return {
            TopicPartition(one.topic, one.partition): one.replicas for one in command.partitions
        }

    def config(self, topic: str) -> dict[str, str]:
        """The topic's own settings."""
        return self._decoded(f"{_CONFIGS}/{topic}", _ConfigData()).config

    def is_registered(self, broker: int) -> bool:
        """Whether the broker has a znode below `/brokers/ids`."""
        return paths.broker_id(broker) in self.all

    def broker_epoch(self, broker: int) -> int | None:
        """The czxid of the broker's registration; None if it is not registered."""
        znode = self.all.get(paths.broker_id(broker))
        return None if znode is None else znode.zxid

    @property
    def controller(self) -> int | None:
        """The broker in `/controller`; None if the znode does not exist."""
        if "/controller" not in self.all:
            return None
        return self._decoded("/controller", _ControllerData()).brokerid

    @property
    def controller_epoch(self) -> int | None:
        """The epoch in `/controller_epoch`; None if the znode does not exist."""
        return self._decoded("/controller_epoch", 0) if "/controller_epoch" in self.all else None

    def _decoded(self, path: str, default: T) -> T:
        try:
            return decode_untrusted(self.all[path].data, msgspec.json.Decoder(type(default)))
        except (KeyError, msgspec.DecodeError):
            return default

    def on_zk_transaction(self, event: e.ZkTransaction) -> None:
        for path in event.removed:
            self.all.pop(path, None)
        for op in event.ops or (event,):
            path = op.path or ""
            if op.code or not path.startswith(_PREFIXES) or "/partitions" in path:
                continue
            if op.op == "delete":
                self.all.pop(path, None)
            elif op.op in ("create", "setData"):
                self.all[path] = Znode(op.data or "", event.seq, event.zxid)
