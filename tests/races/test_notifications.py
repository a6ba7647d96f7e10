"""Races of notifications: created, listed, read, deleted, during other actions."""

from __future__ import annotations

import pytest

from emulator.testing.cluster import FIRST, Cluster
from emulator.trace import events as e
from emulator.trace.values import TopicPartition
from zk import paths

NOTIFICATIONS = "/isr_change_notification"
STATE = paths.topic_partition_state("orders", 0)
BILLS = TopicPartition("bills", 0)


def shown_everywhere(cluster: Cluster, partition: TopicPartition, *brokers: int) -> bool:
    """Every metadata cache has what ZooKeeper has."""
    isr = tuple(cluster.state(partition).leader_and_isr.isr)
    return all(cluster.cached_isr(b, partition) == isr for b in brokers)


@pytest.mark.cluster(brokers=(3, 1, 2))
def test_a_notification_created_between_the_list_and_the_delete_is_read_later(
    cluster: Cluster,
) -> None:
    """The list has set the watch again: what came after it is neither deleted nor forgotten."""
    cluster.topic("orders", (1, 2)).topic("bills", (2, 1)).now_on()
    second = cluster.hold(2, "zookeeper", "create", NOTIFICATIONS)
    listed = cluster.hold(3, "zookeeper_reply", "getChildren2", NOTIFICATIONS)
    cluster.do("cut 1 2").send(1).send(1, topic="bills")
    listed.wait()
    second.wait().release()
    cluster.until_seen(e.IsrChangeNotified, broker=2)
    assert not shown_everywhere(cluster, FIRST, 1, 2, 3)
    listed.release()
    cluster.until(lambda: len(cluster.seen(e.IsrChangeCleared)) == 2)
    first, later = cluster.seen(e.IsrChangeCleared)
    assert (len(first.paths), len(later.paths)) == (1, 1)
    assert first.paths != later.paths
    cluster.until(lambda: shown_everywhere(cluster, FIRST, 1, 2, 3))
    cluster.until(lambda: shown_everywhere(cluster, BILLS, 1, 2, 3))


@pytest.mark.live_in_soak
@pytest.mark.cluster(brokers=(3, 1, 2))
def test_a_controller_that_resigns_between_read_and_delete_deletes_nothing(
    cluster: Cluster,
) -> None:
    """Its session ends; the next controller clears what is there and reads every state itself. What
    the old one still wants to delete is of a session that is over."""
    cluster.topic("orders", (1, 2)).now_on()
    cleared = cluster.hold(3, "zookeeper", "multi", NOTIFICATIONS)
    cluster.do("cut 1 2").send(1)
    cleared.wait()
    cluster.do("expire_session 3")
    elected = cluster.until_seen(e.ControllerElected)
    assert elected.broker in (1, 2)
    cluster.until(lambda: shown_everywhere(cluster, FIRST, 1, 2, 3))
    cleared.release()
    cluster.until_seen(e.ControllerResigned, broker=3)
    assert [one.broker for one in deleted(cluster)] == [elected.broker]


@pytest.mark.live_in_soak
@pytest.mark.cluster(brokers=(3, 1, 2))
def test_a_controller_that_was_replaced_deletes_nothing_in_its_living_session(
    cluster: Cluster,
) -> None:
    """/controller is removed: the old controller's delete checks /controller_epoch and is refused,
    and so it learns that it was replaced."""
    cluster.topic("orders", (1, 2)).now_on()
    cleared = cluster.hold(3, "zookeeper", "multi", NOTIFICATIONS)
    cluster.do("cut 1 2").send(1)
    cleared.wait()
    again = cluster.hold(3, "checkpoint", "controller_event")
    cluster.do("delete_controller")
    elected = cluster.until_seen(e.ControllerElected)
    assert elected.broker in (1, 2)
    cluster.until(lambda: deleted(cluster))
    cleared.release()
    cluster.until_seen(e.ControllerResigned, broker=3)
    again.release()
    assert [one.broker for one in deleted(cluster)] == [elected.broker]


def deleted(cluster: Cluster) -> list[e.ZkTransaction]:
    """Transactions that took a notification away."""
    return [
        one
        for one in cluster.seen(e.ZkTransaction)
        if not one.code
        and any(
            op.op == "delete" and (op.path or "").startswith(f"{NOTIFICATIONS}/")  # type: ignore[attr-defined]
            for op in (one, *one.ops)
        )
    ]


@pytest.mark.live_in_soak
@pytest.mark.cluster(brokers=(3, 1, 2))
def test_notifications_outstanding_at_a_fail_over_are_cleared_and_their_states_read(
    cluster: Cluster,
) -> None:
    """The controller never hears of a notification and dies; the next one does not need it."""
    cluster.topic("orders", (1, 2)).now_on()
    unheard = cluster.hold(3, "watch", "NodeChildrenChanged", NOTIFICATIONS)
    cluster.do("cut 1 2").send(1)
    unheard.wait()
    cluster.run_ms(1000)
    assert cluster.cached_isr(2) == (1, 2)
    cluster.do("kill 3")
    elected = cluster.until_seen(e.ControllerElected)
    cluster.until(lambda: cluster.cached_isr(elected.broker) == (1,))
    cluster.do("heal_link 1 2")
    cluster.until(lambda: cluster.isr_history()[-1] == (1, 2))
    cluster.until(lambda: shown_everywhere(cluster, FIRST, 1, 2))
    assert {one.broker for one in deleted(cluster)} == {elected.broker}


@pytest.mark.live_in_soak
@pytest.mark.cluster(brokers=(4, 1, 2, 3))
def test_a_change_during_a_propagation_is_in_the_next_one(cluster: Cluster) -> None:
    """recordIsrChange waits for the monitor that is held across the notification's write, and with
    it the partition's lock; what it records comes after the set was cleared, not before."""
    cluster.topic("orders", (1, 2), (1, 3)).now_on()
    second = TopicPartition("orders", 1)
    written = cluster.hold(1, "zookeeper", "create", NOTIFICATIONS)
    cluster.do("cut 1 2").send(1)
    written.wait()
    cluster.do("cut 1 3").send(1, partition=1)
    cluster.until(lambda: cluster.state(second).leader_and_isr.isr == (1,))
    cluster.run_ms(1000)
    assert [one.partitions for one in cluster.seen(e.IsrChangeNotified)] == []
    written.release()
    cluster.until(lambda: len(cluster.seen(e.IsrChangeNotified)) == 2)
    told = [one.partitions for one in cluster.seen(e.IsrChangeNotified)]
    assert told == [(FIRST,), (second,)]
    cluster.until(lambda: shown_everywhere(cluster, second, 1, 2, 3, 4))


@pytest.mark.live_in_soak
@pytest.mark.cluster(
    brokers=(3, 1, 2), time_scale=8, config={"zookeeper.session.timeout.ms": 16000}
)
def test_flapping_is_told_by_the_60_s_rule(cluster: Cluster) -> None:
    """While an ISR changes more often than every 5 s no notification is sent, until 60 s have
    passed since the last propagation."""
    cluster.topic("orders", (1, 2)).now_on()
    for _ in range(24):
        cluster.do("cut 1 2").send(1)
        changes = len(cluster.seen(e.IsrUpdated))
        cluster.until(lambda: len(cluster.seen(e.IsrUpdated)) > changes)  # noqa: B023
        cluster.do("heal_link 1 2")
        changes += 1
        cluster.until(lambda: len(cluster.seen(e.IsrUpdated)) > changes)  # noqa: B023
    told = cluster.seen(e.IsrChangeNotified)
    assert told
    assert [one.quiet_ms <= 5000 and one.since_propagation_ms > 60_000 for one in told] == [
        True for _ in told
    ]
    held = cluster.seen(e.IsrChangeHeld)
    assert len(held) > 10
    assert all(one.quiet_ms <= 5000 and one.since_propagation_ms <= 60_000 for one in held)


@pytest.mark.live_in_soak
@pytest.mark.cluster(brokers=(3, 1, 2))
def test_a_session_that_ends_between_the_isr_write_and_the_notification(cluster: Cluster) -> None:
    """The set of changed partitions belongs to the process, not to the session: whichever broker
    leads then, all brokers finally have ZooKeeper's state."""
    cluster.topic("orders", (1, 2)).now_on()
    notice = cluster.hold(1, "zookeeper", "create", NOTIFICATIONS)
    cluster.do("cut 1 2").send(1)
    notice.wait()
    assert cluster.isr_history() == [(1,)]
    cluster.do("expire_session 1")
    cluster.until_seen(e.BrokerRegistered, broker=1)
    notice.release()
    cluster.until_seen(e.IsrChangeNotified, broker=1)
    cluster.do("heal_link 1 2")
    cluster.until(lambda: cluster.isr_history()[-1] == (1, 2))
    cluster.until(lambda: shown_everywhere(cluster, FIRST, 1, 2, 3))
