"""`isr broker` and `isr topics`: what is refused, before anything starts.

What they do is in tests/live/processes.
"""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.command import Isr

AT = ("broker", "--id", "1", "--zookeeper", "127.0.0.1:1")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--profile", "0.10.2"), "--profile 0.10.2: brokers as processes speak the protocol of"),
        (("--profile", "7"), "--profile 7: there is no profile 7"),
        (("--listen", "9092"), "--listen 9092: HOST:PORT is wanted"),
        (("--listen", "h:70000"), "--listen h:70000: HOST:PORT is wanted"),
        (("--listen", "0.0.0.0:9092"), "--listen 0.0.0.0:9092: nobody can be told that"),
        (("--set", "num.io.threads=0"), "--set: num.io.threads must be at least 1"),
        (("--set", "no.such=1"), "--set no.such=1: there is no setting no.such"),
    ],
)
def test_a_mistake_is_one_line(isr: Isr, words: tuple[str, ...], line: str) -> None:
    code, told = isr.fails(*AT, *words)
    assert code == 64
    assert line in told


def test_a_folder_of_another_broker_is_refused(isr: Isr, tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=0\nbroker.id=7\n")
    code, told = isr.fails(*AT, "--data", tmp_path)
    assert (code, told) == (
        64,
        f"isr: --data {tmp_path}: belongs to another broker (meta.properties)",
    )


def test_a_port_that_is_taken_is_said(isr: Isr) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        code, told = isr.fails(*AT, "--listen", where)
    assert code == 64
    assert told.startswith(f"isr: --listen {where}: Address already in use")


def test_topics_of_nobody(isr: Isr) -> None:
    code, told = isr.fails("topics", "list", "--bootstrap", "127.0.0.1:1")
    assert code == 64
    assert "no broker answers: 127.0.0.1:1" in told
    assert isr.fails("topics", "create", "t", "--assignment", "a:b")[0] == 64
