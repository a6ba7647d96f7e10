"""`isr run --check` as a user meets it: the same run in two processes, or where they part."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from emulator.cli.parts import run_check
from tests.cli.test_replay import SCENARIO
from tests.command import Isr

HASH_DEPENDENT = ("-m", "tests.cli.hash_dependent")


@pytest.fixture
def isr(isr: Isr, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Isr:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "scratch").mkdir()
    Path("tried.yaml").write_text(SCENARIO + 'expect: ["notifications: 7"]\n')

    return isr


def test_two_processes_play_the_same_and_the_verdict_is_the_runs_own(isr: Isr) -> None:
    code, out, _ = isr("run", "tried.yaml", "--check", "--seed", "12", "--quiet")
    lines = out.splitlines()
    assert code == 1
    assert lines[1].startswith("NOT HELD  notifications: 7")
    one, other = run_check.hash_seeds(12)
    events = len(Path("runs/latest/trace.ndjson").read_text().splitlines()) - 1
    assert lines[-1] == (
        f"checked        the same {events:,} events in two processes "
        f"(PYTHONHASHSEED {one} and {other})"
    )
    assert lines[-2].endswith("isr run tried.yaml --seed 0xc --zookeeper simulated --check")
    assert len(list(Path("runs/tried").iterdir())) == 1
    assert list(Path("scratch").iterdir()) == []


def test_a_check_prints_the_seed_first_and_shows_the_run_like_any_other(isr: Isr) -> None:
    _, out, _ = isr("run", "tried.yaml", "--check", "--seed", "0X1F")
    assert out.splitlines()[0].startswith("seed 0x1f   tried, 6 s, virtual time")
    assert "paused" in out
    assert "propagation" in out


def test_json_has_the_summary_and_the_check(isr: Isr) -> None:
    code, out, err = isr("run", "tried.yaml", "--check", "--seed", "12", "--json")
    told = json.loads(out)
    summary = json.loads(Path(told["run_directory"], "summary.json").read_bytes())
    assert code == 1
    assert told == summary | {"check": told["check"]}
    assert told["check"] == {
        "hash_seeds": list(run_check.hash_seeds(12)),
        "same": True,
        "events": summary["events"],
        "first_difference": None,
        "second_run_directory": None,
    }
    assert "checked" in err


def test_what_depends_on_the_hash_is_found_and_both_runs_are_kept(
    isr: Isr, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_check, "PROGRAM", HASH_DEPENDENT)
    code, out, _ = isr("run", "tried.yaml", "--check", "--seed", "12", "--quiet")
    assert code == 1
    assert "checked        NOT the same in two processes (PYTHONHASHSEED " in out
    assert "first difference: event " in out
    assert "\n  first     " in out
    assert "\n  second    " in out
    code, out, _ = isr("run", "tried.yaml", "--check", "--seed", "12", "--json")
    check = json.loads(out)["check"]
    assert (code, check["same"]) == (1, False)
    found = check["first_difference"]
    assert found["first"] != found["second"]
    assert found["event"] == check["events"]
    assert Path(check["second_run_directory"], "trace.ndjson").is_file()


def test_a_run_that_fails_ends_the_check_as_it_ended_itself(
    isr: Isr, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_check, "PROGRAM", ("-c", "import sys; sys.exit('isr: no disk')"))
    code, out, err = isr("run", "tried.yaml", "--check", "--quiet")
    assert (code, out, err) == (1, "", "isr: no disk\n")


@pytest.mark.parametrize("zookeeper", ["embedded", "localhost:2181"])
def test_a_live_run_cannot_be_checked(isr: Isr, zookeeper: str) -> None:
    code, out, err = isr("run", "tried.yaml", "--check", "--zookeeper", zookeeper)
    assert (code, out) == (64, "")
    assert err == "isr: --check works only in virtual time: --zookeeper simulated\n"


@pytest.mark.parametrize("seed", [0, 1, 12, (1 << 64) - 1])
def test_the_two_hash_seeds_are_never_one(seed: int) -> None:
    one, other = run_check.hash_seeds(seed)
    assert one != other
    assert all(0 <= hash_seed < 1 << 32 for hash_seed in (one, other))
