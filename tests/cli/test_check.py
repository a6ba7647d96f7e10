"""`isr check RUN` as a user meets it: what held, what did not and why, what is left of a run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from emulator import cli
from tests.command import Isr

SCENARIO = """\
about: a follower stands still and comes back
cluster: {first: 3, config: {replica.lag.time.max.ms: 1000}}
topics: {orders: {partitions: [[1, 2, 3]]}}
workload: [{produce: orders, rate: 5, from: 1s, until: 6s}]
faults: [{at: 2s, pause: {broker: 2}, for: 3s}]
run: 25s
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("checked")
    (folder / "tried.yaml").write_text(SCENARIO)
    options = ("--zookeeper", "simulated", "--seed", "5", "--quiet", "--out", str(folder / "runs"))
    assert cli.execute(["run", str(folder / "tried.yaml"), *options]) == 0
    return (folder / "runs" / "latest").resolve()


def altered(run: Path, to: Path, change: Callable[[list[bytes]], list[bytes]]) -> Path:
    """A copy of the run with other lines in its trace."""
    shutil.copytree(run, to)
    trace = to / "trace.ndjson"
    trace.write_bytes(b"".join(change(trace.read_bytes().splitlines(keepends=True))))
    return to


def lied(lines: list[bytes]) -> list[bytes]:
    """The leader takes over another ISR than ZooKeeper has."""
    at = next(n for n, line in enumerate(lines) if b'"kind":"isr_updated"' in line)
    event = json.loads(lines[at])
    event["isr"] = [1, 2]
    return [*lines[:at], json.dumps(event).encode() + b"\n", *lines[at + 1 :]]


def test_a_run_that_keeps_them_all(isr: Isr, run: Path) -> None:
    code, out, _ = isr("check", run, "--converged")
    assert code == 0
    assert "verdict   held" in out
    assert "held      leader in isr" in out
    assert "held      metadata converges" in out


def test_safety_alone_is_judged_unless_the_end_is_asked_for(isr: Isr, run: Path) -> None:
    _, out, _ = isr("check", run, "--json")
    _, more, _ = isr("check", run, "--json", "--converged")
    safety, all_of_them = json.loads(out)["invariants"], json.loads(more)["invariants"]
    assert "metadata converges" not in safety
    assert set(all_of_them) > set(safety)


def test_a_violation_names_the_two_facts_and_the_chain_of_causes(
    isr: Isr, run: Path, tmp_path: Path
) -> None:
    broken = altered(run, tmp_path / "broken", lied)
    code, out, _ = isr("check", broken)
    assert code == 1
    lines = out.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("BROKEN"))
    assert "isr updates are written   orders-0" in lines[at]
    words = [line.split()[0] for line in lines[at + 1 : at + 6]]
    assert words == ["before", "cause", "then", "then", "then"]
    assert "held      isr updates are written" not in out
    assert out.rstrip().endswith("not held")


def test_as_json_the_facts_are_events_of_the_trace(isr: Isr, run: Path, tmp_path: Path) -> None:
    broken = altered(run, tmp_path / "broken", lied)
    code, out, _ = isr("check", broken, "--json")
    told = json.loads(out)
    assert (code, told["verdict"], told["whole"]) == (1, "not held", True)
    violation = next(v for v in told["violations"] if v["invariant"] == "isr updates are written")
    events = [json.loads(line) for line in (broken / "trace.ndjson").read_bytes().splitlines()[1:]]
    earlier, later = violation["facts"]
    assert events[earlier]["kind"] == "zk_transaction"
    assert events[later]["kind"] == "isr_updated"
    assert violation["chain"][-1] == later
    for cause, effect in zip(violation["chain"], violation["chain"][1:], strict=False):
        assert events[effect]["cause"] == cause


def killed(lines: list[bytes]) -> list[bytes]:
    return [*lines[: len(lines) // 2], lines[len(lines) // 2][:20]]


def test_of_a_run_that_was_killed_what_it_wrote_is_judged(
    isr: Isr, run: Path, tmp_path: Path
) -> None:
    """Whether it would have converged is unknown."""
    rest = altered(run, tmp_path / "killed", killed)
    (rest / "summary.json").unlink()
    code, out, _ = isr("check", rest)
    assert (code, "interrupted" in out) == (0, True)
    code, out, _ = isr("check", rest, "--converged", "--json")
    assert (code, json.loads(out)["verdict"]) == (2, "unknown")


def test_a_trace_without_events_proves_nothing(isr: Isr, run: Path, tmp_path: Path) -> None:
    empty = altered(run, tmp_path / "empty", lambda lines: lines[:1])
    (empty / "summary.json").unlink()
    assert isr("check", empty)[0] == 2


def test_what_is_no_run_is_one_line(isr: Isr, tmp_path: Path) -> None:
    code, _, err = isr("check", tmp_path / "nothing")
    assert (code, len(err.splitlines())) == (64, 1)
