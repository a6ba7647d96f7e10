"""Producing: acks 0, 1 and all, the minimum ISR before and after, and what completes who waits.

Spec §3.6, §4.6.
"""

from __future__ import annotations

import pytest

from emulator.kafka.protocol.messages import LiveBroker, ProducePartition, ProduceRequest
from tests.interaction.hosting import (
    ORDERS_0,
    ORDERS_1,
    Hosting,
    fetch,
    leader_and_isr,
    leading,
    produce,
    shrink_pass,
    state_of,
    update_metadata,
)
from tests.interaction.playbook import after_ms, at_once, ok, thread

SHRUNK = "set orders-0 at v5: leader 1, epoch 4, isr 1,2, controller 7"


# -- acks ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("acks", [0, 1])
def test_without_acks_all_the_append_is_the_answer(acks: int) -> None:
    with leading() as play:
        play >> produce(acks=acks) << "produce: NONE at 10"


def test_acks_all_is_answered_when_the_high_watermark_has_passed_the_records() -> None:
    with leading() as play:
        (
            play
            >> produce(2)
            >> fetch(2, at=12, max_wait_ms=0)
            << "fetch-2: nothing, hw 10"
            >> fetch(3, at=11, max_wait_ms=0)
            << "hw 11"
            << "fetch-3: 10..12, hw 10"
            >> fetch(3, at=12, max_wait_ms=0)
            << "hw 12"
            << "produce: NONE at 10"
            << "fetch-3: nothing, hw 11"
        )


def test_a_caught_up_follower_outside_the_isr_is_waited_for_too() -> None:
    with leading(isr=(1, 2)) as play:
        play.follower(3, 9)
        (
            play
            >> produce()
            >> fetch(2, at=11, max_wait_ms=0)
            << "fetch-2: nothing, hw 10"
            >> after_ms(30_000)
            << "produce: REQUEST_TIMED_OUT"
        )


def test_acks_all_of_two_partitions_does_not_wait_for_the_isr_write_of_one() -> None:
    """checkEnoughReplicasReachOffset takes no lock. Broker 3 joins the ISR of orders-1, which waits
    for ZooKeeper; meanwhile a fetch of orders-0 is answered."""
    states = (state_of(isr=(1, 2)), state_of(ORDERS_1, isr=(1, 2)))
    with Hosting(*states, records=10) as play:
        parts = tuple(ProducePartition(p, 1, 100, b"", None) for p in (ORDERS_0, ORDERS_1))

        async def handle() -> None:
            request = ProduceRequest(-1, 60_000, parts)
            await play.replicas.append_records(request, lambda _: play.say("produced"))

        play >> thread("produce", handle()) << "produce: done"
        play >> fetch(3, at=11, max_wait_ms=0, partition=ORDERS_1)
        play << "set orders-1 at v5: leader 1, epoch 4, isr 1,2,3, controller 7"
        play >> fetch(2, at=11, max_wait_ms=0) << "hw 11" << "fetch-2: nothing, hw 10"
        play >> ok(version=6)
        play.forget()


def test_acknowledgements_of_the_isr_are_not_counted() -> None:
    """Alone in the ISR, the leader has every acknowledgement there is; the high watermark waits
    for broker 3."""
    with leading(isr=(1,)) as play:
        play.follower(3, 9)
        play >> produce() >> after_ms(30_000) << "produce: REQUEST_TIMED_OUT"


def test_with_an_isr_of_one_the_append_itself_raises_the_high_watermark() -> None:
    with leading(isr=(1,)) as play:
        play >> produce() << "hw 11" << "produce: NONE at 10"


@pytest.mark.parametrize("acks", [2, -2, 3])
def test_other_acks_are_invalid(acks: int) -> None:
    with leading() as play:
        play >> produce(acks=acks) << "produce: INVALID_REQUIRED_ACKS"


def test_who_waits_in_vain_is_told_so_when_its_time_is_over() -> None:
    with leading() as play:
        (
            play
            >> produce(timeout_ms=1500)
            >> after_ms(1499)
            >> after_ms(1)
            << "produce: REQUEST_TIMED_OUT"
            >> fetch(2, at=11, max_wait_ms=0)
            << "fetch-2: nothing, hw 10"
            >> fetch(3, at=11, max_wait_ms=0)
            << "hw 11"
            << "fetch-3: nothing, hw 10"
        )


# -- the minimum ISR -------------------------------------------------------------------------------


def test_below_the_minimum_isr_acks_all_is_refused_before_anything_is_written() -> None:
    with leading(isr=(1,), min_insync_replicas=2) as play:
        play >> produce() << "produce: NOT_ENOUGH_REPLICAS"
        log = play.hosted().log
        assert log is not None and log.log_end_offset == 10


def test_at_the_minimum_isr_it_is_not() -> None:
    with leading(isr=(1, 2), min_insync_replicas=2) as play:
        (
            play
            >> produce()
            >> fetch(2, at=11, max_wait_ms=0)
            << "hw 11"
            << "produce: NONE at 10"
            << "fetch-2: nothing, hw 10"
        )


@pytest.mark.parametrize("acks", [0, 1])
def test_other_acks_do_not_ask_for_the_minimum_isr(acks: int) -> None:
    with leading(isr=(1,), min_insync_replicas=2) as play:
        play >> produce(acks=acks) << "hw 11" << "produce: NONE at 10"


def test_the_topics_own_minimum_counts_before_the_brokers() -> None:
    with leading(isr=(1,), min_insync_replicas=2) as play:
        play.logs.set_topic_config("orders", {"min.insync.replicas": "1"})
        play >> produce() << "hw 11" << "produce: NONE at 10"


def test_when_the_isr_shrank_below_the_minimum_meanwhile_the_answer_says_so() -> None:
    """The records are there, and committed; the producer hears that they are too few places."""
    with leading(isr=(1, 2), min_insync_replicas=2) as play:
        play.follower(2, 10, caught_up_ms_ago=30_001)
        (
            play
            >> produce()
            >> shrink_pass()
            << "set orders-0 at v5: leader 1, epoch 4, isr 1, controller 7"
            >> ok(version=6)
            << "isr 1 v6"
            << "hw 11"
            << "produce: NOT_ENOUGH_REPLICAS_AFTER_APPEND"
            << "isr-expiration: done"
        )


# -- who leads -------------------------------------------------------------------------------------


def test_a_follower_takes_no_records() -> None:
    with Hosting(state_of(leader=2)) as play:
        play >> produce() << "produce: NOT_LEADER_OR_FOLLOWER"


def test_who_becomes_a_follower_while_a_slow_append_waits_takes_no_records() -> None:
    """Both wait for a shrink, which holds the write lock; the append goes first, and waits again
    for the disk."""
    with leading() as play:
        play.disk.ms_per_append = 50
        play.follower(3, 9, caught_up_ms_ago=30_001)
        play >> shrink_pass() << SHRUNK
        play >> produce(acks=1) >> leader_and_isr(state_of(leader=2, epoch=5))
        play >> ok(version=6) << "isr 1,2 v6" << "isr-expiration: done"
        play << "follows 2 for orders-0 in epoch 5" << "LeaderAndIsr: NONE NONE"
        play << "produce: NOT_LEADER_OR_FOLLOWER"
        play.forget()


def test_an_unknown_partition_is_told_apart_from_one_that_others_host() -> None:
    with Hosting() as play:
        (
            play
            >> produce()
            << "produce: UNKNOWN_TOPIC_OR_PARTITION"
            >> update_metadata(state_of(leader=2))
            << "UpdateMetadata: done"
            >> produce()
            << "produce: NOT_LEADER_OR_FOLLOWER"
        )


def test_parked_requests_are_answered_when_the_leader_becomes_a_follower() -> None:
    with leading() as play:
        (
            play
            >> produce()
            >> fetch(3, at=11)
            >> leader_and_isr(state_of(leader=2, epoch=5))
            << "follows 2 for orders-0 in epoch 5"
            << "fetch-3: FENCED_LEADER_EPOCH"
            << "produce: NOT_LEADER_OR_FOLLOWER"
            << "LeaderAndIsr: NONE NONE"
            << "to 2: OffsetsForLeaderEpochRequest"
        )


# -- parked fetches --------------------------------------------------------------------------------


def test_a_followers_fetch_waits_for_records_and_gets_them_with_the_append() -> None:
    with leading() as play:
        (
            play
            >> fetch(2, at=10)
            >> after_ms(300)
            >> produce(acks=1)
            << "fetch-2: 10..11, hw 10"
            << "produce: NONE at 10"
        )


def test_a_fetch_that_waited_in_vain_is_answered_empty() -> None:
    with leading() as play:
        play >> fetch(2, at=10) >> after_ms(499) >> after_ms(1) << "fetch-2: nothing, hw 10"


def test_a_moved_high_watermark_does_not_answer_a_followers_parked_fetch() -> None:
    """2.4 and 2.5 did; 2.6 does not any more (KAFKA-9952)."""
    with leading(isr=(1, 2)) as play:
        (
            play
            >> produce(acks=1)
            << "produce: NONE at 10"
            >> fetch(2, at=11)
            << "hw 11"
            >> after_ms(500)
            << "fetch-2: nothing, hw 11"
        )


def test_the_followers_state_is_noted_when_a_fetch_arrives_not_when_it_is_answered() -> None:
    with leading() as play:
        arrived = play.kernel.now_ms()
        play >> fetch(2, at=10) >> after_ms(500) << "fetch-2: nothing, hw 10"
        replica = play.hosted().remotes[2]
        assert (replica.last_fetch_time_ms, replica.last_caught_up_time_ms) == (arrived, arrived)


def test_a_fetch_that_is_answered_by_an_append_does_not_count_as_another_fetch() -> None:
    """If it did, broker 3 at offset 10 would be caught up as of the answer."""
    with leading() as play:
        arrived = play.kernel.now_ms()
        (
            play
            >> fetch(3, at=10)
            >> after_ms(400)
            >> produce(acks=1)
            << "fetch-3: 10..11, hw 10"
            << "produce: NONE at 10"
        )
        replica = play.hosted().remotes[3]
        assert (replica.last_fetch_time_ms, replica.last_fetch_leader_log_end_offset) == (
            arrived,
            10,
        )


def test_an_idle_partitions_follower_stays_caught_up_by_its_empty_fetches() -> None:
    with leading() as play:
        for _ in range(80):
            play >> fetch(2, at=10) >> after_ms(500) << "fetch-2: nothing, hw 10"
        play >> produce(acks=1) << "produce: NONE at 10"
        play.follower(3, 11)
        play >> shrink_pass() << "isr-expiration: done"


def test_a_fetch_of_another_epoch_is_fenced_and_moves_nothing() -> None:
    with leading(epoch=4, isr=(1, 2)) as play:
        (
            play
            >> fetch(3, at=10, epoch=3, max_wait_ms=0)
            << "fetch-3: FENCED_LEADER_EPOCH"
            >> fetch(3, at=10, epoch=5, max_wait_ms=0)
            << "fetch-3: UNKNOWN_LEADER_EPOCH"
        )
        assert play.hosted().remotes[3].log_end_offset == -1


def test_a_fetch_beyond_the_log_is_out_of_range_and_moves_nothing() -> None:
    with leading() as play:
        play >> fetch(2, at=11) << "fetch-2: OFFSET_OUT_OF_RANGE"
        assert play.hosted().remotes[2].log_end_offset == 10


def test_a_consumer_reads_up_to_the_high_watermark_and_waits_for_it() -> None:
    with leading(isr=(1, 2)) as play:
        (
            play
            >> produce(acks=1)
            << "produce: NONE at 10"
            >> fetch(-1, at=9, epoch=-1, name="consumer", max_wait_ms=0)
            << "consumer: 9..10, hw 10"
            >> fetch(-1, at=10, epoch=-1, name="consumer")
            >> fetch(2, at=11, max_wait_ms=0)
            << "hw 11"
            << "consumer: 10..11, hw 11"
            << "fetch-2: nothing, hw 10"
        )


# -- roles (spec §4.3) -----------------------------------------------------------------------------


@pytest.mark.parametrize("epoch", [3, 4])
def test_a_leader_epoch_that_is_not_greater_is_ignored(epoch: int) -> None:
    with leading(epoch=4) as play:
        (
            play
            >> leader_and_isr(state_of(epoch=epoch, isr=(1,), version=9))
            << "ignored: STALE_CONTROLLER_EPOCH"
            << "LeaderAndIsr: NONE STALE_CONTROLLER_EPOCH"
        )
        assert (play.hosted().isr, play.hosted().zk_version) == ((1, 2, 3), 5)


def test_an_older_controller_is_refused_as_a_whole_and_a_newer_one_is_remembered() -> None:
    with leading() as play:
        (
            play
            >> leader_and_isr(state_of(epoch=5), controller_epoch=6)
            << "LeaderAndIsr refused: STALE_CONTROLLER_EPOCH"
            << "LeaderAndIsr: STALE_CONTROLLER_EPOCH"
            >> leader_and_isr(state_of(epoch=5), controller_epoch=8)
            << "leads orders-0 in epoch 5"
            << "LeaderAndIsr: NONE NONE"
            >> leader_and_isr(state_of(epoch=6), controller_epoch=7)
            << "LeaderAndIsr refused: STALE_CONTROLLER_EPOCH"
            << "LeaderAndIsr: STALE_CONTROLLER_EPOCH"
            >> update_metadata(state_of(), controller_epoch=7)
            << "UpdateMetadata refused: STALE_CONTROLLER_EPOCH"
            << "UpdateMetadata: STALE_CONTROLLER_EPOCH"
        )


def test_a_partition_whose_replicas_are_others_is_not_taken() -> None:
    with Hosting() as play:
        (
            play
            >> leader_and_isr(state_of(leader=2, replicas=(2, 3), isr=(2, 3)))
            << "ignored: UNKNOWN_TOPIC_OR_PARTITION"
            << "LeaderAndIsr: NONE UNKNOWN_TOPIC_OR_PARTITION"
        )


def test_whose_leader_is_not_alive_keeps_its_old_role_and_says_no_error() -> None:
    with leading(epoch=4) as play:
        (
            play
            >> update_metadata(live=(LiveBroker(1, "host-1", 9091), LiveBroker(3, "host-3", 9093)))
            << "UpdateMetadata: done"
            >> leader_and_isr(state_of(leader=2, epoch=5))
            << "LeaderAndIsr: NONE NONE"
            >> produce(acks=1)
            << "produce: NONE at 10"
        )
        assert (play.hosted().leader_epoch, play.hosted().leader_replica_id) == (4, 1)


def test_4_3_of_a_leader_that_is_not_alive_only_the_log_is_made() -> None:
    """So that its high watermark is not lost (KAFKA-1647)."""
    with Hosting() as play:
        (
            play
            >> update_metadata(live=(LiveBroker(1, "host-1", 9091), LiveBroker(3, "host-3", 9093)))
            << "UpdateMetadata: done"
            >> leader_and_isr(state_of(leader=2))
            << "LeaderAndIsr: NONE NONE"
        )
        hosted = play.hosted()
        assert hosted.log is not None
        assert hosted.leader_replica_id is None


def test_no_leader_at_all_is_a_leader_that_is_not_alive() -> None:
    with leading(epoch=4) as play:
        (
            play
            >> leader_and_isr(state_of(leader=-1, epoch=5))
            << "LeaderAndIsr: NONE NONE"
            >> produce(acks=1)
            << "produce: NONE at 10"
        )


def test_a_new_leader_waits_for_every_member_before_its_high_watermark_moves() -> None:
    """The followers' offsets under another leader are forgotten."""
    with Hosting(state_of(leader=2, epoch=3), records=10) as play:
        (
            play
            >> leader_and_isr(state_of(epoch=4))
            << "leads orders-0 in epoch 4"
            << "LeaderAndIsr: NONE NONE"
            >> produce()
            >> fetch(2, at=11, max_wait_ms=0)
            << "fetch-2: nothing, hw 0"
            >> fetch(3, at=10, max_wait_ms=0)
            << "hw 10"
            << "fetch-3: 10..11, hw 0"
            >> fetch(3, at=11, max_wait_ms=0)
            << "hw 11"
            << "produce: NONE at 10"
            << "fetch-3: nothing, hw 10"
        )


def test_who_leads_again_has_forgotten_where_its_followers_were() -> None:
    with leading() as play:
        (
            play
            >> leader_and_isr(state_of(leader=2, epoch=5))
            << "follows 2 for orders-0 in epoch 5"
            << "LeaderAndIsr: NONE NONE"
            << "to 2: OffsetsForLeaderEpochRequest"
            >> leader_and_isr(state_of(epoch=6))
            << "leads orders-0 in epoch 6"
            >> after_ms(1000)
            << "LeaderAndIsr: NONE NONE"
        )
        remotes = play.hosted().remotes
        assert {b: r.log_end_offset for b, r in remotes.items()} == {2: -1, 3: -1}
        assert play.hosted().log is not None
        play.hosted().log.high_watermark = 7
        (
            play
            >> fetch(2, at=10, epoch=6, max_wait_ms=0)
            << "fetch-2: nothing, hw 7"
            >> fetch(3, at=9, epoch=6, max_wait_ms=0)
            << "hw 9"
            << "fetch-3: 9..10, hw 7"
        )


def test_a_leader_that_gets_a_new_epoch_keeps_what_it_knows_of_its_followers() -> None:
    with leading() as play:
        (
            play
            >> produce(acks=1)
            << "produce: NONE at 10"
            >> fetch(2, at=11, max_wait_ms=0)
            << "fetch-2: nothing, hw 10"
            >> leader_and_isr(state_of(epoch=5, isr=(1, 2)))
            << "leads orders-0 in epoch 5"
            << "hw 11"
            << "LeaderAndIsr: NONE NONE"
        )
        assert play.hosted().remotes[2].log_end_offset == 11
        assert play.hosted().leader_epoch_start_offset == 11


def test_becoming_leader_raises_the_high_watermark_if_it_is_alone_in_the_isr() -> None:
    with Hosting(state_of(leader=2, epoch=3), records=10) as play:
        (
            play
            >> leader_and_isr(state_of(epoch=4, isr=(1,)))
            << "leads orders-0 in epoch 4"
            << "hw 10"
            << "LeaderAndIsr: NONE NONE"
        )


def test_leaders_first_then_followers_whatever_their_order_in_the_request() -> None:
    with Hosting() as play:
        (
            play
            >> leader_and_isr(state_of(leader=2), state_of(ORDERS_1))
            << "leads orders-1 in epoch 4"
            << "follows 2 for orders-0 in epoch 4"
            << "LeaderAndIsr: NONE NONE NONE"
            << "to 2: Fetch orders-0@0"
        )


def test_control_requests_wait_for_each_other() -> None:
    """replicaStateChangeLock is held while the topic's configuration is read from ZooKeeper."""
    with Hosting() as play:
        del play.zookeeper.presets["/config/topics/orders"]
        (
            play
            >> at_once(leader_and_isr(state_of()), update_metadata(state_of(leader=2)))
            << "getData /config/topics/orders"
            >> ok()
            << "leads orders-0 in epoch 4"
            << "LeaderAndIsr: NONE NONE"
            << "UpdateMetadata: done"
        )
