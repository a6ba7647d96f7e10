"""Processes that end with us, however we end: a JVM of a server or of a broker, or a container.

Owns the process and its watchdog, another process that reads a pipe which only this one holds open,
and clears up when the pipe ends without a word. However this process ends, SIGKILL included, the
pipe ends too. PR_SET_PDEATHSIG would be shorter, but it fires when the *thread* that forked ends,
and needs code between fork and exec, which is unsafe beside threads. Knows not what runs in it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

# The child does not start before its watchdog is there, and not at all when we are gone by then.
_START = 'read go && exec "$@"'
_WATCHDOG = 'read orderly || kill -9 "$0"'


class Owner(Protocol):
    """Has something that a fork of this process must not believe to be its own."""

    def disown(self) -> None:
        """In a forked child of ours: what it has is the parent's."""
        ...


_owners: weakref.WeakSet[Owner] = weakref.WeakSet()
disowned_by_forks = _owners.add
"""From now on each fork of this process begins with `disown`."""


def _disown_all() -> None:
    for owner in list(_owners):
        owner.disown()


os.register_at_fork(after_in_child=_disown_all)


class Watchdog:
    """A process that acts when we end without a word: its command begins with reading a line from
    its standard input, and does nothing more when one comes."""

    def __init__(self, command: Sequence[str]) -> None:
        # A session of its own: what ends our terminal, or our group, must not end it before us. Our
        # output is not its own: who reads that to its end is not to wait for a watchdog.
        self._process: subprocess.Popen[bytes] | None = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        disowned_by_forks(self)

    def dismiss(self) -> None:
        """There is nothing left to be cleared up."""
        process, self._process = self._process, None
        if process is not None:
            _signal_end(process)
            process.wait()

    def disown(self) -> None:
        # A copy of the pipe in a fork would keep it open after we have ended.
        process, self._process = self._process, None
        if process is not None:
            _forget(process)


class Child:
    """A process that runs, in a process group of its own: Ctrl-C in the terminal is ours, the child
    ends with us. Not thread-safe: one thread owns it."""

    def __init__(
        self,
        command: Sequence[str],
        cwd: Path,
        out: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        with out.open("ab") as stream:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _START, "sh", *command],
                cwd=cwd,
                env=None if environment is None else {**os.environ, **environment},
                stdin=subprocess.PIPE,
                stdout=stream,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
        self._watchdog = Watchdog(["/bin/sh", "-c", _WATCHDOG, str(self._process.pid)])
        disowned_by_forks(self)
        _signal_end(self._process)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """It has ended, by itself or by a signal."""
        if self._process.poll() is None:
            return False
        self._watchdog.dismiss()
        return True

    def signal(self, number: signal.Signals) -> None:
        """SIGSTOP, SIGCONT, SIGTERM; nothing if it has ended."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """End it at once, paused or not, and wait until it is gone."""
        self._process.kill()
        self._watchdog.dismiss()  # before the wait: only then may the process id be another's
        self._process.wait()

    def wait(self, timeout_s: float) -> int | None:
        """Its exit code (negative: the signal that ended it); None: it still runs then."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        self._watchdog.dismiss()
        return self._process.returncode

    def disown(self) -> None:
        """The right to keep it alive is the parent's too: its watchdog disowns itself."""
        _forget(self._process)


def _signal_end(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    try:
        process.stdin.write(b"\n")
        process.stdin.close()
    except BrokenPipeError:
        pass  # it is gone already


def _forget(process: subprocess.Popen[bytes]) -> None:
    """In a fork: close our end of its pipe, and never wait for what is not our child."""
    if process.stdin is not None:
        process.stdin.close()
    process.returncode = 0
