"""Every shipped scenario in both worlds: `isr run` on a real ZooKeeper server, and virtual time.

What must agree, for every scenario: the state znodes (1), notifications (2), the sessions and the
controller (3), what each broker was told (4), ISR decisions (5), requests to ZooKeeper by thread
(6), and what became of the records (7), as the judge of recordings compares them. Not the lengths
of delays: the phases of periodic tasks belong to a broker's boot, which takes its own time in each
world (and N times as long, seen from within, when time is scaled). The expectations bound them.

For the same reason (4) is left out where a notification went by the 60 s rule, while changes went
on: the controller reads, and tells, whatever version is there when that run of the task comes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from emulator.conformance.compare import judge
from emulator.conformance.export import export
from emulator.conformance.recording import Recording
from emulator.runtime.play import PlayOptions, play
from emulator.trace.events import (
    AnyEvent,
    IsrChangeNotified,
    ZkReply,
    ZkRequest,
    ZkSent,
    ZkTransaction,
)
from emulator.trace.reader import read_events
from emulator.trace.sink import Sink
from tests.sim.shipped_runs import NAMES, RACE_FREE, played, scenario
from zk.ops import Transaction
from zk.txnlog import read_log

pytestmark = pytest.mark.live

ROOT = Path(__file__).resolve().parents[2]
ISR = (sys.executable, "-c", "from emulator.cli import main; main()")
TIME_SCALE = 6
AT_A_TIME = 3
"""A live run is idle for most of its time."""

PLAYS = 3
"""On a busy machine threads of a live run wait for the processor for longer than any seed draws."""

SEEDS = range(3)
SETTINGS = {"kind": "settings", "kafka": "2.6.3"}
READS = ("exists", "getData", "getChildren2")
POINTS = range(1, 8)
TOLD = 4
QUIET_MS = 5_000
UNKNOWN = 2


@dataclass(frozen=True)
class LiveRun:
    """A run directory, read back."""

    code: int
    said: str
    summary: dict[str, Any]
    directory: Path
    events: list[AnyEvent]

    @property
    def recording(self) -> Recording:
        return export(self.events, SETTINGS, "live")

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


def isr_run(name: str, out: Path) -> LiveRun:
    """As a user has it; again when the machine was too slow to tell, or for the judge to agree."""
    for _ in range(PLAYS):
        command = (*ISR, "run", name, "--time-scale", str(TIME_SCALE), "--out", str(out), "--json")
        told = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
        )
        assert told.stdout, told.stderr
        summary = json.loads(told.stdout)
        directory = Path(summary["run_directory"])
        events = list(read_events(directory / "trace.ndjson"))
        played_live = LiveRun(told.returncode, told.stderr, summary, directory, events)
        found = differences(played_live)
        if told.returncode != UNKNOWN and not any(found[p] for p in comparable(played_live)):
            break
    return played_live


def differences(run: LiveRun) -> dict[int, object]:
    """Of the live run and the simulated one that is nearest, by the judge's points."""
    runs = [simulated(run.summary["scenario"], seed) for seed in SEEDS]
    return dict(judge(run.recording, runs).nearest_differences)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[LiveRun]]]:
    """All of them, a few at a time, the longest first; whoever needs one waits for it."""
    out = tmp_path_factory.mktemp("runs")
    longest_first = sorted(NAMES, key=lambda name: -scenario(name).duration_us)
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        yield {name: pool.submit(isr_run, name, out / name) for name in longest_first}


@pytest.fixture(params=NAMES)
def run(request: pytest.FixtureRequest, runs: dict[str, Future[LiveRun]]) -> LiveRun:
    return runs[request.param].result()


@cache
def simulated(name: str, seed: int) -> Recording:
    sink = Sink()
    play(scenario(name), PlayOptions(seed=seed), sink)
    return export(sink.events, SETTINGS, f"seed {seed}")


def test_what_it_expects_holds_in_both(run: LiveRun) -> None:
    assert run.code == 0, run.said
    assert run.summary["verdict"] == "held"
    virtual = played(scenario(run.summary["scenario"]), PlayOptions(seed=0)).findings
    live = {one["text"]: one["held"] for one in run.summary["expectations"]}
    assert live == {text: found.held for text, found in virtual.items()}


def test_the_judge_of_recordings_cannot_tell_which_is_which(run: LiveRun) -> None:
    runs = [simulated(run.summary["scenario"], seed) for seed in SEEDS]
    points = comparable(run)
    verdict = judge(run.recording, runs)
    assert {point: verdict.nearest_differences[point] for point in points} == dict.fromkeys(points)
    if TOLD in points:
        assert {one.what for one in verdict.timings if one.min_ms is None} == set()
    for one in runs:
        differences = judge(one, [run.recording]).nearest_differences
        assert {point: differences[point] for point in points} == dict.fromkeys(points)


def comparable(run: LiveRun) -> list[int]:
    by_60_s = any(e.quiet_ms < QUIET_MS for e in run.of(IsrChangeNotified))
    return [point for point in POINTS if point != TOLD or not by_60_s]


@pytest.mark.parametrize("name", RACE_FREE)
def test_a_race_free_one_agrees_literally(name: str, runs: dict[str, Future[LiveRun]]) -> None:
    """ISR histories and notifications, byte for byte, and who wrote them."""
    live = written(runs[name].result().recording)
    assert [written(simulated(name, seed)) for seed in SEEDS] == [live] * len(SEEDS)


def written(recording: Recording) -> dict[str, list[tuple[object, ...]]]:
    """By state znode, and for the notifications as one."""
    found: dict[str, list[tuple[object, ...]]] = {}
    for one in recording.transactions:
        notified = one.path.startswith("/isr_change_notification/")
        if notified or one.path.endswith("/state"):
            row = (one.broker, one.op, one.path, one.data, one.version)
            found.setdefault("notifications" if notified else one.path, []).append(row)
    return found


def test_the_trace_has_what_the_servers_log_has(run: LiveRun) -> None:
    """All of it, in its order; after the trace has ended the sessions were closed."""
    log = [entry.transaction for entry in read_log(run.directory / "zookeeper" / "version-2")]
    traced = [_as_logged(event) for event in run.of(ZkTransaction)]
    assert traced == [_as_traced(one) for one in log[: len(traced)]]
    assert {one.op for one in log[len(traced) :]} == {"closeSession"}
    assert len(log) == len(traced) + len(scenario(run.summary["scenario"]).boots)


def _as_logged(event: ZkTransaction) -> tuple[object, ...]:
    ops = tuple((op.op, op.path, op.data, op.version, op.code) for op in event.ops)
    return (event.zxid, event.op, event.path, event.data, event.version, event.code, ops)


def _as_traced(one: Transaction) -> tuple[object, ...]:
    def op(it: Transaction) -> tuple[object, ...]:
        return it.op, it.path or None, _text(it.data), it.version, it.code or None

    first, path, data, version, code = op(one)
    return one.zxid, first, path, data, version, code, tuple(map(op, one.ops))


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()


def test_every_write_of_a_broker_is_a_transaction_and_the_other_way_round(run: LiveRun) -> None:
    """From sender to request to transaction to reply, cause by cause, nothing left over."""
    by_seq = {event.seq: event for event in run.events}
    sent = [event for event in run.of(ZkSent) if event.op not in READS]
    logged = [
        one for one in run.of(ZkTransaction) if one.op not in ("createSession", "closeSession")
    ]
    replies = [event for event in run.of(ZkReply) if event.op not in READS]
    requests = [by_seq[one.cause] for one in logged]
    assert all(isinstance(one, ZkRequest) for one in requests)
    assert [one.seq for one in sent] == sorted(one.cause for one in requests)
    assert sorted(one.cause for one in replies) == [one.seq for one in logged]
    for reply in replies:
        transaction = by_seq[reply.cause]
        assert transaction.broker == reply.broker
        if not reply.code and transaction.op == "setData":
            assert (transaction.path, transaction.version) == (reply.path, reply.version)


def test_every_reply_and_watch_event_has_its_cause(run: LiveRun) -> None:
    assert [e for e in run.events if e.kind in ("zk_reply", "zk_watch_fired") and e.cause < 0] == []


def test_the_log_command_reads_the_log_of_a_run(run: LiveRun) -> None:
    command = (*ISR, "zookeeper", "log", str(run.directory), "--path", "/brokers/topics", "--json")
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (told.returncode, told.stderr) == (0, "")
    states = [one for one in map(json.loads, told.stdout.splitlines()) if one["op"] == "setData"]
    changes = [e for e in run.events if e.kind == "isr_updated"]
    assert [one["payload"]["isr"] for one in states] == [list(change.isr) for change in changes]
    assert [one["version"] for one in states] == [change.zk_version for change in changes]
