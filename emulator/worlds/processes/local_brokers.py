"""Brokers as processes of this machine: started with `isr broker`, and reached with signals.

Owns one child each: its command, its log, that it does not outlive us. A broker's next process has
the same command, so that it finds its files again. Knows no cluster and no scenario.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

GRACE_S = 5.0
STARTED = b": started at "
_MAIN = """
import ctypes, signal
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
from emulator.cli import main
main()
"""
"""PR_SET_PDEATHSIG: who started it may be killed, and it may stand still then."""


class BrokerEnded(Exception):
    """A broker's process ended before its sockets answered; the message says what it said."""


class LocalBroker:
    """One broker, and whichever process it has now."""

    def __init__(self, broker: int, words: list[str], log: Path) -> None:
        """`words`: what follows `isr broker`; what it says goes to `log`."""
        self.broker, self._words, self._log = broker, words, log
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None
        self._started = threading.Event()
        self.stopped = False

    def launch(self, words: list[str] | None = None) -> None:
        """Its next process, with other words than before if there are any."""
        self.join()
        self._words = self._words if words is None else words
        self._started.clear()
        self.stopped = False
        command = [sys.executable, "-c", _MAIN, "broker", *self._words]
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True)
        self._reader = threading.Thread(target=self._read, args=(self._process,), daemon=True)
        self._reader.start()

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stderr is not None
        with process.stderr, self._log.open("ab") as log:
            for line in process.stderr:
                log.write(line)
                log.flush()
                if STARTED in line:
                    self._started.set()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def started(self) -> bool:
        """Whether its sockets answer. BrokerEnded when they never will."""
        if not self._started.is_set() and self.is_dead:
            raise BrokerEnded(f"broker {self.broker} has ended: {self.last_words}")
        return self._started.is_set()

    @property
    def last_words(self) -> str:
        """The last line that it said."""
        lines = [line for line in self.said().splitlines() if line.strip()]
        return lines[-1].strip() if lines else "it said nothing"

    @property
    def runs(self) -> bool:
        """Whether it has a process that was not told to end."""
        return self._process is not None and self._process.poll() is None and not self.stopped

    @property
    def is_dead(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def wait_until_started(self, timeout_s: float) -> bool:
        return self._started.wait(timeout_s)

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def terminate(self) -> None:
        """An orderly stop, with controlled shutdown."""
        self.stopped = True
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self.stopped = True
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def exit_code(self, timeout_s: float) -> int | None:
        """None while it runs."""
        assert self._process is not None
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def join(self) -> None:
        """Whatever it was doing is over, and all that it said is in its log."""
        if self._process is None:
            return
        self.resume()
        if self._process.poll() is None:
            self._process.terminate()
            if self.exit_code(GRACE_S) is None:
                self._process.kill()
                self._process.wait()
        assert self._reader is not None
        self._reader.join()

    def said(self) -> str:
        """Its log, of all its processes."""
        return self._log.read_text() if self._log.exists() else ""
