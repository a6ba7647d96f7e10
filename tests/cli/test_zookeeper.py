"""`isr zookeeper`: the server in the foreground; `isr zookeeper log`: what a run's server wrote."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from emulator.trace.events import ZkTransaction
from emulator.trace.reader import Header, TraceWriter
from tests import command
from tests.live.leftovers import gone
from tests.unit.zk.written_log import (
    check,
    close_session,
    create,
    create_session,
    delete,
    error,
    log,
    multi,
    record,
    set_data,
)
from zk.real.server import parse_address, require_session_timeout

ROOT = Path(__file__).resolve().parents[2]
ONE, TWO, NOBODY = 0x1000_0000_0001, 0x1000_0000_0002, -5
STATE = "/brokers/topics/orders/partitions/0/state"
AT_MS = 1_600_000_000_123


def state(*isr: int) -> bytes:
    fields = {"controller_epoch": 1, "leader": 1, "version": 1, "leader_epoch": 0, "isr": isr}
    return json.dumps(fields).encode()


TRANSACTIONS = (
    (NOBODY, create_session(10_000)),
    (ONE, create_session(18_000)),
    (ONE, error(-110)),
    (ONE, multi(create("/brokers/ids/1", None, ephemeral=True))),
    (TWO, create("/brokers/ids/2", b"{}", ephemeral=True)),
    (TWO, multi(check("/controller_epoch", 2), create(STATE, state(1, 2, 3)))),
    (ONE, set_data(STATE, state(1, 3), 1)),
    (
        ONE,
        create(
            "/isr_change_notification/isr_change_0000000000",
            b'{"version":1,"partitions":[{"topic":"orders","partition":0}]}',
        ),
    ),
    (TWO, multi(delete("/isr_change_notification/isr_change_0000000000"))),
    (ONE, close_session("/brokers/ids/1")),
)


def stored(directory: Path, zookeeper: str = "embedded", seen: int = 9, torn: int = 0) -> Path:
    """A run directory whose trace has `seen` transactions; the log may be torn."""
    folder = directory / "zookeeper" / "version-2"
    folder.mkdir(parents=True)
    records = [
        record(session, zxid, one, AT_MS + zxid)
        for zxid, (session, one) in enumerate(TRANSACTIONS, 1)
    ]
    (folder / "log.1").write_bytes(log(records[: len(records) - torn]))
    with TraceWriter(directory / "trace.ndjson", Header(1, "tried", 7, "2.6", zookeeper)) as trace:
        for zxid in range(1, seen + 1):
            trace(ZkTransaction(zxid, zxid, 0, "", -1, zxid, "create"))
    return directory


class Isr(command.Isr):
    """The command, and what it prints of a log."""

    def lines(self, *arguments: str) -> list[dict[str, Any]]:
        code, out, err = self("zookeeper", "log", *arguments, "--json")
        assert (code, err) == (0, "")
        return [json.loads(line) for line in out.splitlines()]


@pytest.fixture
def isr(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Isr:
    monkeypatch.setenv("COLUMNS", "200")
    return Isr(capsys)


# -- the log ---------------------------------------------------------------------------------------


def test_each_transaction_is_a_row_with_its_session_and_what_it_says(
    isr: Isr, tmp_path: Path
) -> None:
    code, out, err = isr("zookeeper", "log", str(stored(tmp_path)))
    assert (code, err) == (0, "")
    rows = [" ".join(line.split()) for line in out.splitlines()]
    assert rows[0] == "zxid time (UTC) session operation path payload"
    assert rows[1:4] == [
        "0x1 12:26:40.124 0xfffffffffffffffb createSession time-out 10000 ms",
        "0x2 12:26:40.125 0x100000000001 broker 1 createSession time-out 18000 ms",
        "0x3 12:26:40.126 0x100000000001 broker 1 error NODE_EXISTS",
    ]
    assert "0x6 12:26:40.129 0x100000000002 broker 2 multi" in rows
    assert "check v2 /controller_epoch" in rows
    isr_change = "leader 1, leader_epoch 0, isr [1, 3], controller_epoch 1"
    assert f"0x7 12:26:40.130 0x100000000001 broker 1 setData v1 {STATE} {isr_change}" in rows
    assert rows[-1] == "0xa 12:26:40.133 0x100000000001 broker 1 closeSession /brokers/ids/1"


def test_with_json_each_is_an_object_on_a_line_of_its_own(isr: Isr, tmp_path: Path) -> None:
    told = isr.lines(str(stored(tmp_path)))
    assert [one["zxid"] for one in told] == list(range(1, 11))
    assert told[0] == {
        "zxid": 1,
        "at_ms": AT_MS + 1,
        "session": "0xfffffffffffffffb",
        "broker": None,
        "cxid": 1,
        "op": "createSession",
        "timeout_ms": 10_000,
    }
    assert told[6] | {"data": ""} == {
        "zxid": 7,
        "at_ms": AT_MS + 7,
        "session": "0x100000000001",
        "broker": 1,
        "cxid": 7,
        "op": "setData",
        "path": STATE,
        "data": "",
        "payload": {"leader": 1, "leader_epoch": 0, "isr": [1, 3], "controller_epoch": 1},
        "version": 1,
    }
    assert told[2] | {"code": -110, "error": "NODE_EXISTS"} == told[2]
    assert [op["op"] for op in told[5]["ops"]] == ["check", "create"]
    assert told[7]["payload"] == ["orders-0"]
    assert told[9]["removed"] == ["/brokers/ids/1"]


def test_what_is_no_payload_of_kafkas_is_said_to_be_none(isr: Isr, tmp_path: Path) -> None:
    told = isr.lines(str(stored(tmp_path)))
    assert told[4]["malformed"].startswith("/brokers/ids/2: ")
    assert "payload" not in told[4]


@pytest.mark.parametrize(
    ("options", "zxids"),
    [
        (["--path", "/isr_change_notification"], [8, 9]),
        (["--path", "/brokers/ids"], [4, 5, 10]),
        (["--path", STATE, "--broker", "2"], [6]),
        (["--broker", "1"], [2, 3, 4, 7, 8, 10]),
        (["--session", "0x100000000002"], [5, 6, 9]),
        (["--session", "0xfffffffffffffffb"], [1]),
        (["--path", "/nowhere"], []),
    ],
)
def test_a_part_of_it(isr: Isr, tmp_path: Path, options: list[str], zxids: list[int]) -> None:
    assert [one["zxid"] for one in isr.lines(str(stored(tmp_path)), *options)] == zxids


def test_a_torn_log_is_told_as_far_as_it_goes(isr: Isr, tmp_path: Path) -> None:
    code, out, err = isr("zookeeper", "log", str(stored(tmp_path, torn=4)), "--json")
    assert (code, len(out.splitlines())) == (64, 6)
    folder = tmp_path / "zookeeper" / "version-2"
    assert err == f"isr: {folder}: the log is torn: it ends at zxid 0x6, the run saw 0x9\n"


def _no_log(directory: Path) -> None:
    (directory / "zookeeper" / "version-2" / "log.1").unlink()


def _garbage(directory: Path) -> None:
    (directory / "zookeeper" / "version-2" / "log.1").write_bytes(b"ZKSN" + bytes(100))


def _no_trace(directory: Path) -> None:
    (directory / "trace.ndjson").write_text("{}\n")


@pytest.mark.parametrize(
    ("zookeeper", "spoil", "said"),
    [
        ("simulated", None, "this run was simulated: no server wrote a log"),
        ("there:2181/a", None, "the log of this run is with its server, there:2181/a"),
        ("embedded", _no_log, ": no log ("),
        ("embedded", _garbage, "log.1: not a ZooKeeper transaction log of version 2"),
        ("embedded", _no_trace, "line 1 is not a trace header"),
    ],
)
def test_a_run_without_a_log_is_one_line(
    isr: Isr, tmp_path: Path, zookeeper: str, spoil: Callable[[Path], None] | None, said: str
) -> None:
    stored(tmp_path, zookeeper)
    if spoil is not None:
        spoil(tmp_path)
    code, out, err = isr("zookeeper", "log", str(tmp_path))
    assert (code, out, err.count("\n")) == (64, "", 1)
    assert said in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["log", "nowhere"], "there is no run nowhere"),
        (
            ["log", "here", "--broker", "9"],
            "--broker 9: no session of it in this log; known brokers: 1, 2",
        ),
        (["log", "here", "--session", "0x9"], "--session 0x9: no such session in this log"),
        (["log", "here", "--session", "my"], "--session my: not a number such as"),
        (["--tick", "2"], "--tick: '2' is not a duration"),
        (["--tick", "1us"], "--tick 1us: whole milliseconds"),
        (["--data", "here/trace.ndjson/x"], "--data here/trace.ndjson/x: Not a directory"),
        (["--port", "99999"], "--port"),
        (["logs"], "logs"),
    ],
)
def test_a_mistake_is_one_line(
    isr: Isr, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    stored(tmp_path / "here")
    monkeypatch.chdir(tmp_path)
    code, out, err = isr("zookeeper", *arguments)
    assert (code, out, err.count("\n")) == (64, "", 1)
    assert said in err


# -- the server ------------------------------------------------------------------------------------


def started(*options: str) -> tuple[subprocess.Popen[str], str]:
    """The command as a process of its own, and the first line that it prints."""
    process = subprocess.Popen(
        [sys.executable, "-c", "from emulator.cli import main; main()", "zookeeper", *options],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


@pytest.mark.live
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_at_the_address_that_it_prints_until_a_signal(
    number: signal.Signals, tmp_path: Path
) -> None:
    process, line = started("--json", "--tick", "100ms", "--data", str(tmp_path / "kept"))
    about = json.loads(line)
    require_session_timeout(parse_address(about["address"]), 200)
    assert (about["tick_ms"], about["min_session_ms"], about["max_session_ms"]) == (100, 200, 2000)
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (0, "")
    assert err == "the ZooKeeper server has ended\n"
    assert gone(about["pid"])
    assert (tmp_path / "kept" / "version-2").is_dir()


@pytest.mark.live
def test_without_a_place_for_its_data_nothing_of_it_stays() -> None:
    process, address = started()
    require_session_timeout(parse_address(address), 4000)
    assert process.stderr is not None
    told = process.stderr.readline()
    assert "sessions of 4000 to 40000 ms. Ctrl-C ends it." in told
    data = Path(told.partition("data in ")[2].partition(";")[0])
    assert data.is_dir()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 0
    assert not data.exists()


@pytest.mark.live
def test_a_port_that_is_taken_and_a_server_that_is_killed() -> None:
    process, line = started("--json")
    about = json.loads(line)
    port = about["address"].rpartition(":")[2]
    second, _ = started("--port", port)
    _, err = second.communicate(timeout=30)
    assert (second.returncode, err.count("\n")) == (64, 1)
    assert f"address in use: 127.0.0.1:{port}" in err
    os.kill(about["pid"], signal.SIGKILL)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 70
    assert err == "isr: the ZooKeeper server has ended by itself (killed, or out of memory)\n"
