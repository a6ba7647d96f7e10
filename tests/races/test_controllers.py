"""Races of controllers: one wakes up too late, one misses something, one is overtaken."""

from __future__ import annotations

import pytest

from emulator.testing.cluster import Cluster
from emulator.trace import events as e
from zk import paths

STATE = paths.topic_partition_state("orders", 0)
UNFENCED = {"fenced-controller-writes": False}


def a_zombie_writes(cluster: Cluster) -> int:
    """Controller 3 is about to remove the dead follower 2 from the ISR of leader 1. Meanwhile 2
    returns, /controller is deleted by hand, and another controller is elected and has read the
    state; then the old one continues in its living session. Returns the new controller."""
    cluster.topic("orders", (1, 2)).send(1).run_ms(300).now_on()
    removal = cluster.hold(3, "zookeeper", which=STATE, thread="controller-event-thread")
    cluster.do("kill 2")
    removal.wait()
    if removal.parked is not None and removal.parked.of == "getData":
        removal.release()
        removal = cluster.hold(3, "zookeeper", which=STATE, thread="controller-event-thread")
        removal.wait()
    cluster.do("start 2")
    cluster.until_seen(e.BrokerRegistered, broker=2)
    behind = cluster.hold(3, "checkpoint", "controller_event")
    cluster.do("pause 3", "delete_controller")
    elected = cluster.until_seen(e.ControllerElected)
    cluster.until(lambda: cluster.seen(e.MetadataCacheUpdated, sender=elected.broker, broker=1))
    cluster.do("resume 3")
    removal.release()
    cluster.run_ms(500)
    behind.release()
    cluster.until_seen(e.ControllerResigned, broker=3)
    return elected.broker


@pytest.mark.cluster(brokers=(3, 1, 2))
def test_a_zombie_controllers_write_is_fenced(cluster: Cluster) -> None:
    """Its write checks the version of /controller_epoch: nothing is written, and it resigns."""
    assert a_zombie_writes(cluster) in (1, 2)
    assert cluster.state().leader_and_isr.isr == (1, 2)
    cluster.do("cut 1 2").send(1)
    cluster.until_seen(e.IsrUpdated, broker=1)
    assert cluster.seen(e.IsrUpdateRejected) == []


@pytest.mark.live_in_soak
@pytest.mark.cluster(brokers=(3, 1, 2), guards=UNFENCED, violates="state has one writer")
def test_a_zombie_controllers_write_leaves_the_leader_stuck_without_the_fence(
    cluster: Cluster,
) -> None:
    """Only the zombie knows the version that it wrote, and it can no longer inform brokers: the
    leader tries to change its ISR for ever (KAFKA-2729)."""
    a_zombie_writes(cluster)
    assert cluster.state().leader_and_isr.isr == (1,)
    refused = cluster.seen(e.ControlRequestRefused, sender=3)
    assert {one.error for one in refused} <= {"STALE_CONTROLLER_EPOCH"}
    cluster.do("cut 1 2").send(1)
    cluster.until(lambda: len(cluster.seen(e.IsrUpdateRejected, broker=1)) >= 2)
    assert cluster.seen(e.IsrUpdated) == []


# On a slow machine follower 2 is away for longer than the lag time (KAFKA-7152 is in 1.0).
ON_A_SLOW_MACHINE = ("metadata never moves back", "caught up members stay")


def a_stopped_controller_goes_on(cluster: Cluster, *, writes_by: str) -> None:
    """Controller 3 is about to remove the dead follower 2 from the ISR of leader 1, when its
    process is paused (SIGSTOP) for longer than its session. 2 returns, another controller is
    elected and has read everything; then 3 continues."""
    cluster.topic("orders", (1, 2)).send(1).run_ms(300).now_on()
    removal = cluster.hold(3, "zookeeper", writes_by, STATE)
    cluster.do("kill 2")
    removal.wait()
    cluster.do("start 2")
    cluster.until_seen(e.BrokerRegistered, broker=2)
    cluster.do("pause 3")
    elected = cluster.until_seen(e.ControllerElected)
    assert elected.broker in (1, 2)
    cluster.run_ms(1000)
    assert cluster.state().leader_and_isr.isr == (1, 2)
    removal.release()
    cluster.do("resume 3")


@pytest.mark.live_in_soak
@pytest.mark.cluster(
    brokers=(3, 1, 2),
    profile="1.0",
    config={"replica.lag.time.max.ms": 4000},
    violates="state has one writer",
    tolerates=ON_A_SLOW_MACHINE,
)
def test_a_controller_stopped_beyond_its_session_writes_in_its_next_one_with_zkclient(
    cluster: Cluster,
) -> None:
    """ZkClient tries again what its session's end has answered: the write of a controller that was
    stopped goes out in a new session, after another was elected (KAFKA-3083)."""
    a_stopped_controller_goes_on(cluster, writes_by="setData")
    cluster.until(lambda: cluster.state().leader_and_isr.isr == (1,))
    cluster.do("cut 1 2").send(1)
    cluster.until(lambda: len(cluster.seen(e.IsrUpdateRejected, broker=1)) >= 2)


@pytest.mark.live_in_soak
@pytest.mark.cluster(
    brokers=(3, 1, 2),
    profile="1.0",
    guards={"fenced-controller-writes": True, "atomic-election": True},
    config={"replica.lag.time.max.ms": 4000},
    tolerates=ON_A_SLOW_MACHINE,
)
def test_a_controller_stopped_beyond_its_session_is_fenced_in_its_next_one(
    cluster: Cluster,
) -> None:
    """The same with the fixes of KAFKA-6082: the write in the new session checks the version of
    /controller_epoch. Nothing is written, and the leader can still change its ISR."""
    a_stopped_controller_goes_on(cluster, writes_by="multi")
    cluster.until_seen(e.ControllerResigned, broker=3)
    assert cluster.state().leader_and_isr.isr == (1, 2)
    cluster.do("cut 1 2").send(1)
    cluster.until_seen(e.IsrUpdated, broker=1, change="shrink")


@pytest.mark.cluster(brokers=(3, 1, 2))
def test_a_bounce_that_the_controller_misses_shows_in_the_brokers_epoch(cluster: Cluster) -> None:
    """Broker 2 dies and returns before the controller has looked: the same ids are registered, but
    the epoch is another, so the controller sends it everything again."""
    cluster.topic("orders", (1, 2)).now_on()
    looks = cluster.hold(3, "checkpoint", "controller_event", "BrokerChange")
    cluster.do("kill 2")
    looks.wait()
    cluster.do("start 2")
    cluster.until_seen(e.BrokerRegistered, broker=2)
    looks.release()
    change = cluster.until_seen(e.BrokerChange, bounced=(2,))
    assert (change.added, change.deleted) == ((), ())
    cluster.until_seen(e.BecomesFollower, broker=2)
    cluster.until(lambda: set(cluster.state().leader_and_isr.isr) == {1, 2})


@pytest.mark.live_in_soak
@pytest.mark.cluster(brokers=(3, 1, 2))
def test_what_the_next_controller_says_overtakes_an_update_of_the_last_one(
    cluster: Cluster,
) -> None:
    """An UpdateMetadata of controller 3 is on its way to broker 2 when 3 dies; requests of the next
    controller are there before it. It arrives, and is refused by its epoch."""
    cluster.topic("orders", (1, 2)).now_on()
    late = cluster.hold(3, "request", "UpdateMetadata", peer=2)
    cluster.do("cut 1 2").send(1)
    late.wait()
    cluster.do("kill 3", "heal_link 1 2")
    elected = cluster.until_seen(e.ControllerElected)
    cluster.until_seen(e.MetadataCacheUpdated, broker=2, sender=elected.broker)
    late.release()
    refused = cluster.until_seen(e.ControlRequestRefused, broker=2)
    assert (refused.sender, refused.error) == (3, "STALE_CONTROLLER_EPOCH")


@pytest.mark.live_in_soak
@pytest.mark.cluster(brokers=(3, 1, 2))
def test_leader_and_isr_does_not_overtake_update_metadata_of_one_controller(
    cluster: Cluster,
) -> None:
    """They use one connection, one at a time: with an UpdateMetadata in flight, the next
    LeaderAndIsr for this broker waits, whatever the other brokers received."""
    cluster.topic("orders", (1, 2)).now_on()
    late = cluster.hold(3, "request", "UpdateMetadata", peer=2)
    cluster.do("create_topic bills [[1,2]]")
    late.wait()
    cluster.do("create_topic notes [[1,2]]")
    cluster.until(lambda: told(cluster, e.BecomesLeader))
    assert not told(cluster, e.BecomesFollower)
    late.release()
    cluster.until(lambda: told(cluster, e.BecomesFollower))


def told(cluster: Cluster, role: type[e.BecomesLeader] | type[e.BecomesFollower]) -> bool:
    """Whether any broker has this role in the younger topic."""
    return any(one.partition.topic == "notes" for one in cluster.seen(role))
