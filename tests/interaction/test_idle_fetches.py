"""Which fetches become idle: those that would change nothing but their time."""

from __future__ import annotations

import pytest

from emulator.kafka.broker.fetch_session import CachedPartition, FetchSession
from emulator.kafka.protocol.messages import FetchPartition
from emulator.trace.values import TopicPartition
from tests.interaction.hosting import ORDERS_0, Hosting, leading


def fetched(at: int = 10, *, epoch: int = 4, sent_hw: int = 10) -> CachedPartition:
    """Follower 2's session about orders-0, as its last answer left it."""
    session = FetchSession(1, 2, [FetchPartition(ORDERS_0, epoch, at, 0, 1 << 20)], 0)
    cached = session.partitions[ORDERS_0]
    cached.high_watermark, cached.log_start_offset = sent_hw, 0
    return cached


def becomes_idle(play: Hosting, cached: CachedPartition) -> bool:
    play.hosted().idle_fetches.idle(2, cached)
    return not cached.session.awake


def test_a_follower_at_the_leaders_end_that_knows_the_high_watermark_is_idle() -> None:
    with leading() as play:
        assert becomes_idle(play, fetched())


@pytest.mark.parametrize(
    "cached", [fetched(9), fetched(sent_hw=9), fetched(epoch=3)], ids=["leo", "hw", "epoch"]
)
def test_a_follower_of_whom_there_is_more_to_learn_or_to_send_is_not(
    cached: CachedPartition,
) -> None:
    with leading() as play:
        assert not becomes_idle(play, cached)


def test_a_follower_outside_the_isr_is_not_since_each_fetch_may_bring_it_back() -> None:
    with leading(isr=(1, 3)) as play:
        play.follower(2, 10)
        assert not becomes_idle(play, fetched())


def test_it_was_caught_up_when_the_session_last_fetched() -> None:
    with leading() as play:
        cached = fetched()
        assert becomes_idle(play, cached)
        cached.session.fetched_ms = play.kernel.now_ms() + 4000
        play.hosted().wake()
        assert play.hosted().remotes[2].last_caught_up_time_ms == cached.session.fetched_ms
        assert list(cached.session.awake) == [ORDERS_0]


@pytest.mark.parametrize(("read", "counts"), [((), True), ((ORDERS_0,), False)])
def test_a_partition_that_changes_after_its_turn_was_idle_in_that_fetch(
    read: tuple[TopicPartition, ...], counts: bool
) -> None:
    """The fetch waits for another partition's lock meanwhile. If the turn comes later, the fetch
    reads what has changed."""
    with leading() as play:
        cached = fetched()
        assert becomes_idle(play, cached)
        cached.session.fetch_arrived()
        play.hosted().wake()
        before_ms = play.hosted().remotes[2].last_caught_up_time_ms
        now_ms = play.kernel.now_ms() + 4000
        cached.session.fetch_recorded(now_ms, read)
        expected_ms = now_ms if counts else before_ms
        assert play.hosted().remotes[2].last_caught_up_time_ms == expected_ms
