"""Plays a hazard without its cure, which must violate what it declares, and with it, which must
not.

Owns when a hazard counts as reproduced and as cured. Knows no hazard by name, and prints nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from emulator.hazards.entry import Entry
from emulator.runs.broken import Broken
from emulator.runs.play import SIMULATED
from emulator.runs.session import (
    OnProgress,
    Played,
    Request,
    play_in_memory,
    play_run,
)
from emulator.runs.summary import Judged
from emulator.scenario.load import LoadedScenario
from emulator.scenario.schema import Scenario, Step
from emulator.trace import events as e
from emulator.trace.events import AnyEvent

Verdict = Literal["held", "not held", "unknown"]


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One play and its judgement: safety throughout, liveness at the end. `matching`: the
    violations that the hazard explains. `expectations`: those of a healthy cluster.
    `is_as_expected`: everything that must be violated was or, with the cure, nothing was. `late`:
    the live kernel was too late for a verdict."""

    violations: tuple[Broken, ...]
    matching: tuple[Broken, ...]
    expectations: tuple[Judged, ...]
    is_as_expected: bool
    late: bool
    wall_ms: int
    events: Sequence[AnyEvent]
    directory: Path | None = None

    @property
    def verdict(self) -> Verdict:
        if self.late:
            return "unknown"
        return "held" if self.is_as_expected else "not held"

    @property
    def messages(self) -> list[str]:
        """The problems as text, each invariant once."""
        broken = {one.invariant: one for one in reversed(self.matching)}
        sentences = [f"{one.invariant}: {one.text}" for one in broken.values()]
        return sentences[::-1] + [
            f"{one.text} ({one.seen})" for one in self.expectations if not one.held
        ]


def _judged(entry: Entry, played: Played, began_s: float, *, cured: bool) -> Side:
    violations, summary = (*played.broken, *played.lacking), played.summary
    expected = [one.held for one in summary.expectations]
    if cured:
        matching = [one for one in violations if one.invariant not in entry.tolerates]
        is_as_expected = not matching and False not in expected
    else:
        matching = [one for one in violations if one.invariant in entry.violates]
        broken = {one.invariant for one in matching}
        is_as_expected = broken == set(entry.violates) and all(held is False for held in expected)
    return Side(
        violations=violations,
        matching=tuple(matching),
        expectations=tuple(summary.expectations),
        is_as_expected=is_as_expected,
        late=summary.kernel_was_late,
        wall_ms=int((time.monotonic() - began_s) * 1000),
        events=played.events,
        directory=played.directory,
    )


def play_side(
    entry: Entry,
    *,
    cured: bool,
    zookeeper: str = SIMULATED,
    base: Path = Path("runs"),
    on_progress: OnProgress | None = None,
) -> Side:
    """Play it like `isr run`, with a run directory. Raises PlayFailed."""
    began_s = time.monotonic()
    scenario = entry.scenario(cured=cured)
    if cured:
        scenario = msgspec.structs.replace(scenario, name=f"{entry.name}-cured")
    request = Request(
        scenario=scenario,
        seed=entry.seed,
        zookeeper=zookeeper,
        time_scale=1 if zookeeper == SIMULATED else entry.time_scale,
        sets=entry.cure.sets if cured else (),
        base=base,
    )
    played = play_run(request, on_progress, liveness=True)
    if played.summary.interrupted:
        raise KeyboardInterrupt
    return _judged(entry, played, began_s, cured=cured)


def play_side_in_memory(
    entry: Entry, *, cured: bool = False, scenario: LoadedScenario | None = None
) -> Side:
    """Play it in virtual time without a run directory; `scenario` replaces the entry's own."""
    began_s = time.monotonic()
    request = Request(scenario=scenario or entry.scenario(cured=cured), seed=entry.seed)
    played = play_in_memory(request, liveness=True)
    return _judged(entry, played, began_s, cured=cured)


def actions_of(scenario: Scenario) -> list[Step]:
    """The actions after the topics were created."""
    return [step for step in scenario.steps if not step.action.makes_topic or step.at_us > 0]


def marks(side: Side) -> dict[int, str]:
    """The events that show the violations, with their texts: the later fact of each violation, or
    the end of the run if something is missing and no fact follows the first action."""
    up_us, actions_us = _actions_us(side)
    began_us = min(actions_us, default=up_us)
    marked: dict[int, str] = {}
    for one in side.matching:
        seq = max(one.facts)
        if seq < 0 or side.events[seq].t < began_us:
            seq = len(side.events) - 1
        marked.setdefault(seq, f"{one.invariant}: {one.text}")
    return marked


def span_us(side: Side, marked: Iterable[int]) -> tuple[int, int]:
    """From the first action after the topics to the last marked event, in microseconds since the
    cluster was up."""
    up_us, actions_us = _actions_us(side)
    last = max([*(side.events[seq].t for seq in marked), *actions_us], default=up_us)
    return min(actions_us, default=up_us) - up_us, last - up_us


def _actions_us(side: Side) -> tuple[int, list[int]]:
    """When the cluster was up, and the time of each later action."""
    actions = [one for one in side.events if isinstance(one, e.ActionApplied)]
    up_us = next(one.t for one in actions if one.do == "up")
    return up_us, [one.t for one in actions if one.t > up_us]
