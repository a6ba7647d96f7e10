"""Elections by hand and reassignments, request by request: what the controller asks of ZooKeeper
and in which order (spec §6.12, §6.13)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from emulator.kafka.controller.context import PartitionState
from emulator.kafka.model.errors import Errors
from emulator.kafka.protocol.messages import ElectionResults, ElectionType
from emulator.trace.values import TopicPartition
from tests.interaction.controlling import (
    CHANGED,
    CREATED,
    FENCE,
    ORDERS_0,
    ORDERS_1,
    Controlling,
    led_by,
    state,
)
from tests.interaction.playbook import (
    Incoming,
    Playbook,
    children,
    data,
    multi_failed,
    multi_ok,
    no_node,
    ok,
    watch,
)
from zk.client import codec, codec_admin
from zk.client.codec import ReplicaAssignment
from zk.errors import Code

ELECTION = "/admin/preferred_replica_election"
REASSIGN = "/admin/reassign_partitions"
BILLS_0 = TopicPartition("bills", 0)


class Commanded(Controlling):
    """A controller that watches both command znodes."""

    def _make_active(self, *caches: object) -> None:
        super()._make_active(*caches)  # type: ignore[arg-type]
        for handler in self.controller._command_handlers:
            self.client.register_change_handler(handler)


def election_of(*partitions: TopicPartition) -> Incoming:
    return data(codec.encode_preferred_election(partitions))


def moves(targets: dict[TopicPartition, tuple[int, ...]]) -> Incoming:
    return data(codec_admin.encode_reassignment(targets))


def elects(*partitions: TopicPartition, kind: ElectionType = ElectionType.PREFERRED) -> Incoming:
    """ElectLeaders through the API; what the controller says comes out as a line."""

    def ask(play: Playbook) -> None:
        assert isinstance(play, Controlling)

        async def done(results: ElectionResults) -> None:
            said = [f"{p}={leader}" for p, leader in results.leaders.items()]
            said += [f"{p} {error.name}" for p, error in results.errors.items()]
            play.say(f"elected: {', '.join(said)}")

        play.controller.requests.elect_leaders(partitions, kind, done)

    return ask


def reassigns(targets: dict[TopicPartition, tuple[int, ...] | None]) -> Incoming:
    """AlterPartitionReassignments through the API."""

    def ask(play: Playbook) -> None:
        assert isinstance(play, Controlling)

        def done(results: dict[TopicPartition, Errors]) -> None:
            play.say(f"reassigned: {', '.join(f'{p} {e.name}' for p, e in results.items())}")

        play.controller.requests.alter_partition_reassignments(targets, done)

    return ask


# -- elections -------------------------------------------------------------------------------------


def test_the_command_is_looked_for_read_carried_out_deleted_and_looked_for_again() -> None:
    with Commanded({ORDERS_0: led_by(2, (2, 1, 3))}) as play:
        (
            play
            >> watch(CREATED, ELECTION)
            << f"exists {ELECTION} W"
            >> ok()
            << f"getData {ELECTION} W"
            >> election_of(ORDERS_0, BILLS_0)
            << "getData orders-0"
            >> state(2, (2, 1, 3), version=5)
            << f"[{FENCE}, set orders-0 at v5: leader 1, epoch 5, isr 2,1,3, controller 7]"
            >> multi_ok(version=6)
            << f"[{FENCE}, delete {ELECTION}]"
        )
        told = [line for line in play.said if "LeaderAndIsr" in line]
        assert [line[:4] for line in told] == ["to 1", "to 2", "to 3"]
        play.forget()
        play >> multi_ok() << f"exists {ELECTION} W" >> no_node


def test_up_to_1_0_one_partition_is_elected_after_the_other_and_a_preferred_leader_stays() -> None:
    """As in recordings of 0.8.2.2 and 0.10.2.2 (five-brokers-moves)."""
    leads = {ORDERS_0: led_by(1, (1, 2)), ORDERS_1: led_by(2, (2, 1))}
    with Commanded(leads, profile="1.0") as play:
        commanded = election_of(ORDERS_1, ORDERS_0)
        play >> watch(CREATED, ELECTION) << f"exists {ELECTION} W" >> ok()
        play << f"getData {ELECTION} W" >> commanded << f"exists {ELECTION} W" >> ok()
        play << f"getData {ELECTION} W" >> commanded << "getData orders-1"
        play >> state(2, (2, 1), version=5)
        play << f"[{FENCE}, set orders-1 at v5: leader 1, epoch 5, isr 2,1, controller 7]"
        play >> multi_ok(version=6)
        play << "getData orders-0" >> state(1, (1, 2), version=3)
        told = [line for line in play.said if "LeaderAndIsr" in line]
        assert told
        assert not any("orders-0" in line for line in told)
        play.forget()


@pytest.mark.parametrize(("isr", "is_own"), [((2, 1), True), ((2,), False)])
def test_up_to_1_0_the_controller_recognises_a_state_that_it_wrote_before_it_lost_the_response(
    isr: tuple[int, ...], is_own: bool
) -> None:
    """checkLeaderAndIsrZkData (KAFKA-1382); otherwise it would find its preferred leader elected,
    and tell nobody."""
    with Commanded({ORDERS_0: led_by(2, (2, 1))}, profile="1.0") as play:
        commanded = election_of(ORDERS_0)
        play >> watch(CREATED, ELECTION) << f"exists {ELECTION} W" >> ok()
        play << f"getData {ELECTION} W" >> commanded << f"exists {ELECTION} W" >> ok()
        play << f"getData {ELECTION} W" >> commanded << "getData orders-0"
        play >> state(2, (2, 1), version=5)
        play << f"[{FENCE}, set orders-0 at v5: leader 1, epoch 5, isr 2,1, controller 7]"
        play >> multi_failed(Code.OK, Code.BAD_VERSION) << "getData orders-0"
        play >> state(1, isr, version=6, epoch=5)
        if is_own:
            play << "to 1: LeaderAndIsr (orders-0 leader 1 isr 2,1 v6)"
        else:
            play << "getData orders-0"
        play.forget()


def test_a_command_that_nobody_can_read_is_deleted() -> None:
    with Commanded({ORDERS_0: led_by(2, (2, 1, 3))}) as play:
        play >> watch(CREATED, ELECTION) << f"exists {ELECTION} W" >> ok()
        play << f"getData {ELECTION} W" >> data("garbage") << f"malformed {ELECTION}"
        play << f"[{FENCE}, delete {ELECTION}]" >> multi_ok() << f"exists {ELECTION} W" >> no_node


def test_an_election_that_meets_a_newer_controller_still_tries_to_delete_its_command() -> None:
    fenced = multi_failed(Code.BAD_VERSION, Code.RUNTIME_INCONSISTENCY)
    with Commanded({ORDERS_0: led_by(2, (2, 1, 3))}) as play:
        play >> watch(CREATED, ELECTION) << f"exists {ELECTION} W" >> ok()
        play << f"getData {ELECTION} W" >> election_of(ORDERS_0) << "getData orders-0"
        play >> state(2, (2, 1, 3), version=5)
        play << f"[{FENCE}, set orders-0 at v5: leader 1, epoch 5, isr 2,1,3, controller 7]"
        play >> fenced << f"[{FENCE}, delete {ELECTION}]" >> fenced
        play << "exists /controller W" >> ok() << "getData /controller W" >> no_node << "resigned"


def test_the_api_is_told_per_partition() -> None:
    with Commanded({ORDERS_0: led_by(1, (1, 2)), ORDERS_1: led_by(2, (2, 3))}) as play:
        (
            play
            >> elects(ORDERS_0, ORDERS_1, BILLS_0)
            << "getData orders-1"
            >> state(2, (2, 3), version=5)
            << "elected: orders-0 ELECTION_NOT_NEEDED, bills-0 UNKNOWN_TOPIC_OR_PARTITION, "
            "orders-1 PREFERRED_LEADER_NOT_AVAILABLE"
        )


def test_a_topic_that_is_going_elects_nobody() -> None:
    with Commanded({ORDERS_0: led_by(2, (2, 1))}) as play:
        play.controller.context.topics_to_be_deleted["orders"] = None
        play >> elects(ORDERS_0) << "elected: orders-0 INVALID_TOPIC_EXCEPTION"


def test_who_is_not_controller_says_so_when_its_turn_has_come() -> None:
    with Commanded(active=False) as play:
        play.controller.events.start()
        play >> elects(ORDERS_0) << "elected: orders-0 NOT_CONTROLLER"
        play >> reassigns({ORDERS_0: (1, 2)}) << "reassigned: orders-0 NOT_CONTROLLER"


def test_an_unclean_election_takes_the_first_that_is_live_and_asks_no_configuration() -> None:
    with Commanded({ORDERS_0: led_by(3, (3,))}, live=(1, 2)) as play:
        context = play.controller.context
        context.partition_states[ORDERS_0] = PartitionState.OFFLINE
        (
            play
            >> elects(ORDERS_0, kind=ElectionType.UNCLEAN)
            << "getData orders-0"
            >> state(3, (3,), version=5)
            << f"[{FENCE}, set orders-0 at v5: leader 1, epoch 5, isr 1, controller 7]"
            >> multi_ok(version=6)
            << "elected: orders-0=1"
        )
        play.forget()


def test_without_a_known_leader_the_event_ends_and_nobody_is_answered() -> None:
    with Commanded({ORDERS_0: led_by(2, (2, 1))}) as play:
        play.controller.context.leadership.clear()
        (
            play
            >> elects(ORDERS_0)
            << (
                "ReplicaLeaderElection failed: IllegalState: "
                "nothing is known of the leader of orders-0"
            )
        )


# -- reassignments ---------------------------------------------------------------------------------


def test_a_move_through_the_api_begins_as_recorded() -> None:
    """Topic znode, completeness, epoch bump, requests to every broker, then the new replica (spec
    §6.13)."""
    with Commanded({ORDERS_0: led_by(1, (1, 2))}, replicas=(1, 2)) as play:
        play >> reassigns({ORDERS_0: (3, 2)}) << f"exists {REASSIGN} W" >> no_node
        found = play.topic_written()[0]
        assert found == ReplicaAssignment((3, 2, 1), (3,), (1,))
        (
            play
            << f"[{FENCE}, set /brokers/topics/orders at v-1]"
            >> multi_ok()
            << "getData orders-0 W"
            >> state(1, (1, 2), version=5)
            << "getData orders-0 W"
            >> state(1, (1, 2), version=5)
            << f"[{FENCE}, set orders-0 at v5: leader 1, epoch 5, isr 1,2, controller 7]"
            >> multi_ok(version=6)
            << "to 3: LeaderAndIsr (orders-0 leader 1 isr 1,2 v6)"
            << "to 2: LeaderAndIsr (orders-0 leader 1 isr 1,2 v6)"
            << "to 1: LeaderAndIsr (orders-0 leader 1 isr 1,2 v6)"
            << "reassigned: orders-0 NONE"
        )
        assert any("to 3: LeaderAndIsr" in line and "new" in line for line in play.said)
        play.forget()


def test_the_epoch_bump_is_tried_until_it_is_written() -> None:
    with Commanded({ORDERS_0: led_by(1, (1, 2))}, replicas=(1, 2)) as play:
        play >> reassigns({ORDERS_0: (3, 2)}) << f"exists {REASSIGN} W" >> no_node
        play << f"[{FENCE}, set /brokers/topics/orders at v-1]" >> multi_ok()
        play << "getData orders-0 W" >> state(1, (1, 2), version=5)
        play << "getData orders-0 W" >> state(1, (1, 2), version=5)
        play << f"[{FENCE}, set orders-0 at v5: leader 1, epoch 5, isr 1,2, controller 7]"
        play >> multi_failed(Code.OK, Code.BAD_VERSION) << "getData orders-0 W"
        play >> state(1, (1,), version=6)
        play << f"[{FENCE}, set orders-0 at v6: leader 1, epoch 5, isr 1, controller 7]"
        play.forget()


def test_a_move_whose_state_a_newer_controller_wrote_fails() -> None:
    with Commanded({ORDERS_0: led_by(1, (1, 2))}, replicas=(1, 2)) as play:
        play >> reassigns({ORDERS_0: (3, 2)}) << f"exists {REASSIGN} W" >> no_node
        play << f"[{FENCE}, set /brokers/topics/orders at v-1]" >> multi_ok()
        play << "getData orders-0 W" >> state(1, (1, 2), version=5, decided_by=8)
        play << "getData orders-0 W" >> state(1, (1, 2), version=5, decided_by=8)
        play << (
            "reassignment of orders-0 failed: StateChangeFailed: "
            "orders-0 was written by a controller of epoch 8"
        )
        play << "reassigned: orders-0 UNKNOWN_SERVER_ERROR"


def moving(guards: Mapping[str, bool] | None = None) -> Commanded:
    """orders-0 moves from [1, 2] to [1, 3], through the znode, which names another one as well."""
    leadership = {ORDERS_0: led_by(1, (1, 2)), ORDERS_1: led_by(1, (1, 2))}
    play = Commanded(leadership, replicas=(1, 2), guards=guards)
    context = play.controller.context
    context.assignments[ORDERS_0] = ReplicaAssignment((1, 3, 2), (3,), (2,))
    context.being_reassigned[ORDERS_0] = None
    return play


def test_a_move_that_is_done_is_taken_out_of_the_command_and_the_others_stay() -> None:
    with moving() as play:
        done = play.controller._reassignments._forget(ORDERS_0, ReplicaAssignment((1, 3)))
        play.process.spawn("done", done)
        play.settle()
        play << f"exists {REASSIGN} W" >> ok() << f"getData {REASSIGN} W"
        play >> moves({ORDERS_0: (1, 3), ORDERS_1: (1, 3)})
        left = codec_admin.encode_reassignment({ORDERS_1: (1, 3)}).decode()
        play << f"[{FENCE}, set {REASSIGN} at v-1: {left}]" >> multi_ok()
        assert play.controller.context.being_reassigned == {}


def test_a_command_for_another_target_is_not_carried_out_by_this_move() -> None:
    with moving() as play:
        done = play.controller._reassignments._forget(ORDERS_0, ReplicaAssignment((1, 3)))
        play.process.spawn("done", done)
        play.settle()
        play << f"exists {REASSIGN} W" >> ok() << f"getData {REASSIGN} W"
        play >> moves({ORDERS_0: (3, 1)})
        left = codec_admin.encode_reassignment({ORDERS_0: (3, 1)}).decode()
        play << f"[{FENCE}, set {REASSIGN} at v-1: {left}]" >> multi_ok()


@pytest.mark.parametrize("is_listed", [True, False])
def test_the_last_move_takes_the_command_away_and_it_is_watched_again(is_listed: bool) -> None:
    with moving({"command-listed-before-deletion": is_listed}) as play:
        done = play.controller._reassignments._forget(ORDERS_0, ReplicaAssignment((1, 3)))
        play.process.spawn("done", done)
        play.settle()
        play << f"exists {REASSIGN} W" >> ok() << f"getData {REASSIGN} W"
        play >> moves({ORDERS_0: (1, 3)})
        if is_listed:
            play << f"getChildren {REASSIGN}" >> children()
        play << f"[{FENCE}, delete {REASSIGN}]" >> multi_ok()
        play << f"exists {REASSIGN} W" >> no_node


def test_a_command_znode_that_went_away_meanwhile_is_created_again() -> None:
    with moving() as play:
        done = play.controller._reassignments._forget(ORDERS_0, ReplicaAssignment((1, 3)))
        play.process.spawn("done", done)
        play.settle()
        play << f"exists {REASSIGN} W" >> ok() << f"getData {REASSIGN} W"
        play >> moves({ORDERS_0: (1, 3), ORDERS_1: (1, 3)})
        left = codec_admin.encode_reassignment({ORDERS_1: (1, 3)}).decode()
        play << f"[{FENCE}, set {REASSIGN} at v-1: {left}]"
        play >> multi_failed(Code.OK, Code.NO_NODE) << f"[{FENCE}, create {REASSIGN}: {left}]"
        play >> multi_ok()


def test_the_api_takes_its_partitions_out_of_the_command_first() -> None:
    with moving() as play:
        play >> reassigns({ORDERS_0: (2, 1)}) << f"exists {REASSIGN} W" >> ok()
        play << f"getData {REASSIGN} W" >> moves({ORDERS_0: (1, 3), ORDERS_1: (1, 3)})
        left = codec_admin.encode_reassignment({ORDERS_1: (1, 3)}).decode()
        play << f"[{FENCE}, set {REASSIGN} at v-1: {left}]" >> multi_ok()
        assert play.topic_written()[0] == ReplicaAssignment((2, 1))
        play << f"[{FENCE}, set /brokers/topics/orders at v-1]"
        play.forget()


def test_an_invalid_command_is_left_where_it_is() -> None:
    with Commanded({ORDERS_0: led_by(1, (1, 2))}) as play:
        play >> watch(CREATED, REASSIGN) << f"exists {REASSIGN} W" >> ok()
        play << f"getData {REASSIGN} W" >> data("garbage") << f"malformed {REASSIGN}"


def test_a_topic_znode_that_is_gone_ends_the_move() -> None:
    with Commanded({ORDERS_0: led_by(1, (1, 2))}, replicas=(1, 2)) as play:
        play >> reassigns({ORDERS_0: (3, 2)}) << f"exists {REASSIGN} W" >> no_node
        play << f"[{FENCE}, set /brokers/topics/orders at v-1]"
        play >> multi_failed(Code.OK, Code.NO_NODE)
        play << (
            "reassignment of orders-0 failed: ZooKeeperError: NO_NODE for /brokers/topics/orders"
        )
        play << "reassigned: orders-0 UNKNOWN_SERVER_ERROR"
        assert ORDERS_0 not in play.controller.context.being_reassigned


def test_a_state_that_changes_while_its_partition_moves_is_looked_at() -> None:
    with moving() as play:
        now = play.controller.context.assignments[ORDERS_0]
        play.process.spawn(
            "watch", play.controller._reassignments._update_current_reassignment(ORDERS_0, now)
        )
        play.settle()
        play >> watch(CHANGED, "/brokers/topics/orders/partitions/0/state")
        play << "getData orders-0 W" >> state(1, (1, 2), version=6)
