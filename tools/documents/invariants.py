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
to L12 are the names of the project's list of hazards. They read the trace event by event, in
virtual time and live, and are on by default in `isr run`: what they say is in `summary.json`
(`violations`), at the end of `isr run`, and in its exit code (1). A violation names the
invariant, the two events that contradict each other, and the chain of causes that led to the
later one; it is said once per partition and broker. `isr check RUN` holds them against a stored
trace, also of a run that was killed (with `--converged` the liveness too, where the run is whole).
"""

NAMES = """\
## By the names of the list

Some of the list's predicates are two facts, and have two files; some files hold two of its
predicates. The list asks of S5 also that no acks=all succeeds at a deposed leader once its
successor has appended: it may, where the follower's fetch had come before (the record is in the
successor's log); that no such record is lost is S1. Of L8 is asked what hangs in Kafka: acks=all
that waits for who has left the ISR. L11 counts what is sent again without anything new, not
ZooKeeper's writes. `T` is what a healed cluster of `isr fuzz` gets: 180 s.
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
producers and consumers, and up to twelve of these actions (the number: how often, beside the
others). Each says in its own file how it is drawn. First come the canaries, hazards of the
catalogue whose files say so: what plays, judges and explains random worlds has to notice them, or
`isr fuzz` fails.
"""


def document() -> str:
    """The whole document."""
    invariant = [*_safety(), LIVENESS, *_liveness(), NAMES, *_names()]
    return "\n".join([HEAD, *invariant, HAZARDS, *_hazards(), *_worlds()])


def by_name() -> dict[str, list[str]]:
    """Predicates of the list, and the invariants whose sentences name them."""
    invariants_of: dict[str, list[str]] = {name: [] for name in PREDICATES}
    for invariant, kind in invariants().items():
        for listed in re.findall(r"\(([SL]\d[^)]*)\)", kind.__doc__ or ""):
            for name in listed.split(", "):
                invariants_of[name].append(invariant)
    return invariants_of


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
    yield ", ".join(
        f"`{name}` {kind.weight}" for name, kind in sorted(actions().items()) if kind.weight
    )
    yield ""


if __name__ == "__main__":
    print(document(), end="")
