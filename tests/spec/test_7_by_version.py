"""Section 7 of the spec by version: the path through the controller from 2.7 to 3.3. Each with its
guard, without it, and in the versions on either side."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.kafka.model.errors import Errors
from tests.interaction.asking import (
    ASKS,
    EXPANSION,
    altered,
    answer,
    answer_to_all,
    fetch_3,
    pending,
    refused,
    shrinking,
)
from tests.interaction.controlling import FENCE, ORDERS_0, Controlling, led_by
from tests.interaction.hosting import LIVE, fetch, leading, produce, update_metadata
from tests.interaction.playbook import Playbook, after_ms, data, ok, reply
from tests.interaction.test_alter_isr import in_epoch_5
from tests.interaction.test_alter_isr_received import LED_BY_2, alter_isr, asked
from tests.interaction.test_alter_isr_received import WRITES as FENCED_WRITE
from tests.interaction.test_alter_isr_requests import OF_ANOTHER, WRITES, controller_is_3
from zk.errors import Code

How = dict[str, Any]


def without(guard: str, profile: str) -> How:
    return {"profile": profile, "guards": {guard: False}}


def having(guard: str, profile: str) -> How:
    return {"profile": profile, "guards": {guard: True}}


def asking(how: How) -> Playbook:
    """A leader with ISR 1,2 that has proposed 1,2,3, whenever its version sends that."""
    guards = {name.replace("-", "_"): on for name, on in how.get("guards", {}).items()}
    return pending(how["profile"], **guards)


def around(guard: str, last_without: str, first_with: str) -> list[tuple[How, bool]]:
    """Both versions as they are, and each with the other's rule."""
    return [
        ({"profile": last_without}, False),
        ({"profile": first_with}, True),
        (having(guard, last_without), True),
        (without(guard, first_with), False),
    ]


# -- 7.2: the manager ------------------------------------------------------------------------------


@pytest.mark.parametrize(("how", "at_once"), around("event-driven-alter-isr", "2.7", "2.8"))
def test_7_2_from_2_8_on_a_proposal_is_sent_when_it_is_made(how: How, at_once: bool) -> None:
    with leading(isr=(1, 2), **how) as play:
        play >> fetch_3() << EXPANSION
        if at_once:
            play << ASKS << "fetch-3: nothing, hw 10"
        else:
            play << "fetch-3: nothing, hw 10" >> after_ms(49) >> after_ms(1) << ASKS


@pytest.mark.parametrize(
    ("how", "asks_anew"),
    [
        ({"profile": "2.7"}, True),
        (having("controller-asked-for-versions", "2.7"), False),
    ],
)
def test_7_2_up_to_2_7_a_controller_that_does_not_know_the_request_closes_the_connection(
    how: How, asks_anew: bool
) -> None:
    with asking(how) as play:
        play >> controller_is_3() >> answer_to_all(Errors.UNSUPPORTED_VERSION) >> after_ms(50)
        play << (ASKS.replace("to 2", "to 3") if asks_anew else ASKS)


@pytest.mark.parametrize(
    ("how", "kept"),
    [
        ({"profile": "2.8"}, False),
        ({"profile": "3.3"}, True),
        (without("keep-in-flight", "3.3"), False),
    ],
)
def test_7_2_up_to_2_8_leader_and_isr_forgets_what_is_in_flight(how: How, kept: bool) -> None:
    """KAFKA-12686: the next proposal is enqueued beside it, or refused."""
    with asking(how) as play:
        play >> in_epoch_5(1, 2) << "leads orders-0 in epoch 5" << "LeaderAndIsr: NONE NONE"
        play >> fetch(3, at=10, epoch=5, max_wait_ms=0)
        play << ("expand OPERATION_NOT_ATTEMPTED: rolled back" if kept else EXPANSION)
        play << "fetch-3: nothing, hw 10"


# -- 7.4: the controller ---------------------------------------------------------------------------


@pytest.mark.parametrize(("how", "waits"), around("live-members-proposed", "2.8", "3.3"))
def test_7_1_from_3_3_on_a_leader_proposes_no_follower_that_its_metadata_does_not_list(
    how: How, waits: bool
) -> None:
    """Its session has ended, and it still fetches."""
    with leading(isr=(1, 2), propagation="rpc", **how) as play:
        play >> update_metadata(live=LIVE[:2]) << "UpdateMetadata: done"
        play >> fetch(3, at=10, max_wait_ms=0)
        if not waits:
            play << "PendingExpandIsr 1,2,3"
        play << "fetch-3: nothing, hw 10"
        play.forget()


@pytest.mark.parametrize(("how", "told"), around("ahead-of-the-controller", "2.8", "3.3"))
def test_7_4_from_3_3_on_who_knows_more_than_the_controller_is_told_to_look_for_another(
    how: How, told: bool
) -> None:
    with Controlling({ORDERS_0: led_by(2, (2, 1))}, **how) as play:
        play >> alter_isr(asked(2, 1, epoch=5))
        write = f"[{FENCE}, set orders-0 at v5: leader 2, epoch 5, isr 2,1, controller 7]"
        play << ("answer: orders-0 NOT_CONTROLLER" if told else write)
        play.forget()


@pytest.mark.parametrize(("how", "told"), around("eligible-members", "2.8", "3.3"))
def test_7_4_from_3_3_on_a_member_that_is_not_live_is_not_taken_in(how: How, told: bool) -> None:
    with Controlling(LED_BY_2, live=(1, 2), **how) as play:
        play >> alter_isr(asked(2, 1, 3), version=2)
        play << ("answer: orders-0 INELIGIBLE_REPLICA" if told else FENCED_WRITE)
        play.forget()


# -- 7.5: the leader on each answer ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "back"),
    [
        ({"profile": "3.3"}, True),
        (without("back-if-not-attempted", "3.3"), False),
    ],
)
def test_7_5_from_3_3_on_an_ineligible_replica_brings_the_committed_isr_back(
    how: How, back: bool
) -> None:
    with asking(how) as play:
        play >> answer(refused(Errors.INELIGIBLE_REPLICA))
        if back:
            play << "expand INELIGIBLE_REPLICA: rolled back"
        else:
            play << "expand INELIGIBLE_REPLICA: resubmitted" << EXPANSION << ASKS


@pytest.mark.parametrize(
    ("how", "again"),
    [
        ({"profile": "2.7"}, False),
        ({"profile": "2.8"}, False),
        ({"profile": "3.3"}, True),
        (having("clear-before-callback", "2.8"), True),
    ],
)
def test_7_5_up_to_3_2_0_what_is_proposed_again_is_refused_for_its_own_item(
    how: How, again: bool
) -> None:
    """H19 (KAFKA-14010)."""
    with asking(how) as play:
        play >> answer(refused(Errors.UNKNOWN_SERVER_ERROR))
        play << "expand UNKNOWN_SERVER_ERROR: resubmitted"
        if again:
            play << EXPANSION << ASKS
        else:
            play.forget()
            play >> after_ms(5_000) >> fetch_3() << "fetch-3: nothing, hw 10"


@pytest.mark.parametrize(
    ("how", "success"),
    [
        ({"profile": "2.7"}, True),
        ({"profile": "3.3"}, True),
        (without("equal-version-is-success", "2.7"), False),
    ],
)
def test_7_5_a_success_with_the_version_that_the_leader_has_means_it_is_so_already(
    how: How, success: bool
) -> None:
    with asking(how) as play:
        play >> answer(altered(1, 2, 3, version=5))
        play << ("isr 1,2,3 v5" if success else "expand NONE: stays pending")


@pytest.mark.parametrize(
    ("how", "at_once"),
    [
        ({"profile": "2.7"}, False),
        ({"profile": "2.8"}, False),
        ({"profile": "3.3"}, True),
        (having("hw-after-alter-isr", "2.7"), True),
        (without("hw-after-alter-isr", "3.3"), False),
    ],
)
def test_7_5_from_3_1_on_the_answer_lets_the_high_watermark_go(how: How, at_once: bool) -> None:
    """H18 (KAFKA-13091)."""
    profile, guards = how["profile"], how.get("guards", {})
    with shrinking(profile, guards=guards) as play:
        play >> produce(timeout_ms=60_000) >> fetch(2, at=11, max_wait_ms=0)
        play << "fetch-2: nothing, hw 10" >> answer(altered(1, 2)) << "isr 1,2 v6"
        if at_once:
            play << "hw 11" << "produce: NONE at 10"
        else:
            play >> produce(acks=1, name="another")
            play << "hw 11" << "produce: NONE at 10" << "another: NONE at 11"


# -- 7.6: the ZooKeeper path -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "pending"),
    [
        ({"profile": "2.6"}, False),
        ({"profile": "2.7"}, False),
        ({"profile": "2.8"}, True),
        (having("one-isr-state-machine", "2.7"), True),
        (without("one-isr-state-machine", "2.8"), False),
    ],
)
def test_7_6_from_2_8_on_a_write_that_fails_leaves_the_partition_pending(
    how: How, pending: bool
) -> None:
    with leading(isr=(1, 2), propagation="zk", **how) as play:
        play >> fetch_3()
        if pending:
            play << EXPANSION
        play << WRITES >> reply(Code.BAD_VERSION) << "getData orders-0"
        play >> data(OF_ANOTHER, version=6)
        play << (
            "expand INVALID_UPDATE_VERSION: stays pending" if pending else "rejected, still v5"
        )
        play << "fetch-3: nothing, hw 10" >> fetch_3()
        play << ("fetch-3: nothing, hw 10" if pending else WRITES)
        play.forget()


# -- 7.1: what the high watermark waits for --------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "waits"),
    [
        ({"profile": "2.7"}, True),
        ({"profile": "3.3"}, True),
        (without("maximal-isr", "2.7"), False),
    ],
)
def test_7_1_a_replica_that_is_to_join_holds_the_high_watermark_at_once(
    how: How, waits: bool
) -> None:
    """A follower outside the ISR holds it for as long as it counts as caught up; after that only
    who is to join does."""
    with asking(how) as play:
        play >> produce(timeout_ms=60_000) >> after_ms(30_001) >> fetch(2, at=11, max_wait_ms=0)
        if not waits:
            play << "hw 11" << "produce: NONE at 10"
        play << "fetch-2: nothing, hw 10"
        play.forget()


@pytest.mark.parametrize(("how", "serves"), around("hw-after-alter-isr", "2.8", "3.3"))
def test_7_6_from_3_1_on_a_leader_that_writes_its_isr_itself_serves_meanwhile(
    how: How, serves: bool
) -> None:
    """submitAlterPartition is called when the lock has been released."""
    with leading(isr=(1, 2), propagation="zk", **how) as play:
        play >> fetch(3, at=10, max_wait_ms=0)
        play.forget()
        play >> produce(acks=1)
        assert ("produce: NONE at 10" in play.said) is serves
        play.forget()
        play >> ok(version=6)
        assert play.hosted().isr == (1, 2, 3)
        play.forget()
