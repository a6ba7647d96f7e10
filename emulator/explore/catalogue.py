"""`docs/invariants.md`, made from the invariants and hazards themselves.

    python -m emulator.explore.catalogue > docs/invariants.md

Owns the frame around their sentences. A test holds the document to them.
"""

from __future__ import annotations

from collections.abc import Iterator

from emulator.faults.base import stimuli
from emulator.hazards.base import hazards
from emulator.invariants.base import Invariant, invariants

HEAD = """\
# Invariants

Predicates that must hold in every run (`emulator/invariants/`, one file each). S1 to S14 and L1
to L12 are the names of the project's list of hazards. They read the trace event by event, in
virtual time and live, and are on by default in `isr run`: what they say is in `summary.json`
(`violations`), at the end of `isr run`, and in its exit code (1). A violation names the
invariant, the two events that contradict each other, and the chain of causes that led to the
later one; it is said once per partition and broker. `isr check RUN` holds them against a stored
trace, also of a run that was killed (with `--converged` the liveness too, where the run is whole).
"""

LIVENESS = """\
## Liveness

What must have come about when a cluster has been healed and left alone. Asked at the end of a
run, by `isr fuzz`, and where a scenario expects `the cluster converges`.
"""

HAZARDS = """\
## What Kafka 2.6 itself gets wrong

A violation whose trace shows one of these patterns (`emulator/hazards/`, one file each) is
reported under its name; everything else is a fault of ours.
"""

WORLDS = """\
## Random worlds

`isr fuzz` draws, from each seed, two to five brokers with short time-outs, one to three topics,
producers and consumers, and up to twelve of these stimuli (the number: how often, beside the
others). Each says in its own file how it is drawn.
"""


def document() -> str:
    """The whole document."""
    return "\n".join([HEAD, *_safety(), LIVENESS, *_liveness(), HAZARDS, *_hazards(), *_worlds()])


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
    yield ", ".join(
        f"`{name}` {kind.weight}" for name, kind in sorted(stimuli().items()) if kind.weight
    )
    yield ""


if __name__ == "__main__":
    print(document(), end="")
