"""Every member of the ISR is an assigned replica."""

from __future__ import annotations

import re

import msgspec

from emulator.invariants.base import Invariant, Violation
from emulator.trace import events as e
from emulator.trace.state.partitions import Partition, State
from emulator.trace.untrusted_json import decode_untrusted
from emulator.trace.values import TopicPartition

_TOPIC = re.compile(r"/brokers/topics/([^/]+)")


class _Topic(msgspec.Struct):
    """A topic's znode; during a reassignment a partition has its old and new replicas."""

    partitions: dict[str, tuple[int, ...]]


_TOPIC_DATA = msgspec.json.Decoder(_Topic)


class UnassignedMembers(Violation, frozen=True):
    isr: tuple[int, ...]
    unassigned: tuple[int, ...]
    replicas: tuple[int, ...]

    sentence = "{unassigned} of the ISR {isr} are not among its replicas {replicas}"


class IsrWithinAssignment(Invariant):
    """Every ISR member is an assigned replica (S7)."""

    def begin(self) -> None:
        self._assigned: dict[TopicPartition, tuple[tuple[int, ...], int]] = {}
        self.state.partitions.listen(self._written)

    def on_zk_transaction(self, event: e.ZkTransaction) -> None:
        for op in event.ops or (event,):
            match = _TOPIC.fullmatch(op.path or "")
            if match is None or op.op not in ("create", "setData") or op.code:
                continue
            try:
                topic = decode_untrusted(op.data or "", _TOPIC_DATA)
            except msgspec.DecodeError:
                continue
            for number, replicas in topic.partitions.items():
                name = TopicPartition(match[1], int(number))
                self._assigned[name] = replicas, event.seq

    def _written(self, partition: Partition, state: State) -> None:
        replicas, seq = self._assigned.get(partition.name, ((), -1))
        unassigned = tuple(broker for broker in state.isr if broker not in replicas)
        if replicas and unassigned:
            facts, name = (seq, state.seq), partition.name
            self.violated(
                UnassignedMembers(state.isr, unassigned, replicas, facts=facts, partition=name)
            )
