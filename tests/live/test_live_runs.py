"""`isr run` on a real ZooKeeper server as a user meets it: servers of his own, mistakes, Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_acl

from emulator.trace.reader import read_events
from tests.command import Isr
from tests.live.leftovers import children, gone, nothing_stays
from zk.real.server import EmbeddedServer

pytestmark = pytest.mark.live

ROOT = Path(__file__).resolve().parents[2]
SHORT = """\
about: a follower stands still for a moment
cluster: {first: 1, config: {replica.lag.time.max.ms: 1000, replica.fetch.backoff.ms: 200}}
topics: {orders: {partitions: [[1, 2, 3]]}}
workload: [{produce: orders, rate: 20, acks: 1, from: 1s, until: 7s}]
faults: [{at: 2s, pause: {broker: 3}, for: 3s}]
run: 8s
kernel_late: 400ms  # of the lag, 500 ms at twice the speed
expect: ["isr of orders-0 goes [1, 2, 3] -> [1, 2] -> [1, 2, 3]"]
"""
LONG = """\
about: a follower never comes back
cluster: {first: 1, config: {replica.lag.time.max.ms: 1000, replica.fetch.backoff.ms: 200}}
topics: {orders: {partitions: [[1, 2, 3]]}}
workload: [{produce: orders, rate: 20, acks: 1, from: 1s}]
faults: [{at: 2s, cut_link: {broker: 1, peer: 3}}]
run: 10min
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("short.yaml").write_text(SHORT)
    Path("long.yaml").write_text(LONG)
    return tmp_path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    """One that the user has."""
    with EmbeddedServer(tmp_path_factory.mktemp("zookeeper"), tick_ms=500) as running:
        yield running


@contextmanager
def looking_at(server: EmbeddedServer) -> Iterator[KazooClient]:
    """A separate client, not during a run, because it opens and closes files."""
    made = KazooClient(hosts=str(server.address))
    made.start()
    yield made
    made.stop()
    made.close()


def isr(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """The command in this process, which it leaves as it was."""
    with nothing_stays():
        return Isr(capsys)(*arguments)


VERDICTS = (0, 1, 2)  # played to its end; what it expects is not asked of a busy machine


def run_at(capsys: pytest.CaptureFixture[str], address: str) -> tuple[int, Any, str]:
    arguments = ("run", "short.yaml", "--zookeeper", address, "--time-scale", "2", "--json")
    code, out, err = isr(capsys, *arguments)
    return code, json.loads(out) if out else None, err


def test_a_server_that_the_user_has_below_a_chroot(
    server: EmbeddedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    code, summary, err = run_at(capsys, f"{server.address}/a/b")
    assert (code, summary["verdict"]) == (0, "held"), err
    assert summary["zookeeper"] == f"{server.address}/a/b"
    with looking_at(server) as client:
        state, stat = client.get("/a/b/brokers/topics/orders/partitions/0/state")
    assert (json.loads(state)["isr"], stat.version) == ([1, 2, 3], 2)
    events = list(read_events(Path(summary["run_directory"]) / "trace.ndjson"))
    written = [e for e in events if e.kind == "zk_transaction" and e.op == "setData"]
    assert [
        e.version for e in written if e.path == "/brokers/topics/orders/partitions/0/state"
    ] == [
        1,
        2,
    ]
    code, _, err = isr(capsys, "zookeeper", "log", summary["run_directory"])
    assert (code, err.count("\n")) == (64, 1)
    assert f"is with its server, {server.address}/a/b" in err


def test_a_run_leaves_nothing_on_it_that_a_session_owns_and_refuses_what_is_there(
    server: EmbeddedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """The next run need not wait for sessions to run out. But the brokers' logs are gone."""
    code, _, err = run_at(capsys, f"{server.address}/twice")
    assert code in VERDICTS, err
    with looking_at(server) as client:
        assert client.get_children("/twice/brokers/ids") == []
        assert client.exists("/twice/controller") is None
    code, summary, err = run_at(capsys, f"{server.address}/twice")
    assert (code, summary) == (64, None)
    assert "a topic of this scenario is at" in err
    assert "use another chroot, such as" in err


def test_a_chroot_that_cannot_be_made_and_one_that_cannot_be_written(
    server: EmbeddedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    with looking_at(server) as client:
        client.create("/locked", acl=[make_acl("world", "anyone", read=True)])
    for chroot, said in (
        ("/locked/a", f"no rights to create the chroot /locked/a at {server.address}"),
        ("/locked", f"broker 1 cannot start at {server.address}/locked: "),
    ):
        code, summary, err = run_at(capsys, f"{server.address}{chroot}")
        assert (code, summary) == (64, None)
        assert err.splitlines()[-1].startswith(f"isr: {said}")


def test_a_session_time_out_that_the_server_would_change(
    server: EmbeddedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("--zookeeper", str(server.address), "--time-scale", "20", "--quiet")
    code, _, err = isr(capsys, "run", "short.yaml", *arguments)
    assert code == 64
    assert err.startswith("isr: session time-out 900 ms asked, the server grants 1000 ms")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "address", ["nowhere", "localhost", "localhost:99999", "localhost:2181//a"]
)
def test_what_is_no_address(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = isr(capsys, "run", "short.yaml", "--zookeeper", address, "--quiet")
    assert (code, err.count("\n")) == (64, 1)
    assert address in err


def test_ctrl_c_in_the_middle_keeps_what_was_recorded_and_takes_the_server_away() -> None:
    process = _started("long.yaml")
    server = _until_a_follower_is_out(process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 2, err
    summary = json.loads(out)
    assert (summary["interrupted"], summary["isr_shrinks"]) == (True, 1)
    assert all(gone(pid) for pid in server)
    events = list(read_events(Path(summary["run_directory"]) / "trace.ndjson"))
    assert [e.isr for e in events if e.kind == "isr_updated"] == [(1, 2)]
    assert not any(e.kind == "thread_failed" for e in events)


def test_a_run_that_is_killed_leaves_a_trace_and_no_server() -> None:
    process = _started("long.yaml")
    server = _until_a_follower_is_out(process)
    process.kill()
    process.communicate(timeout=30)
    assert all(gone(pid) for pid in server)
    events = list(read_events(Path("runs/latest/trace.ndjson")))
    assert [e.isr for e in events if e.kind == "isr_updated"] == [(1, 2)]


STRUCK = {
    "stands still": "[{at: 1s, pause: {server: zookeeper}}]",
    "is gone": "[{at: 1s, stop_zookeeper: }]",
    "was started again": "[{at: 1s, stop_zookeeper: , for: 1s}, {at: 3s, expire_session: 2}]",
}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("server_is", STRUCK)
def test_a_run_that_is_ended_while_its_server_is_struck_takes_it_away(
    server_is: str, number: signal.Signals
) -> None:
    Path("struck.yaml").write_text(f"faults: {STRUCK[server_is]}\nrun: 10min\n")
    process = _started("struck.yaml")
    started = _until_struck(process, STRUCK[server_is].count("at:") + ("for:" in STRUCK[server_is]))
    servers = [pid for pid in started if "java" in _command(pid)]
    assert len(servers) == (server_is != "is gone")
    assert all(_stands_still(pid) == (server_is == "stands still") for pid in servers)
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == (2 if number is signal.SIGINT else -number), err
    assert all(gone(pid) for pid in started)


def _until_struck(process: subprocess.Popen[str], faults: int) -> set[int]:
    """Wait until the trace has these faults. Returns the run's processes."""
    assert process.stderr is not None
    for line in process.stderr:
        if "under-replicated" not in line:
            continue
        told = Path("runs/latest/trace.ndjson").read_text().splitlines()
        if sum('"kind":"action_applied"' in line for line in told) == faults + 1:
            return children(process.pid)
    raise AssertionError("the run ended before its faults")


def _command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()


def _stands_still(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def test_a_server_that_ends_by_itself_ends_the_run() -> None:
    """For example because its disk is full."""
    process = _started("long.yaml")
    started = _until_a_follower_is_out(process)
    (server,) = (pid for pid in started if "java" in _command(pid))
    os.kill(server, signal.SIGKILL)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 70
    assert "Traceback" not in err
    assert err.splitlines()[-1].startswith("isr: the ZooKeeper server has ended: ")
    assert all(gone(pid) for pid in started)


def _started(scenario: str) -> subprocess.Popen[str]:
    arguments = ("run", scenario, "--time-scale", "4", "--json")
    return subprocess.Popen(
        [sys.executable, "-c", "from emulator.cli import main; main()", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        bufsize=1,
    )


def _until_a_follower_is_out(process: subprocess.Popen[str]) -> set[int]:
    """Wait until the progress line shows it. Returns the run's processes."""
    assert process.stderr is not None
    assert any("1 under-replicated" in line for line in process.stderr)
    started = children(process.pid)
    assert started
    return started
