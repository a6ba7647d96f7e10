"""Broker 1 as controller, epoch 7, remembered version 3 of /controller_epoch.

The stage of transcripts about the controller: what it asks of ZooKeeper and tells to brokers, in
order. Send threads to all live brokers run; each answers unless it was made silent.
"""

from __future__ import annotations

from collections.abc import Mapping

from emulator.kafka.controller.cache_order import PartitionAndReplica
from emulator.kafka.controller.context import PartitionState, ReplicaState
from emulator.kafka.controller.controller import KafkaController
from emulator.kafka.protocol.messages import LiveBroker
from emulator.trace.values import TopicPartition
from tests.interaction.playbook import ME, Incoming, Playbook, data, watch
from zk import paths
from zk.client import codec, codec_admin
from zk.client.codec import LeaderAndIsr, LeaderIsrAndControllerEpoch, ReplicaAssignment
from zk.client.codec_admin import BrokerInfo, EndPoint
from zk.ops import EventType

EPOCH, EPOCH_VERSION = 7, 3
ORDERS_0, ORDERS_1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
FENCE = f"check /controller_epoch v{EPOCH_VERSION}"
CREATED, DELETED = EventType.NODE_CREATED, EventType.NODE_DELETED
CHANGED, CHILDREN = EventType.NODE_DATA_CHANGED, EventType.NODE_CHILDREN_CHANGED


def led_by(
    leader: int,
    isr: tuple[int, ...],
    *,
    epoch: int = 4,
    version: int = 5,
    decided_by: int = EPOCH,
) -> LeaderIsrAndControllerEpoch:
    return LeaderIsrAndControllerEpoch(LeaderAndIsr(leader, epoch, isr, version), decided_by)


class Controlling(Playbook):
    """A controller, active with the caches that the test says, or not started yet."""

    def __init__(
        self,
        leadership: Mapping[TopicPartition, LeaderIsrAndControllerEpoch] | None = None,
        *,
        live: tuple[int, ...] = (1, 2, 3),
        replicas: tuple[int, ...] = (1, 2, 3),
        active: bool = True,
        **settings: object,
    ) -> None:
        super().__init__(auto_leader_rebalance_enable="false", **settings)
        self.controller = KafkaController(self.context, self.zk, self.network, self._register)
        if active:
            self.controller.events.start()
            self._make_active(leadership or {}, live, replicas)
        self.settle()
        self.forget()

    async def _register(self) -> None:
        self.say("registers")

    def _make_active(
        self,
        leadership: Mapping[TopicPartition, LeaderIsrAndControllerEpoch],
        live: tuple[int, ...],
        replicas: tuple[int, ...],
    ) -> None:
        controller, context = self.controller, self.controller.context
        controller.active_controller_id = ME
        context.epoch, context.epoch_zk_version = EPOCH, EPOCH_VERSION
        context.live_brokers = {b: (where(b), 100 + b) for b in live}
        context.all_topics = dict.fromkeys(p.topic for p in leadership)
        context.leadership.update(leadership)
        for partition, state in leadership.items():
            context.assignments[partition] = ReplicaAssignment(replicas)
            online = context.is_replica_online(state.leader_and_isr.leader, partition)
            context.partition_states[partition] = (
                PartitionState.ONLINE if online else PartitionState.OFFLINE
            )
            for replica in replicas:
                context.replica_states[PartitionAndReplica(partition, replica)] = (
                    ReplicaState.ONLINE if replica in live else ReplicaState.OFFLINE
                )
        for handler in controller._child_handlers:
            self.client.register_child_handler(handler)
        self.client.register_change_handler(controller._controller_handler)
        self.run(controller.parts.channels.startup([where(b) for b in live]))


def where(broker: int) -> LiveBroker:
    return LiveBroker(broker, f"host-{broker}", 9090 + broker)


# -- what comes in ---------------------------------------------------------------------------------


def isr_change() -> Incoming:
    """The watch on the notifications fires."""
    return watch(CHILDREN, paths.ISR_CHANGE_NOTIFICATION)


def notification(*partitions: TopicPartition) -> Incoming:
    return data(codec.encode_isr_change(partitions))


def state(
    leader: int,
    isr: tuple[int, ...],
    *,
    version: int,
    epoch: int = 4,
    decided_by: int = EPOCH,
) -> Incoming:
    """ZooKeeper shows a partition's state."""
    payload = codec.encode_state(led_by(leader, isr, epoch=epoch, decided_by=decided_by))
    return data(payload, version)


def registration(broker: int, *, broker_epoch: int = 0) -> Incoming:
    """ZooKeeper shows a broker's registration."""
    info = BrokerInfo((EndPoint("PLAINTEXT", "PLAINTEXT", f"host-{broker}", 9090 + broker),))
    return data(codec_admin.encode_broker(info), 1, czxid=broker_epoch or 100 + broker)


def controller_is(broker: int) -> Incoming:
    return data(codec.encode_controller(codec.ControllerZNode(broker, 0)))


def topic(*replicas: tuple[int, ...]) -> Incoming:
    """ZooKeeper shows a topic's assignment, partition by partition."""
    assignment = {n: ReplicaAssignment(r) for n, r in enumerate(replicas)}
    return data(codec.encode_topic(assignment))
