"""The embedded server: up in a moment, down however its owner ends, and clear when it cannot."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from kazoo.client import KazooClient
from kazoo.security import make_acl

from zk.real.server import (
    Address,
    AddressInUse,
    EmbeddedServer,
    JavaNotFound,
    NoRights,
    NotReady,
    Probe,
    SessionTimeoutClamped,
    StartFailed,
    _probe,
    ensure_chroot,
    find_java,
    four_letter_word,
    require_session_timeout,
    wait_until_ready,
)

pytestmark = pytest.mark.live

ROOT = Path(__file__).resolve().parents[3]


def serves(server: EmbeddedServer) -> bool:
    return "Mode: standalone" in four_letter_word(server.address.servers[0], "srvr")


def test_it_starts_in_a_folder_of_any_name(tmp_path: Path) -> None:
    with EmbeddedServer(tmp_path / "a folder, größer: ${x}") as server:
        assert serves(server)
        assert server.log_file.exists()
        assert server.txn_log_dir.exists() or not list(server.data_dir.glob("log.*"))


def test_it_stops_and_starts_on_the_same_data_and_port(tmp_path: Path) -> None:
    with EmbeddedServer(tmp_path) as server:
        inside = msgspec.structs.replace(server.address, chroot="/a/b")
        ensure_chroot(inside)
        first = server.pid
        server.stop()
        assert server.pid == 0
        with pytest.raises(NotReady, match=r"no ZooKeeper server at .* after 0.2 s: .*refused"):
            wait_until_ready(server.address, 200)
        server.start()
        assert server.pid not in (0, first)
        ensure_chroot(inside)
        assert "Node count: 7" in four_letter_word(server.address.servers[0], "srvr")


def test_while_it_reads_its_data_it_closes_new_connections(tmp_path: Path) -> None:
    """As the modelled server does. In the first 10 ms it may leave them open without an answer."""
    endings = set()
    with EmbeddedServer(tmp_path) as server:
        for _ in range(3):
            server.stop()
            server.launch()
            while True:
                try:
                    with Probe(server.address.servers[0], 10_000, patience_s=0.05):
                        break
                except TimeoutError:
                    endings.add("no answer")
                except ConnectionRefusedError:
                    endings.add("refused")
                except ConnectionError:
                    endings.add("closed")
    assert endings - {"no answer"} == {"refused", "closed"}


def test_nobody_else_is_given_its_port_while_it_is_stopped(tmp_path: Path) -> None:
    server = EmbeddedServer(tmp_path)
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(server.address.servers[0])
    server.close()


def test_paused_it_does_not_answer_and_resumed_it_does(tmp_path: Path) -> None:
    with EmbeddedServer(tmp_path) as server:
        server.pause()
        with pytest.raises(NotReady, match="timed out"):
            wait_until_ready(server.address, 300)
        server.resume()
        wait_until_ready(server.address)
        server.pause()  # and it ends from here too


def test_a_server_that_stops_answering_later_is_not_ready_either(tmp_path: Path) -> None:
    with EmbeddedServer(tmp_path) as server:
        with pytest.raises(NotReady, match=r"after 0\.3 s: timed out"):
            _probe(server.address, 300, 10_000, lambda _: server.pause())
        server.resume()


def test_a_session_that_is_not_answered_to_its_end_is_repeated(tmp_path: Path) -> None:
    """A broker ended at its start because a busy server took more than 5 s to close the session."""
    with EmbeddedServer(tmp_path) as server:
        sessions = 0

        def restart_once(_: Probe) -> None:
            nonlocal sessions
            sessions += 1
            if sessions == 1:
                server.stop()
                server.start()

        _probe(server.address, 60_000, 10_000, restart_once)
        assert sessions == 2


def test_bounds_of_the_session_time_out(tmp_path: Path) -> None:
    with EmbeddedServer(tmp_path, tick_ms=50, max_session_timeout_ms=5000) as server:
        require_session_timeout(server.address, 100)
        require_session_timeout(server.address, 5000)
        for asked, granted in ((90, 100), (5001, 5000)):
            with pytest.raises(SessionTimeoutClamped, match=f"{asked} ms asked.*{granted} ms"):
                require_session_timeout(server.address, asked)


# ---- when it cannot ----


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(AddressInUse, match=f"address in use: 127.0.0.1:{port}"):
            EmbeddedServer(tmp_path, port=port)


def test_a_start_that_fails_shows_the_last_error(tmp_path: Path) -> None:
    (tmp_path / "version-2").write_text("not a folder")
    server = EmbeddedServer(tmp_path)
    with pytest.raises(StartFailed, match=r"did not start: .*(Exception|Error)"):
        server.start()
    assert server.pid == 0
    server.close()


@pytest.fixture
def bare_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return tmp_path


def fake_java(folder: Path, version: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    java = folder / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2020-01-01' >&2\n")
    java.chmod(0o755)
    return java


def test_no_java(bare_path: Path) -> None:
    with pytest.raises(JavaNotFound, match=r"Java 17 or newer .* none in JAVA_HOME or PATH"):
        find_java()


def test_java_home_goes_before_path_and_what_is_too_old_is_passed_over(
    bare_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = fake_java(bare_path, "1.8.0_292")
    with pytest.raises(JavaNotFound, match=f"{old} is version 8"):
        find_java()
    home = bare_path / "home"
    monkeypatch.setenv("JAVA_HOME", str(home))
    new = fake_java(home / "bin", "21.0.1")
    assert find_java() == str(new)
    home = bare_path / "other home"
    fake_java(home / "bin", "11.0.2")
    newer = fake_java(bare_path / "path", "17")
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("PATH", str(newer.parent))
    assert find_java() == str(newer)


# ---- chroot ----


def test_no_rights_to_create_the_chroot(server: EmbeddedServer) -> None:
    client = KazooClient(server.address.hosts)
    client.start()
    client.ensure_path("/locked")
    client.set_acls("/locked", [make_acl("world", "anyone", read=True)])
    client.stop()
    client.close()
    locked = msgspec.structs.replace(server.address, chroot="/locked/kafka")
    with pytest.raises(NoRights, match="no rights to create the chroot /locked/kafka"):
        ensure_chroot(locked)


def test_what_answers_is_no_zookeeper() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = Address((silent.getsockname()[:2],))
        with pytest.raises(NotReady, match="timed out"):
            wait_until_ready(address, 300)


# ---- however its owner ends ----

OWNER = """
import os, select, sys, threading
from pathlib import Path
from zk.real.server import EmbeddedServer

server = EmbeddedServer(Path(sys.argv[1]))
thread = threading.Thread(target=server.start)
thread.start()
thread.join()
if sys.argv[2] == "forks" and os.fork() == 0:
    sys.stdin.read()
    os._exit(0)
print(server.pid, flush=True)
while not select.select([sys.stdin], [], [], 0.05)[0]:
    pass  # a signal just before a read without end would wait as long
assert sys.stdin.readline() == "end\\n"
if sys.argv[2] == "raises":
    raise KeyError("a fault of ours")
if sys.argv[2] == "closes":
    server.close()
"""


@contextmanager
def owner_process(folder: Path, how: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A process that has started a server from a thread that ended; and a handle of the JVM."""
    command = [sys.executable, "-c", textwrap.dedent(OWNER), str(folder), how]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command,
        text=True,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        jvm = os.pidfd_open(int(process.stdout.readline()))
        try:
            yield process, jvm
        finally:
            os.close(jvm)
            process.kill()


def ended(jvm: int, within_s: float) -> bool:
    return bool(select.select([jvm], [], [], within_s)[0])


@pytest.mark.parametrize("how", ["ends", "closes", "raises"])
def test_it_ends_with_a_run_that_ends(tmp_path: Path, how: str) -> None:
    with owner_process(tmp_path, how) as (process, jvm):
        assert not ended(jvm, 0.3), "it lives on after the thread that started it"
        process.communicate("end\n")
        assert ended(jvm, 5)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
@pytest.mark.parametrize("how", ["lives", "forks"])
def test_it_ends_with_a_run_that_is_ended(tmp_path: Path, number: signal.Signals, how: str) -> None:
    with owner_process(tmp_path, how) as (process, jvm):
        process.send_signal(number)
        assert ended(jvm, 5)
