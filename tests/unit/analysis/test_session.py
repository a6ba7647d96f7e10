"""Errors before Spark starts: a master that does not respond, a missing Java."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from emulator.analysis import session
from emulator.analysis.errors import NoSpark
from zk.real.server import find_java


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    """A port that accepts connections but never responds."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def url(server: socket.socket) -> str:
    return f"spark://127.0.0.1:{server.getsockname()[1]}"


def answer(server: socket.socket, text: bytes) -> None:
    def once() -> None:
        peer, _ = server.accept()
        with peer:
            peer.recv(1)
            peer.sendall(text)

    Thread(target=once, daemon=True).start()


def test_a_master_that_takes_the_connection_and_says_nothing_is_refused(
    listening: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "ANSWER_S", 0.05)
    with pytest.raises(NoSpark, match="the master does not answer: no answer within"):
        session.check_master(url(listening))


@pytest.mark.parametrize("text", [b"8", b""])
def test_any_answer_will_do_even_a_closed_connection(
    listening: socket.socket, text: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "ANSWER_S", 60)
    answer(listening, text)
    session.check_master(url(listening))


def test_one_of_several_masters_is_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        session, "_failure_to_answer", lambda host, _: "" if host == "alive" else "no"
    )
    session.check_master("spark://dead:7077,alive:7077")
    with pytest.raises(NoSpark, match="dead:7077: the master does not answer: no"):
        session.check_master("spark://dead:7077")


def test_spark_is_not_sent_to_a_java_home_that_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its script would look nowhere else."""
    java = find_java()
    monkeypatch.setenv("PATH", f"{Path(java).parent}:{os.environ['PATH']}")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert session._java() == Path(java)
    assert "JAVA_HOME" not in os.environ


def test_a_java_home_that_has_one_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(find_java())
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert session._java() == tmp_path / "bin" / "java"
    assert os.environ["JAVA_HOME"] == str(tmp_path)
