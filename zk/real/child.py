"""Child processes that never outlive this one: a JVM of a server or of a broker, or a container.

Owns the process and its watchdog, another process that reads a pipe which only this one holds open,
and that cleans up when the pipe ends without a message. The pipe ends however this process ends,
even by SIGKILL. PR_SET_PDEATHSIG would be shorter, but it fires when the *thread* that forked ends,
and needs code between fork and exec, which is unsafe with threads. It does not know what the child
runs.
"""

from __future__ import annotations

import os
import signal
import subprocess
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

# The child starts only after its watchdog, and not at all if this process has ended by then.
_START = 'read go && exec "$@"'
_WATCHDOG = 'read orderly || kill -9 "$0"'


class Owner(Protocol):
    """Holds a resource that a fork of this process must not treat as its own."""

    def disown(self) -> None:
        """Called in a forked child: the resources belong to the parent."""
        ...


_owners: weakref.WeakSet[Owner] = weakref.WeakSet()
disowned_by_forks = _owners.add
"""Every fork of this process first calls `disown`."""


def _disown_all() -> None:
    for owner in list(_owners):
        owner.disown()


os.register_at_fork(after_in_child=_disown_all)


class Watchdog:
    """A process that acts if this one ends without a message: its command first reads a line from
    standard input, and does nothing if one arrives."""

    def __init__(self, command: Sequence[str]) -> None:
        # A separate session, so that what ends our terminal or process group does not end it first.
        # It must not inherit our output, or readers of that would wait for the watchdog.
        self._process: subprocess.Popen[bytes] | None = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        disowned_by_forks(self)

    def dismiss(self) -> None:
        """Nothing is left to clean up."""
        process, self._process = self._process, None
        if process is not None:
            _signal_end(process)
            process.wait()

    def disown(self) -> None:
        # A copy of the pipe in a fork would keep it open after this process has ended.
        process, self._process = self._process, None
        if process is not None:
            _forget(process)


class Child:
    """A running process in its own process group, so that Ctrl-C in the terminal reaches only us;
    the child ends with us. Not thread-safe: one thread owns it."""

    def __init__(
        self,
        command: Sequence[str],
        cwd: Path,
        out: Path,
        environment: Mapping[str, str] | None = None,
        descriptors: Sequence[int] = (),
    ) -> None:
        """`descriptors`: of ours, which it has too, under the same numbers."""
        with out.open("ab") as stream:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _START, "sh", *command],
                cwd=cwd,
                env=None if environment is None else {**os.environ, **environment},
                stdin=subprocess.PIPE,
                stdout=stream,
                stderr=subprocess.STDOUT,
                process_group=0,
                pass_fds=descriptors,
            )
        self._watchdog = Watchdog(["/bin/sh", "-c", _WATCHDOG, str(self._process.pid)])
        disowned_by_forks(self)
        _signal_end(self._process)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether it has ended, by itself or by a signal."""
        if self._process.poll() is None:
            return False
        self._watchdog.dismiss()
        return True

    def signal(self, number: signal.Signals) -> None:
        """Send SIGSTOP, SIGCONT or SIGTERM; nothing if it has ended."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """Kill it, paused or not, and wait until it is gone."""
        self._process.kill()
        self._watchdog.dismiss()  # before the wait: after it the process id may be reused
        self._process.wait()

    def wait(self, timeout_s: float) -> int | None:
        """Its exit code (negative: the signal that ended it); None if it still runs after the
        timeout."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        self._watchdog.dismiss()
        return self._process.returncode

    def disown(self) -> None:
        """Only the parent may keep it alive; its watchdog disowns itself."""
        _forget(self._process)


def _signal_end(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    try:
        process.stdin.write(b"\n")
        process.stdin.close()
    except BrokenPipeError:
        pass  # it has already ended


def _forget(process: subprocess.Popen[bytes]) -> None:
    """In a fork: close our end of its pipe, and never wait for another process's child."""
    if process.stdin is not None:
        process.stdin.close()
    process.returncode = 0
