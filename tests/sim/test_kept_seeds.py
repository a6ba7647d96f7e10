"""Where races decide much, only many blind seeds match a recording: those that agree are kept.

Each folder of `tests/recordings/blind` has a recording, and in `agree` the seeds that
`isr conform RECORDING --seeds 400` says agree with it. A set of runs is a match by itself: these
few tell in seconds what all of them told in minutes. Where a change alters what is drawn, the same
command says which seeds they are now.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from emulator.conformance.alterations import ALTERATIONS
from emulator.conformance.compare import Reference, conclude
from emulator.conformance.player import blind_plays, script_of
from emulator.conformance.points import PRODUCED
from emulator.conformance.recording import Recording, read_recording

BLIND = Path(__file__).parents[1] / "recordings" / "blind"
FOLDERS = [file.parent for file in sorted(BLIND.glob("*/*/agree"))]
each = pytest.mark.parametrize("folder", FOLDERS, ids=lambda it: f"{it.parent.name}/{it.name}")
pytestmark = pytest.mark.slow


@cache
def played(folder: Path) -> list[Recording]:
    seeds = [int(seed) for seed in (folder / "agree").read_text().split(",")]
    script = script_of(read_recording(folder))
    runs = dict(blind_plays(script, seeds, lambda _, run: run, jobs=2))
    return [runs[seed] for seed in seeds]


@each
def test_the_seeds_that_are_kept_agree_and_match_the_recording(folder: Path) -> None:
    reference = Reference(read_recording(folder))
    verdict = conclude(reference, [reference.examine(run) for run in played(folder)])
    assert verdict.seeds_agreeing == verdict.seeds
    assert verdict.matched, verdict.differences


@each
def test_with_one_fact_of_the_recording_altered_they_are_no_match(folder: Path) -> None:
    """But what producers were told: one record more of a kind that was told is no other tally."""
    real = read_recording(folder)
    kinds = [kind for kind in ALTERATIONS if PRODUCED not in kind.points and kind.sites(real)]
    assert len(kinds) >= 12
    unnoticed = []
    for kind in kinds:
        reference = Reference(kind.altered(real, 0))
        examined = [reference.examine(run) for run in played(folder)]
        if conclude(reference, examined).matched:
            unnoticed.append(kind.name)
    assert unnoticed == []
