"""Sections 6.12 to 6.14 of the spec: manual elections, reassignments, deletions, and those found at
a fail-over."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from emulator.scenario.actions.admin import (
    AddPartitions,
    CreateTopic,
    DeleteTopic,
    PreferredElection,
    Reassign,
    TopicConfig,
    UncleanElection,
)
from emulator.scenario.actions.life import Kill, Start
from emulator.scenario.actions.link import CutLink, HealLink
from emulator.scenario.actions.pause import Pause, Resume
from emulator.trace import events
from emulator.trace.values import TopicPartition
from tests.spec.emulated import ORDERS_0, Emulated

SESSION_MS = 6000
UNCLEAN = "unclean.leader.election.enable"


def returned(cluster: Emulated) -> list[str]:
    """The responses to the clients' requests."""
    return [e.result for e in cluster.seen(events.ActionReturned)]


def failures(cluster: Emulated) -> list[str]:
    return [f"{e.what}: {e.error}" for e in cluster.seen(events.ThreadFailed)]


def znodes(cluster: Emulated, path: str) -> list[str]:
    """The transactions that touched this znode."""
    seen = cluster.seen(events.ZkTransaction)
    return [op.op for e in seen for op in (e.ops or (e,)) if op.path == path]


# -- elections -------------------------------------------------------------------------------------


def fallen(cluster: Emulated) -> Emulated:
    """orders-0 of [3, 2] is led by 2, since 3 died and came back."""
    cluster.topic("orders", (3, 2)).do(Kill(3)).run_ms(9000).do(Start(3)).run_ms(8000)
    assert cluster.state().leader_and_isr.leader == 2
    return cluster.now_on()


@pytest.mark.parametrize("through", ["api", "znode"])
def test_6_12_a_preferred_election_gives_leadership_back_to_the_first_replica(through: str) -> None:
    with Emulated(1, 2, 3, zookeeper_session_timeout_ms=SESSION_MS) as cluster:
        fallen(cluster).do(PreferredElection((("orders", 0),), through)).run_ms(1500)
        it = cluster.state().leader_and_isr
        assert (it.leader, it.isr) == (3, (2, 3))
        assert returned(cluster) == ["NONE"]
        command = znodes(cluster, "/admin/preferred_replica_election")
        assert command == (["create", "delete"] if through == "znode" else [])


NEEDED = "preferred-only-where-needed"


@pytest.mark.parametrize(
    ("profile", "guards", "epoch"),
    [
        ("1.0", {}, 0),
        ("1.1", {}, 1),
        ("2.1", {}, 1),
        ("2.4", {}, 0),
        ("2.1", {NEEDED: True}, 0),
        ("2.6", {NEEDED: False}, 1),
    ],
)
def test_6_12_from_1_1_to_2_1_a_preferred_leader_is_elected_again(
    profile: str, guards: dict[str, bool], epoch: int
) -> None:
    with Emulated(1, 2, 3, profile=profile, guards=guards) as cluster:
        cluster.topic("orders", (3, 2)).now_on()
        cluster.do(PreferredElection((("orders", 0),), "znode")).run_ms(1500)
        it = cluster.state().leader_and_isr
        assert (it.leader, it.leader_epoch, it.isr) == (3, epoch, (3, 2))


def test_6_12_the_command_znode_is_watched_again_after_it_was_deleted() -> None:
    with Emulated(1, 2, 3, zookeeper_session_timeout_ms=SESSION_MS) as cluster:
        cluster.topic("orders", (3, 2)).now_on()
        for _ in range(3):
            cluster.do(PreferredElection(None, "znode")).run_ms(1000)
        assert returned(cluster) == ["NONE"] * 3
        assert znodes(cluster, "/admin/preferred_replica_election") == ["create", "delete"] * 3


def test_6_12_a_command_while_the_last_one_is_there_meets_its_znode() -> None:
    with Emulated(1, 2, 3, zookeeper_session_timeout_ms=30_000) as cluster:
        cluster.topic("orders", (3, 2)).now_on().do(Pause(1))
        cluster.do(PreferredElection(None, "znode")).run_ms(500)
        cluster.do(PreferredElection(None, "znode")).run_ms(500)
        assert returned(cluster) == ["NONE", "NODE_EXISTS"]
        cluster.do(Resume(1)).run_ms(1000)
        assert znodes(cluster, "/admin/preferred_replica_election") == ["create", "delete"]


def test_6_12_a_command_for_a_partition_that_never_had_a_leader_ends_every_fail_over() -> None:
    """Looking up its leader throws (2.6.3, read from its bytecode); with its replica it is over."""
    with Emulated(1, 2, 3, zookeeper_session_timeout_ms=SESSION_MS) as cluster:
        cluster.do(Kill(2)).run_ms(9000).do(CreateTopic("bills", ((2,),))).run_ms(1000).now_on()
        cluster.do(PreferredElection(None, "znode")).run_ms(1000)
        assert failures(cluster) == [
            "ReplicaLeaderElection: IllegalState: nothing is known of the leader of bills-0"
        ]
        cluster.do(Kill(1)).run_ms(9000)
        assert len(cluster.seen(events.ControllerElected)) > 1
        cluster.do(Start(2)).run_ms(6000).now_on().run_ms(6000)
        assert not cluster.seen(events.ControllerElected)
        assert not failures(cluster)
        assert cluster.state(TopicPartition("bills", 0)).leader_and_isr.leader == 2


def test_6_12_success_is_told_only_when_the_brokers_own_metadata_shows_the_leader() -> None:
    with Emulated(1, 2, 3, zookeeper_session_timeout_ms=SESSION_MS) as cluster:
        fallen(cluster).do(PreferredElection((("orders", 0),))).run_ms(1500)
        (told,) = cluster.seen(events.ActionReturned)
        shown = [
            e
            for e in cluster.seen(events.MetadataCacheUpdated, broker=1)
            if any(s.leader == 3 for s in e.states)
        ]
        assert shown and shown[0].seq < told.seq


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (PreferredElection((("orders", 7),)), "UNKNOWN_TOPIC_OR_PARTITION"),
        (PreferredElection((("orders", 0),)), "ELECTION_NOT_NEEDED"),
        (PreferredElection(), "NONE"),
        (UncleanElection((("orders", 0),)), "ELECTION_NOT_NEEDED"),
    ],
)
def test_6_12_elections_that_are_not_to_be_are_answered_with_why(
    asked: PreferredElection | UncleanElection, answer: str
) -> None:
    with Emulated() as cluster:
        cluster.topic("orders", (1, 2)).now_on().do(asked).run_ms(1000)
        assert returned(cluster) == [answer]


def test_6_12_a_preferred_replica_that_is_not_there_cannot_be_elected() -> None:
    with Emulated(1, 2, 3, zookeeper_session_timeout_ms=SESSION_MS) as cluster:
        cluster.topic("orders", (3, 2)).do(Kill(3)).run_ms(9000).now_on()
        cluster.do(PreferredElection((("orders", 0),))).run_ms(1000)
        assert returned(cluster) == ["PREFERRED_LEADER_NOT_AVAILABLE"]


def stranded(cluster: Emulated) -> Emulated:
    """The only ISR member of orders-0 is dead; 3 lives and lacks records."""
    cluster.topic("orders", (2, 3)).do(Pause(3)).send().run_ms(4000).do(Resume(3), Kill(2))
    cluster.run_ms(9000)
    assert cluster.state().leader_and_isr.leader == -1
    return cluster.now_on()


def test_6_12_an_unclean_election_by_hand_elects_who_is_live() -> None:
    with Emulated(1, 2, 3, zookeeper_session_timeout_ms=SESSION_MS) as cluster:
        stranded(cluster).do(UncleanElection((("orders", 0),))).run_ms(1500)
        it = cluster.state().leader_and_isr
        assert (it.leader, it.isr) == (3, (3,))
        assert returned(cluster) == ["NONE"]


def test_6_12_where_nobody_is_live_there_is_nobody_to_be_elected() -> None:
    with Emulated(1, 2, 3, zookeeper_session_timeout_ms=SESSION_MS) as cluster:
        cluster.topic("orders", (2,)).do(Kill(2)).run_ms(9000).now_on()
        cluster.do(UncleanElection((("orders", 0),))).run_ms(1000)
        assert returned(cluster) == ["ELIGIBLE_LEADERS_NOT_AVAILABLE"]


def test_6_7_who_enables_unclean_elections_for_a_topic_gets_one_at_once() -> None:
    """KAFKA-6526: without a change of controller."""
    with Emulated(1, 2, 3, zookeeper_session_timeout_ms=SESSION_MS) as cluster:
        stranded(cluster).do(TopicConfig("orders", {UNCLEAN: "true"})).run_ms(2000)
        assert cluster.state().leader_and_isr.isr == (3,)
        (event,) = cluster.seen(
            events.ControllerEventProcessed, event="TopicUncleanLeaderElectionEnable"
        )
        assert event.broker == 1


def test_6_12_leadership_goes_back_by_itself_when_the_timer_comes() -> None:
    settings = {
        "auto_leader_rebalance_enable": "true",
        "leader_imbalance_check_interval_seconds": 10,
        "zookeeper_session_timeout_ms": SESSION_MS,
    }
    with Emulated(1, 2, 3, **settings) as cluster:
        fallen(cluster)
        cluster.run_until(lambda: cluster.state().leader_and_isr.leader == 3)
        name = "AutoPreferredReplicaLeaderElection"
        cluster.run_ms(21_000)
        times = [e.t // 1000 for e in cluster.seen(events.ControllerEventQueued, event=name)]
        assert all(abs(b - a - 10_000) < 200 for a, b in itertools.pairwise(times))


# -- reassignments ---------------------------------------------------------------------------------


@pytest.mark.parametrize("through", ["api", "znode"])
def test_6_13_a_partition_moves_and_what_it_left_is_deleted(through: str) -> None:
    with Emulated() as cluster:
        cluster.topic("orders", (1, 2)).send(3).run_ms(1200).now_on()
        cluster.do(Reassign("orders", 0, (3, 2), through)).run_ms(5000)
        it = cluster.state().leader_and_isr
        assert (it.leader, set(it.isr)) == (3, {2, 3})
        assert ORDERS_0 not in cluster.world.cluster.hosts[1].disk.logs
        assert returned(cluster) == ["NONE"]
        command = znodes(cluster, "/admin/reassign_partitions")
        assert command == (["create", "delete"] if through == "znode" else [])
        assert not failures(cluster)


@pytest.mark.parametrize(
    ("profile", "guards", "new"),
    [
        ("2.6", {}, [False, True]),
        ("2.7", {}, [True, True]),
        ("2.6", {"added-replicas-are-new": True}, [True, True]),
        ("2.7", {"added-replicas-are-new": False}, [False, True]),
    ],
)
def test_6_13_from_2_7_on_a_broker_that_is_added_hears_at_once_that_its_replica_is_new(
    profile: str, guards: dict[str, bool], new: list[bool]
) -> None:
    """As recordings of 2.6.3 and 2.7.2 have it; the second LeaderAndIsr has the same leader epoch,
    and is ignored."""
    with Emulated(profile=profile, guards=guards) as cluster:
        cluster.topic("orders", (1, 2)).send(3).run_ms(500).now_on()
        cluster.do(Reassign("orders", 0, (1, 3))).run_ms(5000)
        told = cluster.seen(events.LeaderAndIsr, broker=3)
        assert [it.state.is_new for it in told][:2] == new


@pytest.mark.parametrize("profile", ["0.9.0", "1.1", "2.4", "3.3"])
def test_6_13_each_added_replica_becomes_new_in_a_batch_of_its_own(profile: str) -> None:
    """As recorded on five brokers: an UpdateMetadata for the raised epoch, and for each replica."""
    with Emulated(1, 2, 3, 4, 5, profile=profile) as cluster:
        cluster.topic("orders", (2, 3)).send(3).run_ms(500).now_on()
        cluster.do(Reassign("orders", 0, (2, 4, 5), "znode" if profile < "2" else "api"))
        cluster.run_until(lambda: cluster.seen(events.IsrUpdateStarted))
        sent = cluster.seen(events.ControlRequestSent, to=3, request="UpdateMetadata")
        assert len(sent) == 3


def controllers_requests(cluster: Emulated, *paths: str) -> list[str]:
    """The requests of broker 1, the controller, for these paths; multis by their last operation."""
    seen = cluster.seen(events.ZkRequest, broker=1)
    requests = [it.ops[-1] if it.ops else it for it in seen]
    return [it.op for it in requests if it.path in paths]


@pytest.mark.parametrize(
    ("profile", "guards", "online"),
    [
        ("2.6", {}, [3]),
        ("2.1", {}, [1, 3]),
        ("2.6", {"added-replicas-go-online-together": False}, [1, 3]),
        ("2.1", {"added-replicas-go-online-together": True}, [3]),
    ],
)
def test_6_13_up_to_2_3_every_replica_of_the_target_goes_online_by_itself(
    profile: str, guards: dict[str, bool], online: list[int]
) -> None:
    """As in a recording of 1.1.1."""
    with Emulated(profile=profile, guards=guards) as cluster:
        cluster.topic("orders", (1, 2)).send(3).run_ms(500).now_on()
        cluster.do(Reassign("orders", 0, (1, 3), "znode")).run_ms(5000)
        moved = cluster.seen(events.ReplicaStateChanged, to_state="OnlineReplica")
        assert [it.replica for it in moved] == online


@pytest.mark.parametrize(
    ("profile", "guards", "roles"),
    [
        ("2.6", {}, 1),
        ("2.1", {}, 2),
        ("2.6", {"removed-replicas-not-sent-roles": False}, 2),
        ("2.1", {"removed-replicas-not-sent-roles": True}, 1),
    ],
)
def test_6_13_up_to_2_3_a_removed_replica_hears_of_the_last_leader_epoch(
    profile: str, guards: dict[str, bool], roles: int
) -> None:
    """As recorded on five brokers from 0.8.2.2 to 2.1.1: before its StopReplica."""
    with Emulated(profile=profile, guards=guards) as cluster:
        cluster.topic("orders", (1, 2)).send(3).run_ms(500).now_on()
        cluster.do(Reassign("orders", 0, (1, 3), "znode")).run_ms(5000)
        assert len(cluster.seen(events.LeaderAndIsr, broker=2)) == roles


@pytest.mark.parametrize(
    ("profile", "guards", "replicas"),
    [
        ("2.6", {}, (1, 4, 5, 2, 3)),
        ("2.1", {}, (5, 1, 2, 3, 4)),
        ("2.6", {"moving-replicas-in-order": False}, (5, 1, 2, 3, 4)),
        ("2.1", {"moving-replicas-in-order": True}, (1, 4, 5, 2, 3)),
    ],
)
def test_6_13_up_to_2_3_the_replicas_of_a_move_are_a_set(
    profile: str, guards: dict[str, bool], replicas: tuple[int, ...]
) -> None:
    """As recorded with 1.1.1 and 2.1.1: a target of three among five. It keeps its own order."""
    with Emulated(1, 2, 3, 4, 5, profile=profile, guards=guards) as cluster:
        cluster.topic("orders", (1, 2, 3)).send(3).run_ms(500).now_on()
        cluster.do(Reassign("orders", 0, (1, 4, 5), "znode")).run_ms(5000)
        seen = [e.state.replicas for e in cluster.seen(events.LeaderAndIsr, broker=4)]
        assert (seen[0], seen[-1]) == (replicas, (1, 4, 5))


@pytest.mark.parametrize(
    ("profile", "guards", "requests"),
    [
        ("2.6", {}, ["getChildren2", "delete"]),
        ("2.1", {}, ["delete"]),
        ("2.6", {"command-listed-before-deletion": False}, ["delete"]),
        ("2.1", {"command-listed-before-deletion": True}, ["getChildren2", "delete"]),
    ],
)
def test_6_13_from_2_4_on_a_command_is_listed_before_it_is_deleted(
    profile: str, guards: dict[str, bool], requests: list[str]
) -> None:
    with Emulated(profile=profile, guards=guards) as cluster:
        cluster.topic("orders", (1, 2)).send(3).run_ms(500).now_on()
        cluster.do(Reassign("orders", 0, (1, 3), "znode")).run_ms(5000)
        seen = controllers_requests(cluster, "/admin/reassign_partitions")
        assert seen[-len(requests) - 1 :] == [*requests, "exists"]


@pytest.mark.parametrize(
    ("profile", "guards", "first"),
    [
        ("2.6", {}, "setData"),
        ("2.1", {}, "getData"),
        ("2.6", {"move-written-before-it-is-checked": False}, "getData"),
        ("2.1", {"move-written-before-it-is-checked": True}, "setData"),
    ],
)
def test_6_13_up_to_2_3_a_move_is_checked_before_it_is_written(
    profile: str, guards: dict[str, bool], first: str
) -> None:
    state = "/brokers/topics/orders/partitions/0/state"
    with Emulated(profile=profile, guards=guards) as cluster:
        cluster.topic("orders", (1, 2)).send(3).run_ms(500).now_on()
        cluster.do(Reassign("orders", 0, (1, 3), "znode")).run_ms(5000)
        requests = controllers_requests(cluster, state, "/brokers/topics/orders")
        assert requests[0] == first
        assert set(cluster.state().leader_and_isr.isr) == {1, 3}


@pytest.mark.parametrize(
    ("profile", "guards", "requests"),
    [
        ("2.6", {}, ["exists", "exists"]),
        ("2.1", {}, ["exists", "getData"]),
        ("2.6", {"command-read-after-start-up": False}, ["exists", "getData"]),
        ("2.1", {"command-read-after-start-up": True}, ["exists", "exists"]),
    ],
)
def test_6_2_up_to_2_3_a_new_controller_reads_the_command_of_moves_with_its_context(
    profile: str, guards: dict[str, bool], requests: list[str]
) -> None:
    with Emulated(profile=profile, guards=guards) as cluster:
        cluster.run_ms(500)
        assert controllers_requests(cluster, "/admin/reassign_partitions")[:2] == requests


@pytest.mark.parametrize(
    ("profile", "guards", "requests"),
    [
        ("2.4", {}, ["exists", "getData", "exists", "getData", "getChildren2", "delete", "exists"]),
        ("2.1", {}, ["exists", "getData", "setData", "delete", "exists"]),
        ("1.1", {}, ["exists", "getData", "delete", "exists"]),
        (
            "1.0",
            {},
            ["exists", "getData", "getData", "getData", "delete", "exists", "getData"],
        ),
        (
            "1.1",
            {"command-read-before-removal": True},
            ["exists", "getData", "exists", "getData", "delete", "exists"],
        ),
        (
            "2.1",
            {"command-written-if-changed": True},
            ["exists", "getData", "delete", "exists"],
        ),
    ],
)
def test_6_13_from_1_1_to_2_3_a_completed_move_is_taken_out_of_a_command_that_nobody_reads(
    profile: str, guards: dict[str, bool], requests: list[str]
) -> None:
    """As in recordings of 1.0.2, 1.1.1 and 2.1.1; 2.0 to 2.3 write the command also when they
    begin, and ZkClient reads a znode whenever its watch fires."""
    with Emulated(profile=profile, guards=guards) as cluster:
        cluster.topic("orders", (1, 2)).send(3).run_ms(500).now_on()
        cluster.do(Reassign("orders", 0, (1, 3), "znode")).run_ms(5000)
        assert controllers_requests(cluster, "/admin/reassign_partitions") == requests
        assert set(cluster.state().leader_and_isr.isr) == {1, 3}


@pytest.mark.parametrize(
    ("profile", "guards", "deletes"),
    [
        ("1.1", {}, 0),
        ("2.1", {}, 1),
        ("2.4", {}, 0),
        ("2.1", {"command-written-if-changed": True}, 0),
        ("1.1", {"command-written-if-changed": False}, 1),
    ],
)
def test_6_2_from_2_0_to_2_3_a_new_controller_without_moves_deletes_their_command(
    profile: str, guards: dict[str, bool], deletes: int
) -> None:
    with Emulated(profile=profile, guards=guards) as cluster:
        cluster.run_ms(500)
        seen = controllers_requests(cluster, "/admin/reassign_partitions")
        assert seen.count("delete") == deletes


@pytest.mark.parametrize(
    ("guards", "touched"),
    [({}, ["create"]), ({"deletion-markers-cleared": True}, ["create", "delete"])],
)
def test_6_14_in_0_9_where_deletion_is_disabled_a_marker_stays(
    guards: dict[str, bool], touched: list[str]
) -> None:
    """KAFKA-3175; delete.topic.enable is false by default up to 0.10."""
    with Emulated(1, 2, 3, profile="0.9.0", guards=guards) as cluster:
        cluster.topic("orders", (1, 2)).do(DeleteTopic("orders")).run_ms(2000)
        assert znodes(cluster, "/admin/delete_topics/orders") == touched


@pytest.mark.parametrize(
    ("profile", "guards", "is_refused"),
    [
        ("1.1", {}, False),
        ("2.1", {}, True),
        ("1.1", {"disabled-deletion-is-an-error": True}, True),
        ("2.1", {"disabled-deletion-is-an-error": False}, False),
    ],
)
def test_6_14_up_to_2_0_a_disabled_deletion_times_out(
    profile: str, guards: dict[str, bool], is_refused: bool
) -> None:
    """The broker creates the marker, and the controller removes it."""
    how = {"profile": profile, "guards": guards, "delete_topic_enable": "false"}
    with Emulated(1, 2, 3, **how) as cluster:  # type: ignore[arg-type]
        cluster.topic("orders", (1, 2)).now_on().do(DeleteTopic("orders")).run_ms(2000)
        marked = [one.op for one in cluster.seen(events.ZkSent) if one.path == MARKER]
        assert marked == ([] if is_refused else ["create", MARKER_REMOVED[profile]])


MARKER = "/admin/delete_topics/orders"
MARKER_REMOVED = {"1.1": "delete", "2.1": "multi/delete"}


@pytest.mark.parametrize(
    ("profile", "guards", "error"),
    [
        ("0.10.2", {}, "NONE"),
        ("1.1", {}, "REASSIGNMENT_IN_PROGRESS"),
        ("2.4", {}, "NONE"),
        ("1.1", {"only-a-moving-topic-refuses-partitions": True}, "NONE"),
    ],
)
def test_6_13_up_to_2_3_no_topic_gets_partitions_while_a_command_stands(
    profile: str, guards: dict[str, bool], error: str
) -> None:
    """AdminManager.scala@1.1.1 createPartitions asks for the command znode, whatever it says."""
    with Emulated(profile=profile, guards=guards) as cluster:
        cluster.topic("orders", (1, 2)).topic("bills", (1, 2)).send(3).do(Pause(3)).now_on()
        cluster.do(Reassign("orders", 0, (1, 3), "znode")).run_ms(1000)
        cluster.do(AddPartitions("bills", ((2, 1),))).run_ms(3000)
        assert returned(cluster)[-1] == error


@pytest.mark.parametrize(
    ("profile", "guards", "states"),
    [
        ("2.1", {}, ["OfflineReplica"]),
        ("2.4", {}, ["OfflineReplica", "ReplicaDeletionIneligible", "OfflineReplica"]),
        (
            "2.1",
            {"dead-replicas-are-ineligible": True},
            ["OfflineReplica", "ReplicaDeletionIneligible", "OfflineReplica"],
        ),
        ("2.4", {"dead-replicas-are-ineligible": False}, ["OfflineReplica"]),
    ],
)
def test_6_14_up_to_2_2_a_dead_replica_of_a_deleted_topic_stays_offline(
    profile: str, guards: dict[str, bool], states: list[str]
) -> None:
    """As in a recording of 1.1.1: nothing is tried again before the broker is back."""
    settings = {"zookeeper_session_timeout_ms": 2000}
    with Emulated(profile=profile, guards=guards, **settings) as cluster:
        cluster.topic("orders", (1, 2)).send(3).now_on().do(Kill(2)).run_ms(4000)
        cluster.do(DeleteTopic("orders")).run_ms(3000)
        changes = cluster.seen(events.ReplicaStateChanged, broker=1)
        assert [it.to_state for it in changes if it.replica == 2] == states
        cluster.do(Start(2)).run_ms(4000)
        assert znodes(cluster, "/brokers/topics/orders")[-1] == "delete"


@pytest.mark.parametrize(
    ("profile", "guards", "created", "added"),
    [
        ("2.7", {}, ["exists", "create", "getData"], ["getData", "setData", "getData"]),
        (
            "2.8",
            {},
            ["exists", "create", "getData", "getData"],
            ["getData", "getData", "setData", "getData"],
        ),
        (
            "2.8",
            {"topic-ids-read": False},
            ["exists", "create", "getData"],
            ["getData", "setData", "getData"],
        ),
    ],
)
def test_2_12_from_2_8_on_a_broker_reads_the_id_of_a_topic_that_it_creates_or_enlarges(
    profile: str, guards: dict[str, bool], created: list[str], added: list[str]
) -> None:
    """As in recordings of 2.8.2 and 3.3.2."""
    with Emulated(profile=profile, guards=guards) as cluster:
        cluster.run_ms(500).now_on().do(CreateTopic("orders", ((1, 2),))).run_ms(1000)
        assert controllers_requests(cluster, "/brokers/topics/orders") == created
        cluster.now_on().do(AddPartitions("orders", ((2, 1),))).run_ms(1000)
        assert controllers_requests(cluster, "/brokers/topics/orders") == added


@pytest.mark.parametrize(
    ("profile", "created", "added"),
    [
        ("0.8.2", [1, 0], [3, 2]),
        ("1.0", [1, 0], [3, 2]),
        ("1.1", [1, 0], [2, 3]),
        ("2.1", [1, 0], [2, 3]),
        ("2.4", [0, 1], [2, 3]),
    ],
)
def test_6_15_up_to_2_3_partitions_are_created_in_the_order_of_a_hash_table(
    profile: str, created: list[int], added: list[int]
) -> None:
    """As in recordings of 1.0.2 to 2.4.1. From 1.1 on it is the order of the topic's znode, which
    its creator wrote from a hash table; one who adds partitions does so up to 1.0 only."""
    with Emulated(profile=profile) as cluster:
        cluster.topic("orders", (1, 2), (2, 1)).run_ms(1000)
        assert states_created(cluster) == created
        cluster.do(AddPartitions("orders", ((1, 2), (2, 1)))).run_ms(1000)
        assert states_created(cluster) == created + added


def states_created(cluster: Emulated) -> list[int]:
    """The partitions whose states came to be, in this order."""
    written = cluster.seen(events.ZkTransaction)
    ops = [op for it in written for op in (it.ops or (it,)) if op.op == "create"]
    return [int((op.path or "").split("/")[-2]) for op in ops if (op.path or "").endswith("/state")]


@pytest.mark.parametrize(("profile", "epoch"), [("0.8.2", 1), ("1.0", 1), ("1.1", 0), ("2.4", 1)])
def test_6_13_up_to_1_0_an_added_replica_is_sent_the_state_that_zookeeper_has(
    profile: str, epoch: int
) -> None:
    """As in recordings of 1.0.2 and 1.1.1: the raised leader epoch is not in the cache before 2.4
    (KAFKA-9212), and only up to 1.0 is the state read again."""
    with Emulated(profile=profile) as cluster:
        cluster.topic("orders", (1, 2)).send(3).run_ms(500).now_on()
        cluster.do(Reassign("orders", 0, (1, 3), "znode")).run_ms(5000)
        told = [it for it in cluster.seen(events.LeaderAndIsr, broker=3) if it.state.is_new]
        assert [it.state.leader_epoch for it in told] == [epoch]


@pytest.mark.parametrize(
    ("profile", "guards", "looks"),
    [
        ("2.8", {}, []),
        ("3.3", {}, ["exists"]),
        ("3.3", {"deletion-checked-at-creation": False}, []),
    ],
)
def test_2_12_from_3_1_on_a_topic_is_not_created_while_it_is_marked_for_deletion(
    profile: str, guards: dict[str, bool], looks: list[str]
) -> None:
    """As in a recording of 3.3.2."""
    with Emulated(profile=profile, guards=guards) as cluster:
        cluster.run_ms(500).now_on().do(CreateTopic("orders", ((1, 2),))).run_ms(1000)
        assert controllers_requests(cluster, "/admin/delete_topics/orders") == looks


@pytest.mark.parametrize(
    ("profile", "guards", "looks"),
    [
        ("2.1", {}, ["exists"]),
        ("2.4", {}, []),
        ("2.1", {"existing-topics-known": True}, []),
        ("2.4", {"existing-topics-known": False}, ["exists"]),
    ],
)
def test_2_12_up_to_2_3_zookeeper_is_asked_whether_a_new_topic_exists(
    profile: str, guards: dict[str, bool], looks: list[str]
) -> None:
    """As in a recording of 0.10.2.2."""
    with Emulated(profile=profile, guards=guards) as cluster:
        cluster.topic("orders", (1, 2)).now_on()
        cluster.do(CreateTopic("orders", ((2, 1),))).run_ms(1000)
        assert controllers_requests(cluster, "/brokers/topics/orders") == looks


@pytest.mark.parametrize(
    ("profile", "guards", "times"),
    [
        ("2.6", {}, 3),
        ("2.7", {}, 2),
        ("2.7", {"new-brokers-not-sent-deletions": False}, 3),
    ],
)
def test_6_4_from_2_7_on_a_broker_that_joins_first_hears_nothing_of_deletions(
    profile: str, guards: dict[str, bool], times: int
) -> None:
    """As in a recording of 3.3.2: two UpdateMetadata name the topic, one of them with LeaderAndIsr
    and one of the deletion, which goes on."""
    settings = {"zookeeper_session_timeout_ms": 2000}
    with Emulated(profile=profile, guards=guards, **settings) as cluster:
        cluster.topic("orders", (1, 2)).send(3).now_on().do(Kill(2)).run_ms(4000)
        cluster.do(DeleteTopic("orders")).run_ms(1000).now_on().do(Start(2)).run_ms(4000)
        updates = cluster.seen(events.MetadataCacheUpdated, broker=2)
        assert [it.removed for it in updates if it.removed] == [(ORDERS_0,)] * times


def test_6_13_a_reassignment_that_is_under_way_is_cancelled() -> None:
    with Emulated() as cluster:
        cluster.topic("orders", (1, 2)).send(3).do(Pause(3)).now_on()
        cluster.do(Reassign("orders", 0, (3, 2))).run_ms(1000)
        moving = cluster.node(1).controller.context.assignments[ORDERS_0]
        assert (moving.replicas, moving.adding_replicas) == ((3, 2, 1), (3,))
        cluster.do(Reassign("orders", 0, None)).run_ms(1000).do(Resume(3)).run_ms(3000)
        now = cluster.node(1).controller.context.assignments[ORDERS_0]
        assert (now.replicas, now.is_being_reassigned) == ((2, 1), False)
        assert set(cluster.state().leader_and_isr.isr) == {1, 2}
        assert returned(cluster) == ["NONE", "NONE"]


def test_4_4_the_replica_of_a_cancelled_reassignment_stays_behind() -> None:
    """KAFKA-13972, repaired in 3.4.1: the StopReplica carries the epoch that it has already."""
    with Emulated() as cluster:
        cluster.topic("orders", (1, 2)).send(3).do(Pause(3)).now_on()
        cluster.do(Reassign("orders", 0, (3, 2))).run_ms(1000)
        cluster.do(Reassign("orders", 0, None)).run_ms(1000).do(Resume(3)).run_ms(3000)
        ignored = cluster.seen(events.StopReplicaIgnored, broker=3, delete=True)
        assert [e.error for e in ignored] == ["FENCED_LEADER_EPOCH"]
        assert ORDERS_0 in cluster.world.cluster.hosts[3].disk.logs


def test_6_13_a_new_target_replaces_the_old_one_and_its_replicas() -> None:
    with Emulated(1, 2, 3, 4) as cluster:
        cluster.topic("orders", (1, 2)).do(Pause(3)).now_on()
        cluster.do(Reassign("orders", 0, (3, 2))).run_ms(1000)
        cluster.do(Reassign("orders", 0, (4, 2))).run_ms(4000).do(Resume(3)).run_ms(3000)
        it = cluster.state().leader_and_isr
        assert (it.leader, set(it.isr)) == (4, {2, 4})
        assert not failures(cluster)


@pytest.mark.parametrize(
    ("profile", "command"),
    [
        ("0.8.2", ["create", "delete"]),
        ("1.0", ["create", "delete"]),
        ("2.1", ["create", "setData", "setData", "delete"]),
        ("2.6", ["create", "delete"]),
        ("2.6", []),
    ],
)
def test_6_13_a_new_controller_goes_on_with_what_was_under_way(
    profile: str, command: list[str]
) -> None:
    """The watch on the state znode is its own: it hears of the new replica in the ISR. Up to 2.3
    the topic's znode does not say what moves, so the successor learns of the target from the
    command, which each controller from 1.1 to 2.3 writes again when it begins."""
    through = "znode" if command else "api"
    with Emulated(1, 2, 3, 4, profile=profile, zookeeper_session_timeout_ms=SESSION_MS) as cluster:
        cluster.topic("orders", (2, 3)).send().run_ms(500).now_on()
        cluster.do(CutLink(2, 4)).do(Reassign("orders", 0, (4, 3), through)).run_ms(1500)
        cluster.do(Kill(1)).run_ms(9000).do(HealLink(2, 4)).run_ms(9000)
        it = cluster.state().leader_and_isr
        assert (it.leader, set(it.isr)) == (4, {3, 4})
        assert znodes(cluster, "/admin/reassign_partitions") == command


@pytest.mark.parametrize(
    ("replicas", "answer"),
    [
        ((), "INVALID_REPLICA_ASSIGNMENT"),
        ((2, 2), "INVALID_REPLICA_ASSIGNMENT"),
        ((9,), "INVALID_REPLICA_ASSIGNMENT"),
        (None, "NO_REASSIGNMENT_IN_PROGRESS"),
    ],
)
def test_6_13_targets_that_cannot_be_are_refused(
    replicas: tuple[int, ...] | None, answer: str
) -> None:
    with Emulated() as cluster:
        cluster.topic("orders", (1, 2)).now_on().do(Reassign("orders", 0, replicas)).run_ms(1000)
        assert returned(cluster) == [answer]


def test_6_13_a_dead_replica_may_stay_but_none_may_be_added() -> None:
    """Only those that are added have to be live (validateReplicas)."""
    with Emulated(1, 2, 3, zookeeper_session_timeout_ms=SESSION_MS) as cluster:
        cluster.topic("orders", (1, 2)).do(Kill(2)).run_ms(9000).now_on()
        cluster.do(Reassign("orders", 0, (1, 2, 3))).run_ms(3000)
        cluster.topic("bills", (1, 3)).do(Reassign("bills", 0, (2, 1))).run_ms(1000)
        assert returned(cluster) == ["NONE", "NONE", "INVALID_REPLICA_ASSIGNMENT"]


def test_6_13_through_the_znode_nobody_asks_whether_the_brokers_are_there() -> None:
    with Emulated() as cluster:
        cluster.topic("orders", (1, 2)).now_on()
        cluster.do(Reassign("orders", 0, (9, 2), "znode")).run_ms(2000)
        assert znodes(cluster, "/admin/reassign_partitions") == ["create"]
        assert cluster.node(1).controller.context.assignments[ORDERS_0].adding_replicas == (9,)
        cluster.do(Reassign("orders", 0, None)).run_ms(2000)
        assert znodes(cluster, "/admin/reassign_partitions") == ["create", "delete"]


@pytest.mark.parametrize(
    ("how", "begins"),
    [
        ({"profile": "0.9.0"}, False),
        ({"profile": "0.10.2"}, True),
        ({"profile": "0.9.0", "guards": {"moves-to-dead-brokers-begin": True}}, True),
        ({"profile": "2.6", "guards": {"moves-to-dead-brokers-begin": False}}, False),
    ],
)
def test_6_13_up_to_0_10_0_a_command_that_names_a_dead_broker_is_dropped(
    how: dict[str, Any], begins: bool
) -> None:
    """KAFKA-4214."""
    with Emulated(1, 2, 3, zookeeper_session_timeout_ms=SESSION_MS, **how) as cluster:
        cluster.topic("orders", (1, 2)).send(3).do(Kill(3)).run_ms(9000).now_on()
        cluster.do(Reassign("orders", 0, (2, 3), "znode")).run_ms(2000)
        path = "/admin/reassign_partitions"
        assert znodes(cluster, path) == (["create"] if begins else ["create", "delete"])
        assert cluster.state().leader_and_isr.leader_epoch == int(begins)


@pytest.mark.parametrize(
    ("how", "begins"),
    [
        ({"profile": "1.0"}, False),
        ({"profile": "2.1"}, False),
        ({"profile": "2.4"}, True),
        ({"profile": "2.1", "guards": {"move-written-before-it-is-checked": True}}, True),
    ],
)
def test_6_13_up_to_2_3_a_command_that_names_the_present_replicas_is_dropped(
    how: dict[str, Any], begins: bool
) -> None:
    with Emulated(1, 2, 3, **how) as cluster:
        cluster.topic("orders", (1, 2, 3)).send(3).run_ms(1500).now_on()
        cluster.do(Reassign("orders", 0, (1, 2, 3), "znode")).run_ms(3000)
        assert cluster.state().leader_and_isr.leader_epoch == int(begins)
        assert znodes(cluster, "/admin/reassign_partitions") == ["create", "delete"]
        assert not failures(cluster)


def test_6_13_what_cannot_begin_is_taken_out_of_the_command() -> None:
    with Emulated() as cluster:
        cluster.now_on().do(Reassign("nothing", 0, (1, 2), "znode")).run_ms(1000)
        assert znodes(cluster, "/admin/reassign_partitions") == ["create", "delete"]
        cluster.topic("orders", (1, 2)).now_on()
        cluster.do(Reassign("orders", 0, (3, 2), "znode")).run_ms(4000)
        assert cluster.state().leader_and_isr.leader == 3, "the znode is watched again"


def test_6_13_no_partition_is_added_while_another_moves() -> None:
    with Emulated() as cluster:
        cluster.topic("orders", (1, 2)).do(Pause(3)).now_on()
        cluster.do(Reassign("orders", 0, (3, 2))).run_ms(800)
        cluster.do(AddPartitions("orders", ((1, 2),))).run_ms(800)
        assert returned(cluster) == ["NONE", "REASSIGNMENT_IN_PROGRESS"]


# -- topics ----------------------------------------------------------------------------------------


def test_6_14_a_deletion_goes_on_under_the_next_controller() -> None:
    with Emulated(1, 2, 3, zookeeper_session_timeout_ms=SESSION_MS) as cluster:
        cluster.topic("orders", (2, 3)).now_on().do(CutLink(1, 3)).do(DeleteTopic("orders"))
        cluster.run_ms(1000).do(Kill(1)).run_ms(12_000)
        assert znodes(cluster, "/brokers/topics/orders") == ["delete"]
        for broker in (2, 3):
            assert ORDERS_0 not in cluster.world.cluster.hosts[broker].disk.logs


def test_6_14_a_topic_with_a_dead_replica_waits_for_it() -> None:
    with Emulated(1, 2, 3, zookeeper_session_timeout_ms=SESSION_MS) as cluster:
        cluster.topic("orders", (2, 3)).do(Kill(3)).run_ms(9000).now_on()
        cluster.do(DeleteTopic("orders")).run_ms(3000)
        assert znodes(cluster, "/brokers/topics/orders") == []
        cluster.do(Start(3)).run_ms(8000)
        assert znodes(cluster, "/brokers/topics/orders") == ["delete"]
        assert ORDERS_0 not in cluster.world.cluster.hosts[3].disk.logs


def test_6_14_a_deletion_whose_broker_dies_meanwhile_is_begun_again_when_it_is_back() -> None:
    with Emulated(1, 2, 3, zookeeper_session_timeout_ms=SESSION_MS) as cluster:
        cluster.topic("orders", (2, 3)).now_on().do(CutLink(1, 3)).do(DeleteTopic("orders"))
        cluster.run_ms(1000).do(Kill(3), HealLink(1, 3)).run_ms(9000)
        assert znodes(cluster, "/brokers/topics/orders") == []
        cluster.do(Start(3)).run_ms(8000)
        assert znodes(cluster, "/brokers/topics/orders") == ["delete"]


def test_6_14_a_topic_that_is_deleted_can_be_created_again() -> None:
    with Emulated() as cluster:
        cluster.topic("orders", (1, 2)).send(3).run_ms(300)
        cluster.do(DeleteTopic("orders")).run_ms(2000).do(CreateTopic("orders", ((2, 3),)))
        cluster.run_ms(1000)
        assert cluster.offsets(2) == (0, 0)
        assert cluster.state().leader_and_isr.leader == 2


def test_partitions_are_assigned_by_the_broker_where_nobody_says_how() -> None:
    with Emulated() as cluster:
        cluster.do(CreateTopic("many", num_partitions=6, replication_factor=2)).run_ms(1500)
        states = [cluster.state(TopicPartition("many", n)).leader_and_isr for n in range(6)]
        leaders = [s.leader for s in states]
        assert leaders[:3] == leaders[3:]
        assert sorted(leaders[:3]) == [1, 2, 3]
        assert all(len(s.isr) == 2 for s in states)
        cluster.do(AddPartitions("many", count=8)).run_ms(1500)
        assert len({s.leader for s in states}) == 3
        assert cluster.state(TopicPartition("many", 7)).leader_and_isr.leader in (1, 2, 3)


def test_where_an_assignment_begins_is_drawn_from_the_seed() -> None:
    def first(seed: int) -> tuple[int, ...]:
        with Emulated(seed=seed) as cluster:
            cluster.do(CreateTopic("many", num_partitions=1, replication_factor=3)).run_ms(1000)
            return cluster.state(TopicPartition("many", 0)).leader_and_isr.isr

    drawn = [first(seed) for seed in (1, 2, 3, 4)]
    assert drawn == [first(seed) for seed in (1, 2, 3, 4)]
    assert len(set(drawn)) > 1
