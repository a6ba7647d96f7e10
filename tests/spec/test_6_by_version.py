"""Section 6 of the spec by version: the controller's handling of brokers, replicas and rebalances.
Each with its guard, without it, and in the versions on either side."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.kafka.controller.cache_order import PartitionAndReplica
from emulator.kafka.controller.context import ReplicaState
from emulator.kafka.controller.rebalance import partitions_to_rebalance
from emulator.kafka.protocol.messages import StopReplicaRequest, UpdateMetadataRequest
from emulator.kernel.scheduler import Task
from emulator.scenario.actions.admin import CreateTopic
from emulator.scenario.actions.life import Kill, Start, Terminate
from emulator.scenario.actions.pause import Pause, Resume
from emulator.testing.cluster import FIRST
from emulator.trace import events
from emulator.trace.values import TopicPartition
from tests.interaction.controlling import (
    ORDERS_0,
    ORDERS_1,
    Controlling,
    led_by,
    registration,
    state,
)
from tests.interaction.playbook import after_ms, children, data, ok, thread
from tests.interaction.test_broker_change import BROKERS_CHANGED, IDS, lists_brokers
from tests.interaction.test_send_threads import tell
from tests.spec.emulated import Emulated
from tests.unit.kafka.controller.test_rebalance import cluster as rebalancing
from zk.client.codec import ReplicaAssignment
from zk.paths import partition_of_state_path

BOTH = {ORDERS_0: led_by(1, (1, 2)), ORDERS_1: led_by(3, (3, 2))}


def without(guard: str, profile: str = "2.6") -> dict[str, object]:
    return {"profile": profile, "guards": {guard: False}}


def having(guard: str, profile: str) -> dict[str, object]:
    return {"profile": profile, "guards": {guard: True}}


# -- 6.4: brokers ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "seen"),
    [
        ({"profile": "2.1"}, False),
        ({"profile": "2.4"}, True),
        (without("broker-epochs"), False),
        (having("broker-epochs", "2.1"), True),
    ],
)
def test_6_4_up_to_2_1_a_quick_restart_is_not_noticed(how: dict[str, object], seen: bool) -> None:
    """H13: when the controller lists, the ids are those that it knows."""
    with Controlling({ORDERS_0: led_by(3, (3, 1, 2))}, **how) as play:  # type: ignore[arg-type]
        lists_brokers(play, 1, 2, 3, bounced=3)
        if seen:
            play << "getData orders-0"
        play.nothing_else()
        changes = [e for e in play.sink.events if isinstance(e, events.BrokerChange)]
        assert [change.bounced for change in changes] == [(3,) if seen else ()]


@pytest.mark.parametrize(
    ("how", "again"),
    [
        ({"profile": "0.10.2"}, False),
        ({"profile": "1.0"}, True),
        (having("brokers-read-again", "0.10.2"), True),
        (without("brokers-read-again", "1.0"), False),
    ],
)
def test_6_4_up_to_0_10_2_the_brokers_of_the_event_are_read_not_those_of_now(
    how: dict[str, object], again: bool
) -> None:
    leads = {ORDERS_0: led_by(1, (1, 2))}
    with Controlling(leads, live=(1, 2), **how) as play:  # type: ignore[arg-type]
        play >> BROKERS_CHANGED << f"exists {IDS} W" >> ok()
        play << f"getChildren {IDS} W" >> children("1", "2", "3")
        if again:
            play << f"getChildren {IDS} W" >> children("1", "2", "3")
        else:
            play << f"getData {IDS}/3" >> registration(3)
        for broker in (1, 2, 3):
            play << f"getData {IDS}/{broker}" >> registration(broker)
        play.forget()


@pytest.mark.parametrize(
    ("how", "is_announced"),
    [
        ({"profile": "0.8.2"}, False),
        ({"profile": "0.9.0"}, True),
        (having("broker-list-announced", "0.8.2"), True),
        (without("broker-list-announced", "0.9.0"), False),
    ],
)
def test_6_4_up_to_0_8_2_only_a_broker_that_joins_gets_the_first_update_metadata(
    how: dict[str, object], is_announced: bool
) -> None:
    """KAFKA-972; as in a recording of 0.8.2.2. The other one goes with the LeaderAndIsr."""
    with Emulated(zookeeper_session_timeout_ms=2000, **how) as cluster:  # type: ignore[arg-type]
        cluster.topic("orders", (1, 2)).do(Kill(2)).run_ms(4000).now_on()
        cluster.do(Start(2)).run_ms(3000)
        updates = [len(cluster.seen(events.MetadataCacheUpdated, broker=b)) for b in (1, 2)]
        assert updates == [2 if is_announced else 1, 2]


@pytest.mark.parametrize(
    ("how", "is_announced"),
    [
        ({"profile": "0.8.2"}, False),
        ({"profile": "0.9.0"}, True),
        (without("broker-list-announced", "0.9.0"), False),
    ],
)
def test_6_4_up_to_0_8_2_nobody_hears_of_the_death_of_a_broker_without_replicas(
    how: dict[str, object], is_announced: bool
) -> None:
    """KAFKA-972: clients are still sent to it."""
    with Emulated(zookeeper_session_timeout_ms=2000, **how) as cluster:  # type: ignore[arg-type]
        cluster.topic("orders", (1, 2)).now_on().do(Kill(3)).run_ms(5000)
        assert bool(cluster.seen(events.MetadataCacheUpdated, broker=1)) is is_announced


@pytest.mark.parametrize(
    ("how", "offline"),
    [
        ({"profile": "0.10.2"}, []),
        ({"profile": "1.0"}, [ORDERS_0]),
        (having("all-offline-leaders-are-replaced", "0.10.2"), [ORDERS_0]),
        (without("all-offline-leaders-are-replaced", "1.0"), []),
    ],
)
def test_6_4_up_to_0_10_the_death_of_one_broker_does_not_depose_another_that_is_shutting_down(
    how: dict[str, object], offline: list[TopicPartition]
) -> None:
    """Broker 3 keeps asking for its shutdown: the other replica is dead. Then 4 dies, which has
    nothing to do with it."""
    retries = {"controlled_shutdown_retry_backoff_ms": 30_000}
    sessions = {"zookeeper_session_timeout_ms": 2000}
    with Emulated(1, 2, 3, 4, **retries, **sessions, **how) as cluster:  # type: ignore[arg-type]
        cluster.topic("orders", (3, 2)).do(Kill(2)).run_ms(5000)
        cluster.do(Terminate(3)).run_ms(1000).now_on().do(Kill(4)).run_ms(5000)
        changes = cluster.seen(events.PartitionStateChanged)
        assert [one.partition for one in changes if one.to_state == "OfflinePartition"] == offline


# -- 6.2: fail-over --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "isr"),
    [
        ({"profile": "2.1"}, (1, 2, 3)),
        ({"profile": "2.4"}, (1, 2)),
        (without("offline-replicas-at-failover"), (1, 2, 3)),
        (having("offline-replicas-at-failover", "2.1"), (1, 2)),
    ],
)
def test_6_2_up_to_2_2_a_new_controller_leaves_dead_followers_in_the_isr(
    how: dict[str, object], isr: tuple[int, ...]
) -> None:
    """KAFKA-3143: nothing is produced, and the lag is longer than the test."""
    settings = {"replica_lag_time_max_ms": 60_000, "zookeeper_session_timeout_ms": 2000}
    with Emulated(2, 1, 3, **settings, **how) as cluster:  # type: ignore[arg-type]
        cluster.topic("orders", (1, 2, 3)).now_on()
        cluster.do(Kill(2), Kill(3))
        elected = cluster.run_until(lambda: cluster.seen(events.ControllerElected, broker=1))
        assert elected < 6000
        cluster.run_ms(3000)
        left = tuple(b for b in cluster.state().leader_and_isr.isr if b != 2)
        assert left == tuple(b for b in isr if b != 2)


@pytest.mark.parametrize(
    ("how", "first"),
    [
        ({"profile": "0.9.0"}, False),
        ({"profile": "0.10.2"}, True),
        (without("update-metadata-first"), False),
        (having("update-metadata-first", "0.9.0"), True),
    ],
)
def test_6_2_up_to_0_10_1_leader_and_isr_comes_before_the_live_brokers(
    how: dict[str, object], first: bool
) -> None:
    """H28: a follower whose leader is not in its metadata cache does nothing."""
    settings = {"zookeeper_session_timeout_ms": 2000}
    with Emulated(2, 1, 3, **settings, **how) as cluster:  # type: ignore[arg-type]
        cluster.topic("orders", (1, 3)).now_on().do(Kill(2))
        elected = cluster.run_until(lambda: cluster.seen(events.ControllerElected))
        assert elected < 6000
        cluster.run_ms(3000)
        (by,) = cluster.seen(events.ControllerElected)
        sent = [
            e.request
            for e in cluster.seen(events.ControlRequestSent, broker=by.broker)
            if e.to == 4 - by.broker
        ]
        assert (sent[0] == "UpdateMetadata") is first, sent


@pytest.mark.parametrize(
    ("how", "all_of_them"),
    [
        ({"profile": "2.1"}, True),
        ({"profile": "2.4"}, False),
        (without("small-update-metadata"), True),
        (having("small-update-metadata", "2.1"), False),
    ],
)
def test_6_9_up_to_2_1_an_update_metadata_without_partitions_meant_all_of_them(
    how: dict[str, object], all_of_them: bool
) -> None:
    """A broker comes that hosts nothing: what do the others hear, and what when it goes?"""
    settings = {"zookeeper_session_timeout_ms": 2000}
    with Emulated(1, 2, 3, **settings, **how) as cluster:  # type: ignore[arg-type]
        cluster.topic("orders", (1, 2)).topic("bills", (2, 1)).now_on().do(Kill(3))
        cluster.run_until(lambda: told(cluster))
        cluster.do(Start(3)).run_ms(3000)
        everything = [FIRST, TopicPartition("bills", 0)] if all_of_them else []
        assert told(cluster) == [everything, everything]


@pytest.mark.parametrize(
    ("profile", "backoff_ms"), [("0.8.2", 300), ("0.9.0", 300), ("0.10.2", 100), ("2.6", 100)]
)
def test_6_10_up_to_0_10_0_a_send_thread_waits_300_ms(profile: str, backoff_ms: int) -> None:
    with Controlling({ORDERS_0: led_by(1, (1, 2))}, profile=profile) as play:
        play.network.unreachable.add(2)
        tell(play, ORDERS_0) << "to 2: connection refused"
        play >> after_ms(backoff_ms - 1) >> after_ms(1) << "to 2: connection refused"
        play.network.unreachable.clear()
        play.forget()


def told(cluster: Emulated) -> list[list[TopicPartition]]:
    """The partitions of each UpdateMetadata to broker 2."""
    sent = cluster.seen(events.ControlRequestSent, broker=1)
    return [sorted(e.partitions, reverse=True) for e in sent if e.to == 2]


# -- 6.8: replicas ---------------------------------------------------------------------------------


ALLOWS, FORBIDS = (
    f'{{"config":{{"unclean.leader.election.enable":"{allowed}"}}}}' for allowed in (True, False)
)


@pytest.mark.parametrize(
    ("how", "topic", "isr"),
    [
        ({"profile": "0.10.2"}, "{}", ""),
        ({"profile": "0.10.2"}, FORBIDS, "3"),
        ({"profile": "1.0"}, "{}", "3"),
        ({"profile": "1.0"}, ALLOWS, ""),
        ({"profile": "1.0", "unclean_leader_election_enable": "true"}, "{}", ""),
        ({"profile": "1.1", "unclean_leader_election_enable": "true"}, None, "3"),
        (having("last-isr-member-stays", "0.10.2"), None, "3"),
        (without("last-isr-member-stays"), ALLOWS, ""),
    ],
)
def test_6_8_up_to_1_0_the_last_member_stays_only_where_elections_are_clean(
    how: dict[str, object], topic: str | None, isr: str
) -> None:
    """As in recordings of 0.10.2.2 and 1.0.2; the topic's own setting counts."""
    with Controlling({ORDERS_0: led_by(3, (3,))}, **how) as play:  # type: ignore[arg-type]
        replicas = play.controller.parts.replicas
        gone = [PartitionAndReplica(ORDERS_0, 3)]
        play >> thread("3", replicas.handle_state_changes(gone, ReplicaState.OFFLINE))
        play << "getData orders-0" >> state(3, (3,), version=5)
        if topic is not None:
            play << "getData /config/topics/orders" >> data(topic)
        write = play.said.popleft()
        assert f"leader -1, epoch 5, isr {isr}, controller" in write
        play.forget()


@pytest.mark.parametrize(
    ("profile", "order"),
    [
        ("1.0", [(2, 3), (0, 1), (1, 3), (1, 1), (2, 1), (0, 3)]),
        ("1.1", [(0, 1), (1, 1), (2, 1), (0, 3), (1, 3), (2, 3)]),
    ],
)
def test_6_8_up_to_1_0_replicas_change_one_by_one_in_the_order_of_their_set(
    profile: str, order: list[tuple[int, int]]
) -> None:
    """Recorded with 1.0.2 (topic-lifecycle): a topic's six live replicas go offline to be
    deleted."""
    three = {TopicPartition("orders", n): led_by(3, (3, 1)) for n in range(3)}
    with Controlling(three, replicas=(1, 3), profile=profile) as play:
        replicas = play.controller.parts.replicas
        listed = [PartitionAndReplica(p, broker) for p in three for broker in (1, 3)]
        groups = replicas._groups(listed)
        assert [(r.partition.partition, r.replica) for _, group in groups for r in group] == order


# -- 6.11: controlled shutdown ---------------------------------------------------------------------


@pytest.mark.parametrize(("profile", "leader"), [("0.9.0", 3), ("0.10.2", 2), ("2.6", 2)])
def test_6_11_up_to_0_9_a_controlled_shutdown_elects_the_first_of_the_isr(
    profile: str, leader: int
) -> None:
    """As recorded with 0.8.2.2 and 0.9.0.1. Broker 2 was away, so it is the last of the ISR."""
    session = {"zookeeper_session_timeout_ms": 4000}
    with Emulated(4, 1, 2, 3, profile=profile, **session) as cluster:
        cluster.topic("orders", (1, 2, 3)).send().run_ms(500).do(Kill(2)).run_ms(7000)
        cluster.do(Start(2)).run_ms(6000)
        assert cluster.state().leader_and_isr.isr == (1, 3, 2)
        cluster.do(Terminate(1)).run_ms(1500)
        assert cluster.state().leader_and_isr.leader == leader


@pytest.mark.parametrize(("profile", "requests"), [("0.8.2", 2), ("1.0", 2), ("1.1", 1)])
def test_6_11_up_to_1_0_a_controlled_shutdown_moves_one_partition_after_the_other(
    profile: str, requests: int
) -> None:
    """As recorded from 0.8.2.2 to 1.0.2."""
    with Emulated(3, 1, 2, profile=profile) as cluster:
        cluster.topic("orders", (1, 2), (1, 2)).send().run_ms(500).now_on()
        cluster.do(Terminate(1)).run_ms(300)
        roles = cluster.seen(events.ControlRequestSent, request="LeaderAndIsr", to=2)
        assert len(roles) == requests


def shutdown_order(profile: str) -> list[TopicPartition]:
    """The partitions whose states the controller of a stopping broker 2 reads, in order."""
    with Emulated(5, 1, 2, 3, 4, profile=profile) as cluster:
        cluster.topic("orders", (1, 4, 5), (2, 3, 4), (3, 4, 5)).topic("clicks", (4, 1), (5, 2))
        cluster.topic("audit", (1, 2, 3, 4, 5)).send().run_ms(500).now_on()
        cluster.do(Terminate(2)).run_ms(300)
        paths = [e.path or "" for e in cluster.seen(events.ZkRequest, broker=5, op="getData")]
        named = [partition_of_state_path(path) for path in paths]
        return list(dict.fromkeys(TopicPartition(*one) for one in named if one is not None))


@pytest.mark.parametrize(
    ("profile", "topics"),
    [
        ("0.9.0", ["orders", "clicks", "audit"]),
        ("0.10.2", ["orders", "audit", "clicks"]),
        ("1.0", ["orders", "audit", "clicks"]),
    ],
)
def test_6_11_up_to_0_9_a_map_was_copied_which_reverses_partitions_of_one_bucket(
    profile: str, topics: list[str]
) -> None:
    """As recorded on five brokers: audit-0 and clicks-1 share a bucket of the Map."""
    assert [one.topic for one in shutdown_order(profile)] == topics


@pytest.mark.parametrize(
    ("profile", "polls"), [("0.8.2", 0), ("0.9.0", 2), ("0.10.2", 2), ("1.0", 0), ("2.6", 0)]
)
def test_6_11_in_0_9_and_0_10_the_reapers_of_the_client_quotas_end_before_the_fetchers(
    profile: str, polls: int
) -> None:
    waited: list[str] = []

    async def poll(_: Task) -> None:
        waited.append("poll")

    with Emulated(profile=profile) as cluster:
        cluster.kernel.checkpoints["shutdown.quotas"] = poll
        cluster.do(Terminate(2)).run_ms(5000)
        assert len(waited) == polls


@pytest.mark.parametrize(("profile", "reads"), [("2.8", 1), ("3.3", 0)])
def test_6_11_from_3_0_on_a_broker_that_stops_finds_the_controller_in_its_metadata(
    profile: str, reads: int
) -> None:
    with Emulated(1, 2, 3, profile=profile) as cluster:
        cluster.topic("orders", (2, 3)).run_ms(500).now_on().do(Terminate(2)).run_ms(1500)
        assert cluster.requests(2).count("getData /controller W") == reads
        assert cluster.state().leader_and_isr.leader == 3


# -- 6.10: send threads ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "guards", "leader"),
    [
        ("0.9.0", {}, 3),
        ("0.10.2", {}, 2),
        ("1.1", {}, 2),
        ("2.1", {}, 3),
        ("2.1", {"send-thread-shutdown-ends-request": False}, 2),
        ("1.1", {"send-thread-shutdown-ends-request": True}, 3),
    ],
)
def test_6_10_from_0_10_2_to_1_1_a_request_to_a_paused_broker_delays_its_fail_over(
    profile: str, guards: dict[str, bool], leader: int
) -> None:
    """As recorded on five brokers: it was told of its own removal from an ISR before its session
    expired."""
    session = {"zookeeper_session_timeout_ms": 18_000}
    with Emulated(1, 2, 3, profile=profile, guards=guards, **session) as cluster:
        clicks_0 = TopicPartition("clicks", 0)
        cluster.topic("clicks", (2, 3)).topic("orders", (3, 2)).do(Pause(2)).send().run_ms(25_000)
        assert cluster.state(clicks_0).leader_and_isr.leader == leader
        cluster.do(Resume(2)).run_ms(3000)
        assert cluster.state(clicks_0).leader_and_isr.leader == 3


@pytest.mark.parametrize(
    ("profile", "guards", "is_lost"),
    [
        ("0.8.2", {}, False),
        ("0.9.0", {}, True),
        ("2.1", {}, False),
        ("2.1", {"requests-outlive-connections": False}, True),
        ("0.9.0", {"requests-outlive-connections": True}, False),
    ],
)
def test_6_10_in_0_9_what_was_sent_to_a_paused_broker_is_lost_with_the_connection(
    profile: str, guards: dict[str, bool], is_lost: bool
) -> None:
    """As recorded on five brokers: the controller closed the connection when the session
    expired."""
    session = {"zookeeper_session_timeout_ms": 6000}
    with Emulated(1, 2, 3, profile=profile, guards=guards, **session) as cluster:
        cluster.do(Pause(2), CreateTopic("created", ((3,),))).run_ms(15_000)
        cluster.do(Resume(2)).run_ms(200)
        assert ("created" in cluster.node(2).metadata_cache.topics()) is not is_lost


# -- 6.9, 4.4: StopReplica -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "epoch"),
    [
        ({"profile": "2.4"}, -1),
        ({"profile": "2.6"}, 4),
        (without("stop-replica-epoch"), -1),
        (having("stop-replica-epoch", "2.4"), 4),
    ],
)
def test_6_9_from_2_6_on_stop_replica_carries_the_leader_epoch(
    how: dict[str, object], epoch: int
) -> None:
    """It is that of the time when the entry was added, before the replica leaves the ISR."""
    with Controlling({ORDERS_0: led_by(1, (1, 2, 3))}, **how) as play:  # type: ignore[arg-type]
        batch = play.controller.parts.batch
        batch.add_stop_replica([2], ORDERS_0, delete=False)
        play.run(batch.send(7))
        (sent,) = [r for b, r in play.network.sent if isinstance(r, StopReplicaRequest)]
        assert sent.partitions[0].leader_epoch == epoch
        play.forget()


@pytest.mark.parametrize(
    ("profile", "requests"),
    [
        ("0.9.0", [["0"], ["1"], ["0 deleted"], ["1 deleted"]]),
        ("0.10.2", [["0", "1"], [], ["0 deleted"], ["1 deleted"]]),
        ("1.0", [["0", "1"], [], ["0 deleted"], ["1 deleted"]]),
        ("1.1", [[], ["0"], ["1"], [], ["0 deleted"], ["1 deleted"]]),
        ("2.1", [[], ["0"], ["1"], [], ["0 deleted"], ["1 deleted"]]),
        ("2.4", [["0", "1"], ["0 deleted", "1 deleted"]]),
        ("2.6", [["0", "1"], ["0 deleted", "1 deleted"]]),
    ],
)
def test_6_9_replicas_share_a_stop_replica_as_the_version_has_it(
    profile: str, requests: list[list[str]]
) -> None:
    """Both partitions of a topic stop at broker 2, and are deleted there."""
    with Controlling(BOTH, profile=profile) as play:
        batch = play.controller.parts.batch
        for delete in (False, True):
            for partition in BOTH:
                batch.add_stop_replica([2], partition, delete=delete)
            play.run(batch.send(7))
        assert stops(play) == requests


@pytest.mark.parametrize(
    ("profile", "requests"),
    [
        ("2.1", [[], ["0"], ["1 deleted"]]),
        ("1.0", [["0"], ["1 deleted"]]),
        ("2.4", [["1 deleted"], ["0"]]),
        ("2.6", [["0", "1 deleted"]]),
    ],
)
def test_6_9_up_to_2_5_a_stop_replica_deletes_all_of_its_partitions_or_none(
    profile: str, requests: list[list[str]]
) -> None:
    """ControllerChannelManagerTest.testMixedDeleteAndNotDeleteStopReplicaRequests."""
    with Controlling(BOTH, profile=profile) as play:
        batch = play.controller.parts.batch
        batch.add_stop_replica([2], ORDERS_0, delete=False)
        batch.add_stop_replica([2], ORDERS_1, delete=True)
        play.run(batch.send(7))
        assert stops(play) == requests


def stops(play: Controlling) -> list[list[str]]:
    """The partitions of each StopReplica that was sent."""
    sent = [r for _, r in play.network.sent if isinstance(r, StopReplicaRequest)]
    play.forget()
    return [
        [f"{p.partition.partition}{' deleted' if p.delete else ''}" for p in r.partitions]
        for r in sent
    ]


@pytest.mark.parametrize(
    ("how", "others_too"),
    [
        ({"profile": "1.1"}, True),
        ({"profile": "2.1"}, False),
        (having("deletions-sent-once", "1.1"), False),
        (without("deletions-sent-once"), True),
    ],
)
def test_6_9_up_to_1_1_every_update_metadata_names_what_is_to_be_deleted(
    how: dict[str, object], others_too: bool
) -> None:
    with Controlling(BOTH, **how) as play:  # type: ignore[arg-type]
        bills = TopicPartition("bills", 0)
        context, batch = play.controller.context, play.controller.parts.batch
        context.leadership[bills] = led_by(3, (3, 1))
        context.assignments[bills] = ReplicaAssignment((3, 1))
        context.topics_to_be_deleted["bills"] = None
        batch.add_update_metadata([2], [ORDERS_0])
        play.run(batch.send(7))
        (sent,) = [r for _, r in play.network.sent if isinstance(r, UpdateMetadataRequest)]
        assert [s.partition for s in sent.states] == [ORDERS_0, *([bills] if others_too else [])]
        play.forget()


@pytest.mark.parametrize("profile", ["0.8.2", "1.0", "2.6", "3.3"])
def test_6_9_during_deletion_leader_epoch_and_version_are_those_of_a_new_state(
    profile: str,
) -> None:
    """ControllerChannelManagerTest.testUpdateMetadataDoesNotIncludePartitionsWithoutLeaderAndIsr
    and testUpdateMetadataRequestDuringTopicDeletion."""
    with Controlling(BOTH, profile=profile) as play:
        play.controller.context.topics_to_be_deleted["orders"] = None
        batch = play.controller.parts.batch
        batch.add_update_metadata([2], [ORDERS_0, TopicPartition("nobody", 0)])
        play.run(batch.send(7))
        (sent,) = [r for _, r in play.network.sent if isinstance(r, UpdateMetadataRequest)]
        assert {(s.leader, s.leader_epoch, s.zk_version) for s in sent.states} == {(-2, 0, 0)}
        assert sent.states[0].isr == (1, 2)
        play.forget()


# -- 6.12: the rebalance ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "asked"),
    [
        ({"profile": "2.4"}, [0, 1]),
        ({"profile": "2.6"}, []),
        (without("preferred-only-if-electable"), [0, 1]),
        (having("preferred-only-if-electable", "2.4"), []),
    ],
)
def test_6_12_up_to_2_5_a_preferred_replica_out_of_the_isr_is_asked_for_all_the_same(
    how: dict[str, object], asked: list[int]
) -> None:
    with Controlling(**how) as play:  # type: ignore[arg-type]
        only = play.controller._elections._only_electable
        out_of_sync = rebalancing(2, 2, isr=(2,))
        groups = partitions_to_rebalance(out_of_sync, 10, only_electable=only)
        assert [p.partition for group in groups for p in group] == asked


@pytest.mark.parametrize(
    ("how", "empty"),
    [
        ({"profile": "2.8"}, 2),
        ({"profile": "3.3"}, 0),
        (without("every-death-is-told", "3.3"), 2),
    ],
)
def test_6_4_from_3_1_on_the_death_of_a_follower_is_told_with_its_removal_alone(
    how: dict[str, Any], empty: int
) -> None:
    """KAFKA-13225: UpdateMetadata without partitions, to each of the two that live on."""
    with Emulated(1, 2, 3, zookeeper_session_timeout_ms=4000, **how) as cluster:
        cluster.topic("orders", (1, 2, 3)).run_ms(1000).now_on().do(Kill(3)).run_ms(9000)
        sent = [e for e in cluster.seen(events.ControlRequestSent) if e.request == "UpdateMetadata"]
        assert sum(not e.partitions for e in sent) == empty
        assert {e.to for e in sent if e.partitions} == {1, 2}
