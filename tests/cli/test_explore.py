"""`isr explore`, `isr replay FILE`, `isr shrink FILE`, as a user runs them."""

from __future__ import annotations

import json
from bdb import BdbQuit
from pathlib import Path

import pytest

from tests.command import Isr

STILL = """\
guards: {stay-at-log-end: off}
cluster: {brokers: 3, config: {replica.lag.time.max.ms: 2000, zookeeper.session.timeout.ms: 9000}}
topics: {orders: {partitions: [[1, 2, 3]]}}
workload: [{produce: orders, rate: 20, from: 2s, until: 3s}]
run: 9s
"""
SAID = "seed 0x20, still, profile 2.6, stay-at-log-end=off, 20 steps from 3s on"
STANDS = ("--fault", "pause 2 for 3s", "--fault", "pause 3 for 10ms", "--faults", 2)


@pytest.fixture
def isr(isr: Isr, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Isr:
    """The command in a directory with one scenario."""
    monkeypatch.chdir(tmp_path)
    Path("still.yaml").write_text(STILL, encoding="utf-8")
    return isr


def explored(isr: Isr, *more: object) -> tuple[int, str, str]:
    options = ("--seed", "0x20", "--from", "3s", "--schedules", 20)
    return isr("explore", "still.yaml", *options, *more)


def test_what_fails_is_a_file_that_replays_and_shrinks(isr: Isr) -> None:
    code, out, _ = explored(isr, *STANDS)
    lines = out.splitlines()
    assert code == 1
    assert lines[0] == SAID
    assert lines[-1] == "repeat it  isr replay runs/explore/still-0x20.yaml"
    assert any(line.startswith("step") and "pause 2" in line for line in lines)

    code, out, _ = isr("replay", "runs/explore/still-0x20.yaml", "--width", 120)
    assert code == 0
    assert "✗" in out
    assert "the same: " in out
    assert out.splitlines()[-1] == "repeat it  isr replay runs/explore/still-0x20.yaml"

    code, out, _ = isr("shrink", "runs/explore/still-0x20.yaml", "--width", 120)
    assert code == 0
    assert "-> 1 faults and choices" in out
    assert out.splitlines()[-1] == "repeat it  isr replay runs/explore/still-0x20-small.yaml"
    code, out, _ = isr("replay", "--json", "runs/explore/still-0x20-small.yaml")
    told = json.loads(out)
    assert (code, told["same"]) == (0, True)
    assert [fault["do"] for fault in told["faults"]] == ["pause 2"]


def test_a_schedule_that_comes_out_otherwise_is_told(isr: Isr) -> None:
    explored(isr, *STANDS)
    file = Path("runs/explore/still-0x20.yaml")
    file.write_text(file.read_text().replace("rate: 20", "rate: 21"), encoding="utf-8")
    code, out, err = isr("replay", file, "--width", 120)
    assert (code, "different" in out) == (1, True) or "it was made with another" in err


def test_nothing_found_says_something_only_where_a_race_was_run(isr: Isr) -> None:
    fixed = ("--guard", "stay-at-log-end=on")
    code, out, _ = explored(isr, *STANDS, *fixed, "--sometimes", "BadVersion seen")
    assert (code, "verdict    unknown" in out) == (2, True)
    Path("still.yaml").write_text(STILL.replace("until: 3s", "until: 8s"), encoding="utf-8")
    code, out, _ = explored(isr, *STANDS, *fixed, "--sometimes", "ISR changed")
    assert (code, "verdict    nothing violated" in out) == (0, True)
    code, out, _ = explored(isr, *fixed, "--then", "0s")
    assert (code, "verdict    unknown" in out) == (2, True)


def test_everything_is_one_json_object_too(isr: Isr) -> None:
    how = ("--strategy", "exhaustive", "--steps", 3, "--then", "0s")
    code, out, err = explored(isr, *how, "--schedules", 200, "--json")
    told = json.loads(out)
    assert err.startswith("seed 0x20")
    assert told["complete"] is True
    assert told["seed"] == 0x20
    assert told["verdict"] == code == 2
    assert told["schedule"] is None


def test_the_model_of_asynchronous_isr_updates(isr: Isr) -> None:
    code, out, _ = isr("explore", "async-isr")
    assert code == 0
    assert "15,416, 66,938 transitions, depth 20, complete" in out
    assert "published  134,008 states" in out
    code, out, _ = isr("explore", "async-isr", "--guard", "maximal-isr=off", "--json")
    told = json.loads(out)
    assert code == 1
    assert len(told["counterexample"]) == told["depth"] == 6


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("explore", "nowhere"), "there is no scenario nowhere"),
        (("explore", "still.yaml", "--from", "soon"), "--from soon"),
        (("explore", "still.yaml", "--window", "x"), "--window x"),
        (("explore", "still.yaml", "--then", "x"), "--then x"),
        (("explore", "still.yaml", "--fault", "paus 2"), "--fault paus 2"),
        (("explore", "still.yaml", "--sometimes", "BadVersio"), "BadVersion seen"),
        (("explore", "async-isr", "--profile", "2.6"), "has no AlterIsr"),
        (("replay", "none.yaml"), "none.yaml"),
        (("replay", "still.yaml"), "not a schedule"),
        (("shrink", "still.yaml"), "not a schedule"),
    ],
)
def test_a_mistake_is_one_line(isr: Isr, arguments: tuple[str, ...], said: str) -> None:
    code, line = isr.fails(*arguments)
    assert code == 64
    assert said in line


def test_break_stops_at_the_violation_in_the_debugger(
    isr: Isr, monkeypatch: pytest.MonkeyPatch
) -> None:
    explored(isr, *STANDS)
    stopped: list[str] = []
    monkeypatch.setattr("pdb.set_trace", lambda: stopped.append("here"))
    code, _, err = isr("replay", "--break", "runs/explore/still-0x20.yaml", "--json")
    assert code == 0
    assert "broken: " in err
    assert stopped


def test_whoever_quits_the_debugger_breaks_the_replay_off(
    isr: Isr, monkeypatch: pytest.MonkeyPatch
) -> None:
    explored(isr, *STANDS)

    def quits() -> None:
        raise BdbQuit

    monkeypatch.setattr("pdb.set_trace", quits)
    code, _, err = isr("replay", "--break", "runs/explore/still-0x20.yaml")
    assert code == 130
    assert err.splitlines()[-1].startswith("broken: ")
