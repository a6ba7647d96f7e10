"""The page of `make fidelity`: what each recording came to, and what is not matched, with why."""

from __future__ import annotations

from emulator.conformance.compare import Difference, Timing, Verdict
from emulator.conformance.distance import Distance, Medians
from emulator.conformance.repeatability import Near
from emulator.search.guided.choices import Choices, ChosenRun
from emulator.search.guided.guided import Guided
from emulator.search.guided.restarts import Progress
from tools.fidelity.table import Row, Scope, page

SCOPE = Scope(seeds=60, most=1280, budget_s=120, jobs=2, latencies=8, commit="abc1234", load=1.2)
POINTS = range(1, 8)
INSIDE = Timing("orders-0 v1: decision to state write", 4, 1, 2, 6, inside=True)
OUTSIDE = Timing("election 1", 900, None, None, None, inside=False)
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


def test_each_recording_has_a_line_and_each_delay_its_figures() -> None:
    lines = page(SCOPE, [Row("quiet", verdict(58, INSIDE), None)], []).splitlines()
    assert "| quiet | 58 of 60 | blind seeds |  |" in lines
    assert "| orders-0 v1: decision to state write | 4 | 1 | 2 | 6 |" in lines
    assert "abc1234" in page(SCOPE, [], [])
    assert not any("Not matched" in line for line in lines)


def test_what_is_not_matched_is_named_with_its_reason() -> None:
    rows = [
        Row("raced", verdict(0, INSIDE, missed=4), None),
        Row("late", verdict(9, INSIDE, OUTSIDE), None),
    ]
    text = page(SCOPE, rows, [])
    assert "| raced | 0 of 60 | **not matched** |  |" in text
    assert (
        "- `raced`: 0 of 60 runs agree; points 4 equal in none; first at point 4,"
        " broker 1 replica orders-0, entry 3."
    ) in text
    assert "- `late`: 9 of 60 runs agree; 1 of 2 delays outside, as election 1." in text
    assert "| election 1 | 900 | - | - | - **outside** |" in text


def searched(*seeds: int, found: bool) -> Guided:
    progress = Progress([], seconds=9.6)
    progress.draws.update({0: 30, 1: 11})
    runs = tuple(ChosenRun(seed, ()) for seed in seeds)
    choices = Choices("r", 8, runs, {}, {}, ())
    missed = None if found else 5
    return Guided(found, choices, verdict(len(seeds), INSIDE, missed=missed), progress, 7)


def test_what_a_search_took_is_told_and_by_how_many_runs_it_is_a_match() -> None:
    text = page(SCOPE, [Row("raced", verdict(0, missed=4), searched(7, 14, found=True))], [])
    assert "| raced | 0 of 60 | guided | 41, 10 s, 2 |" in text
    assert "Not matched" not in text


def test_where_a_search_finds_nothing_more_seeds_may() -> None:
    text = page(SCOPE, [Row("raced", verdict(92, INSIDE), searched(1, found=False))], [])
    assert "| raced | 92 of 60 | blind seeds | 41, 10 s |" in text
    assert "Not matched" not in text


def test_several_runs_of_one_script_have_ratios_and_a_p_value() -> None:
    distances = Distance({"1": Medians(0.4, 0.42), "7": Medians(0.1, 0.3)}, p=0.25)
    text = page(SCOPE, [], [("raced", Near(("1", "2"), 20, distances))])
    assert "| 1 | 0.400 | 0.420 | 1.05 |" in text
    assert "| 7 | 0.100 | 0.300 | 3.00 **too far** |" in text
    assert "p = 0.250" in text
