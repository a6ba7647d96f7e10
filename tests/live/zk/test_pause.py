"""A paused process: SIGSTOP on a separate process and the gate in ours have the same effect."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest

from tests.live.zk.owner import LATE_MS, PATIENCE_S, T_MS, TICK_MS, Owner, connect
from zk.ops import (
    Create,
    CreateMode,
    Delete,
    EventType,
    Exists,
    GetData,
    SessionState,
    SetData,
    WatchedEvent,
)
from zk.real.kazoo_service import KazooService
from zk.real.kazoo_wire import KazooSession
from zk.real.server import Address

pytestmark = pytest.mark.live

ROOT = Path(__file__).resolve().parents[3]


class Paused(Protocol):
    """A process with one session, an ephemeral `/mine` and a watch on the data of `/a`."""

    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def tell(self, last: str) -> list[str]:
        """Its session's output since the last call, once that contains `last`."""
        ...


class Gated:
    """In our own process, behind the gate."""

    def __init__(self, service: KazooService, timeout_ms: int) -> None:
        self._gate, self._owner, self._told = service.gate("paused"), Owner(), 1
        session = connect(service, self._owner, "paused", timeout_ms)
        mine = Create("/mine", b"", CreateMode.EPHEMERAL)
        self._owner.ask(session, mine, GetData("/a", watch=True))
        self.pause, self.resume = self._gate.pause, self._gate.resume

    def tell(self, last: str) -> list[str]:
        self._owner.until(lambda: last in self._lines())
        lines = self._lines()
        self._told = len(self._owner.seen)
        return lines

    def _lines(self) -> list[str]:
        return [_line(one) for one in self._owner.seen[self._told :]]


def _line(one: object) -> str:
    if isinstance(one, WatchedEvent):
        return f"{one.type.name} {one.path}"
    assert isinstance(one, SessionState)
    return one.name


class Stopped:
    """A process of its own, under SIGSTOP."""

    def __init__(self, address: Address, timeout_ms: int) -> None:
        module = "tests.live.zk.lonely_process"
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, str(address), str(timeout_ms)],
            cwd=ROOT,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        self.tell("ready")

    def pause(self) -> None:
        os.kill(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self._process.pid, signal.SIGCONT)

    def tell(self, last: str) -> list[str]:
        lines: list[str] = []
        while last not in lines:
            lines.append(self._lines.get(timeout=PATIENCE_S))
        return lines

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as said:
            for line in said:
                self._lines.put(line.rstrip())

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.kill()
        self._process.wait()
        self._reader.join()


Make = Callable[[int], Paused]


@pytest.fixture
def other(service: KazooService) -> tuple[KazooSession, Owner]:
    owner = Owner()
    session = connect(service, owner, "other")
    owner.ask_one(session, Create("/a", b""))
    return session, owner


@pytest.fixture(params=["gate", "SIGSTOP"])
def make(
    request: pytest.FixtureRequest,
    service: KazooService,
    address: Address,
    other: tuple[KazooSession, Owner],
) -> Iterator[Make]:
    made: list[Stopped] = []

    def stopped(timeout_ms: int) -> Paused:
        made.append(Stopped(address, timeout_ms))
        return made[-1]

    yield stopped if request.param == "SIGSTOP" else lambda ms: Gated(service, ms)
    for process in made:
        process.close()


def test_a_pause_longer_than_the_session(make: Make, other: tuple[KazooSession, Owner]) -> None:
    """No pings: the server closes it, and it learns that only after it has woken up."""
    paused, (session, owner) = make(T_MS), other
    owner.ask_one(session, Exists("/mine", watch=True))
    paused.pause()
    began = time.monotonic()
    owner.until(lambda: bool(owner.events))
    waited_ms = (time.monotonic() - began) * 1000
    assert owner.events == [WatchedEvent(EventType.NODE_DELETED, "/mine")]
    assert 2 / 3 * T_MS - 50 < waited_ms < T_MS + 3 * TICK_MS + LATE_MS
    paused.resume()
    assert paused.tell("EXPIRED") == ["DISCONNECTED", "EXPIRED"]


def test_a_pause_shorter_than_the_session(make: Make, other: tuple[KazooSession, Owner]) -> None:
    """It sees nothing but what it missed."""
    paused, (session, owner) = make(10 * T_MS), other
    paused.pause()
    owner.ask_one(session, SetData("/a", b"1"))
    owner.idle_for(0.3)
    paused.resume()
    assert paused.tell("NODE_DATA_CHANGED /a") == ["NODE_DATA_CHANGED /a"]
    assert owner.ask_one(session, Delete("/mine")).code == 0


def test_what_came_meanwhile_is_not_read_by_one_that_wakes_too_late(
    make: Make, other: tuple[KazooSession, Owner]
) -> None:
    """Its poll was interrupted and its time has run out: it drops the connection at once."""
    paused, (session, owner) = make(T_MS), other
    owner.ask_one(session, Exists("/mine", watch=True))
    owner.idle_for(0.2)  # until its client waits in its poll
    paused.pause()
    owner.ask_one(session, SetData("/a", b"1"))
    owner.until(lambda: bool(owner.events))
    paused.resume()
    told = paused.tell("EXPIRED")
    if isinstance(paused, Stopped) and len(told) == 3:
        told.remove("NODE_DATA_CHANGED /a")  # SIGSTOP may meet its client outside of the poll
    assert told == ["DISCONNECTED", "EXPIRED"]
