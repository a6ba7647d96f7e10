"""What Kafka prints of partitions, states and lists, in the spellings of all its versions.

`orders-0` and `[orders,0]`; `isr=[1, 2]`, `ISR:1,2`, `isr=List(1, 2)`; zkVersion that became
partitionEpoch. Plain functions of text.
"""

from __future__ import annotations

import re

from emulator.trace.values import PartitionState, TopicPartition

_NUMBER = re.compile(r"-?\d+")
_PAIR = re.compile(
    r"\b([A-Za-z]+)\s*[=:]\s*"
    r"('[^']*'|\[[^\]]*\]|[A-Z]\w+\([^()]*\)|-?\d+(?:,-?\d+)*|true|false)"
)
_BROKER_STATE = re.compile(r"BrokerState\(brokerId=(\d+), brokerEpoch=-?\d+\)")
_NAMED = re.compile(r"\[?'?([\w.-]+?)'?(?:-|,\s*)(\d+)\]?")


def fields(text: str) -> dict[str, str]:
    """`leader=1, isr=[1, 2]` by lower-case names; what comes first counts."""
    found: dict[str, str] = {}
    for name, value in _PAIR.findall(_BROKER_STATE.sub(r"\1", text)):
        found.setdefault(name.lower(), value)
    return found


def numbers(text: str) -> tuple[int, ...]:
    """All numbers in it: `List(1, 2)`, `[1,2]`, `1,2`."""
    return tuple(map(int, _NUMBER.findall(text.partition("(")[2] if "(" in text else text)))


def parse_partition(text: str) -> TopicPartition:
    """`orders-0`, or `[orders,0]` as up to 0.10."""
    found = _NAMED.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"no partition: {text}")
    return TopicPartition(found[1], int(found[2]))


def parse_state(text: str, partition: TopicPartition | None = None) -> PartitionState:
    """A partition's entry of LeaderAndIsr or UpdateMetadata; the partition is in it from 2.4 on.
    What the version does not print is -1, or empty."""
    said = fields(text)
    if "topicname" in said:
        partition = TopicPartition(said["topicname"].strip("'"), int(said["partitionindex"]))
    if partition is None or "leader" not in said:
        raise ValueError(f"no partition state: {text}")
    return PartitionState(
        partition=partition,
        controller_epoch=int(said.get("controllerepoch", -1)),
        leader=int(said["leader"]),
        leader_epoch=int(said.get("leaderepoch", -1)),
        isr=numbers(said.get("isr", said.get("isrwithbrokerepoch", ""))),
        zk_version=int(said.get("zkversion", said.get("partitionepoch", -1))),
        replicas=numbers(said.get("replicas", said.get("allreplicas", ""))),
        adding_replicas=numbers(said.get("addingreplicas", "")),
        removing_replicas=numbers(said.get("removingreplicas", "")),
        is_new=said.get("isnew") == "true",
        offline_replicas=numbers(said.get("offlinereplicas", "")),
    )
