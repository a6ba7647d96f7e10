"""When the controller is notified of ISR changes: the two clocks, the set, and the monitor
(§4.2)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.kafka.broker.isr_propagation import (
    ISR_CHANGE_PROPAGATION_PERIOD_MS,
    propagation_is_due,
)
from emulator.trace import events
from emulator.trace.values import TopicPartition
from tests.interaction.hosting import ORDERS_0, ORDERS_1, Hosting, propagation
from tests.interaction.playbook import after_ms, created, reply
from zk.errors import Code

CREATE = "create sequential /isr_change_notification/isr_change_:"
PATH = "/isr_change_notification/isr_change_0000000007"


@pytest.mark.parametrize(
    ("quiet_ms", "since_propagation_ms", "due"),
    [
        (5000, 60_000, False),
        (5001, 0, True),
        (5000, 0, False),
        (4999, 59_999, False),
        (0, 60_001, True),
        (0, 60_000, False),
    ],
)
def test_both_comparisons_are_strict(quiet_ms: int, since_propagation_ms: int, due: bool) -> None:
    assert propagation_is_due(quiet_ms, since_propagation_ms) is due


def test_the_task_runs_every_two_and_a_half_seconds() -> None:
    assert ISR_CHANGE_PROPAGATION_PERIOD_MS == 2500


def record(play: Hosting, partition: TopicPartition) -> None:
    play.run(play.replicas.propagation.record_isr_change(partition))


def test_nothing_changed_nothing_is_sent() -> None:
    with Hosting() as play:
        play >> after_ms(70_000) >> propagation() << "propagation: done"


def test_every_change_starts_the_quiet_period_anew_and_all_go_out_together() -> None:
    with Hosting() as play:
        play >> after_ms(10_000)
        record(play, ORDERS_0)
        play >> after_ms(3000)
        record(play, ORDERS_1)
        (
            play
            >> after_ms(5000)
            >> propagation()
            << "propagation: done"
            >> after_ms(1)
            >> propagation()
            << f"{CREATE} orders-0 orders-1"
            >> created(PATH)
            << "propagation: done"
            >> after_ms(6000)
            >> propagation()
            << "propagation: done"
        )


def test_the_first_change_after_a_quiet_minute_goes_out_without_waiting() -> None:
    with Hosting() as play:
        play >> after_ms(60_001)
        record(play, ORDERS_0)
        play >> propagation() << f"{CREATE} orders-0" >> created(PATH) << "propagation: done"


def test_under_steady_changes_the_set_is_flushed_a_minute_after_the_last_propagation() -> None:
    with Hosting() as play:
        for _ in range(15):
            play >> after_ms(4000)
            record(play, ORDERS_0)
            play >> propagation() << "propagation: done"
        (
            play
            >> after_ms(1)
            >> propagation()
            << f"{CREATE} orders-0"
            >> created(PATH)
            << "propagation: done"
        )


def test_a_partition_that_changed_twice_is_named_once() -> None:
    with Hosting() as play:
        for partition in (ORDERS_0, ORDERS_1, ORDERS_0):
            record(play, partition)
        (
            play
            >> after_ms(5001)
            >> propagation()
            << f"{CREATE} orders-0 orders-1"
            >> created(PATH)
            << "propagation: done"
        )


def test_a_creation_that_failed_leaves_the_set_for_the_next_run() -> None:
    with Hosting() as play:
        record(play, ORDERS_0)
        (
            play
            >> after_ms(5001)
            >> propagation()
            << f"{CREATE} orders-0"
            >> reply(Code.NO_NODE)
            << (
                "isr-change-propagation failed: ZooKeeperError: "
                "NO_NODE for /isr_change_notification/isr_change_"
            )
            << "propagation: done"
            >> after_ms(2500)
            >> propagation()
            << f"{CREATE} orders-0"
            >> created(PATH)
            << "propagation: done"
        )


def test_the_clock_of_the_last_propagation_is_read_before_the_write_not_after_it() -> None:
    with Hosting() as play:
        record(play, ORDERS_0)
        (
            play
            >> after_ms(5001)
            >> propagation()
            << f"{CREATE} orders-0"
            >> after_ms(3000)
            >> created(PATH)
            << "propagation: done"
            >> after_ms(57_001)
        )
        record(play, ORDERS_1)
        play >> propagation() << f"{CREATE} orders-1" >> created(PATH) << "propagation: done"


def test_a_run_that_waits_says_for_how_long_it_has() -> None:
    with Hosting() as play:
        record(play, ORDERS_0)
        play >> after_ms(1200) >> propagation() << "propagation: done"
        held = [e for e in play.sink.events if isinstance(e, events.IsrChangeHeld)]
        assert [(e.pending, e.quiet_ms, e.since_propagation_ms) for e in held] == [
            ((ORDERS_0,), 1200, 1200)
        ]


@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.lists(st.sampled_from([900, 2600, 5200]), min_size=1, max_size=30))
def test_each_change_is_told_once_and_within_the_minute(pauses_ms: list[int]) -> None:
    """Changes with pauses between them; the task looks every 2.5 s and every write succeeds."""
    with Hosting() as play:
        told: list[tuple[int, tuple[TopicPartition, ...]]] = []
        play.sink.listen(
            lambda e: isinstance(e, events.IsrChangeNotified) and told.append((e.t, e.partitions))
        )
        changed: dict[TopicPartition, int] = {}
        next_run = 0
        for number, pause_ms in enumerate([*pauses_ms, 70_000]):
            until = play.kernel.now + pause_ms * 1000
            while next_run <= until:
                play.kernel.run(next_run)
                propagation()(play)
                play.settle()
                if play.zookeeper.open:
                    created(PATH)(play)
                    play.settle()
                next_run += 2_500_000
            play.kernel.run(until)
            if number < len(pauses_ms):
                partition = TopicPartition("t", number)
                record(play, partition)
                changed[partition] = play.kernel.now
        play.forget()
        named = [p for _, partitions in told for p in partitions]
        assert sorted(named) == sorted(changed)
        for at, partitions in told:
            for partition in partitions:
                assert at - changed[partition] <= 62_500_000
