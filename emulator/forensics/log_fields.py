"""Parses partitions, states and lists in the spellings of all Kafka versions.

`orders-0` and `[orders,0]`; `isr=[1, 2]`, `ISR:1,2`, `isr=List(1, 2)`; zkVersion, later
partitionEpoch. Plain functions of text.
"""

from __future__ import annotations

import re
from functools import lru_cache

from emulator.trace.values import PartitionState, TopicPartition

_NUMBER = re.compile(r"-?\d+")
_PAIR = re.compile(
    r"\b([A-Za-z]+)\s*[=:]\s*"
    r"('[^']*'|\[[^\]]*\]|[A-Z]\w+\([^()]*\)|-?\d+(?:,-?\d+)*|true|false)"
)
_BROKER_STATE = re.compile(r"BrokerState\(brokerId=(\d+), brokerEpoch=-?\d+\)")
_NAMED = re.compile(r"\[?'?([\w.-]+?)'?(?:-|,\s*)(\d+)\]?")


def fields(text: str) -> dict[str, str]:
    """`leader=1, isr=[1, 2]` by lower-case names; the first of equal names counts."""
    values: dict[str, str] = {}
    for name, value in _PAIR.findall(_BROKER_STATE.sub(r"\1", text)):
        values.setdefault(name.lower(), value)
    return values


def numbers(text: str) -> tuple[int, ...]:
    """All numbers in the text: `List(1, 2)`, `[1,2]`, `1,2`."""
    return tuple(map(int, _NUMBER.findall(text.partition("(")[2] if "(" in text else text)))


def parse_partition(text: str) -> TopicPartition:
    """Parse `orders-0`, or `[orders,0]` (up to 0.10)."""
    match = _NAMED.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"no partition: {text}")
    return TopicPartition(match[1], int(match[2]))


@lru_cache(maxsize=1 << 16)
def parse_state(text: str, partition: TopicPartition | None = None) -> PartitionState:
    """Parse a partition's entry of LeaderAndIsr or UpdateMetadata, which contains the partition
    from 2.4 on. Values that the version does not print are -1 or empty. Cached, because a
    controller sends each state to every broker."""
    values = fields(text)
    if "topicname" in values:
        partition = TopicPartition(values["topicname"].strip("'"), int(values["partitionindex"]))
    if partition is None or "leader" not in values:
        raise ValueError(f"no partition state: {text}")
    return PartitionState(
        partition=partition,
        controller_epoch=int(values.get("controllerepoch", -1)),
        leader=int(values["leader"]),
        leader_epoch=int(values.get("leaderepoch", -1)),
        isr=numbers(values.get("isr", values.get("isrwithbrokerepoch", ""))),
        zk_version=int(values.get("zkversion", values.get("partitionepoch", -1))),
        replicas=numbers(values.get("replicas", values.get("allreplicas", ""))),
        adding_replicas=numbers(values.get("addingreplicas", "")),
        removing_replicas=numbers(values.get("removingreplicas", "")),
        is_new=values.get("isnew") == "true",
        offline_replicas=numbers(values.get("offlinereplicas", "")),
    )
