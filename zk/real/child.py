"""A child process that ends with us, however we end: a JVM of a server or of a broker.

Owns the process and its watchdog: a shell that reads a pipe which only this process holds open, and
kills the child when the pipe ends without a word. However this process ends, SIGKILL included, the
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

# The child does not start before its watchdog is there, and not at all when we are gone by then.
_START = 'read go && exec "$@"'
_WATCHDOG = 'read orderly || kill -9 "$0"'


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
        watch = ["/bin/sh", "-c", _WATCHDOG, str(self._process.pid)]
        self._watchdog: subprocess.Popen[bytes] | None = subprocess.Popen(
            watch, stdin=subprocess.PIPE, process_group=0
        )
        _children.add(self)
        _tell(self._process)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """It ended, by itself or because it was told to."""
        if self._process.poll() is None:
            return False
        self._dismiss_watchdog()
        return True

    def signal(self, number: signal.Signals) -> None:
        """SIGSTOP, SIGCONT, SIGTERM; nothing if it has ended."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """End it at once, whether it stands still or not, and wait until it is gone."""
        self._process.kill()
        self._dismiss_watchdog()  # before the wait: only then may the process id be another's
        self._process.wait()

    def wait(self, timeout_s: float) -> int | None:
        """Its exit code (negative: the signal that ended it); None: it still runs then."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        self._dismiss_watchdog()
        return self._process.returncode

    def _dismiss_watchdog(self) -> None:
        watchdog, self._watchdog = self._watchdog, None
        if watchdog is not None:
            _tell(watchdog)
            watchdog.wait()

    def _disown(self) -> None:
        """In a forked child of ours: the process is the parent's, and so is the right to keep it
        alive."""
        for process in (self._process, self._watchdog):
            if process is not None and process.stdin is not None:
                process.stdin.close()
                process.returncode = 0
        self._watchdog = None


_children: weakref.WeakSet[Child] = weakref.WeakSet()


def _disown_all() -> None:
    for child in list(_children):
        child._disown()


os.register_at_fork(after_in_child=_disown_all)


def _tell(process: subprocess.Popen[bytes]) -> None:
    """Say the one line that a shell above waits for."""
    assert process.stdin is not None
    try:
        process.stdin.write(b"\n")
        process.stdin.close()
    except BrokenPipeError:
        pass  # it is gone already
