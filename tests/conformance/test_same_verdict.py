"""Our judge says what the tools beside the clone say, which are the definition.

Real recordings are held against each other and against themselves with one fact altered; the
tools run as their user would run them.
"""

import json
import subprocess
import sys
from functools import cache
from itertools import permutations
from pathlib import Path

import msgspec
import pytest

from emulator import cli
from emulator.conformance.compare import Verdict, judge
from emulator.conformance.criteria import EVER
from emulator.conformance.distance import distance
from emulator.conformance.recording import read_recording, write_recording
from tests.conformance.alterations import ALTERATIONS, IGNORED, Alteration

SHARED = Path(__file__).parents[3] / "shared"
RECORDINGS = SHARED / "recordings"
KAFKA = RECORDINGS / "kafka-2.6.3"
REPEATS = RECORDINGS / "repeats" / "kafka-2.6.3"

pytestmark = pytest.mark.shared


def tool(name: str, *args: object) -> dict[str, object]:
    command = [sys.executable, SHARED / "tools" / name, *args, "--json"]
    ran = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False
    )
    assert ran.returncode in (0, 1), ran.stderr
    told: dict[str, object] = json.loads(ran.stdout)
    return told


def in_the_tools_words(verdict: Verdict) -> dict[str, object]:
    """Without what our verdict says beyond the tool's: context before a difference, medians."""
    differences = [msgspec.structs.asdict(difference) for difference in verdict.differences]
    timings = [msgspec.structs.asdict(timing) for timing in verdict.timings]
    told = {
        "matched": verdict.matched,
        "runs": verdict.seeds,
        "agreeing": verdict.seeds_agreeing,
        "points": {str(point): ok for point, ok in verdict.points.items()},
        "differences": [{k: v for k, v in d.items() if k != "before"} for d in differences],
        "timings": [{k: v for k, v in t.items() if k != "p50_ms"} for t in timings],
    }
    as_json: dict[str, object] = json.loads(json.dumps(told))
    return as_json


def assert_same_verdict(real: Path, *runs: Path, after_up: bool = False) -> bool:
    read = [read_recording(run) for run in runs]
    ours = judge(read_recording(real), read, requests_from_ms=0 if after_up else EVER)
    theirs = tool("compare-recordings", real, *runs, *["--after-up"] * after_up)
    assert in_the_tools_words(ours) == theirs
    return ours.matched


@cache
def repeats(script: str) -> tuple[Path, ...]:
    again = [KAFKA / script] if (KAFKA / script).exists() else []
    return (*again, *sorted((REPEATS / script).iterdir()))


SCRIPTS = ("min-isr", "random-7", "random-pauses-6")


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("after_up", [False, True])
def test_repeats_of_one_script_held_against_each_other(script: str, after_up: bool) -> None:
    for real, run in permutations(repeats(script), 2):
        assert_same_verdict(real, run, after_up=after_up)


@pytest.mark.parametrize("script", SCRIPTS)
def test_one_repeat_held_against_all_others(script: str) -> None:
    for real in repeats(script):
        others = [run for run in repeats(script) if run != real]
        assert_same_verdict(real, *others, after_up=True)


def test_many_agreeing_runs_that_alone_say_how_long_a_delay_may_be() -> None:
    for real in repeats("min-isr"):
        others = [run for run in repeats("min-isr") if run != real]
        assert_same_verdict(real, *others * 10, after_up=True)


def test_every_recording_matches_itself() -> None:
    for folder in sorted(RECORDINGS.glob("kafka-*/*")):
        assert assert_same_verdict(folder, folder)


def test_recordings_of_different_scenarios_and_versions() -> None:
    folders = sorted(RECORDINGS.glob("kafka-*/*"))
    for real, run in zip(folders, folders[1:] + folders[:1], strict=True):
        assert not assert_same_verdict(real, run)


@pytest.mark.parametrize("alteration", [*ALTERATIONS, *IGNORED], ids=lambda kind: kind.name)
def test_a_recording_with_one_fact_altered(alteration: Alteration, tmp_path: Path) -> None:
    for script, nth in (("flapping", 7), ("leader-loses-zookeeper", 3), ("random-7", 11)):
        real = read_recording(KAFKA / script)
        if alteration.sites(real):
            write_recording(alteration.altered(real, nth), tmp_path / script)
            assert_same_verdict(KAFKA / script, tmp_path / script)
            assert_same_verdict(tmp_path / script, KAFKA / script)


def test_a_rejected_update_repeated_is_ignored(tmp_path: Path) -> None:
    (alteration,) = (kind for kind in IGNORED if kind.name == "a rejected update repeated")
    folder = KAFKA / "leader-loses-zookeeper"
    write_recording(alteration.altered(read_recording(folder), 0), tmp_path)
    assert assert_same_verdict(folder, tmp_path)


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("reals", [2, 3])
def test_the_distance_of_repeats(script: str, reals: int) -> None:
    folders = repeats(script)
    theirs = tool("distance-of-recordings", *folders[:reals], "--", *folders[reals:])
    read = [read_recording(folder) for folder in folders]
    assert distance(read[:reals], read[reals:]).as_json() == theirs


def test_the_distance_of_altered_runs(tmp_path: Path) -> None:
    folders = repeats("random-pauses-6")
    altered = []
    for nth, alteration in enumerate(ALTERATIONS[:12]):
        altered.append(tmp_path / str(nth))
        source = read_recording(folders[nth % len(folders)])
        write_recording(alteration.altered(source, nth), altered[-1])
    theirs = tool("distance-of-recordings", *folders, "--", *altered)
    ours = distance([read_recording(f) for f in folders], [read_recording(f) for f in altered])
    assert ours.as_json() == theirs


def test_our_runs_against_real_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`isr conform --against`, and the tool over the runs that it wrote."""
    folders = repeats("min-isr")[:3]
    options = ("--against", "--seeds", "2", "--write", str(tmp_path), "--json")
    assert cli.execute(["conform", *map(str, folders), *options]) in (0, 1)
    ours = json.loads(capsys.readouterr().out)
    assert ours["runs"] == 6
    written = [tmp_path / folder.name / str(seed) for seed, folder in enumerate(folders * 2, 1)]
    assert ours["distance"] == tool("distance-of-recordings", *folders, "--", *written)
