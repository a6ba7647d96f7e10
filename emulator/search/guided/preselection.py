"""Which seeds are worth a live play, which takes as long as the recording did: those whose
simulated plays come nearest to it.

A seed draws what the machine that plays does not decide (how long JVMs boot and stop, what a
message takes) alike in both worlds, so a seed that cannot match in virtual time hardly can live.
Owns the choice alone; plays come from outside. Only what is judged is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from emulator.conformance.compare import Examined
from emulator.conformance.criteria import DELAYS, Part

PRESELECTED_MAX = 60
"""Simulated plays before the first live one, at most."""

AT_ONCE = 10
"""After so many it is asked whether they are enough."""

DelayGaps = Callable[[Examined], Iterable[str]]


def are_enough(preselected: Mapping[int, Examined], count: int, delay_gaps: DelayGaps) -> bool:
    """There are enough plays, and one of them would match alone."""
    return len(preselected) >= count and any(
        not run.lacking and not any(True for _ in delay_gaps(run)) for run in preselected.values()
    )


def nearest_first(
    preselected: Mapping[int, Examined],
    count: int,
    delay_gaps: DelayGaps = lambda run: (),
) -> list[int]:
    """`count` seeds: the nearest one, then each time the one that has most of what all before it
    differ in (a recording is matched by several runs together). `delay_gaps` names the delays
    that keep a run from matching alone.
    """
    left = {
        seed: run.lacking | {(DELAYS, name) for name in delay_gaps(run)}
        for seed, run in preselected.items()
    }
    order = sorted(left, key=lambda seed: (preselected[seed].distance, len(left[seed]), seed))
    chosen: list[int] = []
    missed: frozenset[Part] | None = None
    while order and len(chosen) < count:
        lacking = missed
        best = min(
            order,
            key=lambda seed: (
                preselected[seed].distance,
                len(left[seed] if lacking is None else left[seed] & lacking),
                order.index(seed),
            ),
        )
        order.remove(best)
        chosen.append(best)
        missed = left[best] if missed is None else missed & left[best]
    return chosen
