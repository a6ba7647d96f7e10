"""`isr conform` as a user meets it: options, what it prints and writes, how it ends."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from emulator.conformance.criteria import CRITERIA
from emulator.conformance.recording import read_recording
from tests.command import Isr

REAL = Path(__file__).resolve().parents[1] / "recordings" / "kafka-2.6.3"
SHRINK = REAL / "shrink-expand"
PLAYED = Path("played/shrink-expand")
SEEDS = 8
"""This many runs span every recorded delay."""
ALL_POINTS = dict.fromkeys("1234567", True)
ISSUE_KEYS = {
    "recording", "matched", "seeds", "seeds_agreeing", "agreeing", "points", "first_difference",
    "timings",
}  # fmt: skip
TIMING_KEYS = {"what", "recorded_ms", "min_ms", "p50_ms", "max_ms", "inside"}

Conform = Callable[..., tuple[int, str, str]]


@pytest.fixture
def conform(isr: Isr, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Conform:
    """The command in this process, in a directory of its own."""
    monkeypatch.chdir(tmp_path)

    return partial(isr, "conform")


def altered(change: Callable[[list[dict[str, Any]]], None], folder: Path) -> Path:
    """The recording with something else in it."""
    with gzip.open(SHRINK / "recording.jsonl.gz", "rt") as file:
        facts = [json.loads(line) for line in file]
    change(facts)
    folder.mkdir()
    (folder / "recording.jsonl").write_text("".join(f"{json.dumps(fact)}\n" for fact in facts))
    with gzip.open(SHRINK / "produce.jsonl.gz", "rb") as file:
        (folder / "produce.jsonl").write_bytes(file.read())
    return folder


def test_a_run_of_ours_in_place_of_a_recording_is_told_apart(conform: Conform, isr: Isr) -> None:
    isr("run", "shrink-and-expand", "--target", "simulated", "--seed", 1, "--quiet")
    code, line = isr.fails("conform", "latest")
    assert (code, "latest is a run of the emulator" in line) == (64, True)
    assert "`isr record` makes one" in line


# -- what it says ----------------------------------------------------------------------------------


def test_a_matched_recording_ends_with_0_and_says_how_often_each_point_was_met(
    conform: Conform,
) -> None:
    code, out, _ = conform(SHRINK, "--seeds", SEEDS, "--jobs", 1)
    lines = out.splitlines()
    assert code == 0
    assert lines[0].startswith(f"{SHRINK}: matched; ")
    assert lines[0].endswith(
        f" of {SEEDS} agree in state history, controllers and control requests"
    )
    assert [line[2:26].rstrip() for line in lines[1:8]] == list(CRITERIA.values())
    assert all(f" of {SEEDS} equal" in line and "NOT" not in line for line in lines[1:8])
    assert "none outside" in lines[8]


def test_the_seeds_that_agree_are_named_and_can_be_played_alone(conform: Conform) -> None:
    _, out, _ = conform(REAL / "controller-shutdown", "--seeds", 12)
    agree = next(line.split()[1] for line in out.splitlines() if line.startswith("  agree: "))
    _, told, _ = conform(REAL / "controller-shutdown", "--only", agree, "--json")
    verdict = json.loads(told)
    assert 0 < verdict["seeds"] == verdict["seeds_agreeing"] < 12
    assert verdict["agreeing"] == [f"seed {seed}" for seed in agree.split(",")]


def test_json_is_one_object_for_each_recording_with_the_keys_that_are_promised(
    conform: Conform,
) -> None:
    code, out, err = conform(SHRINK, REAL / "high-watermark", "--seeds", SEEDS, "--json")
    verdicts = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [Path(one["recording"]).name for one in verdicts] == ["shrink-expand", "high-watermark"]
    for verdict in verdicts:
        assert set(verdict) >= ISSUE_KEYS
        assert (verdict["matched"], verdict["seeds"]) == (True, SEEDS)
        assert verdict["seeds_agreeing"] >= SEEDS - 1
        assert verdict["points"] == ALL_POINTS
        assert verdict["first_difference"] is None
        assert all(set(timing) == TIMING_KEYS for timing in verdict["timings"])
        assert all(timing["inside"] for timing in verdict["timings"])
    assert "  producer results  " in err


def test_one_fact_altered_is_not_matched_and_the_place_is_named(
    conform: Conform, tmp_path: Path
) -> None:
    def another_isr(facts: list[dict[str, Any]]) -> None:
        write = next(f for f in facts if f["kind"] == "zookeeper" and f.get("op") == "setData")
        state = json.loads(write["data"])
        write["data"] = json.dumps(state | {"isr": state["isr"][::-1]})

    folder = altered(another_isr, tmp_path / "altered")
    code, out, err = conform(folder, "--seeds", 2, "--json")
    verdict = json.loads(out)
    assert (code, verdict["matched"], verdict["seeds_agreeing"]) == (1, False, 0)
    assert verdict["points"] == dict.fromkeys("234567", True) | {"1": False}
    assert verdict["first_difference"]["point"] == 1
    assert "NOT matched" in err
    assert "real" in err


def test_one_recording_that_is_not_matched_among_others_decides(
    conform: Conform, tmp_path: Path
) -> None:
    def an_epoch_more(facts: list[dict[str, Any]]) -> None:
        fact = next(f for f in facts if f["kind"] == "leader_and_isr")
        fact["leader_epoch"] += 1

    folder = altered(an_epoch_more, tmp_path / "altered")
    code, out, _ = conform(folder, SHRINK, "--seeds", 4, "--json")
    assert code == 1
    verdicts = [json.loads(line) for line in out.splitlines()]
    assert [one["points"] == ALL_POINTS for one in verdicts] == [False, True]


# -- what it writes --------------------------------------------------------------------------------


def test_write_leaves_each_run_in_the_recordings_own_format(conform: Conform) -> None:
    conform(SHRINK, "--seeds", 2, "--write", "played")
    runs = {path.name: read_recording(path) for path in PLAYED.iterdir()}
    assert sorted(runs) == ["1", "2"]
    real = read_recording(SHRINK)
    for run in runs.values():
        assert run.settings == real.settings
        assert {fact["kind"] for fact in real.events} <= {fact["kind"] for fact in run.events}
        assert {one.lane for one in run.results} == {one.lane for one in real.results}
    assert runs["1"].events != runs["2"].events


def test_a_run_that_was_written_is_a_recording_that_is_agreed_with(conform: Conform) -> None:
    conform(SHRINK, "--seeds", 1, "--write", "played")
    _, out, _ = conform(PLAYED / "1", "--seeds", 1, "--json")
    assert json.loads(out)["seeds_agreeing"] == 1


def test_two_recordings_of_one_name_are_written_apart(conform: Conform, tmp_path: Path) -> None:
    twin = altered(lambda facts: None, tmp_path / "shrink-expand")
    conform(SHRINK, twin, "--seeds", 1, "--write", "played")
    assert len(list(Path("played").glob("*/1/recording.jsonl"))) == 2


# -- guided, and choices ---------------------------------------------------------------------------


@pytest.mark.slow
def test_a_guided_match_is_a_file_of_choices_that_is_played_without_the_recording(
    conform: Conform,
) -> None:
    options = ("--guided", "--budget", "60s", "--jobs", 1, "--save", "choices.json")
    code, out, _ = conform(SHRINK, *options, "--json")
    assert (code, json.loads(out)["matched"]) == (0, True)
    chosen = json.loads(Path("choices.json").read_bytes())
    assert {fact["kind"] for fact in chosen["stimuli"]} == {"stimulus"}
    code, out, _ = conform("--replay", "choices.json", "--write", "played")
    assert code == 0
    assert "choices, base seed" in out
    assert list(PLAYED.glob("match/recording.jsonl"))
    code, out, _ = conform(SHRINK, "--replay", "choices.json", "--json")
    assert (code, json.loads(out)["matched"]) == (0, True)


def last_metadata_with_another_isr(facts: list[dict[str, Any]]) -> None:
    next(f for f in reversed(facts) if f.get("kind") == "update_metadata")["isr"].reverse()


@pytest.mark.slow
def test_without_a_match_no_choices_are_written(conform: Conform, tmp_path: Path) -> None:
    folder = altered(last_metadata_with_another_isr, tmp_path / "altered")
    code, out, _ = conform(folder, "--guided", "--budget", "2s", "--jobs", 1, "--save", "choices")
    assert code == 1
    assert "  nothing is written to choices: no match\n" in out
    assert not Path("choices").exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "choices.json"),
        (b"{}", "choices.json"),
        (b"no choices", "choices.json"),
    ],
)
def test_what_are_no_choices_is_one_line(
    conform: Conform, content: bytes | None, said: str
) -> None:
    if content is not None:
        Path("choices.json").write_bytes(content)
    code, out, err = conform("--replay", "choices.json")
    assert (code, out, err.count("\n")) == (64, "", 1)
    assert said in err


# -- what cannot be played is never a pass ---------------------------------------------------------


def unknown_action(facts: list[dict[str, Any]]) -> None:
    next(f for f in facts if f.get("do") == "pause")["do"] = "bewitch"


def unknown_parameter(facts: list[dict[str, Any]]) -> None:
    next(f for f in facts if f.get("do") == "pause")["gently"] = True


def unknown_version(facts: list[dict[str, Any]]) -> None:
    facts[0]["kafka"] = "9.1.0"


def no_version(facts: list[dict[str, Any]]) -> None:
    facts[0]["kafka"] = "soon"


def no_settings(facts: list[dict[str, Any]]) -> None:
    del facts[0]


def no_time(facts: list[dict[str, Any]]) -> None:
    del facts[5]["t"]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (unknown_action, "no action bewitch"),
        (unknown_parameter, "gently"),
        (unknown_version, "no profile for Kafka 9.1.0"),
        (no_version, "recording.jsonl:1: settings: kafka is not a version"),
        (no_settings, "recording.jsonl:1: the first line is not the settings"),
        (no_time, "recording.jsonl:6"),
    ],
)
@pytest.mark.parametrize("how", [(), ("--guided",)])
def test_what_cannot_be_played_is_one_line_and_64(
    conform: Conform,
    tmp_path: Path,
    how: tuple[str, ...],
    spoil: Callable[[list[dict[str, Any]]], None],
    said: str,
) -> None:
    folder = altered(spoil, tmp_path / "spoilt")
    code, out, err = conform(folder, "--seeds", 1, *how)
    assert (code, out, err.count("\n")) == (64, "", 1)
    assert str(folder) in err
    assert said in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "a recording is missing"),
        (("nowhere",), "nowhere: neither recording.jsonl nor recording.jsonl.gz here"),
        ((SHRINK, "--seeds", 0), "--seeds"),
        ((SHRINK, "--zookeeper", "elsewhere"), "--zookeeper elsewhere: simulated or embedded"),
        ((SHRINK, "--budget", "a while"), "--budget: 'a while' is not a duration"),
        ((SHRINK, "--guided", "--replay", "x"), "--guided and --replay: one of them"),
        ((SHRINK, "--guided", "--zookeeper", "embedded"), "--guided plays in virtual time"),
        ((SHRINK, "--save", "x"), "--save keeps the choices of --guided for one recording"),
        ((SHRINK, "--against"), "--against: at least two recordings of one script"),
        ((SHRINK, SHRINK, "--replay", "x"), "--replay: at most one recording"),
        ((SHRINK, "--only", "2,some"), "--only 2,some: seeds, as in 2,30,41"),
        ((SHRINK, "--only", "2", "--guided"), "--only and --guided: one of them"),
        ((SHRINK, "--only", "2", "--zookeeper", "embedded"), "--only plays in virtual time"),
    ],
)
def test_options_that_cannot_be_are_one_line_and_64(
    conform: Conform, arguments: tuple[object, ...], said: str
) -> None:
    code, out, err = conform(*arguments)
    assert (code, out, err.count("\n")) == (64, "", 1)
    assert said in err
