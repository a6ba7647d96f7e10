"""`make fidelity`: which rows a measurement of some recordings renews."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import msgspec
import pytest

from emulator.conformance.compare import Reference, Verdict
from emulator.conformance.player import script_of
from emulator.conformance.recording import read_recording
from emulator.search.guided.choices import choices_of, chosen_run, write_choices
from emulator.search.guided.guided import GuidedMatch
from emulator.search.guided.restarts import Progress
from emulator.worlds import latency
from tests.unit.conformance.failure_free import FOLDER
from tools.fidelity import __main__ as fidelity
from tools.fidelity.results import RecordingResult

NOT_EQUAL = Verdict(
    recording="r",
    matched=False,
    seeds=5,
    agreeing=(),
    points={},
    agreeing_by_point={},
    nearest_run="",
    nearest_differences={},
    differences=(),
    timings=(),
)
ROW = RecordingResult(
    kafka="2.6.3",
    recording="random-2",
    commit="c",
    latencies=latency.VERSION,
    seeds=40,
    agreeing=7,
    by_seeds=False,
    difference="1 of 9 delays outside",
)


def test_rows_of_recordings_that_are_not_played_now_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    written: dict[str, list[msgspec.Struct]] = {}
    judged_before = msgspec.structs.replace(ROW, recording="random-1", by_seeds=True)
    gone = msgspec.structs.replace(judged_before, recording="random-9")
    rows = {RecordingResult: [judged_before, gone]}
    monkeypatch.setattr(fidelity, "read_rows", lambda _, kind: rows.get(kind, []))
    monkeypatch.setattr(fidelity, "write_rows", written.__setitem__)
    recorded = [
        fidelity.Case(Path(), "2.6.3", "random-1", "kept-apart"),
        fidelity.Case(Path(), "2.6.3", "random-2", "random"),
    ]
    options = Namespace(sets=["random"], only=[], versions=[], unmatched=False, random_seeds=16)

    measurement = fidelity.Measurement("random", recorded, options)
    (played,) = measurement.cases
    played.verdict = NOT_EQUAL
    measurement.write(played)

    assert written["random"] == [judged_before, played.row()]


@pytest.mark.parametrize(("kept", "plays"), [("flapping", True), ("idle-topic", False)])
def test_choices_are_played_again_for_the_recording_that_they_are_of(
    kept: str, plays: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    matched = msgspec.structs.replace(NOT_EQUAL, matched=True)
    monkeypatch.setattr(fidelity, "judge_choices", lambda *_: (matched, []))
    file, real = tmp_path / "choices.json.gz", read_recording(FOLDER / "flapping")
    write_choices(choices_of(read_recording(FOLDER / kept), [chosen_run(1, {})], {}), file)
    found = fidelity.replay_choices(Reference(real), script_of(real), file, jobs=1)
    assert (found is not None) is plays


def test_recordings_of_two_sets_keep_their_choices_apart() -> None:
    given, story = (
        fidelity.Case(Path(), "2.6.3", "controlled-shutdown", one) for one in ("given", "versions")
    )
    assert given.choices != story.choices


def test_a_further_search_leaves_what_seeds_have_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """`--unmatched`: only rows of these latencies without a match, and no seed is played."""
    written: dict[str, list[msgspec.Struct]] = {}
    matched = msgspec.structs.replace(ROW, recording="random-4", by_seeds=True)
    rows = {RecordingResult: [ROW, matched]}
    monkeypatch.setattr(fidelity, "read_rows", lambda _, kind: rows.get(kind, []))
    monkeypatch.setattr(fidelity, "write_rows", written.__setitem__)
    recorded = [fidelity.Case(Path(), "2.6.3", name, "random") for name in ("random-2", "random-4")]
    options = Namespace(sets=["random"], only=[], versions=[], unmatched=True, random_seeds=16)

    measurement = fidelity.Measurement("random", recorded, options)
    measurement.play(lambda _: None)
    (searched,) = measurement.cases
    assert searched.recording == "random-2"
    real = read_recording(FOLDER / "flapping")
    choices = choices_of(real, [chosen_run(1, {})], {})
    searched.result = GuidedMatch(False, choices, NOT_EQUAL, Progress([], 60.0), 0)
    measurement.write(searched)

    row, _ = written["random"]
    assert isinstance(row, RecordingResult)
    assert (row.seeds, row.agreeing, row.difference) == (40, 7, ROW.difference)
    assert (row.search_s, row.is_matched) == (60, False)

    verdict = msgspec.structs.replace(NOT_EQUAL, matched=True)
    searched.result = GuidedMatch(True, choices, verdict, Progress([], 9.0), 20)
    row = searched.row()
    assert (row.seeds, row.agreeing, row.by_search, row.difference) == (40, 7, True, "")
