"""Brokers that share one process of this machine (`isr hollow`), each a `BrokerProcess` of its own.

Owns the child process, the connection to it, and its reports. A signal to one of its brokers is a
request. The process starts with the first broker and ends with `close`.
"""

from __future__ import annotations

import signal
import socket
import sys
import threading
import time
from pathlib import Path

import msgspec

from emulator.worlds.processes.hollow import (
    Counts,
    Ended,
    HollowReport,
    HollowRequest,
    Launch,
    ReportCounts,
    SessionOpened,
    Signal,
    Started,
)
from emulator.worlds.processes.local_brokers import GRACE_S, MAIN, BrokerEnded, stop
from zk.real.child import Child

LOG = "hollow.log"
_COUNTS_S = 60.0
"""How long counts are waited for: the process may be busy with thousands of partitions."""


class HollowProcess:
    """The process, and the state of its brokers."""

    def __init__(self, folder: Path) -> None:
        """`folder` takes its log."""
        self._folder = folder
        self._child: Child | None = None
        self._connection: socket.socket | None = None
        self._changed = threading.Condition()
        self._brokers: dict[int, HollowBroker] = {}
        self._counts = Counts({})

    @property
    def pid(self) -> int:
        assert self._child is not None
        return self._child.pid

    def broker(self, broker: int) -> HollowBroker:
        """A broker that has not been launched yet."""
        self._brokers[broker] = HollowBroker(broker, self)
        return self._brokers[broker]

    def send(self, request: HollowRequest) -> None:
        """Send a request; does nothing if the process has ended."""
        if self._connection is None:
            self._start()
        assert self._connection is not None
        try:
            self._connection.sendall(msgspec.json.encode(request) + b"\n")
        except OSError:
            pass  # its reader says that it has ended

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-c", MAIN, "hollow", str(theirs.fileno())]
            log = self._folder / LOG
            self._child = Child(command, Path.cwd(), log, descriptors=[theirs.fileno()])
        self._connection = ours
        threading.Thread(target=self._read, args=(ours,), name="hollow", daemon=True).start()

    def _read(self, connection: socket.socket) -> None:
        """A thread of its own."""
        with connection.makefile("rb") as lines:
            for line in lines:
                report = msgspec.json.decode(line, type=HollowReport)
                with self._changed:
                    if isinstance(report, Counts):
                        self._counts = report
                    else:
                        self._brokers[report.broker].on_report(report)
                    self._changed.notify_all()
        with self._changed:
            for one in self._brokers.values():
                one.on_report(Ended(one.broker, -signal.SIGKILL, "its process has ended"))
            self._changed.notify_all()

    def wait_until_dead(self, broker: HollowBroker, timeout_s: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: broker.is_dead, timeout_s)

    def counts(self) -> Counts:
        """The events of its brokers so far, by kind."""
        before = self._counts
        self.send(ReportCounts())
        with self._changed:
            is_new = self._changed.wait_for(lambda: self._counts is not before, _COUNTS_S)
            assert is_new, f"no counts within {_COUNTS_S:g} s"
            return self._counts

    def close(self) -> None:
        """End the process and all its brokers."""
        child, self._child = self._child, None
        if child is not None and self._connection is not None:
            self._connection.shutdown(socket.SHUT_RDWR)
            if child.wait(GRACE_S) is None:
                child.kill()
            self._connection.close()


class HollowBroker:
    """One broker of the process."""

    look_us = 200_000

    def __init__(self, broker: int, process: HollowProcess) -> None:
        self.broker, self._process = broker, process
        self.is_dead = True
        self.sessions: list[int] = []
        """The ZooKeeper sessions of all its runs."""
        self._code: int | None = None
        self._failure = ""
        self._has_started = self._was_stopped = False
        self._killed_at_s = 0.0

    def on_report(self, report: Started | SessionOpened | Ended) -> None:
        """The reader's thread."""
        match report:
            case Started():
                self._has_started = True
            case SessionOpened(session=session):
                if session not in self.sessions:
                    self.sessions.append(session)
            case Ended(code=code, failure=failure) if not self.is_dead:
                self._code, self._failure, self.is_dead = code, failure, True

    def launch(self, words: list[str]) -> None:
        self.join()
        self._has_started = self._was_stopped = self.is_dead = False
        self._code = None
        self._process.send(Launch(self.broker, words))

    @property
    def started(self) -> bool:
        """Whether it accepts connections. BrokerEnded if it ended before that."""
        if self.is_dead and not self._has_started:
            raise BrokerEnded(f"broker {self.broker} has ended: {self._failure}")
        return self._has_started

    @property
    def runs(self) -> bool:
        return not self.is_dead and not self._was_stopped

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def terminate(self) -> None:
        self._was_stopped = True
        self._killed_at_s = time.monotonic() + GRACE_S
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._was_stopped = True
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if not self.is_dead:
            self._process.send(Signal(self.broker, number))

    def exit_code(self, timeout_s: float) -> int | None:
        self._process.wait_until_dead(self, timeout_s)
        return self._code

    def join(self) -> None:
        """Wait until it has ended; kill it if it does not stop in time."""
        stop(self, lambda: max(0.0, self._killed_at_s - time.monotonic()))
