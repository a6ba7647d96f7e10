"""Every shipped scenario in both worlds: `isr run` on a real ZooKeeper server, and virtual time.

What must agree, for every scenario that is free of races (which of two brokers is elected is
one): the state znodes (1), notifications (2), the sessions and the controller (3), what each broker
was told (4), ISR decisions (5), requests to ZooKeeper by thread (6), and what became of the records
(7), as the judge of recordings compares them. Not the lengths of delays: the phases of periodic
tasks belong to a broker's boot, which takes its own time in each world (and N times as long, seen
from within, when time is scaled). The expectations bound them.

For the same reason (4) is left out where a notification went by the 60 s rule, while changes went
on: the controller reads, and tells, whatever version is there when that run of the task comes.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from emulator.conformance.compare import judge
from emulator.runs.play import PlayOptions
from emulator.trace.events import (
    ActionApplied,
    AnyEvent,
    BrokerExited,
    IsrUpdated,
    ZkReply,
    ZkRequest,
    ZkSent,
    ZkTransaction,
)
from tests.live.agreeing import (
    ISR,
    ROOT,
    SEEDS,
    TOLD,
    LiveRun,
    comparable,
    isr_run,
    simulated,
    written,
)
from tests.sim.shipped_runs import NAMES, RACE_FREE, played, scenario
from zk import paths
from zk.ops import Transaction
from zk.real.txnlog import read_log

pytestmark = pytest.mark.live

TIME_SCALE = 6
LEAST_LAG_MS = 200
"""A lag time that is shorter on the wall clock than this is lost to the machine's own hiccups."""

OURS = "2.6"
"""Scenarios of other versions are played on a real server in `make soak`."""

AT_A_TIME = 4
"""A live run is idle for most of its time."""

READS = ("exists", "getData", "getChildren2")
SESSIONS = ("createSession", "closeSession")
LOST = (-4, -112)
"""CONNECTIONLOSS and SESSIONEXPIRED: whether it was applied is not known."""


@pytest.fixture(scope="module")
def runs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[LiveRun]]]:
    """The chosen tests' runs, a few at a time, the longest first; a test waits for its own."""
    out = tmp_path_factory.mktemp("runs")
    chosen = {name for item in request.session.items for name in NAMES if f"[{name}]" in item.name}
    longest_first = sorted(chosen, key=lambda name: -scenario(name).duration_us)
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        yield {name: pool.submit(scaled_run, name, out / name) for name in longest_first}


def scaled_run(name: str, out: Path) -> LiveRun:
    """As fast as its lag time allows."""
    lag_ms = int(scenario(name).settings.get("replica.lag.time.max.ms", "10000"))
    return isr_run(name, out, "--time-scale", str(min(TIME_SCALE, lag_ms // LEAST_LAG_MS)))


def of_our_version(name: str) -> Any:
    """The name; other versions' cost too much time to be played each time."""
    played = scenario(name)
    started = {getattr(step.action, "profile", "") for step in played.steps}
    ours = played.profile == OURS and not started - {"", OURS}
    return name if ours else pytest.param(name, marks=pytest.mark.soak)


@pytest.fixture(params=[of_our_version(name) for name in NAMES])
def run(request: pytest.FixtureRequest, runs: dict[str, Future[LiveRun]]) -> LiveRun:
    return runs[request.param].result()


def test_what_it_expects_holds_in_both(run: LiveRun) -> None:
    assert run.code == 0, run.said
    assert run.summary["verdict"] == "held"
    virtual = played(scenario(run.summary["scenario"]), PlayOptions(seed=0)).findings
    live = {one["text"]: one["held"] for one in run.summary["expectations"]}
    assert live == {text: found.held for text, found in virtual.items()}


@pytest.mark.parametrize("name", RACE_FREE)
def test_the_judge_of_recordings_cannot_tell_which_is_which(
    name: str, runs: dict[str, Future[LiveRun]]
) -> None:
    """Whichever of the two is the recording. Free of races are ISR histories and notifications: who
    had a record when a leader changed, and so truncates, a play and a seed may draw differently."""
    run = runs[name].result()
    simulations = [simulated(run.summary["scenario"], seed) for seed in SEEDS]
    points = comparable(run)
    verdict = judge(run.recording, simulations)
    assert {point: verdict.nearest_differences[point] for point in points} == dict.fromkeys(points)
    if TOLD in points:
        assert {one.what for one in verdict.timings if one.min_ms is None} == set()
    turned = [judge(one, [run.recording]).nearest_differences for one in simulations]
    assert dict.fromkeys(points) in [{point: one[point] for point in points} for one in turned]


@pytest.mark.parametrize("name", RACE_FREE)
def test_a_race_free_one_agrees_literally(name: str, runs: dict[str, Future[LiveRun]]) -> None:
    """ISR histories and notifications, byte for byte, and who wrote them."""
    live = written(runs[name].result().recording)
    assert [written(simulated(name, seed)) for seed in SEEDS] == [live] * len(SEEDS)


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
    """From sender to request to transaction to reply, cause by cause. The only exceptions are
    requests that failed with their connection or session, and those of a process that died."""
    by_seq = {event.seq: event for event in run.events}
    sent = {event.seq for event in run.of(ZkSent) if event.op not in READS}
    logged = [one for one in run.of(ZkTransaction) if one.op not in SESSIONS and one.broker]
    replies = [event for event in run.of(ZkReply) if event.op not in READS]
    answered = [one for one in replies if one.code not in LOST]
    requests = [by_seq[one.cause] for one in logged]
    assert all(isinstance(one, ZkRequest) for one in requests)
    applied = [one.cause for one in requests]
    assert len(set(applied)) == len(applied)
    assert set(applied) <= sent
    dead = {event.seq for event in run.of(ZkSent) if dies_waiting(run, event)}
    lost = {origin(by_seq, one) for one in replies if one.code in LOST}
    assert sent - set(applied) <= lost | dead
    told = {one.cause for one in answered}
    assert len(told) == len(answered)
    assert told <= {one.seq for one in logged}
    assert {one.seq for one in logged if one.seq not in told} <= {
        one.seq for one in logged if by_seq[one.cause].cause in lost | dead
    }
    for reply in answered:
        transaction = by_seq[reply.cause]
        assert transaction.broker == reply.broker
        if not reply.code and transaction.op == "setData":
            assert (transaction.path, transaction.version) == (reply.path, reply.version)


def origin(by_seq: dict[int, AnyEvent], reply: ZkReply) -> int:
    """The request's own event, from wherever its way ended."""
    at = by_seq[reply.cause]
    while not isinstance(at, ZkSent):
        at = by_seq[at.cause]
    return at.seq


def dies_waiting(run: LiveRun, sent: ZkSent) -> bool:
    """Its process is killed (or exits) before an answer comes."""
    for event in run.events[sent.seq + 1 :]:
        if isinstance(event, ZkReply) and event.broker == sent.broker and event.path == sent.path:
            return False
        if isinstance(event, BrokerExited) and event.broker == sent.broker:
            return True
        if isinstance(event, ActionApplied) and (event.do, event.broker) == ("kill", sent.broker):
            return True
    return True


def test_every_reply_and_watch_event_has_its_cause(run: LiveRun) -> None:
    told = [event for event in run.events if event.kind in ("zk_reply", "zk_watch_fired")]
    assert [event for event in told if event.cause < 0] == []


def test_the_log_command_reads_the_log_of_a_run(run: LiveRun) -> None:
    """It has each ISR update, and may have a write whose response was lost with its connection."""
    command = (*ISR, "zookeeper", "log", str(run.directory), "--path", "/brokers/topics", "--json")
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (told.returncode, told.stderr) == (0, "")
    logged = map(json.loads, told.stdout.splitlines())
    states = [one for one in logged if one["op"] == "setData" and one["path"].endswith("/state")]
    changes = {
        (paths.topic_partition_state(*e.partition), e.zk_version): list(e.isr)
        for e in run.of(IsrUpdated)
        if not e.thread.endswith("to-controller-send-thread")  # AlterIsr: a multi of the controller
    }
    by_seq = {event.seq: event for event in run.events}
    lost = {origin(by_seq, one) for one in run.of(ZkReply) if one.code in LOST}
    unanswered = {
        (sent.path, sent.version + 1)
        for sent in run.of(ZkSent)
        if sent.op == "setData" and (sent.seq in lost or dies_waiting(run, sent))
    }
    written = {(one["path"], one["version"]): one["payload"]["isr"] for one in states}
    assert written | changes == written
    assert written.keys() - changes.keys() <= unanswered
