"""The comparisons of `describe` in cases that are rare in whole runs."""

from __future__ import annotations

import io
import json
from typing import Any

from rich.console import Console

from emulator.trace import events as e
from emulator.trace.state import TraceState
from emulator.trace.values import LoggedOp, Offset, PartitionState, TopicPartition
from emulator.view.describe import Description, describe
from emulator.view.describe_text import IN_FULL, render_description
from tests.unit.view.traces import P0, STATE, Script

REPLICAS = (1, 2, 3)
PARTITIONS = {str(number): REPLICAS for number in range(10)}
TOPIC = json.dumps({"version": 2, "partitions": PARTITIONS})


class Moment(Script):
    """A cluster of three with one topic; then whatever a test lets happen."""

    def __init__(self) -> None:
        super().__init__()
        self.action("up")
        self.write_to("/controller", json.dumps({"version": 1, "brokerid": 3}))
        self.write_to("/controller_epoch", "1")
        self.add(e.ControllerElected, 3, 1, 1)
        self.topic()

    def topic(self, partition: TopicPartition = P0) -> None:
        self.write_to("/brokers/topics/orders", TOPIC)
        self.create(REPLICAS, partition)
        self.cached(3, 0, REPLICAS, partition)
        for broker in REPLICAS:
            self.obeys(broker, partition)
            self.shows(broker, 0, REPLICAS, partition)

    def write_to(self, path: str, data: str, op: str = "create") -> None:
        self._transaction(3, op, path, data, 1 if op == "setData" else None)

    def cached(
        self, broker: int, version: int, isr: tuple[int, ...], partition: TopicPartition = P0
    ) -> None:
        facts = (partition, 1, 0, isr, version, "created", REPLICAS, 1)
        self.add(e.ControllerCacheUpdated, broker, *facts)

    def obeys(self, broker: int, partition: TopicPartition = P0) -> None:
        state = PartitionState(partition, 1, 1, 0, REPLICAS, 0, REPLICAS)
        self.add(e.LeaderAndIsr, broker, 3, 1, state)
        handler = "data-plane-kafka-request-handler-0"
        if broker == 1:
            self.add(e.BecomesLeader, 1, partition, 0, 0, 0, thread=handler)
        else:
            self.add(e.BecomesFollower, broker, partition, 1, 0, 0, 0, thread=handler)

    def described(self) -> Description:
        state = TraceState()
        for event in self.events:
            state(event)
        return describe(state, self.events[-1].t, 0)


def shown(found: Description, **options: Any) -> str:
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(render_description(found, **options))
    return console.export_text()


def differences(found: Description) -> dict[tuple[str, int | None], tuple[str, ...]]:
    return {(view.of, view.broker): view.differs for view in found.partitions[0].views}


def test_all_agree() -> None:
    found = Moment().described()
    assert found.partitions[0].agrees
    assert set(differences(found).values()) == {()}
    assert len(found.partitions[0].views) == 6


def test_the_order_of_an_isr_counts() -> None:
    moment = Moment()
    moment.write(1, 1, (1, 3, 2))
    assert differences(moment.described())["metadata", 2] == ("zk_version", "isr")


def test_a_second_broker_that_thinks_itself_controller_is_shown_with_its_cache() -> None:
    moment = Moment()
    moment.write_to("/controller", json.dumps({"version": 1, "brokerid": 2}))
    moment.write_to("/controller_epoch", "2", "setData")
    moment.add(e.ControllerElected, 2, 2, 2)
    moment.cached(2, 0, REPLICAS)
    found = moment.described()
    assert (found.controller, found.controller_epoch) == (2, 2)
    assert [one.controller_epoch for one in found.brokers] == [None, 2, 1]
    assert {key for key in differences(found) if key[0] == "controller"} == {
        ("controller", 2),
        ("controller", 3),
    }
    assert "controller: broker 2 in ZooKeeper, epoch 2; broker 3 believes it is, epoch 1" in shown(
        found
    )
    moment.add(e.ControllerResigned, 3, 1)
    assert ("controller", 3) not in differences(moment.described())


def test_two_leaders_are_both_shown() -> None:
    moment = Moment()
    moment.write(3, 1, (2, 3))
    state = PartitionState(P0, 1, 2, 1, (2, 3), 1, REPLICAS)
    moment.add(e.LeaderAndIsr, 2, 3, 1, state)
    moment.add(e.BecomesLeader, 2, P0, 1, 5, 4)
    found = differences(moment.described())
    assert found["leader", 1] == ("zk_version", "isr", "osr")
    assert found["leader", 2] == ("leader", "leader_epoch")


def test_what_the_leader_thinks_of_a_follower_stands_beside_what_it_is() -> None:
    moment = Moment()
    moment.add(e.RecordsAppended, 1, P0, "leader", 0, 9, 0, 100)
    moment.add(e.RecordsAppended, 2, P0, "follower", 0, 9, 0, 100)
    moment.add(e.FollowerStateUpdated, 1, P0, 2, 4, 9, 0)
    moment.add(e.HwAdvanced, 1, P0, "leader", 4, 9)
    leader, second, third = moment.described().partitions[0].replicas
    assert (leader.leo, leader.hw, leader.differs) == (9, 4, ())
    assert (second.leo, second.leader_sees_leo, second.differs) == (9, 4, ("leo", "hw"))
    assert (third.leo, third.leader_sees_leo, third.differs) == (0, None, ("hw",))


def test_what_a_real_follower_appends_is_unknown() -> None:
    """Kafka's own log, whose events have no thread, only shows where a follower begins."""
    moment = Moment()
    moment.add(e.BecomesFollower, 2, P0, 1, 0, 7, 5)
    moment.add(e.FollowerStateUpdated, 1, P0, 2, 4, 9, 0)
    _, second, _ = moment.described().partitions[0].replicas
    assert (second.leo, second.hw, second.leader_sees_leo, second.differs) == (None, None, 4, ())


def test_a_topic_that_is_deleted_leaves_replicas_in_no_znode() -> None:
    moment = Moment()
    moment.delete()
    moment._transaction(3, "delete", "/brokers/topics/orders")
    found = moment.described()
    assert found.topics == []
    assert not found.partitions[0].agrees
    assert "no state znode" in shown(found)


def test_a_stop_replica_that_is_not_obeyed_takes_nothing_away() -> None:
    moment = Moment()
    moment.add(e.FetchSent, 2, 1, (Offset(P0, 7),), 1)
    before = moment.described()
    moment.add(e.StopReplica, 2, 3, 1, P0, 0, False)
    assert moment.described().partitions[0].replicas[1].role == "none"
    moment.add(e.StopReplicaIgnored, 2, 3, 1, P0, 0, False, "FENCED_LEADER_EPOCH")
    assert moment.described().partitions == before.partitions


def test_ephemerals_go_with_their_session() -> None:
    moment = Moment()
    moment.write_to("/brokers/ids/3", "{}")
    op = LoggedOp("closeSession")
    gone = ("/controller", "/brokers/ids/3")
    moment.add(e.ZkTransaction, 3, 99, op.op, None, None, None, False, (), None, None, gone)
    found = moment.described()
    assert found.controller is None
    assert {one.broker: one.broker_epoch for one in found.brokers}[3] is None
    assert "controller: none in ZooKeeper" in shown(found)


def test_of_many_partitions_those_are_shown_in_full_that_somebody_has_otherwise() -> None:
    moment = Moment()
    for number in range(1, IN_FULL + 3):
        moment.topic(TopicPartition("orders", number))
    moment.write(1, 1, (1, 2), TopicPartition("orders", 4))
    text = shown(moment.described())
    assert text.count("\n    ZooKeeper ") == 1
    assert "Partition: 4  Leader: 1  Replicas: 1,2,3  Isr: 1,2  Osr: 3  ≠" in text
    assert (
        f"{IN_FULL + 2} partitions summarized, all views agree: --partition NAME shows one" in text
    )


def test_a_state_that_cannot_be_read_is_shown_as_nothing() -> None:
    moment = Moment()
    moment.write_to(STATE.format(*P0), "no json", "setData")
    view = moment.described().partitions[0].views[0]
    assert (view.leader, view.isr) == (-1, ())
    assert "Leader: none" in shown(moment.described())
