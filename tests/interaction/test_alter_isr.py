"""How a leader changes the ISR through the controller: a proposal, a request, and what it makes of
each answer (spec §7.1, §7.2, §7.5)."""

from __future__ import annotations

import pytest

from emulator.kafka.model.errors import Errors
from tests.interaction.asking import (
    ASKS,
    ASKS_TO_SHRINK,
    EXPANSION,
    altered,
    answer,
    fetch_3,
    pending,
    refused,
    shrinking,
)
from tests.interaction.hosting import (
    Hosting,
    fetch,
    leader_and_isr,
    leading,
    produce,
    shrink_pass,
    state_of,
)
from tests.interaction.playbook import (
    Incoming,
    after_ms,
)

# -- from the decision to the new ISR --------------------------------------------------------------


def test_an_expansion_is_proposed_sent_with_the_next_tick_and_taken_over_with_the_answer() -> None:
    with leading(isr=(1, 2), profile="2.7") as play:
        (
            play
            >> fetch_3()
            << EXPANSION
            << "fetch-3: nothing, hw 10"
            >> after_ms(49)
            >> after_ms(1)
            << ASKS
            >> answer(altered(1, 2, 3))
            << "isr 1,2,3 v6"
        )


def test_the_next_proposal_replaces_the_version_of_the_answer() -> None:
    with pending() as play:
        play >> answer(altered(1, 2, 3)) << "isr 1,2,3 v6"
        assert isinstance(play, Hosting)
        play.follower(2, 9, caught_up_ms_ago=30_001)
        (
            play
            >> shrink_pass()
            << "PendingShrinkIsr 1,3"
            << "isr-expiration: done"
            >> after_ms(50)
            << "to 2: AlterIsr of epoch 50 (orders-0 epoch 4 isr 1,3 for v6)"
            >> answer(altered(1, 3, version=7))
            << "isr 1,3 v7"
        )


@pytest.mark.parametrize("profile", ["2.7", "2.8", "3.3"])
def test_while_a_proposal_is_in_flight_nothing_else_is_proposed(profile: str) -> None:
    with leading(isr=(1,), profile=profile) as play:
        play >> fetch(2, at=10, max_wait_ms=0) << "PendingExpandIsr 1,2"
        if profile == "2.7":
            play << "fetch-2: nothing, hw 10" >> after_ms(50) << ASKS_TO_SHRINK
        else:
            play << ASKS_TO_SHRINK << "fetch-2: nothing, hw 10"
        (
            play
            >> fetch_3()
            << "fetch-3: nothing, hw 10"
            >> shrink_pass()
            << "isr-expiration: done"
            >> answer(altered(1, 2))
            << "isr 1,2 v6"
            >> fetch_3()
            << EXPANSION
        )
        play.forget()


def test_the_write_lock_is_free_while_the_controller_is_asked() -> None:
    with pending() as play:
        play >> produce(acks=1) << "produce: NONE at 10" >> fetch_3(10) << "fetch-3: 10..11, hw 10"


# -- the maximal ISR -------------------------------------------------------------------------------


def test_a_replica_that_is_to_join_holds_the_high_watermark_at_once() -> None:
    with pending() as play:
        play >> produce(timeout_ms=60_000) >> fetch(2, at=11, max_wait_ms=0)
        play << "fetch-2: nothing, hw 10"
        play >> after_ms(31_000) >> fetch(2, at=11, max_wait_ms=0) << "fetch-2: nothing, hw 10"
        play >> fetch_3(11) << "hw 11" << "produce: NONE at 10" << "fetch-3: nothing, hw 10"


def test_without_the_maximal_isr_a_record_is_acknowledged_that_the_new_member_may_lack() -> None:
    with pending(maximal_isr=False) as play:
        (
            play
            >> produce(timeout_ms=60_000)
            >> after_ms(30_001)
            >> fetch(2, at=11, max_wait_ms=0)
            << "hw 11"
            << "produce: NONE at 10"
            << "fetch-2: nothing, hw 10"
            >> answer(altered(1, 2, 3))
            << "isr 1,2,3 v6"
        )


def test_one_that_is_to_leave_holds_the_high_watermark_until_the_answer_and_the_next_trigger() -> (
    None
):
    """H18: the high watermark is not checked when the shrink is committed (up to 3.0)."""
    with shrinking() as play:
        (
            play
            >> produce(timeout_ms=60_000)
            >> fetch(2, at=11, max_wait_ms=0)
            << "fetch-2: nothing, hw 10"
            >> answer(altered(1, 2))
            << "isr 1,2 v6"
            >> produce(acks=1, name="another")
            << "hw 11"
            << "produce: NONE at 10"
            << "another: NONE at 11"
        )


def test_from_3_1_on_the_answer_itself_lets_the_high_watermark_go() -> None:
    with shrinking("3.3") as play:
        (
            play
            >> produce(timeout_ms=60_000)
            >> fetch(2, at=11, max_wait_ms=0)
            << "fetch-2: nothing, hw 10"
            >> answer(altered(1, 2))
            << "isr 1,2 v6"
            << "hw 11"
            << "produce: NONE at 10"
        )


def test_before_an_append_the_committed_isr_is_counted() -> None:
    """A replica that is to leave still counts for min.insync.replicas, one that is to join not
    yet."""
    with shrinking(min_insync_replicas=3) as play:
        (
            play
            >> produce(timeout_ms=60_000)
            >> answer(altered(1, 2))
            << "isr 1,2 v6"
            >> produce(name="another")
            << "another: NOT_ENOUGH_REPLICAS"
        )
    with leading(isr=(1, 2), profile="2.7", min_insync_replicas=3) as play:
        play >> fetch_3() << EXPANSION << "fetch-3: nothing, hw 10"
        play >> produce() << "produce: NOT_ENOUGH_REPLICAS"


def test_after_the_append_the_maximal_isr_is_counted() -> None:
    """Two have it, and the third, who is to join, has it too: that is enough for three."""
    with leading(isr=(1, 2, 3), profile="2.7", min_insync_replicas=2) as play:
        play.follower(3, 9, caught_up_ms_ago=30_001)
        play.follower(2, 9, caught_up_ms_ago=30_001)
        (
            play
            >> produce(timeout_ms=60_000)
            >> shrink_pass()
            << "PendingShrinkIsr 1"
            << "isr-expiration: done"
            >> fetch(2, at=11, max_wait_ms=0)
            << "fetch-2: nothing, hw 10"
            >> fetch_3(11)
            << "hw 11"
            << "produce: NONE at 10"
            << "fetch-3: nothing, hw 10"
        )


# -- what is made of answers -----------------------------------------------------------------------

DEFINITIVE = (
    Errors.UNKNOWN_TOPIC_OR_PARTITION,
    Errors.FENCED_LEADER_EPOCH,
    Errors.INVALID_UPDATE_VERSION,
)
OTHERS = (
    Errors.UNKNOWN_SERVER_ERROR,
    Errors.INVALID_REQUEST,
    Errors.OPERATION_NOT_ATTEMPTED,
    Errors.INELIGIBLE_REPLICA,
)


@pytest.mark.parametrize("profile", ["2.7", "2.8", "3.3"])
@pytest.mark.parametrize("error", DEFINITIVE)
def test_a_definitive_error_leaves_it_pending_until_a_newer_leader_and_isr(
    profile: str, error: Errors
) -> None:
    with pending(profile) as play:
        (
            play
            >> answer(refused(error))
            << f"expand {error.name}: stays pending"
            >> after_ms(5_000)
            >> fetch_3()
            << "fetch-3: nothing, hw 10"
            >> leader_and_isr(state_of(epoch=5, isr=(1, 2), version=8))
            << "leads orders-0 in epoch 5"
            << "LeaderAndIsr: NONE NONE"
            >> fetch(3, at=10, epoch=5, max_wait_ms=0)
            << EXPANSION
        )
        play.forget()


@pytest.mark.parametrize("profile", ["2.7", "2.8"])
@pytest.mark.parametrize("error", OTHERS)
def test_after_any_other_error_the_same_is_proposed_again_and_refused_for_its_own_item(
    profile: str, error: Errors
) -> None:
    """KAFKA-14010 (H19): the item is still in the map, so that the partition is stuck."""
    with pending(profile) as play:
        (
            play
            >> answer(refused(error))
            << f"expand {error.name}: resubmitted"
            << "expand OPERATION_NOT_ATTEMPTED: stays pending"
            << "AlterIsr response failed: IllegalState: UNKNOWN_SERVER_ERROR: an AlterIsr of"
            " orders-0 is enqueued already"
            >> after_ms(5_000)
            >> fetch_3()
            << "fetch-3: nothing, hw 10"
        )


def test_with_its_guard_the_same_goes_out_again() -> None:
    with pending(clear_before_callback=True) as play:
        (
            play
            >> answer(refused(Errors.UNKNOWN_SERVER_ERROR))
            << "expand UNKNOWN_SERVER_ERROR: resubmitted"
            << EXPANSION
            >> after_ms(50)
            << ASKS
            >> answer(altered(1, 2, 3))
            << "isr 1,2,3 v6"
        )


def test_3_3_proposes_again_after_an_unknown_error() -> None:
    with pending("3.3") as play:
        (
            play
            >> answer(refused(Errors.UNKNOWN_SERVER_ERROR))
            << "expand UNKNOWN_SERVER_ERROR: resubmitted"
            << EXPANSION
            << ASKS
            >> answer(altered(1, 2, 3))
            << "isr 1,2,3 v6"
        )


@pytest.mark.parametrize("error", [Errors.INELIGIBLE_REPLICA, Errors.OPERATION_NOT_ATTEMPTED])
def test_3_3_goes_back_to_the_committed_isr_and_tries_with_the_next_fetch(error: Errors) -> None:
    with pending("3.3") as play:
        (
            play
            >> answer(refused(error))
            << f"expand {error.name}: rolled back"
            >> fetch_3()
            << EXPANSION
            << ASKS
            << "fetch-3: nothing, hw 10"
        )


def test_3_3_gives_up_on_an_invalid_request() -> None:
    with pending("3.3") as play:
        play >> answer(refused(Errors.INVALID_REQUEST)) << "expand INVALID_REQUEST: stays pending"


def test_a_success_of_another_leader_epoch_is_ignored_and_it_stays_pending() -> None:
    with pending() as play:
        (
            play
            >> answer(altered(1, 2, 3, epoch=5))
            << "expand NONE: stays pending"
            >> fetch_3()
            << "fetch-3: nothing, hw 10"
        )


def test_a_success_with_an_older_version_is_ignored_and_it_stays_pending() -> None:
    with pending() as play:
        play >> answer(altered(1, 2, 3, version=4)) << "expand NONE: stays pending"


def test_a_success_with_the_version_that_the_leader_has_means_that_it_is_so_already() -> None:
    with pending() as play:
        play >> answer(altered(1, 2, 3, version=5)) << "isr 1,2,3 v5"


def test_before_2_7_2_a_success_with_the_same_version_left_it_pending_for_ever() -> None:
    """KAFKA-12751."""
    with pending(equal_version_is_success=False) as play:
        play >> answer(altered(1, 2, 3, version=5)) << "expand NONE: stays pending"


# -- LeaderAndIsr in between -----------------------------------------------------------------------


def in_epoch_5(*isr: int) -> Incoming:
    return leader_and_isr(state_of(epoch=5, isr=isr, version=8))


def test_an_answer_that_comes_after_a_leader_and_isr_is_ignored() -> None:
    with pending() as play:
        (
            play
            >> in_epoch_5(1, 2, 3)
            << "leads orders-0 in epoch 5"
            << "LeaderAndIsr: NONE NONE"
            >> answer(altered(1, 2, 3))
            << "expand NONE: ignored"
        )


def test_up_to_2_8_the_answer_to_the_first_proposal_removes_the_second_unsent() -> None:
    """KAFKA-12686: LeaderAndIsr forgets what is in flight."""
    with pending() as play:
        (
            play
            >> in_epoch_5(1, 2)
            << "leads orders-0 in epoch 5"
            << "LeaderAndIsr: NONE NONE"
            >> fetch(3, at=10, epoch=5, max_wait_ms=0)
            << EXPANSION
            << "fetch-3: nothing, hw 10"
            >> answer(refused(Errors.FENCED_LEADER_EPOCH))
            << "expand FENCED_LEADER_EPOCH: stays pending"
            >> after_ms(5_000)
        )


def test_a_second_proposal_that_differs_is_removed_unsent_as_well() -> None:
    with pending() as play:
        assert isinstance(play, Hosting)
        play >> in_epoch_5(1, 2, 3) << "leads orders-0 in epoch 5" << "LeaderAndIsr: NONE NONE"
        play.follower(2, 9, caught_up_ms_ago=30_001)
        (
            play
            >> shrink_pass()
            << "PendingShrinkIsr 1,3"
            << "isr-expiration: done"
            >> answer(altered(1, 2, 3))
            << "expand NONE: ignored"
            >> after_ms(5_000)
        )


def test_where_items_in_flight_are_kept_a_second_proposal_waits_its_turn() -> None:
    with pending("3.3") as play:
        (
            play
            >> in_epoch_5(1, 2)
            << "leads orders-0 in epoch 5"
            << "LeaderAndIsr: NONE NONE"
            >> fetch(3, at=10, epoch=5, max_wait_ms=0)
            << "expand OPERATION_NOT_ATTEMPTED: rolled back"
            << "fetch-3: nothing, hw 10"
            >> answer(refused(Errors.FENCED_LEADER_EPOCH))
            << "expand FENCED_LEADER_EPOCH: ignored"
            >> fetch(3, at=10, epoch=5, max_wait_ms=0)
            << EXPANSION
            << "to 2: AlterIsr of epoch 50 (orders-0 epoch 5 isr 1,2,3 for v8)"
            << "fetch-3: nothing, hw 10"
        )
