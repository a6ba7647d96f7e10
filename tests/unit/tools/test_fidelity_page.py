"""The page of `make fidelity`: made from its data files; what each recording came to, and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.conformance.compare import Difference, Timing, Verdict
from emulator.conformance.distance import Distance, Medians, Relabelings
from emulator.conformance.repeatability import Near
from emulator.search.guided.choices import Choices, ChosenRun
from emulator.search.guided.guided import GuidedMatch
from emulator.search.guided.restarts import Progress
from tools.fidelity.page import README_TABLE, markdown, readme_table
from tools.fidelity.results import (
    RecordingResult,
    delay_rows,
    distance_rows,
    read_rows,
    recording_result,
    write_rows,
)

ROOT = Path(__file__).resolve().parents[3]
POINTS = range(1, 8)
INSIDE = Timing("orders-0 v1: decision to state write", 4, 1, 2, 6, inside=True)
OUTSIDE = Timing("election 1", 900, None, None, None, inside=False)
NO_RUN_EQUAL = (
    "no run equal in control requests; first difference: broker 1 replica orders-0, entry 3"
)
MISSED = Difference(4, "broker 1 replica orders-0", 3, (), (), ())


def verdict(agreeing: int, *timings: Timing, missed: int | None = None) -> Verdict:
    return Verdict(
        recording="r",
        matched=missed is None and all(timing.inside for timing in timings),
        seeds=60,
        agreeing=tuple(f"seed {seed}" for seed in range(agreeing)),
        points={point: point != missed for point in POINTS},
        agreeing_by_point=dict.fromkeys(POINTS, agreeing),
        nearest_run="seed 1",
        nearest_differences=dict.fromkeys(POINTS),
        differences=(MISSED,) if missed else (),
        timings=timings,
    )


def searched(*seeds: int, found: bool) -> GuidedMatch:
    progress = Progress([], seconds=9.6)
    progress.draws.update({0: 30, 1: 11})
    runs = tuple(ChosenRun(seed, ()) for seed in seeds)
    choices = Choices("r", 8, runs, {}, {}, ())
    missed = None if found else 5
    return GuidedMatch(found, choices, verdict(len(seeds), INSIDE, missed=missed), progress, 7)


def page(folder: Path, *rows: RecordingResult) -> str:
    write_rows("recordings", rows, folder)
    return markdown(folder)


def test_the_page_and_readmes_table_are_made_from_the_files() -> None:
    shown = (ROOT / "docs" / "fidelity.md").read_text(encoding="utf-8")
    assert shown == markdown(), "run: python -m tools.fidelity.page"
    table = README_TABLE.search((ROOT / "README.md").read_text(encoding="utf-8"))
    assert table is not None
    assert table[0] == readme_table(read_rows("recordings", RecordingResult))


def test_each_recording_has_a_line(tmp_path: Path) -> None:
    text = page(tmp_path, recording_result("2.6.3", "quiet", "", verdict(58, INSIDE), None))
    assert "| 2.6.3 quiet | 58 of 60 | random seeds |" in text
    assert "| 2.6.3 | 1 | 1 | – | – |" in text


def test_each_delay_has_a_row(tmp_path: Path) -> None:
    rows = delay_rows("2.6.3", "quiet", [INSIDE, OUTSIDE])
    write_rows("delays", rows, tmp_path)
    assert read_rows("delays", type(rows[0]), tmp_path) == rows
    assert (rows[0].recorded_ms, rows[0].min_ms, rows[0].median_ms, rows[0].max_ms) == (4, 1, 2, 6)
    assert "Delays outside: 1 of 2" in markdown(tmp_path)


@pytest.mark.parametrize(
    ("blind", "difference"),
    [
        (
            verdict(0, INSIDE, missed=4),
            NO_RUN_EQUAL,
        ),
        (verdict(9, INSIDE, OUTSIDE), "1 of 2 delays outside (election 1)"),
    ],
)
def test_what_is_not_matched_has_its_reason(
    blind: Verdict, difference: str, tmp_path: Path
) -> None:
    row = recording_result("2.6.3", "raced", "1", blind, None)
    assert row.difference == difference
    assert f"- `2.6.3 raced`, run 1: {difference}." in page(tmp_path, row)


def test_a_search_says_its_candidates_and_by_how_many_runs_it_is_a_match(tmp_path: Path) -> None:
    guided = searched(7, 14, found=True)
    row = recording_result("2.6.3", "raced", "", verdict(0, missed=4), guided)
    assert "| 2.6.3 raced | 0 of 60 | search | 41, 10 s, 2 |" in page(tmp_path, row)
    assert row.difference == ""


def test_where_a_search_fails_more_seeds_may_match(tmp_path: Path) -> None:
    row = recording_result("2.6.3", "raced", "", verdict(92, INSIDE), searched(1, found=False))
    assert "| 2.6.3 raced | 92 of 60 | random seeds | 41, 10 s |" in page(tmp_path, row)


def test_several_runs_of_one_script_have_ratios_and_a_p_value(tmp_path: Path) -> None:
    medians = {"1": Medians(0.4, 0.42), "7": Medians(0.1, 0.3)}
    relabelings = {"1": Relabelings(0.7, 0.2), "7": Relabelings(0.01, 0.3)}
    distances = Distance(medians, relabelings, p=0.25)
    near, too_far = Near(("1", "2", "3"), 20, distances), {"1": 0, "7": 2}
    write_rows("distances", distance_rows("2.6.3", "raced", near, too_far), tmp_path)
    text = page(tmp_path, recording_result("2.6.3", "raced", "1", verdict(1), None))
    assert "| state history | 0.400 | 0.420 | 1.05 | 0 of 3 | 0.20 (0.70) |" in text
    assert "| producer results | 0.100 | 0.300 | 3.00 | 2 of 3 | 0.30 (0.01) |" in text
    assert "3 real runs, 20 of ours, p = 0.250" in text
    assert "real runs exceed it in 2 of 6 cases, and ours in 1 of 2." in text
    assert "than in 95 of 100 relabelings: 1 (raced producer results 0.010)." in text


def version_result(
    kafka: str, story: str, agreeing: int, difference: str = "", *, by_search: bool = False
) -> RecordingResult:
    return RecordingResult(
        kafka=kafka,
        recording=story,
        commit="c",
        latencies=1,
        seeds=20,
        agreeing=agreeing,
        by_seeds=not difference and not by_search,
        by_search=by_search,
        difference=difference,
    )


def test_stories_are_shown_beside_version_lines_oldest_first(tmp_path: Path) -> None:
    missed = "no run equal in control requests"
    rows = [
        version_result("2.8.2", "bounce", 7),
        version_result("0.10.2.2", "bounce", 0, missed),
        version_result("2.8.2", "crash", 0, by_search=True),
    ]
    write_rows("versions", rows, tmp_path)
    shown = markdown(tmp_path)
    assert "| story | 0.10.2.2 | 2.8.2 |" in shown
    assert "| bounce | no, 0 of 20 | **yes**, 7 of 20 |" in shown
    assert "| crash | – | **by a search**, 0 of 20 |" in shown
    assert "| matched | 0 of 1 | 2 of 2 |" in shown
    assert "- `0.10.2.2 bounce`: no run equal in control requests." in shown


def test_random_scripts_with_odd_seeds_are_shown_as_kept_apart_until_they_are_judged(
    tmp_path: Path,
) -> None:
    matched = recording_result("2.6.3", "random-4", "", verdict(58, INSIDE), None)
    missed = recording_result("2.6.3", "random-7", "", verdict(58, INSIDE, missed=4), None)
    judged = recording_result("2.6.3", "random-101", "", verdict(58, INSIDE, missed=4), None)
    write_rows("random", [matched, missed, judged], tmp_path)
    looked_at, apart = markdown(tmp_path).split("**Looked at**: ")[1].split("**Kept apart**: ")
    apart, before = apart.split("**Kept apart before**: ")
    assert looked_at.startswith("1 of 1 matched")
    assert "| 2.6.3 random-4 | 58 of 60 | random seeds |" in looked_at
    assert apart.startswith("0 of 1 matched")
    assert "- `2.6.3 random-7`: no run equal in control requests" in apart
    assert before.startswith("0 of 1 matched")
    assert "random-101" in before
