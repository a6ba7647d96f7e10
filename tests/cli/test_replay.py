"""`isr replay RUN` as a user runs it: an identical run, and differences."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.command import Isr

SCENARIO = """\
about: a follower stands still for a moment
cluster: {first: 1, config: {replica.lag.time.max.ms: 1000}}
topics: {orders: {partitions: [[1, 2, 3]]}}
workload: [{produce: orders, rate: 5, from: 1s}]
faults: [{at: 2s, pause: {broker: 3}, for: 3s}]
run: 6s
"""


@pytest.fixture
def isr(isr: Isr, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Isr:
    """The command in this process, in a directory of its own with one run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "scratch").mkdir()
    Path("tried.yaml").write_text(SCENARIO)

    options = ("--zookeeper", "simulated", "--seed", "0x1f", "--set", "num.io.threads=3", "--quiet")
    assert isr("run", "tried.yaml", *options)[0] == 0
    return isr


def alter(change: Callable[[list[str]], None]) -> None:
    trace = Path("runs/latest/trace.ndjson")
    lines = trace.read_text().splitlines(keepends=True)
    change(lines)
    trace.write_text("".join(lines))


def test_a_run_comes_out_again_to_the_last_event_and_nothing_is_left_behind(isr: Isr) -> None:
    events = len(Path("runs/latest/trace.ndjson").read_text().splitlines()) - 1
    Path("tried.yaml").unlink()
    code, out, _ = isr("replay", "tried")
    assert code == 0
    assert out.splitlines()[0].startswith("seed 0x1f   tried, 6 s, virtual time")
    assert out.splitlines()[-1] == f"the same: {events:,} events, all of them"
    assert list(Path("scratch").iterdir()) == []
    assert len(list(Path("runs/tried").iterdir())) == 1


def test_json_says_the_same(isr: Isr) -> None:
    code, out, err = isr("replay", "latest", "--json")
    told = json.loads(out)
    assert code == 0
    assert (told["same"], told["first_difference"], told["replayed"]) == (True, None, None)
    assert (told["seed"], told["broken_off"], told["other_versions"]) == (0x1F, False, {})
    assert err.startswith("seed 0x1f")


def test_the_first_event_that_differs_is_told_with_those_before_it(isr: Isr) -> None:
    def an_isr(lines: list[str]) -> None:
        place = next(i for i, line in enumerate(lines) if '"isr_updated"' in line)
        lines[place] = lines[place].replace('"isr":[1,2]', '"isr":[2,1]')

    alter(an_isr)
    code, out, _ = isr("replay", "latest")
    assert code == 1
    assert "first difference: event " in out
    assert "isr [2,1]" in out and "isr [1,2]" in out
    assert out.count("\n  both ") == 3
    kept = Path(out.splitlines()[-1].split()[1])
    assert (kept / "trace.ndjson").is_file()
    told = json.loads(isr("replay", "latest", "--json")[1])
    assert told["first_difference"]["recorded"]["isr"] == [2, 1]
    assert told["first_difference"]["replayed"]["isr"] == [1, 2]
    assert told["first_difference"]["at_ms"] > 2000
    assert len(told["first_difference"]["before"]) == 3


def test_a_run_that_was_broken_off_is_replayed_as_far_as_it_goes(isr: Isr) -> None:
    def only_a_beginning(lines: list[str]) -> None:
        del lines[200:]
        lines[-1] = lines[-1][:7]

    alter(only_a_beginning)
    Path("runs/latest/summary.json").unlink()
    code, out, _ = isr("replay", "latest")
    assert code == 0
    assert "the same: 198 events, up to the point where the recorded run was interrupted" in out


def test_a_run_that_ended_by_itself_has_to_end_the_same(isr: Isr) -> None:
    alter(lambda lines: lines.__delitem__(slice(-1, None)))
    code, out, _ = isr("replay", "latest")
    assert code == 1
    assert "recorded  (end of the trace)" in out


def test_what_it_was_played_with_is_named_where_it_is_another_now(isr: Isr) -> None:
    file = Path("runs/latest/run.json")
    about: dict[str, Any] = json.loads(file.read_bytes())
    now = about["versions"]["code"]
    about["versions"]["code"] = "0123456789ab"
    file.write_text(json.dumps(about))
    code, out, _ = isr("replay", "latest")
    assert code == 0
    assert out.splitlines()[-1] == (
        f"different code: recorded with 0123456789ab, replayed with {now}"
    )


def _live(run: Path) -> None:
    about = json.loads((run / "run.json").read_bytes())
    (run / "run.json").write_text(json.dumps(about | {"zookeeper": "embedded"}))


def _not_described(run: Path) -> None:
    (run / "run.json").unlink()


def _without_scenario(run: Path) -> None:
    (run / "scenario.yaml").unlink()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_live, "was played live (ZooKeeper embedded); only a run in virtual time repeats"),
        (_not_described, "run.json: cannot be read: No such file"),
        (_without_scenario, "scenario.yaml: cannot be read: No such file"),
    ],
)
def test_what_cannot_be_replayed_is_one_line_and_64(
    isr: Isr, spoil: Callable[[Path], None], said: str
) -> None:
    spoil(Path("runs/latest"))
    code, out, err = isr("replay", "latest")
    assert (code, out, err.count("\n")) == (64, "", 1)
    assert said in err
    assert list(Path("scratch").iterdir()) == []
