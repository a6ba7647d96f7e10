"""Periodic tasks of a broker, in a world whose clock comes late: the live one."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from emulator.kafka.broker.kafka_scheduler import KafkaScheduler
from emulator.kernel.scheduler import Kernel
from emulator.kernel.sync import Promise
from emulator.trace.sink import Sink

PERIOD_MS, SEND_MS = 200, 50
BEGUN_US = 10_000


class LateClock:
    """Runs each task this much too late, once all tasks have begun."""

    def __init__(self, late_us: int) -> None:
        self._late_us, self._now_us = late_us, 0

    def wait(self, until_us: int) -> int:
        late_us = self._late_us if until_us > BEGUN_US else 0
        self._now_us = max(self._now_us, until_us + late_us)
        return self._now_us

    def inbox(self) -> list[Callable[[], None]]:
        return []


def sent_at(late_us: int, gap_us: int, works_us: int) -> list[int]:
    """When what a run of one task found after `works_us` is sent by the other one, whose runs are
    due `gap_us` after the first one's; microseconds after the first was due, four runs."""
    kernel = Kernel(Sink(), LateClock(late_us))
    broker = kernel.process("b")
    scheduler = KafkaScheduler(kernel, broker.spawn)
    unsent: list[int] = []
    sent: list[int] = []
    something = Promise[None](kernel)

    async def find() -> None:
        if works_us:
            await kernel.sleep(works_us)
        unsent.append(1)
        something.resolve(None)

    async def needed() -> None:
        nonlocal something
        while not unsent:
            something = Promise[None](kernel)
            await something.wait()

    async def send() -> None:
        unsent.clear()
        sent.append(kernel.now % (PERIOD_MS * 1000))

    async def start() -> None:
        scheduler.schedule("isr-expiration", find, PERIOD_MS, PERIOD_MS)
        await kernel.sleep_until(gap_us)
        scheduler.schedule_when("send", needed, send, SEND_MS, SEND_MS)

    broker.spawn("main", start())
    kernel.run((4 * PERIOD_MS + 2 * SEND_MS) * 1000)
    kernel.close()
    return sent


@given(late_us=st.integers(0, 4000), gap_us=st.integers(0, 4000))
def test_what_one_timer_finds_goes_with_the_next_ones_run_however_late_both_are(
    late_us: int, gap_us: int
) -> None:
    """The second was due a moment after the first: it has not been missed because the world came
    late to both."""
    assert sent_at(late_us, gap_us, 0) == [max(late_us, gap_us + late_us * (gap_us > late_us))] * 4


@given(late_us=st.integers(0, 4000), gap_us=st.integers(0, 4000))
def test_a_run_that_has_passed_while_the_other_worked_is_missed(late_us: int, gap_us: int) -> None:
    assert sent_at(late_us, gap_us, 20_000) == [gap_us + SEND_MS * 1000 + late_us] * 4
