"""`isr play SCENARIO` as a user meets it who pipes lines into it."""

from __future__ import annotations

import io
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from emulator import cli
from emulator.trace.reader import read_events

SCENARIO = """\
about: something to play with
cluster: {first: 3, config: {replica.lag.time.max.ms: 1000}}
topics: {orders: {partitions: [[1, 2, 3]]}}
workload: [{produce: orders, rate: 10, from: 1s, until: 3s}]
faults: [{at: 1s, kill: {broker: 1}}]
run: 4s
"""
Play = Callable[..., tuple[int, str, str]]


@pytest.fixture
def play(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Play:
    """Lines typed, one after the other, in a directory of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "140")
    Path("tried.yaml").write_text(SCENARIO)

    def call(*lines: str, options: tuple[str, ...] = ("--seed", "11")) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        code = cli.execute(["play", "tried.yaml", *options])
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return code, out, err

    return call


def after(out: str, line: str) -> str:
    """The output between this input line and the next prompt."""
    return out.partition(f"> {line}\n")[2].partition("s> ")[0]


def test_lanes_grow_and_what_was_typed_is_a_scenario_that_plays_the_same(
    play: Play, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = play("run 2s", "pause 2", "run 3s", "heal", "run 3s")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "seed 0xb   tried by hand, virtual time; help, quit"
    assert "2.000 s> pause 2" in lines
    assert "paused" in after(out, "pause 2")
    assert "shrinks [1,2,3] → [1,3]" in after(out, "run 3s")
    assert "runs again" in after(out, "heal")
    assert out.count("time   controller (b3)") == 1
    assert lines[-2].split() == ["saved", "in", "tried-by-hand.yaml"]
    again = shlex.split(lines[-1].removeprefix("repeat it"))
    assert again[0] == "isr"
    assert cli.execute([*again[1:], "--quiet"]) == 0
    capsys.readouterr()
    events = list(read_events(Path("runs/latest/trace.ndjson")))
    assert [e.isr for e in events if e.kind == "isr_updated"] == [(1, 3), (1, 3, 2)]


def test_it_can_be_asked_what_there_is_and_why(play: Play) -> None:
    code, out, _ = play("run 2s", "pause 2", "run 2s", "describe", "why", "why orders-0@v0", "show")
    assert code == 0
    described = after(out, "describe")
    assert "brokers 1, 2 (paused), 3" in described
    assert "Leader: 1  Replicas: 1,2,3  Isr: 1,3  Osr: 2  ≠" in described
    assert "orders-0@v1  ISR shrinks [1,2,3] → [1,3]" in after(out, "why")
    assert "orders-0@v0  created with ISR [1,2,3]" in after(out, "why orders-0@v0")
    assert "shrinks [1,2,3] → [1,3]" in after(out, "show")
    assert "ReplicaFetcherThread-0-1" in play("run 2s", "describe orders-0 fetchers")[1]


def test_undo_takes_the_last_line_back(play: Play) -> None:
    code, out, _ = play("run 2s", "kill 1", "run 30s", "undo", "undo", "run until 3s", "describe")
    assert code == 0
    assert "taken back: time until 32 s; it is 2 s" in out
    assert "taken back: kill 1; it is 2 s" in out
    assert "brokers 1, 2, 3\n" in after(out, "describe")
    assert "faults: []" in Path("tried-by-hand.yaml").read_text()


def test_a_step_goes_to_the_next_thing_that_is_told(play: Play) -> None:
    code, out, _ = play("run 2s", "pause 2", "step", "undo", "step", "step # again", "describe")
    assert code == 0
    assert "produce stop" in after(out, "step")
    assert "shrinks [1,2,3] → [1,3]" in after(out, "step # again")


def test_heal_takes_what_it_names_or_everything(play: Play) -> None:
    code, _, _ = play("pause 2", "cut 1 zookeeper", "crash 3", "heal zookeeper", "heal", "run 1s")
    assert code == 0
    done = Path("tried-by-hand.yaml").read_text()
    order = ("pause", "cut_link", "crash", "heal_link", "resume", "start")
    places = [done.index(f"{name}:") for name in order]
    assert places == sorted(places)


def test_records_are_handed_over_by_hand(play: Play) -> None:
    _, out, _ = play("run 500ms", "produce orders-0 5", "run 400ms", "describe")
    assert "send orders-0, records 5" in after(out, "produce orders-0 5")
    assert " 5 " in next(line for line in after(out, "describe").splitlines() if "leader," in line)


def test_json_says_what_was_played(play: Play) -> None:
    code, out, err = play("run 2s", "pause 2", options=("--seed", "11", "--json"))
    told: dict[str, Any] = json.loads(out)
    assert code == 0
    assert (told["scenario"], told["seed"], told["at_ms"]) == ("tried", 11, 2000)
    assert told["file"] == "tried-by-hand.yaml"
    assert told["acts"] == [
        {"at_ms": 2000, "actions": []},
        {"at_ms": 2000, "actions": [{"do": "pause", "broker": 2}]},
    ]
    assert "paused" in err


def test_nothing_typed_is_nothing_saved(play: Play) -> None:
    code, out, _ = play("# only a word", "", "help", "quit", "run 5s")
    assert code == 0
    assert "saved in" not in out
    assert "delay_link BROKER PEER DELAY_MS" in out
    assert sorted(path.name for path in Path().iterdir()) == ["tried.yaml"]


def test_a_file_that_is_there_is_left_alone_unless_it_is_named(play: Play) -> None:
    play("run 1s")
    play("run 2s")
    assert Path("tried-by-hand-2.yaml").exists()
    play("run 3s", "save copy.yaml", options=("--save", "mine.yaml"))
    assert Path("mine.yaml").read_text().replace("mine", "copy") == Path("copy.yaml").read_text()


def test_settings_of_the_command_line_are_saved_too(play: Play) -> None:
    play("run 1s", options=("--set", "num.io.threads=3"))
    assert "num.io.threads: '3'" in Path("tried-by-hand.yaml").read_text()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("puase 2", "unknown command puase; did you mean pause?"),
        ("xyzzy", "unknown command xyzzy; help lists all commands"),
        ("pause 9", "broker: there is no broker 9; the cluster has 1, 2, 3"),
        ("start 1", "start: broker 1 runs already"),
        ("run soon", "run: 'soon' is not a duration"),
        ("run until 1s", "run: it is 1 s already"),
        ("undo undo 'x", "No closing quotation"),
        ("heal 3", "heal 3: no such fault; current faults: pause 2"),
        ("why orders-7@v1", "orders-7: no such partition"),
        ("why orders-0@v9", "orders-0@v9: no such version"),
        ("describe clicks-0", "clicks-0: no such partition"),
        ("save no/such/place.yaml", "no/such/place.yaml: cannot be written"),
    ],
)
def test_the_first_mistake_ends_it_with_one_line_and_64_and_what_was_done_is_saved(
    play: Play, line: str, said: str
) -> None:
    code, out, err = play("run 1s", "pause 2", line, "run 7s")
    assert (code, err.count("\n")) == (64, 1)
    assert err.startswith("isr: ")
    assert said in err
    assert "run 7s" not in out
    assert "{at: 1s, pause: {broker: 2}}" in Path("tried-by-hand.yaml").read_text()
