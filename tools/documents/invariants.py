"""`docs/invariants.md`, made from the invariants and hazards themselves.

    python -m tools.documents.invariants > docs/invariants.md

Owns the frame around their sentences. A test holds the document to them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from emulator.invariants.base import Invariant, invariants
from emulator.invariants.known.base import hazards
from emulator.scenario.actions.base import actions

PREDICATES = (*(f"S{n}" for n in range(1, 15)), *(f"L{n}" for n in range(1, 13)))

HEAD = """\
# Invariants

Predicates that must hold in every run (`emulator/invariants/`, one file each). S1 to S14 and L1
to L12 are their numbers in the project's list of hazards. Invariants read the trace event by event,
in virtual time and live, and are on by default in `isr run`. Their violations are in `summary.json`
(`violations`), at the end of `isr run`, and in its exit code (1). A violation names the invariant,
the two events that contradict each other, and the chain of causes that led to the later one. It is
reported once per partition and broker. `isr check RUN` checks the invariants against a stored
trace, even if the run was killed; with `--converged` it also checks liveness, for a complete run.
"""

NAMES = """\
## By number in the list

Some predicates of the list are split into two files; some files cover two predicates. The list also
requires of S5 that no acks=all succeeds at a deposed leader once its successor has appended. That
can happen if the follower's fetch came first: the record is then in the successor's log, and S1
covers its loss. L8 covers the requests that hang in Kafka: acks=all waiting for a replica that has
left the ISR. L11 counts metadata that is sent again without any news, not ZooKeeper writes. `T` is
the time that a healed cluster of `isr fuzz` has to converge: 180 s.
"""

LIVENESS = """\
## Liveness

What a cluster must reach once every fault is healed and no new one comes. Checked at the end of a
run, by `isr fuzz`, and where a scenario expects `the cluster converges`.
"""

HAZARDS = """\
## What Kafka 2.6 itself gets wrong

A violation whose trace shows one of these patterns (`emulator/invariants/known/`, one file each) is
reported under the pattern's name. Any other violation is a bug in the emulator.
"""

WORLDS = """\
## Random worlds

`isr fuzz` draws, from each seed, two to five brokers with short time-outs, one to three topics,
producers and consumers, and up to twelve of these actions, each as often as its weight says. The
file of an action says how its parameters are drawn. `isr fuzz` first checks itself: it plays the
hazards of the catalogue that are marked for this, and fails if it does not notice one of them.
"""


def document() -> str:
    """The whole document."""
    invariant = [*_safety(), LIVENESS, *_liveness(), NAMES, *_names()]
    return "\n".join([HEAD, *invariant, HAZARDS, *_hazards(), *_worlds()])


def by_name() -> dict[str, list[str]]:
    """The list's predicates, and the invariants whose sentences name them."""
    by_number: dict[str, list[str]] = {name: [] for name in PREDICATES}
    for invariant, kind in invariants().items():
        for numbers in re.findall(r"\(([SL]\d[^)]*)\)", kind.__doc__ or ""):
            for name in numbers.split(", "):
                by_number[name].append(invariant)
    return by_number


def _names() -> Iterator[str]:
    yield "| | invariants |\n|---|---|"
    for name, kinds in by_name().items():
        yield f"| {name} | {', '.join(kinds)} |"
    yield ""


def _safety() -> Iterator[str]:
    yield "## Safety\n"
    yield from _table((name, kind) for name, kind in invariants().items() if not kind.liveness)


def _liveness() -> Iterator[str]:
    yield from _table((name, kind) for name, kind in invariants().items() if kind.liveness)


def _table(kinds: Iterator[tuple[str, type[Invariant]]]) -> Iterator[str]:
    yield "| invariant | |\n|---|---|"
    for name, kind in kinds:
        yield f"| {name} | {' '.join((kind.__doc__ or '').split())} |"
    yield ""


def _hazards() -> Iterator[str]:
    yield "| hazard | breaks | |\n|---|---|---|"
    for hazard in hazards():
        yield f"| {hazard.name} | {', '.join(hazard.breaks)} | {hazard.about} |"
    yield ""


def _worlds() -> Iterator[str]:
    yield WORLDS
    yield "| weight | actions |\n|--:|---|"
    weights = {kind.weight for kind in actions().values() if kind.weight}
    for weight in sorted(weights, reverse=True):
        same = sorted(f"`{name}`" for name, kind in actions().items() if kind.weight == weight)
        yield f"| {weight} | {', '.join(same)} |"
    yield ""


if __name__ == "__main__":
    print(document(), end="")
