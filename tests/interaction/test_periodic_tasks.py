"""Kafka's scheduler: fixed rate, missed runs made up, phase kept (spec §4.1)."""

from __future__ import annotations

import pytest

from tests.interaction.hosting import fetch, leading, produce
from tests.interaction.playbook import Playbook, after_ms, ok, reply
from zk.errors import Code


def ticking(play: Playbook, period_ms: int, took_us: int = 0, delay_ms: int = 0) -> list[int]:
    """A task that notes when it ran (milliseconds) and takes its time."""
    ran: list[int] = []

    async def body() -> None:
        ran.append(play.kernel.now // 1000)
        await play.kernel.sleep(took_us)

    play.context.schedule("task", body, period_ms, delay_ms)
    return ran


def test_a_task_runs_at_once_and_then_at_a_fixed_rate_however_long_it_takes() -> None:
    with Playbook() as play:
        ran = ticking(play, 1000, took_us=300_000)
        play >> after_ms(3500)
        assert ran == [0, 1000, 2000, 3000]


def test_a_delay_moves_the_first_run() -> None:
    with Playbook() as play:
        ran = ticking(play, 1000, delay_ms=700)
        play >> after_ms(2700)
        assert ran == [700, 1700, 2700]


def test_runs_that_a_pause_missed_are_made_up_at_once_and_the_phase_stays() -> None:
    with Playbook() as play:
        ran = ticking(play, 1000)
        play >> after_ms(1500)
        play.process.pause()
        play >> after_ms(3200)
        play.process.resume()
        play >> after_ms(1500)
        assert ran == [0, 1000, 4700, 4700, 4700, 5000, 6000]


def test_runs_that_a_slow_run_missed_are_made_up_too() -> None:
    with Playbook() as play:
        slow = [2_600_000]
        ran: list[int] = []

        async def body() -> None:
            ran.append(play.kernel.now // 1000)
            if slow:
                await play.kernel.sleep(slow.pop())

        play.context.schedule("task", body, 1000)
        play >> after_ms(4500)
        assert ran == [0, 2600, 2600, 3000, 4000]


def test_a_scheduler_that_stops_waits_for_the_run_under_way_and_begins_no_other() -> None:
    with Playbook() as play:
        said: list[str] = []

        async def body() -> None:
            said.append(f"{play.kernel.now // 1000} begins")
            await play.kernel.sleep(300_000)
            said.append(f"{play.kernel.now // 1000} ends")

        async def stop() -> None:
            await play.kernel.sleep(1_100_000)
            await play.context.scheduler.shutdown()
            said.append(f"{play.kernel.now // 1000} stopped")

        play.context.scheduler.schedule("task", body, 1000)
        play.context.spawn("SIGTERM handler", stop())
        play >> after_ms(5000)
        assert said == ["0 begins", "300 ends", "1000 begins", "1300 ends", "1300 stopped"]


def test_the_shrink_pass_comes_twice_per_lag_and_removal_within_one_and_a_half() -> None:
    with leading(isr=(1, 2), replica_lag_time_max_ms=2000) as play:
        play.run(play.replicas.startup())
        (
            play
            >> produce(acks=1)
            << "produce: NONE at 10"
            >> after_ms(2999)
            >> after_ms(1)
            << "set orders-0 at v5: leader 1, epoch 4, isr 1, controller 7"
            >> ok(version=6)
            << "isr 1 v6"
            << "hw 11"
        )


def test_the_propagation_task_looks_every_two_and_a_half_seconds() -> None:
    with leading(isr=(1, 2)) as play:
        play.run(play.replicas.startup())
        (
            play
            >> after_ms(100)
            >> fetch(3, at=10, max_wait_ms=0)
            << "set orders-0 at v5: leader 1, epoch 4, isr 1,2,3, controller 7"
            >> ok(version=6)
            << "isr 1,2,3 v6"
            << "fetch-3: nothing, hw 10"
            >> after_ms(7399)
            >> after_ms(1)
            << "create sequential /isr_change_notification/isr_change_: orders-0"
            >> reply(Code.OK)
        )


@pytest.mark.parametrize("crash_after_ms", [4999, 5000])
def test_the_high_watermark_is_written_down_every_five_seconds(crash_after_ms: int) -> None:
    """A restart reads the last checkpoint, 0 if there is none (§3.5)."""
    with leading(isr=(1,)) as play:
        play >> after_ms(1) >> produce(acks=1) << "hw 11" << "produce: NONE at 10"
        play >> after_ms(crash_after_ms - 1)
        written = play.disk.checkpointed_high_watermarks
        assert list(written.values()) == [11 if crash_after_ms == 5000 else 0]
