"""How a leader changes the ISR: two checks, one conditional write, and what it makes of the answer.

Spec §2.3, §2.4, §3.3, §3.4, §3.7.
"""

from __future__ import annotations

import pytest

from emulator.kernel.sync import Promise
from tests.interaction.hosting import (
    ORDERS_1,
    Hosting,
    fetch,
    leader_and_isr,
    leading,
    produce,
    propagation,
    shrink_pass,
    state_of,
    update_metadata,
)
from tests.interaction.playbook import after_ms, at_once, data, lost, no_node, ok, reply, thread
from zk.errors import Code

STATE = '{{"controller_epoch":{},"leader":{},"version":1,"leader_epoch":{},"isr":{}}}'
EXPANDED = STATE.format(7, 1, 4, "[1,2,3]")
WRITE_EXPANDED = "set orders-0 at v5: leader 1, epoch 4, isr 1,2,3, controller 7"


def test_an_expansion_is_one_write_at_the_cached_version() -> None:
    with leading(isr=(1, 2)) as play:
        (
            play
            >> fetch(3, at=10, max_wait_ms=0)
            << WRITE_EXPANDED
            >> ok(version=6)
            << "isr 1,2,3 v6"
            << "fetch-3: nothing, hw 10"
        )


def test_a_leader_takes_its_time_between_the_decision_and_the_write() -> None:
    with leading(isr=(1, 2)) as play:
        play.take(write_isr=3)
        play >> fetch(3, at=10, max_wait_ms=0) >> after_ms(2) >> after_ms(1) << WRITE_EXPANDED
        play >> ok(version=6) << "isr 1,2,3 v6" << "fetch-3: nothing, hw 10"


def test_the_next_write_expects_the_version_that_the_last_one_made() -> None:
    with leading(isr=(1,)) as play:
        (
            play
            >> fetch(3, at=10, max_wait_ms=0)
            << "set orders-0 at v5: leader 1, epoch 4, isr 1,3, controller 7"
            >> ok(version=6)
            << "isr 1,3 v6"
            << "fetch-3: nothing, hw 10"
            >> fetch(2, at=10, max_wait_ms=0)
            << "set orders-0 at v6: leader 1, epoch 4, isr 1,3,2, controller 7"
            >> ok(version=7)
            << "isr 1,3,2 v7"
            << "fetch-2: nothing, hw 10"
        )


def test_the_isr_keeps_its_order_when_members_go_and_come() -> None:
    with leading(isr=(3, 1, 2)) as play:
        play.follower(3, 9, caught_up_ms_ago=30_001)
        (
            play
            >> shrink_pass()
            << "set orders-0 at v5: leader 1, epoch 4, isr 1,2, controller 7"
            >> ok(version=6)
            << "isr 1,2 v6"
            << "isr-expiration: done"
            >> fetch(3, at=10, max_wait_ms=0)
            << "set orders-0 at v6: leader 1, epoch 4, isr 1,2,3, controller 7"
            >> ok(version=7)
            << "isr 1,2,3 v7"
            << "fetch-3: nothing, hw 10"
        )


def test_the_deciding_controller_epoch_is_written_not_the_newest_heard_of() -> None:
    with leading(isr=(1, 2)) as play:
        (
            play
            >> update_metadata(controller_epoch=9)
            << "UpdateMetadata: done"
            >> leader_and_isr(
                state_of(ORDERS_1, decided_by=9, isr=(1,), replicas=(1,)), controller_epoch=9
            )
            << "leads orders-1 in epoch 4"
            << "LeaderAndIsr: NONE NONE"
            >> fetch(3, at=10, max_wait_ms=0)
            << WRITE_EXPANDED
            >> ok(version=6)
            << "isr 1,2,3 v6"
            << "fetch-3: nothing, hw 10"
        )


def test_a_partition_decided_by_an_older_controller_keeps_that_ones_epoch() -> None:
    """A new controller tells at fail-over what its predecessor decided."""
    with leading(isr=(1, 2)) as play:
        (
            play
            >> leader_and_isr(state_of(epoch=5, isr=(1, 2), decided_by=7), controller_epoch=9)
            << "leads orders-0 in epoch 5"
            << "LeaderAndIsr: NONE NONE"
            >> fetch(3, at=10, epoch=5, max_wait_ms=0)
            << "set orders-0 at v5: leader 1, epoch 5, isr 1,2,3, controller 7"
            >> ok(version=6)
            << "isr 1,2,3 v6"
            << "fetch-3: nothing, hw 10"
        )


# -- who may join, who must leave ------------------------------------------------------------------


def test_a_follower_below_the_high_watermark_does_not_join() -> None:
    with leading(isr=(1, 2)) as play:
        play >> fetch(3, at=9, max_wait_ms=0) << "fetch-3: 9..10, hw 10"


def test_a_follower_that_has_all_that_is_committed_but_not_the_rest_joins() -> None:
    with leading(isr=(1, 2)) as play:
        (
            play
            >> produce(5, acks=1)
            << "produce: NONE at 10"
            >> fetch(3, at=10, max_wait_ms=0)
            << WRITE_EXPANDED
            >> ok(version=6)
            << "isr 1,2,3 v6"
            << "fetch-3: 10..15, hw 10"
        )


def test_a_follower_that_has_not_passed_the_epochs_start_does_not_join() -> None:
    """Offsets 5 to 9 may have been committed by the leader before (KAFKA-7128)."""
    with leading(isr=(1, 2)) as play:
        log = play.hosted().log
        assert log is not None
        log.high_watermark = 5
        (
            play
            >> leader_and_isr(state_of(epoch=5, isr=(1, 2)))
            << "leads orders-0 in epoch 5"
            << "hw 10"
            << "LeaderAndIsr: NONE NONE"
        )
        log.high_watermark = 5
        play.follower(2, 5)
        (
            play
            >> fetch(3, at=9, epoch=5, max_wait_ms=0)
            << "fetch-3: 9..10, hw 5"
            >> fetch(3, at=10, epoch=5, max_wait_ms=0)
            << "set orders-0 at v5: leader 1, epoch 5, isr 1,2,3, controller 7"
            >> ok(version=6)
            << "isr 1,2,3 v6"
            << "fetch-3: nothing, hw 5"
        )


def test_a_broker_that_is_none_of_the_replicas_neither_joins_nor_gets_records() -> None:
    with leading(isr=(1, 2), replicas=(1, 2)) as play:
        (
            play
            >> fetch(3, at=10, max_wait_ms=0)
            << "fetch-3: nothing, hw 10"
            >> fetch(3, at=5, max_wait_ms=0)
            << "fetch-3: nothing, hw 10"
        )


def test_all_that_are_out_of_sync_leave_in_one_write_and_never_the_leader() -> None:
    with leading() as play:
        play.follower(2, 9, caught_up_ms_ago=30_001)
        play.follower(3, 8, caught_up_ms_ago=40_000)
        (
            play
            >> shrink_pass()
            << "set orders-0 at v5: leader 1, epoch 4, isr 1, controller 7"
            >> ok(version=6)
            << "isr 1 v6"
            << "isr-expiration: done"
        )


@pytest.mark.parametrize(("leo", "not_caught_up_ms"), [(9, 30_000), (10, 90_000)])
def test_at_the_limit_and_with_the_leaders_leo_a_follower_stays(
    leo: int, not_caught_up_ms: int
) -> None:
    with leading() as play:
        play.follower(2, leo, caught_up_ms_ago=not_caught_up_ms)
        play >> shrink_pass() << "isr-expiration: done"


def test_a_pass_looks_at_one_partition_after_the_other() -> None:
    both = (state_of(), state_of(ORDERS_1))
    with Hosting(*both, records=10) as play:
        for partition in (state.partition for state in both):
            play.follower(2, 9, caught_up_ms_ago=30_001, partition=partition)
        (
            play
            >> shrink_pass()
            << "set orders-0 at v5: leader 1, epoch 4, isr 1,3, controller 7"
            >> ok(version=6)
            << "isr 1,3 v6"
            << "set orders-1 at v5: leader 1, epoch 4, isr 1,3, controller 7"
            >> ok(version=6)
            << "isr 1,3 v6"
            << "isr-expiration: done"
        )


def test_a_partition_that_was_caught_up_is_looked_at_again_when_it_has_moved() -> None:
    with leading() as play:
        play >> shrink_pass() << "isr-expiration: done"
        assert play.hosted().idle_fetches.is_caught_up
        play >> produce(acks=1) << "produce: NONE at 10"
        assert not play.hosted().idle_fetches.is_caught_up
        play >> after_ms(30_001) >> shrink_pass()
        play << "set orders-0 at v5: leader 1, epoch 4, isr 1, controller 7"


def test_a_partition_whose_follower_went_back_is_looked_at_again() -> None:
    with leading() as play:
        play >> shrink_pass() << "isr-expiration: done"
        play >> fetch(2, 9, max_wait_ms=0) << "fetch-2: 9..10, hw 10"
        assert not play.hosted().idle_fetches.is_caught_up


# -- what ZooKeeper answers ------------------------------------------------------------------------


def test_after_badversion_the_very_write_is_recognised_and_its_version_adopted() -> None:
    """The reply of an earlier attempt was lost (KAFKA-1382)."""
    with leading(isr=(1, 2)) as play:
        (
            play
            >> fetch(3, at=10, max_wait_ms=0)
            << WRITE_EXPANDED
            >> lost
            << WRITE_EXPANDED
            >> reply(Code.BAD_VERSION)
            << "getData orders-0"
            >> data(EXPANDED, version=6)
            << "isr 1,2,3 v6"
            << "fetch-3: nothing, hw 10"
        )


@pytest.mark.parametrize(
    "found",
    [
        STATE.format(7, 1, 4, "[1,2]"),
        STATE.format(7, 1, 4, "[1,3,2]"),
        STATE.format(7, 1, 5, "[1,2,3]"),
        STATE.format(7, 2, 4, "[1,2,3]"),
        STATE.format(8, 1, 4, "[1,2,3]"),
    ],
    ids=["other members", "other order", "other epoch", "other leader", "other controller"],
)
def test_after_badversion_anything_else_is_a_rejection_and_all_stays_as_it_was(found: str) -> None:
    with leading(isr=(1, 2)) as play:
        (
            play
            >> fetch(3, at=10, max_wait_ms=0)
            << WRITE_EXPANDED
            >> reply(Code.BAD_VERSION)
            << "getData orders-0"
            >> data(found, version=9)
            << "rejected, still v5"
            << "fetch-3: nothing, hw 10"
        )
        assert play.hosted().isr == (1, 2)


def test_after_badversion_a_znode_with_garbage_in_it_is_reported_and_the_write_rejected() -> None:
    with leading(isr=(1, 2)) as play:
        (
            play
            >> fetch(3, at=10, max_wait_ms=0)
            << WRITE_EXPANDED
            >> reply(Code.BAD_VERSION)
            << "getData orders-0"
            >> data("not json", version=9)
            << "malformed orders-0"
            << "rejected, still v5"
            << "fetch-3: nothing, hw 10"
        )


def test_after_badversion_a_znode_that_is_gone_means_rejection() -> None:
    with leading(isr=(1, 2)) as play:
        (
            play
            >> fetch(3, at=10, max_wait_ms=0)
            << WRITE_EXPANDED
            >> reply(Code.BAD_VERSION)
            << "getData orders-0"
            >> no_node
            << "rejected, still v5"
            << "fetch-3: nothing, hw 10"
        )


def test_nonode_means_rejection_without_a_second_look() -> None:
    with leading(isr=(1, 2)) as play:
        (
            play
            >> fetch(3, at=10, max_wait_ms=0)
            << WRITE_EXPANDED
            >> no_node
            << "rejected, still v5"
            << "fetch-3: nothing, hw 10"
        )


def test_a_rejected_leader_stays_stale_and_is_rejected_again_at_the_same_version() -> None:
    """There is no re-read: only a LeaderAndIsr with a higher epoch ends it."""
    with leading(isr=(1, 2)) as play:
        (
            play
            >> fetch(3, at=10, max_wait_ms=0)
            << WRITE_EXPANDED
            >> no_node
            << "rejected, still v5"
            << "fetch-3: nothing, hw 10"
            >> fetch(3, at=10, max_wait_ms=0)
            << WRITE_EXPANDED
            >> no_node
            << "rejected, still v5"
            << "fetch-3: nothing, hw 10"
            >> leader_and_isr(state_of(epoch=5, isr=(1, 2), version=8))
            << "leads orders-0 in epoch 5"
            << "LeaderAndIsr: NONE NONE"
            >> fetch(3, at=10, epoch=5, max_wait_ms=0)
            << "set orders-0 at v8: leader 1, epoch 5, isr 1,2,3, controller 7"
            >> ok(version=9)
            << "isr 1,2,3 v9"
            << "fetch-3: nothing, hw 10"
        )


def test_a_member_of_the_isr_that_is_no_replica_ends_the_pass_of_the_shrink_task() -> None:
    """A reassignment tells the new replicas before the old ones have left the ISR (KAFKA-9672)."""
    with leading() as play:
        (
            play
            >> leader_and_isr(state_of(epoch=5, version=6, replicas=(1, 3)))
            << "leads orders-0 in epoch 5"
            << "LeaderAndIsr: NONE NONE"
            >> shrink_pass()
            << "isr-expiration failed: KafkaError: REPLICA_NOT_AVAILABLE: orders-0 at 2"
            << "isr-expiration: done"
        )


def test_another_code_ends_the_pass_of_the_shrink_task_and_the_next_pass_tries_again() -> None:
    both = (state_of(), state_of(ORDERS_1))
    with Hosting(*both, records=10) as play:
        for partition in (state.partition for state in both):
            play.follower(2, 9, caught_up_ms_ago=30_001, partition=partition)
        (
            play
            >> shrink_pass()
            << "set orders-0 at v5: leader 1, epoch 4, isr 1,3, controller 7"
            >> reply(Code.NO_AUTH)
            << (
                "isr-expiration failed: ZooKeeperError: NO_AUTH for "
                "/brokers/topics/orders/partitions/0/state"
            )
            << "isr-expiration: done"
            >> shrink_pass()
            << "set orders-0 at v5: leader 1, epoch 4, isr 1,3, controller 7"
            >> ok(version=6)
            << "isr 1,3 v6"
            << "set orders-1 at v5: leader 1, epoch 4, isr 1,3, controller 7"
            >> ok(version=6)
            << "isr 1,3 v6"
            << "isr-expiration: done"
        )


# -- the write lock --------------------------------------------------------------------------------


def test_while_the_write_is_in_flight_who_reads_that_partition_waits_and_others_do_not() -> None:
    both = (state_of(isr=(1, 2)), state_of(ORDERS_1, isr=(1, 2)))
    with Hosting(*both, records=10) as play:
        (
            play
            >> fetch(3, at=10, max_wait_ms=0)
            << WRITE_EXPANDED
            >> at_once(
                produce(acks=1),
                fetch(-1, at=0, epoch=-1, name="consumer"),
                fetch(2, at=10, max_wait_ms=0),
                leader_and_isr(state_of(epoch=5, isr=(1, 2))),
                produce(acks=1, partition=ORDERS_1, name="produce to orders-1"),
            )
            << "produce to orders-1: NONE at 10"
            >> ok(version=6)
            << "isr 1,2,3 v6"
            << "produce: NONE at 10"
            << "consumer: 0..10, hw 10"
            << "fetch-2: 10..11, hw 10"
            << "leads orders-0 in epoch 5"
            << "LeaderAndIsr: NONE NONE"
            << "fetch-3: nothing, hw 10"
        )


def test_a_fetch_that_waits_for_a_new_role_counts_in_the_new_epoch() -> None:
    """The controller has removed broker 3, which still fetches in the old epoch (random script
    151)."""
    both = (state_of(), state_of(ORDERS_1))
    without_3 = {"epoch": 5, "isr": (1, 2), "version": 6}
    with Hosting(*both, records=10) as play:
        play.take(make_leader=5)
        (
            play
            >> at_once(
                leader_and_isr(state_of(**without_3), state_of(ORDERS_1, **without_3)),
                fetch(3, at=10, then=(ORDERS_1,)),
            )
            >> after_ms(5)
            << "leads orders-1 in epoch 5"
            >> after_ms(5)
            << "leads orders-0 in epoch 5"
            << "LeaderAndIsr: NONE NONE NONE"
            << "set orders-0 at v6: leader 1, epoch 5, isr 1,2,3, controller 7"
            >> ok(version=7)
            << "isr 1,2,3 v7"
            << "fetch-3: nothing, hw 10"
        )


def test_two_fetches_of_one_follower_add_it_once() -> None:
    with leading(isr=(1, 2)) as play:
        (
            play
            >> at_once(
                fetch(3, at=10, max_wait_ms=0, name="first"),
                fetch(3, at=10, max_wait_ms=0, name="second"),
            )
            << WRITE_EXPANDED
            >> ok(version=6)
            << "isr 1,2,3 v6"
            << "first: nothing, hw 10"
            << "second: nothing, hw 10"
        )


def test_who_may_join_is_looked_at_again_under_the_write_lock() -> None:
    """An append on a slow disk holds the read lock; when it is done the high watermark has gone
    past the follower."""
    with leading(isr=(1, 2)) as play:
        play >> produce(5, acks=1) << "produce: NONE at 10"
        play.follower(2, 15)
        play.follower(3, 9, caught_up_ms_ago=40_000)
        play.disk.ms_per_append = 50
        (
            play
            >> produce(acks=1)
            >> fetch(3, at=10, max_wait_ms=0)
            >> after_ms(50)
            << "hw 15"
            << "produce: NONE at 15"
            << "fetch-3: 10..15, hw 10"
        )


def test_who_must_leave_is_looked_at_again_under_the_write_lock() -> None:
    with leading() as play:
        play.disk.ms_per_append = 50
        play >> produce(acks=1)
        play.follower(2, 9, caught_up_ms_ago=30_001)
        play >> shrink_pass()
        play.follower(2, 10)
        play >> after_ms(50) << "produce: NONE at 10" << "isr-expiration: done"


def test_a_look_that_finds_nothing_to_do_waits_for_no_reader() -> None:
    """The first look is under the read lock; a change waits until the readers are gone."""
    with leading(isr=(1, 2)) as play:
        lock, gone = play.hosted().lock, Promise[None](play.kernel)

        async def read() -> None:
            await lock.acquire_read()
            await gone.wait()
            lock.release_read()

        (
            play
            >> thread("a long read", read())
            >> shrink_pass()
            << "isr-expiration: done"
            >> fetch(2, at=10, max_wait_ms=0)
            << "fetch-2: nothing, hw 10"
            >> fetch(3, at=10, max_wait_ms=0)
            >> (lambda _: gone.resolve(None))
            << "a long read: done"
            << WRITE_EXPANDED
            >> ok(version=6)
            << "isr 1,2,3 v6"
            << "fetch-3: nothing, hw 10"
        )


# -- what follows a shrink -------------------------------------------------------------------------


def test_a_shrink_raises_the_high_watermark_and_completes_what_was_parked() -> None:
    with leading() as play:
        (
            play
            >> produce()
            >> fetch(2, at=10, max_wait_ms=0)
            << "fetch-2: 10..11, hw 10"
            >> fetch(2, at=11)
            >> after_ms(499)
        )
        play.follower(3, 10, caught_up_ms_ago=30_001)
        (
            play
            >> shrink_pass()
            << "set orders-0 at v5: leader 1, epoch 4, isr 1,2, controller 7"
            >> ok(version=6)
            << "isr 1,2 v6"
            << "hw 11"
            << "produce: NONE at 10"
            << "isr-expiration: done"
            >> after_ms(1)
            << "fetch-2: nothing, hw 11"
        )


def test_a_rejected_shrink_moves_no_high_watermark() -> None:
    with leading() as play:
        play >> produce() >> fetch(2, at=11, max_wait_ms=0) << "fetch-2: nothing, hw 10"
        play.follower(3, 10, caught_up_ms_ago=30_001)
        (
            play
            >> shrink_pass()
            << "set orders-0 at v5: leader 1, epoch 4, isr 1,2, controller 7"
            >> no_node
            << "rejected, still v5"
            << "isr-expiration: done"
        )


# -- telling the controller ------------------------------------------------------------------------


def test_record_isr_change_blocks_while_a_notification_is_being_written() -> None:
    """The monitor is held across the create; the recorder holds the partition's write lock."""
    both = (state_of(isr=(1, 2)), state_of(ORDERS_1, isr=(1, 2)))
    with Hosting(*both, records=10) as play:
        (
            play
            >> fetch(3, at=10, max_wait_ms=0)
            << WRITE_EXPANDED
            >> ok(version=6)
            << "isr 1,2,3 v6"
            << "fetch-3: nothing, hw 10"
            >> after_ms(5001)
            >> propagation()
            << "create sequential /isr_change_notification/isr_change_: orders-0"
            >> fetch(3, at=10, max_wait_ms=0, partition=ORDERS_1)
            << "set orders-1 at v5: leader 1, epoch 4, isr 1,2,3, controller 7"
            >> at_once(
                lambda p: p.zookeeper.open.rotate(-1),
                ok(version=6),
                produce(acks=1, partition=ORDERS_1),
            )
            >> reply(Code.OK)
            << "propagation: done"
            << "isr 1,2,3 v6"
            << "fetch-3: nothing, hw 10"
            << "produce: NONE at 10"
            >> after_ms(5000)
            >> propagation()
            << "propagation: done"
            >> after_ms(1)
            >> propagation()
            << "create sequential /isr_change_notification/isr_change_: orders-1"
            >> reply(Code.OK)
            << "propagation: done"
        )
