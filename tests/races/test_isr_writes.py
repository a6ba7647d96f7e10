"""Races for a partition's state znode: who has read which version, and whose write counts."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from emulator.testing.cluster import FIRST, Cluster
from emulator.trace import events as e
from zk import paths
from zk.client import codec

STATE = paths.topic_partition_state("orders", 0)


@dataclass(frozen=True)
class Write:
    """One write of the state znode that ZooKeeper applied."""

    writer: int
    leader: int
    isr: tuple[int, ...]
    version: int


def writes(cluster: Cluster) -> list[Write]:
    found = []
    for event in cluster.seen(e.ZkTransaction):
        for op in event.ops or (event,):
            if op.path == STATE and op.op == "setData" and op.data and not event.code:
                state = codec.decode_state(STATE, op.data.encode(), op.version or 0)
                isr = tuple(state.leader_and_isr.isr)
                leader = state.leader_and_isr.leader
                found.append(Write(event.broker, leader, isr, op.version or 0))
    return found


def cut_off(cluster: Cluster, follower: int) -> None:
    """Broker 1 leads orders-0; this follower cannot fetch, and will have to leave the ISR."""
    cluster.topic("orders", (1, 2, 3)).send(1).run_ms(300).now_on()
    cluster.do(f"cut 1 {follower}").send(1)


@pytest.mark.cluster(brokers=(3, 1, 2))
def test_the_leaders_write_comes_before_the_controllers(cluster: Cluster) -> None:
    """The controller has read version 0 and is about to elect when the leader shrinks: its write is
    refused, it reads again, and what it writes goes out from the leader's ISR."""
    cut_off(cluster, 2)
    # On a slow machine the request to shut down may come after the lag time: both writes are held.
    shrink = cluster.hold(1, "zookeeper", "setData", STATE)
    shrink.wait()
    election = cluster.hold(3, "zookeeper", "multi", STATE)
    cluster.do("terminate 1")
    election.wait()
    shrink.release()
    cluster.until_seen(e.IsrUpdated, broker=1)
    election.release()
    cluster.until_seen(e.BecomesLeader, broker=3)
    assert writes(cluster)[:2] == [Write(1, 1, (1, 3), 1), Write(3, 3, (3,), 2)]
    refused = [one for one in cluster.seen(e.ZkReply, broker=3) if one.code == -103]
    assert [one.path for one in refused] == [STATE]


@pytest.mark.cluster(brokers=(3, 1, 2))
def test_the_controllers_write_comes_before_the_leaders(cluster: Cluster) -> None:
    """The leader has decided to shrink and is about to write when the controller elects another:
    the leader's write is refused, and it keeps its ISR until it obeys."""
    cut_off(cluster, 2)
    shrink = cluster.hold(1, "zookeeper", "setData", STATE)
    shrink.wait()
    cluster.do("terminate 1")
    cluster.until_seen(e.BecomesLeader, partition=FIRST)
    assert not cluster.seen(e.BecomesFollower, broker=1)
    shrink.release()
    cluster.until_seen(e.IsrUpdateRejected, broker=1)
    assert writes(cluster)[0] == Write(3, 2, (2, 3), 1)
    assert 1 not in {one.writer for one in writes(cluster)}
    assert cluster.seen(e.IsrUpdated, broker=1) == []


@pytest.mark.live_in_soak
@pytest.mark.cluster(brokers=(4, 1, 2, 3))
def test_of_two_leaders_writes_the_one_with_the_old_version_is_refused(cluster: Cluster) -> None:
    """Broker 2 was elected, broker 1 does not know it yet: both try to remove follower 3 at
    once."""
    cluster.topic("orders", (1, 2, 3)).send(1).run_ms(300).now_on()
    cluster.do("reassign orders 0 [2,1,3]").run_ms(1000).now_on()
    told = cluster.hold(4, "request", "LeaderAndIsr", peer=1)
    cluster.do("preferred_election [[orders,0]]")
    told.wait()
    cluster.until_seen(e.BecomesLeader, broker=2)
    old = cluster.hold(1, "zookeeper", "setData", STATE)
    new = cluster.hold(2, "zookeeper", "setData", STATE)
    cluster.do("cut 3 1", "cut 3 2").send(1)
    old.wait()
    new.wait()
    new.release()
    cluster.until_seen(e.IsrUpdated, broker=2)
    old.release()
    cluster.until_seen(e.IsrUpdateRejected, broker=1)
    versions = [one.version for one in writes(cluster)]
    assert versions == sorted(set(versions))
    assert {one.writer for one in writes(cluster)} == {4, 2}
    told.release()
    cluster.until_seen(e.BecomesFollower, broker=1)


@pytest.mark.live_in_soak
def test_a_shrink_waits_for_an_expansion_of_the_same_partition(cluster: Cluster) -> None:
    """Both hold leaderIsrUpdateLock for writing across ZooKeeper: the second one expects the
    version that the first one wrote, so neither is refused."""
    cut_off(cluster, 2)
    cluster.until_seen(e.IsrUpdated, change="shrink")
    expansion = cluster.hold(1, "zookeeper", "setData", STATE)
    cluster.do("heal_link 1 2").send(1)
    expansion.wait()
    cluster.do("cut 1 3").run_ms(4000)
    assert [one.change for one in cluster.seen(e.IsrUpdateStarted)] == ["shrink", "expand"]
    expansion.release()
    cluster.until_seen(e.IsrUpdateStarted, change="shrink", from_isr=(1, 3, 2))
    cluster.until(lambda: len(cluster.isr_history()) >= 3)
    assert cluster.isr_history()[:2] == [(1, 3), (1, 3, 2)]
    # A busy machine may see a fourth, when the cut follower is back.
    assert [one.zk_version for one in cluster.seen(e.IsrUpdated)][:3] == [1, 2, 3]
    assert cluster.seen(e.IsrUpdateRejected) == []


@pytest.mark.cluster(config={"zookeeper.session.timeout.ms": 6000})  # outlasts a slow reconnect
def test_an_answer_that_is_lost_does_not_lose_the_write(cluster: Cluster) -> None:
    """The server has applied the shrink, the connection breaks: the copy that is sent again is
    refused, the leader reads what is there, finds its own words, and takes their version over. (A
    copy that waited for an attempt to reconnect that failed is lost too, and sent once more.)"""
    cut_off(cluster, 2)
    cluster.do("drop_connection 1 after setData")
    cluster.until_seen(e.IsrUpdated, broker=1)
    assert writes(cluster) == [Write(1, 1, (1, 3), 1)]
    codes = [one.code for one in cluster.seen(e.ZkReply, broker=1, op="setData")]
    assert (set(codes[:-1]), codes[-1]) == ({-4}, -103)
    assert [one.zk_version for one in cluster.seen(e.IsrUpdated)] == [1]
    assert cluster.seen(e.IsrUpdateRejected) == []
