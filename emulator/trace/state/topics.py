"""Topics in ZooKeeper: the number of partitions and their assignments.

Owns the history of each topic's znode, from the transactions; a deleted topic has no partitions
from then on. Without transactions in the trace there is no history.
"""

from __future__ import annotations

import re

import msgspec

from emulator.trace import events as e
from emulator.trace.untrusted_json import decode_untrusted
from emulator.trace.values import TopicPartition

_TOPIC = re.compile(r"/brokers/topics/([^/]+)")


class _Data(msgspec.Struct):
    partitions: dict[int, tuple[int, ...]]


_DATA = msgspec.json.Decoder(_Data, strict=False)


class Version(msgspec.Struct):
    """One version of a topic's znode, from `t_us` on; no partitions: the topic is deleted."""

    t_us: int
    replicas: dict[int, tuple[int, ...]]


class Topics:
    def __init__(self) -> None:
        self.versions: dict[str, list[Version]] = {}

    def on_zk_transaction(self, event: e.ZkTransaction) -> None:
        for op in event.ops or (event,):
            match = _TOPIC.fullmatch(op.path or "")
            if match is None or op.code or op.op not in ("create", "setData", "delete"):
                continue
            try:
                data = decode_untrusted(op.data or "", _DATA)
            except msgspec.DecodeError:
                data = _Data({})
            if data.partitions or op.op == "delete":
                version = Version(event.t, data.partitions)
                self.versions.setdefault(match[1], []).append(version)

    def sizes(self, topic: str) -> list[tuple[int, int]]:
        """(time, number of partitions from then on), without versions that only move replicas."""
        sizes: list[tuple[int, int]] = []
        for version in self.versions.get(topic, ()):
            if not sizes or sizes[-1][1] != len(version.replicas):
                sizes.append((version.t_us, len(version.replicas)))
        return sizes

    def replica_history(self, name: TopicPartition) -> list[tuple[int, ...]]:
        """The partition's assignments in order."""
        history: list[tuple[int, ...]] = []
        for version in self.versions.get(name.topic, ()):
            replicas = version.replicas.get(name.partition, ())
            if replicas and (not history or history[-1] != replicas):
                history.append(replicas)
        return history
