"""Brokers as processes of this machine: started with `isr broker` and controlled with signals.

Owns one child process each: its command, its log, and that it ends with this process. A broker's
next process has the same command, so that it finds its files. Knows no cluster and no scenario.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from zk.real.child import Child

GRACE_S = 5.0
_LOOK_S = 0.02
LOOK_US = 20_000
STARTED = ": started at "
MAIN = "from emulator.cli import main; main()"


class BrokerEnded(Exception):
    """A broker's process ended before its sockets responded; the message has its last output."""


class Stoppable(Protocol):
    """A broker with a process that can be ordered to end."""

    @property
    def is_dead(self) -> bool: ...

    @property
    def runs(self) -> bool: ...

    def resume(self) -> None: ...

    def terminate(self) -> None: ...

    def kill(self) -> None: ...

    def exit_code(self, timeout_s: float) -> int | None: ...


def stop(broker: Stoppable, grace_s: Callable[[], float]) -> None:
    """Wait until its process has ended; kill it after `grace_s`, which may count from an earlier
    order to end."""
    if broker.is_dead:
        return
    broker.resume()  # SIGTERM waits for a process that is paused
    if broker.runs:  # a second signal would end it at once
        broker.terminate()
    if broker.exit_code(grace_s()) is None:
        broker.kill()
        broker.exit_code(GRACE_S)


class LoggedBroker:
    """A broker whose output goes to a file, for all its processes."""

    def __init__(self, broker: int, log: Path) -> None:
        self.broker, self._log = broker, log
        self.stopped = False
        """It was ordered to end."""

    def log_text(self) -> str:
        return self._log.read_text() if self._log.exists() else ""

    def check_alive(self, *, is_dead: bool) -> None:
        """Raise BrokerEnded if it is dead: its sockets will never respond."""
        if is_dead:
            lines = [line for line in self.log_text().splitlines() if line.strip()]
            last = lines[-1].strip() if lines else "it said nothing"
            raise BrokerEnded(f"broker {self.broker} has ended: {last}")


class LocalBroker(LoggedBroker):
    """One broker with its current process."""

    look_us = LOOK_US

    def __init__(self, broker: int, words: list[str], log: Path) -> None:
        """`words`: the arguments of `isr broker`; its output goes to `log`."""
        super().__init__(broker, log)
        self._words = words
        self._child: Child | None = None
        self._said_before = 0
        self._killed_at_s = 0.0
        """Until then it may shut down, by the monotonic clock."""
        self._has_started = False

    def launch(self, words: list[str] | None = None) -> None:
        """Start its next process, with other arguments if there are any."""
        self.join()
        self._words = self._words if words is None else words
        self.stopped = self._has_started = False
        # The log continues after the last process: its "started" does not count for this one.
        self._said_before = self._log.stat().st_size if self._log.exists() else 0
        command = [sys.executable, "-c", MAIN, "broker", *self._words]
        self._child = Child(command, Path.cwd(), self._log)

    def current_log_text(self) -> str:
        """The log of its current process; `log_text` includes earlier ones."""
        with self._log.open("rb") as log:
            log.seek(self._said_before)
            return log.read().decode(errors="replace")

    @property
    def pid(self) -> int:
        assert self._child is not None
        return self._child.pid

    @property
    def started(self) -> bool:
        """Whether its sockets respond. BrokerEnded if they never will."""
        was_dead = self.is_dead  # before the log is read: what it said last is in there then
        if not self._has_started:
            self._has_started = STARTED in self.current_log_text()
        if not self._has_started:
            self.check_alive(is_dead=was_dead)
        return self._has_started

    @property
    def runs(self) -> bool:
        """Whether it has a process that was not stopped."""
        return not self.is_dead and not self.stopped

    @property
    def is_dead(self) -> bool:
        return self._child is None or self._child.has_ended

    def wait_until_started(self, timeout_s: float) -> bool:
        """Whether its sockets respond by then. BrokerEnded if they never will."""
        assert self._child is not None
        end_s = time.monotonic() + timeout_s
        while not self.started and time.monotonic() < end_s:
            self._child.wait(_LOOK_S)
        return self.started

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def terminate(self) -> None:
        """An orderly stop, with controlled shutdown."""
        self.stopped = True
        self._killed_at_s = time.monotonic() + GRACE_S
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self.stopped = True
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self._child is not None:
            self._child.signal(number)

    def exit_code(self, timeout_s: float) -> int | None:
        """Negative: the signal that ended it; None while it runs."""
        assert self._child is not None
        return self._child.wait(timeout_s)

    def join(self) -> None:
        """Wait until it has ended and all its output is in its log."""
        # If several shut down at the same time, none gets more time than another.
        stop(self, lambda: max(0.0, self._killed_at_s - time.monotonic()))
