"""Wherever more than one thing can happen next, a strategy chooses; the rules of what can."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emulator.kernel.choices import LOOK_AGAIN, ChoosingKernel, Strategy
from emulator.kernel.scheduler import Kernel, Lane, Runnable
from emulator.trace.sink import Sink

WINDOW_US = 1_000


class Drawn:
    """Takes what the numbers say, and notes what was offered."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self.numbers, self.asked, self.offered = list(numbers), 0, list[int]()

    @property
    def over(self) -> bool:
        return self.asked >= len(self.numbers)

    def choose(self, options: Sequence[Runnable]) -> int:
        self.offered.append(len(options))
        self.asked += 1
        return self.numbers[self.asked - 1] % len(options)


class Sender:
    """One way to a receiver: what it sends arrives in order."""

    def __init__(self, name: str, lane: Lane, seen: list[tuple[int, str]], kernel: Kernel) -> None:
        self.name, self.lane, self._seen, self._kernel = name, lane, seen, kernel

    def send(self, number: int, at_us: int) -> None:
        self.lane.call_at(at_us, partial(self.arrived, number))

    def arrived(self, number: int) -> None:
        self._seen.append((self._kernel.now, f"{self.name}{number}"))


Sent = list[tuple[str, int]]
SENT = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5_000)), max_size=12).map(
    lambda sent: sorted(sent, key=lambda one: one[1])
)
WHATEVER_THE_MACHINE = settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
NUMBERS = st.lists(st.integers(0, 10), min_size=1, max_size=30)


def run(sent: Sent, strategy: Strategy | None) -> list[tuple[int, str]]:
    kernel, seen = ChoosingKernel(Sink()), list[tuple[int, str]]()
    kernel.strategy, kernel.window_us = strategy, WINDOW_US
    lane = kernel.process("server").lane("network")
    senders = {name: Sender(name, lane, seen, kernel) for name in "abc"}
    for number, (name, at_us) in enumerate(sent):
        senders[name].send(number, at_us)
    kernel.run(10_000)
    assert kernel.now == 10_000
    return seen


@WHATEVER_THE_MACHINE
@given(SENT)
def test_who_always_takes_the_first_changes_nothing(sent: Sent) -> None:
    assert run(sent, Drawn([0] * 50)) == run(sent, None)


@WHATEVER_THE_MACHINE
@given(SENT, NUMBERS)
def test_everything_happens_once_and_nothing_before_it_is_due_or_later_than_the_window(
    sent: Sent, numbers: list[int]
) -> None:
    due = {f"{name}{number}": at_us for number, (name, at_us) in enumerate(sent)}
    seen = run(sent, Drawn(numbers))
    assert sorted(what for _, what in seen) == sorted(due)
    assert all(due[what] <= at_us <= due[what] + WINDOW_US for at_us, what in seen)


@WHATEVER_THE_MACHINE
@given(SENT, NUMBERS)
def test_time_never_goes_back_and_each_way_keeps_its_order(sent: Sent, numbers: list[int]) -> None:
    seen = run(sent, Drawn(numbers))
    assert [at_us for at_us, _ in seen] == sorted(at_us for at_us, _ in seen)
    for name in "abc":
        mine = [int(what[1:]) for _, what in seen if what.startswith(name)]
        assert mine == sorted(mine)


def test_what_comes_a_little_later_may_be_first() -> None:
    sent = [("a", 100), ("b", 900), ("c", 1_200)]
    assert run(sent, Drawn([1])) == [(900, "b1"), (900, "a0"), (1_200, "c2")]
    strategy = Drawn([0])
    run(sent, strategy)
    assert strategy.offered == [2], "c is behind the window"


def test_what_stands_still_is_not_offered_and_has_it_when_it_runs_again() -> None:
    kernel, seen = ChoosingKernel(Sink()), list[tuple[int, str]]()
    strategy = Drawn([1] * 5)
    kernel.strategy = strategy
    still, other = kernel.process("still"), kernel.process("other")
    Sender("a", still.lane("network"), seen, kernel).send(0, 150)
    Sender("b", other.lane("network"), seen, kernel).send(1, 100)
    still.pause()
    kernel.run(200)
    assert seen == [(100, "b1")]
    assert strategy.offered == []
    still.resume()
    kernel.run(300)
    assert seen == [(100, "b1"), (200, "a0")]


def test_what_was_called_off_is_no_option() -> None:
    kernel, strategy = ChoosingKernel(Sink()), Drawn([0] * 5)
    kernel.strategy = strategy
    lane = kernel.process("p").lane("l")
    seen: list[tuple[int, str]] = []
    Sender("a", lane, seen, kernel).send(0, 100)
    lane.call_at(150, seen.clear).cancel()
    kernel.run(1_000)
    assert seen == [(100, "a0")]
    assert strategy.offered == []


def test_a_strategy_may_do_something_itself_and_look_again() -> None:
    kernel, seen = ChoosingKernel(Sink()), list[tuple[int, str]]()
    process = kernel.process("p")

    class Pauses(Drawn):
        def choose(self, options: Sequence[Runnable]) -> int:
            super().choose(options)
            if self.asked == 1:
                process.pause()
                return LOOK_AGAIN
            return 0

    kernel.strategy = Pauses([0] * 5)
    for name in "ab":
        Sender(name, process.lane("network"), seen, kernel).send(0, 100)
    kernel.run(1_000)
    assert seen == []


def test_where_the_strategy_ends_the_run_halts_or_goes_on() -> None:
    for halts, expected in ((True, 100), (False, 1_000)):
        kernel, seen = ChoosingKernel(Sink()), list[tuple[int, str]]()
        kernel.strategy, kernel.halts = Drawn([0]), halts
        for name in "abc":
            Sender(name, kernel.process(name).lane("network"), seen, kernel).send(0, 100)
        kernel.run(1_000)
        assert kernel.now == expected
        kernel.run(1_000)
        assert [what for _, what in seen] == ["a0", "b0", "c0"]
