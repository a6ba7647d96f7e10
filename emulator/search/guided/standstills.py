"""Fits how long the recorder's driver stood still around an action.

A driver collects its producers' results in rounds. Where it was busy with an action, rounds are
missing or late, and the gap shows for how long. The records that it handed over late, and those
that were on their way meanwhile, decide what a paused leader has in its log and which of its
followers it still waits for. Plays draw such a standstill in 6 of 100 first actions, so a plain
search would seldom meet one at the right action. As for phases, a choice is always a seed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from emulator.conformance.producers import periods_ms
from emulator.conformance.recording import Recording
from emulator.kernel.rng import Chance, Choice, Stream, mix
from emulator.runs.play import occupies_machine
from emulator.scenario.schema import Step
from emulator.search.guided.phases import is_fitted, near
from emulator.worlds.latency import TABLE, Latencies

_BUSY, _SPEED = "stimulus_busy", "speed"
_LATE = 1.3
"""Periods between two rounds of which one was late. Of 7,308 rounds that were due every 50 or
100 ms, before a first fault, one was."""
_ENOUGH_US = 2000
_ROWS = {purpose: TABLE[purpose] for purpose in (_BUSY, _SPEED)}
_DRAWN_US = [us for _, row in _ROWS[_BUSY].cold for _, us in row if us]
_SHORTEST_US = min(_DRAWN_US) * _ROWS[_SPEED].warm[0][1] // 1000
_LONGEST_US = max(_DRAWN_US) * _ROWS[_SPEED].warm[-1][1] // 1000


@dataclass(frozen=True)
class Standstill:
    """The driver is busy for so long before and after the action that ends this segment."""

    segment: int
    action: str
    busy_us: int


def standstills_of(real: Recording, steps: Sequence[Step]) -> tuple[Standstill, ...]:
    """Those at the first action of each kind; a later one occupies no machine."""
    results_ms = defaultdict[str, set[int]](set)
    for result in real.results:
        results_ms[result.lane].add(result.t)
    # Between two rounds of a slow producer a standstill can hide.
    periods = periods_ms(real)
    fastest_ms = min(periods.values(), default=0.0)
    fast = [sorted(results_ms[lane]) for lane, ms in periods.items() if ms == fastest_ms]
    standstills, seen = list[Standstill](), set[str]()
    for segment, step in enumerate(steps):
        action = step.action.name
        if not occupies_machine(step.action) or action in seen:
            continue
        seen.add(action)
        # A standstill delays the results of all partitions; one alone may wait for a leader.
        shown = [_busy_us(rounds_ms, fastest_ms, step.at_us) for rounds_ms in fast]
        busy_us = min((us for us in shown if us is not None), default=0)
        if busy_us:
            standstills.append(Standstill(segment, action, busy_us))
    return tuple(standstills)


def _busy_us(rounds_ms: Sequence[int], period_ms: float, at_us: int) -> int | None:
    """How long before and after this time the driver stood still, by the results of one partition.
    0: it did not; None: they do not tell, because records were not acknowledged."""
    longest_ms = 2 * _LONGEST_US // 1000  # before the action and after it

    def is_late(gap_ms: int) -> bool:
        return _LATE * period_ms < gap_ms <= longest_ms

    last = bisect_right(rounds_ms, at_us / 1000)
    first = last - 1
    if not 0 < last < len(rounds_ms):
        return None
    # A late round may lie in the middle of it.
    while first > 0 and is_late(rounds_ms[first] - rounds_ms[first - 1]):
        first -= 1
    while last + 1 < len(rounds_ms) and is_late(rounds_ms[last + 1] - rounds_ms[last]):
        last += 1
    gap_ms = rounds_ms[last] - rounds_ms[first]
    # The driver stopped up to a period after the last round, so on average for half a period less
    # than the gap.
    busy_us = round(gap_ms - period_ms / 2) * 1000 // 2
    # If they stop again, the last one may have been in the middle of a standstill, too.
    goes_on = last + 1 < len(rounds_ms) and rounds_ms[last + 1] - rounds_ms[last] <= longest_ms
    if busy_us > _LONGEST_US or not goes_on:
        return None
    return busy_us if gap_ms > 2 * period_ms and busy_us >= _SHORTEST_US else 0


def fitted_standstills(
    standstills: Iterable[Standstill], seed: int, segments: range
) -> dict[Choice, int]:
    """Choices for those whose machine is prepared in these segments, or none (see `is_fitted`)."""
    choices: dict[Choice, int] = {}
    for one in standstills:
        seeds = Stream(mix(seed ^ mix(one.segment)))
        if one.segment in segments and is_fitted(seed, seeds):

            def drawn(chosen: int, actor: str = one.action) -> int:
                chance = Chance(0, {(0, actor, p): s for p, s in _seeds(chosen).items()})
                return Latencies(chance, _ROWS)(_BUSY, actor)

            chosen, _ = near(seeds, one.busy_us, drawn, _ENOUGH_US)
            choices |= {(one.segment, one.action, p): s for p, s in _seeds(chosen).items()}
    return choices


def _seeds(chosen: int) -> dict[str, int]:
    """Of both purposes: how long it takes depends on the driver's speed with this action."""
    return {_BUSY: chosen, _SPEED: mix(chosen)}
