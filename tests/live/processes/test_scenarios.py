"""`isr run --processes`: the scenarios of the other worlds, with signals for faults."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from emulator.trace import events
from emulator.trace.reader import read_events
from tests.command import Isr
from tests.live.agreeing import PLAYS, UNKNOWN
from tests.live.leftovers import children, gone, nothing_stays

pytestmark = [pytest.mark.live, pytest.mark.slow]

SHORT = """\
about: a follower stands still, another is killed, a link and a session go
cluster: {first: 1, config: {replica.lag.time.max.ms: 3000, zookeeper.session.timeout.ms: 6000}}
topics: {orders: {partitions: [[1, 2, 3]]}}
workload: [{produce: orders, rate: 20, acks: 1, from: 1s, until: 33s}]
faults:
  - {at: 2s, pause: {broker: 3}, for: 5s}
  - {at: 10s, kill: {broker: 2}, for: 7s}
  - {at: 24s, cut_link: {broker: 1, peer: 3}, for: 6s}
  - {at: 32s, expire_session: {broker: 3}}
  - {at: 33s, terminate: {broker: 2}}
  - {at: 33001ms, start: {broker: 2, if_down: true}}
  - {at: 33002ms, start: {broker: 2, if_down: true}}
run: 35s
expect:
  - isr of orders-0 becomes [1, 2] between 4s and 9s
  - isr of orders-0 becomes [1, 3] between 12s and 21s
"""


@pytest.fixture
def isr(capsys: pytest.CaptureFixture[str]) -> Isr:
    return Isr(capsys)


def test_a_scenario_with_each_broker_a_process(isr: Isr, tmp_path: Path) -> None:
    """Held as in the other worlds; one trace, in causal order, whose causes cross processes."""
    (tmp_path / "short.yaml").write_text(SHORT)
    words = ("run", tmp_path / "short.yaml", "--processes", "--json", "--out", tmp_path / "runs")
    for _ in range(PLAYS):
        with nothing_stays():
            code, out, err = isr(*words)
        if code != UNKNOWN:
            break
    summary = json.loads(out)
    assert code == 0, (summary, err)
    trace = list(read_events(Path(summary["run_directory"]) / "trace.ndjson"))
    assert [e.seq for e in trace] == list(range(len(trace)))
    assert [e.t for e in trace] == sorted(e.t for e in trace)
    assert all(e.cause < e.seq for e in trace)
    assert _led_across(trace, events.FetchSent, events.FollowerStateUpdated)
    assert _led_across(trace, events.ControlRequestSent, events.LeaderAndIsr)
    assert _led_across(trace, events.ZkTransaction, events.ZkWatchFired)
    states = [e for e in trace if isinstance(e, events.ZkSessionState) and e.cause >= 0]
    assert {e.state for e in states} == {"SyncConnected", "Expired"}
    assert all(isinstance(trace[e.cause], events.ZkTransaction) for e in states)
    assert summary["sessions_expired"] >= 2
    _requests_lead_from_brokers_to_transactions(trace)


def _requests_lead_from_brokers_to_transactions(trace: list[events.AnyEvent]) -> None:
    """Each write of a broker passed on the wire, sent by the thread that requested it."""
    written = [e for e in trace if isinstance(e, events.ZkTransaction) and e.broker]
    writes = [e for e in written if e.op not in ("createSession", "closeSession")]
    asked = [trace[e.cause] for e in writes]
    assert all(isinstance(one, events.ZkRequest) for one in asked)
    assert all(isinstance(trace[one.cause], events.ZkSent) for one in asked)
    assert all(trace[one.cause].thread == one.thread for one in asked)


def _led_across(trace: list[events.AnyEvent], cause: type, effect: type) -> bool:
    """Whether something of one kind led to something of another in another process."""
    effects = [e for e in trace if isinstance(e, effect) and e.cause >= 0]
    led = [(trace[e.cause], e) for e in effects]
    return any(isinstance(c, cause) and c.broker != e.broker for c, e in led)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_however_the_command_ends_its_brokers_and_its_server_end_too(
    how: signal.Signals, tmp_path: Path
) -> None:
    """Nor is there a file outside of the run directory."""
    (tmp_path / "short.yaml").write_text(SHORT)
    (tmp_path / "tmp").mkdir()
    isr = [sys.executable, "-c", "from emulator.cli import main; main()"]
    words = ["run", str(tmp_path / "short.yaml"), "--processes", "--out", str(tmp_path / "runs")]
    own = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    with subprocess.Popen([*isr, *words], env=own, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        started: set[int] = set()
        for _ in process.stderr:
            started = children(process.pid)
            if len(started) >= 4:
                break
        assert len(started) >= 4, "three brokers and a server"
        process.send_signal(how)
        rest = process.stderr.read()
    assert process.returncode == (-how if how == signal.SIGKILL else UNKNOWN), rest
    assert all(gone(pid) for pid in started)
    assert list((tmp_path / "tmp").iterdir()) == []


QUIET = """\
about: nothing is done to a cluster of three
cluster: {first: 1, config: {zookeeper.session.timeout.ms: 6000}}
topics: {orders: {partitions: [[1, 2, 3]]}}
run: 8s
"""


def test_a_broker_that_somebody_kills_is_on_the_trace(tmp_path: Path) -> None:
    """Not a step of the scenario, and nothing that its own trace could say."""
    (tmp_path / "quiet.yaml").write_text(QUIET)
    isr = [sys.executable, "-c", "from emulator.cli import main; main()"]
    words = ["run", str(tmp_path / "quiet.yaml"), "--processes", "--out", str(tmp_path / "runs")]
    killed: list[int] = []
    with subprocess.Popen([*isr, *words]) as process:
        while process.poll() is None:
            # Its topic is created when the cluster is up; before that a run waits for it in vain.
            if not killed and list(tmp_path.rglob("data-2/orders-0")):
                killed = [pid for pid in children(process.pid) if _is_broker(pid, 2)]
                os.kill(killed[0], signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):  # nothing else signals its readiness
                process.wait(0.1)
    assert killed
    (path,) = tmp_path.rglob("trace.ndjson")
    trace = [e for e in read_events(path) if e.broker == 2]
    halted = [e.reason for e in trace if isinstance(e, events.BrokerHalted)]
    states = [e.state for e in trace if isinstance(e, events.ProcessStateChanged)]
    assert halted == ["SIGKILL from outside the run"]
    assert states.count("dead") == 1
    assert states[-1] == "dead"


def _is_broker(pid: int, broker: int) -> bool:
    words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return b"broker" in words and words[words.index(b"--id") + 1] == str(broker).encode()
