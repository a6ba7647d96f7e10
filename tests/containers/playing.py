"""Plays on containers: in real time, so one that was late is played again, and says what it lost.

What must agree with virtual time, literally: who wrote which state, and which notifications; and
the judge of recordings must find no difference in these, nor in ISR decisions.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from emulator.conformance.compare import judge
from emulator.trace.reader import read_events
from tests.command import Isr
from tests.live.agreeing import SEEDS, LiveRun, simulated, written

PLAYS = 4
"""On a busy machine a play may be too late to tell, or meet what no seed draws."""

STATES, NOTIFICATIONS, DECISIONS = 1, 2, 5
HELD = 0


def performed(
    isr: Isr, *words: Any, differs: Callable[[LiveRun], object] = lambda _: None
) -> LiveRun:
    """A run, played again where it did not hold, or where it differs."""
    for _ in range(PLAYS):
        code, out, err = isr("run", *words, "--json")
        assert out, err
        summary = json.loads(out)
        directory = Path(summary["run_directory"])
        told = list(read_events(directory / "trace.ndjson"))
        run = LiveRun(code, err, summary, directory, told, str(words[0]))
        lost = not_held(summary) if code != HELD else differs(run)
        if not lost:
            break
        say_lost(words[0], lost)
    return run


def not_held(summary: dict[str, Any]) -> object:
    """What a summary has against a run."""
    unmet = [one for one in summary["expectations"] if not one["held"]]
    late_ms = summary["kernel_late_ms_max"]
    return summary["verdict"], f"{late_ms} ms late", unmet, summary["violations"]


def say_lost(what: object, lost: object) -> None:
    """To where pytest keeps it for a test that fails, past what `isr` is heard through."""
    print(f"play of {what} lost: {lost}", file=sys.__stderr__, flush=True)


def agree_literally(isr: Isr, source: Path, target: str, out: Path) -> None:
    """Play it there; held, and in the end as it is in virtual time."""
    simulations = [simulated(str(source), seed) for seed in SEEDS]
    (virtual, *others) = [written(one) for one in simulations]
    assert others == [virtual] * len(others), "seeds differ: it is not free of races"

    def differs(run: LiveRun) -> object:
        seen = written(run.recording)
        paths = sorted({*seen, *virtual})
        rows = {path: (virtual.get(path), seen.get(path)) for path in paths}
        return {path: both for path, both in rows.items() if both[0] != both[1]}

    run = performed(isr, source, "--target", target, "--out", out, differs=differs)
    assert run.code == HELD, (run.summary, run.said)
    assert differs(run) == {}
    nearest = judge(run.recording, simulations).nearest_differences
    points = (STATES, NOTIFICATIONS, DECISIONS)
    assert {point: nearest[point] for point in points} == dict.fromkeys(points)
