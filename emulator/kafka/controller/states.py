"""Reads state znodes for both state machines; each partition is read, missing or failed.

Source: controller/PartitionStateMachine.scala@2.6.3 doElectLeaderForPartitions,
controller/ReplicaStateMachine.scala@2.6.3 getTopicPartitionStatesFromZk; spec §2.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from emulator.kafka.controller.errors import StateChangeFailed
from emulator.trace.values import TopicPartition
from zk.client.codec import LeaderAndIsr
from zk.client.kafka_zk_client import KafkaZkClient
from zk.errors import Code, ZooKeeperError


class StatesRead(NamedTuple):
    """The result of a read; `missing` partitions have no znode, or an unreadable one."""

    states: dict[TopicPartition, LeaderAndIsr]
    missing: list[TopicPartition]
    failed: dict[TopicPartition, Exception]


async def read_states(
    zk_client: KafkaZkClient, partitions: Sequence[TopicPartition], epoch: int
) -> StatesRead:
    """Read all states in one pipeline. A state written by a controller newer than `epoch` is an
    error. An error of the whole read applies to every partition."""
    read = StatesRead({}, [], {})
    try:
        replies = await zk_client.get_topic_partition_states_raw(partitions)
    except ZooKeeperError as error:
        read.failed.update(dict.fromkeys(partitions, error))
        return read
    for partition, reply in zip(partitions, replies, strict=True):
        if reply.code not in (Code.OK, Code.NO_NODE):
            read.failed[partition] = ZooKeeperError(reply.code, str(partition))
            continue
        state = zk_client.decode_state(partition, reply) if reply.code is Code.OK else None
        if state is None:
            read.missing.append(partition)
        elif state.controller_epoch > epoch:
            # Before 2.1 only this check and the version keep a replaced controller from overwriting
            # its successor's decisions (H6).
            read.failed[partition] = StateChangeFailed(
                f"{partition} was written by a controller of epoch {state.controller_epoch}"
            )
        else:
            read.states[partition] = state.leader_and_isr
    return read
