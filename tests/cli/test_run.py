"""`isr run` as a user meets it: what it prints, what it leaves, and how it ends."""

from __future__ import annotations

import errno
import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from emulator.kernel.scheduler import TaskFailed
from emulator.runs import run_directory
from emulator.trace.reader import read_events, read_header
from emulator.worlds.errors import DidNotComeUp
from tests import command
from tests.cli.fake_play import Play, ended, raising, shrink_and_expand, telling
from tests.unit.scenario.story import Story
from zk.real.server import JavaNotFound, NotReady, StartFailed

ROOT = Path(__file__).resolve().parents[2]
SCENARIO = """\
about: tried
topics: {orders: {partitions: [[1, 2, 3]]}}
faults: [{at: 5s, pause: {broker: 2}, for: 6s}]
run: 22s
expect:
  - isr of orders-0 goes [1, 2, 3] -> [1, 3] -> [1, 3, 2]
  - notifications: 1
"""
ISSUE_KEYS = {
    "scenario", "seed", "profile", "zookeeper", "verdict", "expectations", "isr_shrinks",
    "isr_expands", "failed_isr_updates", "notifications", "propagation_ms",
    "stale_metadata_ms_max", "under_min_isr_ms", "acknowledged", "refused", "lost", "events",
    "virtual_ms", "wall_ms", "kernel_late_ms_max", "run_directory",
}  # fmt: skip


class Isr(command.Isr):
    """The command, in a directory of its own, with a play of the test's own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
        super().__init__(capsys)
        self.monkeypatch = monkeypatch
        self.playing(telling(shrink_and_expand()))

    def playing(self, play: Play) -> Isr:
        self.monkeypatch.setattr("emulator.runs.play.play", play)
        return self


@pytest.fixture
def isr(monkeypatch: pytest.MonkeyPatch, capsys: Any, tmp_path: Path) -> Isr:
    monkeypatch.chdir(tmp_path)
    Path("tried.yaml").write_text(SCENARIO)
    return Isr(monkeypatch, capsys)


def test_a_run_whose_expectations_hold_ends_with_0_and_says_how_to_repeat_it(isr: Isr) -> None:
    code, out, err = isr("run", "tried.yaml", "--seed", "0x1f", "--set", "num.io.threads=4")
    assert code == 0
    lines = out.splitlines()
    assert lines[0].startswith("seed 0x1f   tried, 22 s")
    assert lines[-1].split(maxsplit=2)[2] == (
        "isr run tried.yaml --seed 0x1f --set num.io.threads=4"
    )
    assert "held      notifications: 1" in out
    assert "verdict   held" in out
    assert err == ""


def test_the_last_line_repeats_the_run_exactly(isr: Isr) -> None:
    _, out, _ = isr("run", "tried.yaml", "--zookeeper", "simulated", "--out", "my runs", "--quiet")
    again = shlex.split(out.splitlines()[-1].split(maxsplit=2)[2])
    code, out_again, _ = isr(*again[1:], "--quiet")
    assert code == 0
    assert out_again.splitlines()[-1] == out.splitlines()[-1]


def test_one_expectation_that_does_not_hold_ends_with_1(
    isr: Isr, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    story = Story().created().at(7).written(1, 1, 3).at(17).notified()
    code, out, _ = isr.playing(telling(story))("run", "tried.yaml", "--quiet")
    assert code == 1
    assert "NOT HELD  isr of orders-0 goes [1, 2, 3] -> [1, 3] -> [1, 3, 2]" in out


def test_a_run_that_never_came_to_what_it_expects_ends_with_2(isr: Isr) -> None:
    Path("quiet.yaml").write_text(
        "run: 5s\ntopics: {orders: {partitions: [[1, 2, 3]]}}\nexpect: [notifications: at most 2]"
    )
    code, out, _ = isr.playing(telling(Story().created()))("run", "quiet.yaml", "--quiet")
    assert code == 2
    assert "unknown   notifications: at most 2" in out


@pytest.mark.parametrize(
    ("zookeeper", "scale", "late_ms", "code"),
    [
        ("embedded", "1", 199, 0),
        ("embedded", "1", 201, 2),
        ("embedded", "10", 1999, 0),
        ("embedded", "10", 2001, 2),
        ("simulated", "1", 5000, 0),
    ],
)
def test_a_live_run_whose_kernel_was_late_proves_nothing(
    isr: Isr, zookeeper: str, scale: str, late_ms: int, code: int
) -> None:
    isr.playing(telling(shrink_and_expand(), ended(kernel_late_us=late_ms * 1000)))
    arguments = "run", "tried.yaml", "--quiet", "--zookeeper", zookeeper, "--time-scale", scale
    assert isr(*arguments)[0] == code


def test_json_is_one_object_on_standard_output_and_all_else_on_the_other(isr: Isr) -> None:
    code, out, err = isr("run", "tried.yaml", "--json", "--seed", "7")
    summary = json.loads(out)
    assert code == 0
    assert set(summary) >= ISSUE_KEYS
    assert summary["seed"] == 7
    assert summary["verdict"] == "held"
    assert [one["held"] for one in summary["expectations"]] == [True, True]
    assert summary["propagation_ms"] == {"min": 6000, "p50": 6000, "max": 6000}
    assert (summary["isr_shrinks"], summary["isr_expands"], summary["notifications"]) == (1, 1, 1)
    assert (summary["acknowledged"], summary["refused"], summary["lost"]) == (50, 0, 0)
    shrinks = summary["metrics"]["kafka.server:type=ReplicaManager,name=IsrShrinksPerSec"]
    assert shrinks["Count"] == 1
    assert "repeat it" in err
    assert json.loads(Path(summary["run_directory"], "summary.json").read_bytes()) == summary


def test_every_key_of_the_summary_is_documented(isr: Isr) -> None:
    _, out, _ = isr("run", "tried.yaml", "--json")
    documented = (ROOT / "docs" / "summary.md").read_text()
    assert [key for key in json.loads(out) if f"`{key}`" not in documented] == []
    assert [key for key in json.loads(out)["metrics"] if f"`{key}`" not in documented] == []


def test_a_run_is_a_directory_that_says_what_was_run(isr: Isr) -> None:
    isr("run", "tried.yaml", "--seed", "9", "--quiet")
    run = Path("runs/latest")
    assert run.resolve().parent == Path("runs/tried").resolve()
    assert run.resolve().name.endswith("-0x9")
    assert (run / "scenario.yaml").read_text() == SCENARIO
    about = json.loads((run / "run.json").read_bytes())
    assert (about["seed"], about["zookeeper"]) == (9, "embedded")
    assert about["repeat"] == "isr run tried.yaml --seed 0x9"
    assert about["versions"]["python"]
    assert read_header(run / "trace.ndjson").scenario == "tried"
    assert list(read_events(run / "trace.ndjson")) == shrink_and_expand().events


def test_two_runs_in_one_second_have_two_directories(isr: Isr) -> None:
    runs = [json.loads(isr("run", "tried.yaml", "--json", "--seed", "1")[1]) for _ in range(2)]
    assert runs[0]["run_directory"] != runs[1]["run_directory"]
    assert Path("runs/latest").resolve() == Path(runs[1]["run_directory"]).resolve()


def test_a_seed_is_drawn_where_none_is_given(isr: Isr) -> None:
    seeds = {isr("run", "tried.yaml", "--quiet")[1].split("--seed ")[1] for _ in range(3)}
    assert len(seeds) == 3


def test_a_progress_line_is_told_even_where_there_is_no_terminal(
    isr: Isr, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("emulator.cli.parts.progress.PLAIN_EVERY_S", -1.0)
    _, _, err = isr("run", "tried.yaml")
    assert "17.0 s  0 under-replicated  2 ISR changes  1 notification  0 conflicts" in err
    assert isr("run", "tried.yaml", "--quiet")[2] == ""


# -- mistakes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run"], "Missing argument 'SCENARIO'"),
        (["run", "nothing-like-it"], "there is no scenario nothing-like-it"),
        (["run", "brief-leg"], "did you mean brief-lag?"),
        (["run", "no/file.yaml"], "no/file.yaml: there is no such file"),
        (["run", "tried.yaml", "--seed", "seven"], "--seed seven: not a whole number"),
        (["run", "tried.yaml", "--seed", "-1"], "--seed -1: between 0 and 2^64 - 1"),
        (["run", "tried.yaml", "--time-scale", "0"], "--time-scale"),
        (["run", "tried.yaml", "--time-scale", "501"], "501: ZooKeeper's tick of 500 ms would be"),
        (["run", "tried.yaml", "--set", "num.io.threads"], "write KEY=VALUE"),
        (["run", "tried.yaml", "--set", "a.b=1"], "there is no setting a.b"),
        (
            ["run", "tried.yaml", "--zookeeper", "simulate"],
            "embedded, docker, simulated or HOST:PORT",
        ),
        (["run", "tried.yaml", "--zookeeper", "a:1/b//c"], "the chroot stands once"),
        (["run", "tried.yaml", "--fast"], "No such option"),
        (["run", "tried.yaml", "--out", "/proc/none"], "/proc/none"),
        (["walk"], "No such command 'walk'"),
        (["scenarios", "brief-leg"], "did you mean brief-lag?"),
    ],
)
def test_a_mistake_is_one_line_and_64(isr: Isr, arguments: list[str], said: str) -> None:
    code, line = isr.fails(*arguments)
    assert (code, said in line) == (64, True), line
    assert not Path("runs").exists()


def test_a_mistake_in_the_file_is_named_with_its_line(isr: Isr) -> None:
    Path("tried.yaml").write_text(SCENARIO.replace("broker: 2", "broker: 9"))
    code, line = isr.fails("run", "tried.yaml")
    assert code == 64
    assert line == (
        "isr: tried.yaml:3: faults[0].pause.broker: there is no broker 9; the cluster has 1, 2, 3"
    )


def test_a_zookeeper_that_does_not_answer_is_one_line_and_what_was_recorded_is_kept(
    isr: Isr,
) -> None:
    isr.playing(raising(NotReady("127.0.0.1:1: connection refused")))
    assert isr.fails("run", "tried.yaml", "--quiet") == (
        64, "isr: 127.0.0.1:1: connection refused"
    )  # fmt: skip
    assert list(read_events(Path("runs/latest/trace.ndjson")))


def test_a_missing_java_is_told_with_what_needs_none(isr: Isr) -> None:
    isr.playing(raising(JavaNotFound("Java 17 or newer is needed: none in JAVA_HOME or PATH")))
    code, line = isr.fails("run", "tried.yaml", "--quiet")
    assert code == 64
    assert line.endswith("; --target simulated plays in virtual time, without Java")


def test_a_server_that_ends_by_itself_is_70(isr: Isr) -> None:
    isr.playing(raising(TaskFailed("server", StartFailed("it ended: no space"))))
    assert isr.fails("run", "tried.yaml") == (70, "isr: it ended: no space")


def test_a_cluster_that_does_not_come_up_is_one_line_and_70(isr: Isr) -> None:
    isr.playing(raising(DidNotComeUp("the cluster did not come up")))
    assert isr.fails("run", "tried.yaml") == (70, "isr: the cluster did not come up")


def test_no_descriptors_left_is_one_line_and_70(isr: Isr) -> None:
    error = OSError(errno.EMFILE, os.strerror(errno.EMFILE), "broker-2.ndjson")
    isr.playing(raising(TaskFailed("broker-2/main", error)))
    line = "isr: [Errno 24] Too many open files: 'broker-2.ndjson'"
    assert isr.fails("run", "tried.yaml") == (70, line)


def test_a_fault_of_ours_is_one_line_with_its_traceback_in_the_run_directory(isr: Isr) -> None:
    isr.playing(raising(AssertionError("ISR\nwithout leader")))
    code, line = isr.fails("run", "tried.yaml", "--seed", "3")
    assert code == 70
    assert "internal error: AssertionError: ISR without leader; the traceback is in " in line
    kept = Path(line.rsplit(" ", 1)[1])
    assert kept.parent.resolve() == Path("runs/latest").resolve()
    assert "AssertionError: ISR\nwithout leader" in kept.read_text()
    assert len(list(read_events(kept.parent / "trace.ndjson"))) > 3


@pytest.mark.parametrize(
    "fault", ["pause: {server: zookeeper}, for: 1s", "stop_zookeeper: ", "start_zookeeper: "]
)
def test_what_strikes_a_server_that_is_not_ours_is_refused_before_anything_is_made(
    isr: Isr, fault: str
) -> None:
    Path("struck.yaml").write_text(f"faults: [{{at: 5s, {fault}}}]\nrun: 9s\n")
    code, line = isr.fails("run", "struck.yaml", "--zookeeper", "localhost:2181/kafka")
    assert code == 64
    given = "at 5 s cannot be given to a cluster at --zookeeper localhost:2181/kafka"
    assert f"{given}: the ZooKeeper server is not ours" in line
    assert line.endswith("(--zookeeper embedded or simulated)")
    assert not Path("runs").exists()
    assert isr("run", "struck.yaml", "--zookeeper", "simulated")[0] != 64


def test_a_full_disk_is_one_line_and_70(isr: Isr, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_directory, "TRACE", "/dev/full")
    code, line = isr.fails("run", "tried.yaml", "--quiet")
    assert code == 70
    assert "No space left on device; the trace up to then is kept" in line


# -- ended from outside ----------------------------------------------------------------------------


def started(directory: Path) -> subprocess.Popen[str]:
    """`isr run` in a process of its own, when its story is told."""
    arguments = ["run", "tried.yaml", "--seed", "5", "--quiet"]
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.cli.fake_play", "stuck", *arguments],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "told\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_run_in_order_with_a_summary(
    isr: Isr, tmp_path: Path, number: signal.Signals
) -> None:
    process = started(tmp_path)
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (2, "")
    assert "verdict   unknown" in out
    summary = json.loads(Path("runs/latest/summary.json").read_bytes())
    assert summary["interrupted"] is True
    assert summary["isr_shrinks"] == 1


def test_a_reader_that_goes_away_is_no_verdict(isr: Isr, tmp_path: Path) -> None:
    arguments = shlex.join(
        [sys.executable, "-m", "tests.cli.fake_play", "told", "run", "tried.yaml"]
    )
    done = subprocess.run(
        ["bash", "-c", f"{arguments} | true; exit ${{PIPESTATUS[0]}}"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (141, "")


def test_a_killed_run_can_be_read_up_to_its_last_fraction_of_a_second(
    isr: Isr, tmp_path: Path
) -> None:
    process = started(tmp_path)
    process.kill()
    process.communicate(timeout=30)
    assert list(read_events(Path("runs/latest/trace.ndjson"))) == shrink_and_expand().events


def test_a_play_that_ends_by_itself_when_interrupted_says_so(isr: Isr) -> None:
    isr.playing(telling(shrink_and_expand(), ended(interrupted=True)))
    code, out, _ = isr("run", "tried.yaml")
    assert code == 2
    assert "verdict   unknown: the run was interrupted" in out


@pytest.mark.parametrize("zookeeper", ["embedded", "localhost:2181/kafka"])
def test_what_no_real_server_can_be_told_is_refused_before_anything_is_made(
    isr: Isr, zookeeper: str
) -> None:
    Path("half.yaml").write_text("faults: [{at: 5s, forget_session: 2, for: 2s}]\nrun: 9s\n")
    code, line = isr.fails("run", "half.yaml", "--zookeeper", zookeeper)
    assert code == 64
    given = f"forget_session at 5 s cannot be given to a cluster at --zookeeper {zookeeper}"
    assert f"{given}: a real ZooKeeper server does not support this; use --target simulated" in line
    assert line.endswith("use --target simulated")
    assert not Path("runs").exists()
    assert isr("run", "half.yaml", "--zookeeper", "simulated")[0] != 64
