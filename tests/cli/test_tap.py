"""`isr tap` as a user runs it: between a client and a real server, until Ctrl-C."""

from __future__ import annotations

import json
import queue
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from emulator import cli
from tests.live.zk.owner import PATIENCE_S
from zk.real.server import Address, EmbeddedServer, ensure_chroot, parse_address

COMMAND = [sys.executable, "-c", "from emulator.cli import main; main()"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    with EmbeddedServer(tmp_path_factory.mktemp("zookeeper")) as running:
        yield running


class Tapped:
    """The command in a process of its own; its lines as they come."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self._lines: queue.Queue[str] = queue.Queue()
        assert process.stdout is not None
        self._reader = threading.Thread(target=self._read, args=(process.stdout,))
        self._reader.start()
        assert process.stderr is not None
        where = process.stderr.readline().split(" ")[0]
        self.address: Address = parse_address(where)

    def _read(self, stdout: object) -> None:
        for line in stdout:  # type: ignore[attr-defined]
            self._lines.put(line.rstrip("\n"))

    def until(self, text: str) -> list[str]:
        """The lines up to the one with this text."""
        lines = []
        while not lines or text not in lines[-1]:
            lines.append(self._lines.get(timeout=PATIENCE_S))
        return lines

    def end(self, number: int) -> tuple[int, list[str]]:
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE_S)
        self._reader.join()
        return code, [self._lines.get() for _ in range(self._lines.qsize())]


@contextmanager
def tapped(server: EmbeddedServer, *options: str) -> Iterator[Tapped]:
    command = [*COMMAND, "tap", "--zookeeper", str(server.address), "--listen", ":0", *options]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        made = Tapped(process)
        try:
            yield made
        finally:
            if process.poll() is None:
                made.end(signal.SIGKILL)


@pytest.mark.live
def test_what_a_client_asks_is_printed_and_counted_at_the_end(server: EmbeddedServer) -> None:
    with tapped(server) as tap:
        own = Address(tap.address.servers, "/counted")
        ensure_chroot(own)
        ensure_chroot(own)
        lines = [*tap.until("NODE_EXISTS"), *tap.until("closeSession")]
        created = next(line for line in lines if "create" in line)
        assert "create /counted" in created
        assert created.split()[-3] == "OK"
        assert created.endswith("ms")
        code, summary = tap.end(signal.SIGINT)
    assert code == 0
    rows = [" ".join(line.split()) for line in summary]
    assert rows[0] == "answers median 99 % longest operation of errors"
    assert any(row.startswith("2 ") and "create /counted NODE_EXISTS 1" in row for row in rows)
    assert rows[-1] == "6 requests of 2 connections; 0 pings"


@pytest.mark.live
def test_with_json_each_answer_is_an_object_and_the_summary_is_the_last(
    server: EmbeddedServer,
) -> None:
    with tapped(server, "--json", "--path", "/objects") as tap:
        ensure_chroot(Address(tap.address.servers, "/objects"))
        (line,) = tap.until("/objects")
        code, rest = tap.end(signal.SIGTERM)
    told = json.loads(line)
    assert told["client"].startswith("127.0.0.1:")
    assert (told["op"], told["path"], told["code"]) == ("create", "/objects", "OK")
    assert told["elapsed_us"] > 0
    summary = json.loads(rest[-1])["summary"]
    assert code == 0
    assert (summary["requests"], summary["unanswered"], summary["blind_bytes"]) == (3, 0, 0)
    assert {row["op"] for row in summary["rows"]} == {"connect", "create", "closeSession"}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--zookeeper", "127.0.0.1:1", "--listen", "nowhere"), "--listen nowhere: HOST:PORT"),
        (("--zookeeper", "nonsense"), "nonsense"),
        (("--for", "soon"), "--for: 'soon' is not a duration"),
    ],
)
def test_a_mistake_is_one_line(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...], told: str
) -> None:
    assert cli.execute(["tap", *options]) == 64
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert told in err


@pytest.mark.live
def test_a_port_that_is_taken_is_one_line(
    capsys: pytest.CaptureFixture[str], server: EmbeddedServer, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = f":{taken.getsockname()[1]}"
        assert cli.execute(["tap", "--zookeeper", str(server.address), "--listen", where]) == 64
    assert "cannot listen on 127.0.0.1:" in capsys.readouterr().err
