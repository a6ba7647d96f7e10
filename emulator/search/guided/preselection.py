"""Selects the seeds that are worth a live play: those whose simulated plays are nearest to the
recording.

A live play takes as long as the recording did. A seed draws what the machine does not decide (how
long JVMs boot and stop, message latencies) alike in both worlds, so a seed that cannot match in
virtual time is unlikely to match live. Owns only the selection; plays come from outside. Only
judged facts are used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from emulator.conformance.compare import Examined
from emulator.conformance.criteria import DELAYS, Part

PRESELECTED_MAX = 60
"""The maximum number of simulated plays before the first live one."""

AT_ONCE = 10
"""After how many plays to check whether they are enough."""

DelayGaps = Callable[[Examined], Iterable[str]]


def are_enough(preselected: Mapping[int, Examined], count: int, delay_gaps: DelayGaps) -> bool:
    """Whether there are enough plays, and one of them would match alone."""
    return len(preselected) >= count and any(
        not run.lacking and not any(True for _ in delay_gaps(run)) for run in preselected.values()
    )


def nearest_first(
    preselected: Mapping[int, Examined],
    count: int,
    delay_gaps: DelayGaps = lambda run: (),
) -> list[int]:
    """`count` seeds: the nearest one, then each time the one that matches most of the parts that
    all earlier ones lack (a recording is matched by several runs together). `delay_gaps` names the
    delays that keep a run from matching alone.
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
