"""Matches found by a search are stored as their choices, which are sufficient for a replay.

Each folder of `tests/recordings/guided` has a recording that blind seeds do not match, and the
choices with which `isr conform RECORDING --guided --save choices.json` matched it. After a change
of the random draws (shown by the table's version or the first test) the search must be repeated.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from emulator.conformance.compare import Examined, Reference, conclude
from emulator.conformance.player import script_of
from emulator.conformance.recording import Recording, read_recording
from emulator.search.guided.choices import Choices, read_choices, replay, script_from
from emulator.search.guided.guided import judge_choices
from emulator.worlds.latency import TABLE
from tests.conformance.alterations import ALTERATIONS

GUIDED = Path(__file__).parents[1] / "recordings" / "guided"
FOLDERS = [file.parent for file in sorted(GUIDED.glob("*/*/choices.json"))]
each = pytest.mark.parametrize("folder", FOLDERS, ids=lambda it: f"{it.parent.name}/{it.name}")
SHORTEST = min(FOLDERS, key=lambda it: (it / "choices.json").stat().st_size)
RERUN = [
    pytest.param(
        folder,
        marks=pytest.mark.slow if folder == SHORTEST else pytest.mark.soak,
        id=f"{folder.parent.name}/{folder.name}",
    )
    for folder in FOLDERS
]
"""A rerun of a long recording takes seconds. The shortest one shows that reruns are drawn, played
and judged; delays of other recordings are held in `test_recorded_matches`."""


def chosen(folder: Path) -> Choices:
    return read_choices(folder / "choices.json")


@cache
def played(folder: Path) -> list[Recording]:
    """From the choices alone, which hold settings and actions, and nothing of what came of them."""
    choices = chosen(folder)
    return [replay(script_from(choices), run)[0] for run in choices.runs]


@each
def test_the_choices_of_a_match_replay_to_runs_that_agree_and_differ_in_no_part_together(
    folder: Path,
) -> None:
    reference = Reference(read_recording(folder))
    verdict = conclude(reference, [reference.examine(run) for run in played(folder)])
    assert verdict.seeds_agreeing == verdict.seeds
    assert not verdict.differences


@each
def test_every_choice_is_a_seed_of_a_declared_purpose(folder: Path) -> None:
    streams = [c for run in chosen(folder).runs for c in run.chosen]
    assert {c.purpose for c in streams if c.actor and c.purpose} - {"zk_tick", "zk_pace"} <= set(
        TABLE
    )


@each
def test_with_one_fact_of_the_recording_altered_none_of_them_agrees(folder: Path) -> None:
    real = read_recording(folder)
    kinds = [a for a in ALTERATIONS if a.points <= {1, 3, 4} and a.sites(real)]
    assert len(kinds) >= 4
    for kind in kinds:
        reference = Reference(kind.altered(real, 0))
        assert not any(reference.examine(run).agrees for run in played(folder)), kind.name


@pytest.mark.parametrize("folder", RERUN)
def test_its_delays_are_inside_over_twenty_reruns_with_other_latencies(folder: Path) -> None:
    reference = Reference(read_recording(folder))

    def look(_: object, run: Recording) -> Examined:
        return reference.examine(run)

    verdict, _ = judge_choices(reference, script_of(reference.real), chosen(folder), look, jobs=1)
    assert verdict.matched
