"""Topic ids (KIP-516) in a cluster with real Kafka 2.8 or later."""

from __future__ import annotations

from tests.interaction.playbook import Playbook, data, ok
from zk import paths
from zk.client import codec
from zk.client.codec import ReplicaAssignment
from zk.ops import SetData

TOPIC_ID = "McZM_uPoQZmvSqcFAbCdEQ"
ORDERS = paths.topic("orders")


def test_a_topic_that_is_written_again_keeps_the_id_that_real_kafka_gave_it() -> None:
    stored = codec.encode_topic({0: ReplicaAssignment((1, 2))}, topic_id=TOPIC_ID)
    with Playbook("2.8") as play:
        reads = play.zk.get_full_replica_assignment_for_topics(["orders"])
        play.process.spawn("reads", reads)
        play.settle()
        play << f"getData {ORDERS}"
        play >> data(stored)
        moved = {0: ReplicaAssignment((1, 2, 3), (3,), ())}
        play.process.spawn("writes", play.zk.set_topic_assignment("orders", moved))
        play.settle()
        write = play.zookeeper.open[0][1]
        assert isinstance(write, SetData)
        assert codec.decode_topic(ORDERS, write.data) == moved
        assert codec.decode_topic_id(ORDERS, write.data) == TOPIC_ID
        play.forget()
        play >> ok()
