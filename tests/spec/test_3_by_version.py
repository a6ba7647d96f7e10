"""Section 3 of the spec by version: out-of-sync replicas, joining replicas, and the replicas for
which the high watermark waits. Each rule with its guard, without it, and in the versions on either
side."""

from __future__ import annotations

import pytest

from emulator.kafka.model.errors import Errors
from emulator.kafka.profiles.base import profiles
from emulator.kafka.profiles.guards.following import FETCHER_SHUTDOWN_ENDS_FETCH
from emulator.kafka.protocol.messages import FetchResponse
from emulator.kernel.sync import Promise
from emulator.scenario.actions.clients import Produce
from emulator.scenario.actions.pause import Pause
from tests.interaction.hosting import (
    fetch,
    leader_and_isr,
    leading,
    produce,
    shrink_pass,
    state_of,
)
from tests.interaction.playbook import after_ms, answers, ok, thread
from tests.spec.emulated import LAG_MS, Emulated

WITHOUT_2 = "set orders-0 at v5: leader 1, epoch 4, isr 1,3, controller 7"
WITH_3 = "set orders-0 at v5: leader 1, epoch 4, isr 1,2,3, controller 7"
ONLY_ME = "set orders-0 at v5: leader 1, epoch 4, isr 1, controller 7"


def without(guard: str, profile: str = "2.6") -> dict[str, object]:
    return {"profile": profile, "guards": {guard: False}}


def having(guard: str, profile: str) -> dict[str, object]:
    return {"profile": profile, "guards": {guard: True}}


# -- 3.3: who is out of sync -----------------------------------------------------------------------

LAG = {"replica_lag_time_max_ms": 5000}
BY_MESSAGES = {**LAG, "replica_lag_max_messages": 3}


@pytest.mark.parametrize("how", [{"profile": "0.8.2"}, without("lag-by-time-only")])
def test_3_3_in_0_8_2_a_member_leaves_when_it_is_more_than_the_limit_of_messages_behind(
    how: dict[str, object],
) -> None:
    with leading(records=7, **BY_MESSAGES, **how) as play:
        play.follower(2, 3)
        play >> shrink_pass() << WITHOUT_2 >> ok(6) << "isr 1,3 v6" << "isr-expiration: done"


def test_3_3_exactly_the_limit_of_messages_keeps_it() -> None:
    """Log ends are compared: LEO 7 against 4 is 3 behind. Who counts last offsets is off by one
    only where he compares one of each."""
    with leading(records=7, profile="0.8.2", **BY_MESSAGES) as play:
        play.follower(2, 4)
        play >> shrink_pass() << "isr-expiration: done"


@pytest.mark.parametrize(
    "how", [{"profile": "0.9.0"}, {"profile": "2.6"}, having("lag-by-time-only", "0.8.2")]
)
def test_3_3_from_0_9_on_messages_are_not_counted(how: dict[str, object]) -> None:
    with leading(records=7_000, **LAG, **how) as play:
        play.follower(2, 3)
        play >> shrink_pass() << "isr-expiration: done"


def test_3_3_in_0_8_2_a_member_at_the_log_end_leaves_when_its_last_fetch_is_too_old() -> None:
    with leading(profile="0.8.2", **LAG) as play:
        play.follower(2, 10, caught_up_ms_ago=5001)
        play >> shrink_pass() << WITHOUT_2 >> ok(6) << "isr 1,3 v6" << "isr-expiration: done"


def test_3_2_in_0_8_2_every_fetch_counts_although_it_never_catches_up() -> None:
    """By time a follower that fetches and stays behind is in sync; in 0.9 it is not."""
    for profile, leaves in (("0.8.2", False), ("0.9.0", True)):
        with leading(profile=profile, **LAG) as play:
            play.follower(2, 8, caught_up_ms_ago=6000)
            play.follower(3, 10)
            play >> fetch(2, at=8, epoch=-1, max_wait_ms=0) << "fetch-2: 8..10, hw 10"
            play >> shrink_pass()
            if leaves:
                play << WITHOUT_2 >> ok(6) << "isr 1,3 v6"
            play << "isr-expiration: done"


@pytest.mark.parametrize("profile", list(profiles()))
def test_3_3_from_2_1_on_a_member_with_the_leaders_leo_stays(profile: str) -> None:
    with leading(profile=profile, **LAG) as play:
        play.follower(2, 10, caught_up_ms_ago=5001)
        play >> shrink_pass()
        if profile in ("0.8.2", "0.9.0", "0.10.2", "1.0", "1.1"):
            play << WITHOUT_2 >> ok(6) << "isr 1,3 v6"
        play << "isr-expiration: done"


def test_3_3_without_stay_at_log_end_a_paused_follower_of_an_idle_topic_is_expelled() -> None:
    for guards, history in (({}, []), ({"stay-at-log-end": False}, [(1, 2)])):
        with Emulated(zookeeper_session_timeout_ms=60_000, guards=guards) as cluster:
            cluster.topic("orders", (1, 2, 3)).send().run_ms(2000).now_on()
            cluster.do(Pause(3)).run_ms(3 * LAG_MS)
            assert cluster.isr_history() == history


def test_3_3_without_it_an_idle_follower_that_fetches_stays_all_the_same() -> None:
    """Its fetches change nothing but their time, and that is looked at."""
    for profile in ("1.0", "2.6"):
        with Emulated(profile=profile, guards={"stay-at-log-end": False}) as cluster:
            cluster.topic("orders", (1, 2, 3)).send().run_ms(2000).now_on().run_ms(4 * LAG_MS)
            assert cluster.isr_history() == []


@pytest.mark.parametrize(
    ("how", "looks"),
    [
        ({"profile": "2.6"}, False),
        ({"profile": "2.4"}, True),
        (without("isr-check-under-read-lock"), True),
        (having("isr-check-under-read-lock", "2.4"), False),
    ],
)
def test_3_3_up_to_2_4_a_shrink_pass_takes_the_write_lock_at_once(
    how: dict[str, object], looks: bool
) -> None:
    """Behind a reader a shrink pass that finds nothing waits, or does not."""
    with leading(**how) as play:
        play.follower(2, 9)
        lock, gone = play.hosted().lock, Promise[None](play.kernel)

        async def read() -> None:
            await lock.acquire_read()
            await gone.wait()
            lock.release_read()

        play >> thread("a long read", read()) >> shrink_pass()
        if not looks:
            play << "isr-expiration: done"
        play >> (lambda _: gone.resolve(None)) << "a long read: done"
        if looks:
            play << "isr-expiration: done"


@pytest.mark.parametrize(
    ("how", "answers"),
    [
        ({"profile": "0.9.0"}, True),
        ({"profile": "1.1"}, True),
        ({"profile": "2.1"}, False),
        (without("fetches-read-under-lock"), True),
        (having("fetches-read-under-lock", "1.0"), False),
    ],
)
def test_3_3_up_to_2_0_a_delayed_fetch_is_answered_while_the_isr_is_written(
    how: dict[str, object], answers: bool
) -> None:
    """As in a recording of 0.9.0.1 (five-brokers-pauses), where ZooKeeper answered 1.6 s later."""
    with leading(**LAG, **how) as play:
        play.follower(2, 3, caught_up_ms_ago=5001)
        play >> fetch(3, at=10, epoch=-1, max_wait_ms=500) >> shrink_pass() << WITHOUT_2
        play >> after_ms(600)
        if answers:
            play << "fetch-3: nothing, hw 10"
        play.nothing_else()
        play >> ok(6)
        assert ("fetch-3: nothing, hw 10" in play.said) is not answers
        play.forget()


# -- 3.2: caught up --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "leaves"),
    [
        ({"profile": "0.9.0"}, True),
        ({"profile": "0.10.2"}, False),
        (without("caught-up-by-last-fetch"), True),
        (having("caught-up-by-last-fetch", "0.9.0"), False),
    ],
)
def test_3_2_before_0_10_2_a_follower_that_trails_a_little_is_expelled(
    how: dict[str, object], leaves: bool
) -> None:
    """It reaches what the leader had one fetch before, never the leader's end."""
    with leading(**LAG, **how) as play:
        play.follower(2, 8, caught_up_ms_ago=5500)
        play.hosted().remotes[2].last_fetch_time_ms = play.kernel.now_ms() - 400
        play >> fetch(2, at=10, epoch=-1, max_wait_ms=0) << "fetch-2: nothing, hw 10"
        play.hosted().remotes[2].last_caught_up_time_ms -= 5500
        play.hosted().log.append_as_leader(1, 100, 4)  # type: ignore[union-attr]
        play.follower(3, 11)
        play >> fetch(2, at=10, epoch=-1, max_wait_ms=0) << "fetch-2: 10..11, hw 10"
        play >> shrink_pass()
        if leaves:
            play << WITHOUT_2 >> ok(6) << "isr 1,3 v6" << "hw 11"
        play << "isr-expiration: done"


@pytest.mark.parametrize(
    ("how", "expelled"),
    [
        ({"profile": "0.9.0"}, True),
        ({"profile": "0.10.2"}, False),
        (without("caught-up-time-reset"), True),
        (having("caught-up-time-reset", "0.9.0"), False),
    ],
)
def test_3_8_before_0_10_2_a_new_leaders_first_pass_may_expel_everybody(
    how: dict[str, object], expelled: bool
) -> None:
    """H23: it followed for an hour, its Replica objects carry the time at which they were made."""
    with leading(leader=2, **LAG, **how) as play:
        play.forget()
        play >> after_ms(3_600_000)
        play.forget()
        play >> leader_and_isr(state_of(epoch=5)) << "leads orders-0 in epoch 5"
        if FETCHER_SHUTDOWN_ENDS_FETCH not in play.context.guards:
            play >> answers(2, FetchResponse(Errors.NONE, 0, ()))
        play << "LeaderAndIsr: NONE NONE" >> shrink_pass()
        if expelled:
            play << ONLY_ME.replace("epoch 4", "epoch 5") >> ok(6) << "isr 1 v6" << "hw 10"
        play << "isr-expiration: done"


# -- 3.4: who joins --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "joins"),
    [
        ({"profile": "1.1"}, True),
        ({"profile": "2.1"}, False),
        (without("join-past-epoch-start"), True),
        (having("join-past-epoch-start", "1.1"), False),
    ],
)
def test_3_4_before_2_0_1_a_follower_joins_before_the_epochs_start(
    how: dict[str, object], joins: bool
) -> None:
    """H16: the high watermark is 5, the epoch began at 10, the follower is at 6."""
    with leading(isr=(1, 2), **how) as play:
        play.hosted().leader_epoch_start_offset = 10
        play.hosted().log.high_watermark = 5  # type: ignore[union-attr]
        play.hosted().remotes[2].log_end_offset = 5
        play >> fetch(3, at=6, epoch=-1, max_wait_ms=0)
        if joins:
            play << WITH_3 >> ok(6) << "isr 1,2,3 v6"
        play << "fetch-3: 6..10, hw 5"


# -- 3.5: the high watermark -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "hw"),
    [
        ({"profile": "0.9.0"}, 11),
        ({"profile": "0.10.2"}, 10),
        (without("hw-waits-for-caught-up"), 11),
        (having("hw-waits-for-caught-up", "0.9.0"), 10),
    ],
)
def test_3_5_before_0_10_2_the_high_watermark_counts_the_isr_alone(
    how: dict[str, object], hw: int
) -> None:
    with leading(isr=(1,), replicas=(1, 2), **how) as play:
        play.follower(2, 10)
        play.run(play.hosted().append_records_to_leader(1, 100, 1))
        assert play.hosted().log.high_watermark == hw  # type: ignore[union-attr]
        play.forget()


# -- 3.2: reads that fail --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "leo"),
    [
        ({"profile": "2.1"}, -1),
        ({"profile": "2.4"}, 10),
        (without("failed-read-keeps-state"), -1),
        (having("failed-read-keeps-state", "2.1"), 10),
    ],
)
def test_3_2_before_2_4_a_failed_read_sets_the_followers_leo_to_minus_one(
    how: dict[str, object], leo: int
) -> None:
    with leading(**how) as play:
        play >> fetch(2, at=12, max_wait_ms=0) << "fetch-2: OFFSET_OUT_OF_RANGE"
        assert play.hosted().remotes[2].log_end_offset == leo


# -- 4.1, 4.2: periodic tasks ----------------------------------------------------------------------


@pytest.mark.parametrize(("profile", "low", "high"), [("0.9.0", 1.0, 2.0), ("0.10.2", 1.0, 1.5)])
def test_4_1_a_follower_leaves_after_up_to_twice_the_limit_before_0_10_2(
    profile: str, low: float, high: float
) -> None:
    steady = Produce("orders", (0,), 20, "1")
    took = []
    for seed in range(6):
        with Emulated(profile=profile, seed=seed) as cluster:
            cluster.topic("orders", (1, 2, 3)).do(steady).run_ms(2000 + 400 * seed).now_on()
            cluster.do(Pause(3))
            took.append(cluster.run_until(cluster.isr_history))
    assert LAG_MS * low - 600 <= min(took) and max(took) <= LAG_MS * high + 100
    assert max(took) > LAG_MS * high - 600


def test_4_1_isr_expiration_runs_every_lag_time_before_0_10_2() -> None:
    guard = "isr-expiration-at-half-lag"
    for how, leaves_at_ms in ((without(guard), 10_000), ({"profile": "2.6"}, 7_500)):
        with leading(**LAG, **how) as play:
            play.run(play.replicas.startup())
            play.follower(2, 9)
            play >> after_ms(leaves_at_ms - 1)
            play >> after_ms(1) << WITHOUT_2


@pytest.mark.parametrize(
    ("how", "notified"),
    [
        ({"profile": "0.8.2"}, False),
        ({"profile": "0.9.0"}, True),
        (without("isr-change-notifications"), False),
    ],
)
def test_4_2_in_0_8_2_nobody_is_told_of_an_isr_change(
    how: dict[str, object], notified: bool
) -> None:
    with Emulated(zookeeper_session_timeout_ms=60_000, **how) as cluster:  # type: ignore[arg-type]
        cluster.topic("orders", (1, 2, 3)).do(Produce("orders", (0,), 20, "1")).run_ms(2000)
        cluster.now_on().do(Pause(3)).run_until(cluster.isr_history)
        cluster.run_ms(9000)
        shown = cluster.cached_isr(2)
        assert shown == ((1, 2) if notified else (1, 2, 3))


@pytest.mark.parametrize(("profile", "at_once"), [("0.8.2", False), ("0.9.0", True)])
def test_3_8_in_0_8_2_a_new_epoch_forgets_what_followers_have(profile: str, at_once: bool) -> None:
    """Broker 3 is dead, and the controller has removed it. What waited for it is acknowledged when
    broker 2 has fetched again."""
    with leading(profile=profile, isr=(1, 2, 3)) as play:
        play >> produce(timeout_ms=60_000) >> fetch(2, at=11, epoch=-1)
        play.forget()
        play >> leader_and_isr(state_of(epoch=5, isr=(1, 2), version=6))
        assert ("produce: NONE at 10" in play.said) is at_once
        play.forget()
        play >> after_ms(501)
        play.forget()
        play >> fetch(2, at=11, epoch=-1, max_wait_ms=0, name="again")
        assert ("produce: NONE at 10" in play.said) is not at_once
        play.forget()
