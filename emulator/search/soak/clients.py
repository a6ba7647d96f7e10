"""The clients of a soak: other vendors' programs, whose files are merged into one history.

Producers and readers run until a fixed moment. When all have ended, a program of each vendor reads
everything once more.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from emulator.search.soak.history import merged_history
from emulator.search.soak.schedule import PARTITIONS, TOPIC
from zk.real.child import Child
from zk.real.server import find_java

HISTORY = "history.ndjson"
_PROGRAMS = Path(__file__).parent / "programs"
_JVM = ("-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
CONFLUENT, JAVA = "confluent", "java"
ROLES = {
    CONFLUENT: (("produce", "c1"), ("produce", "c2"), ("tail", "c3"), ("scan", "c4")),
    JAVA: (("produce", "j1"), ("scan", "j2")),
}
FINAL = {CONFLUENT: "c9", JAVA: "j9"}


class _Client:
    """One program with its own history file."""

    def __init__(self, name: str, command: Sequence[str], folder: Path) -> None:
        self.name = name
        self.history, self._errors = folder / f"{name}.ndjson", folder / f"{name}.err"
        # Standard error goes to a separate file, because it is not part of the history.
        redirected = ["/bin/sh", "-c", 'exec "$@" 2> "$0"', str(self._errors), *command]
        self.child = Child(redirected, Path.cwd(), self.history)

    def failure(self) -> str:
        """Why it failed; empty if it did not."""
        if not self.child.has_ended or self.child.wait(0) == 0:
            return ""
        lines = self._errors.read_text(errors="replace").strip().splitlines() or ["it said nothing"]
        return f"client {self.name} ended: {lines[-1]}"


class SoakClients:
    """All clients of one run. Use as a context manager, which leaves no process behind."""

    def __init__(self, folder: Path, java_class_path: str | None) -> None:
        """`folder` is the run's. `java_class_path`: of Kafka's client; None: no Java client."""
        self._run = folder
        self._folder = folder / "clients"
        self._folder.mkdir(mode=0o700)
        self._commands = {CONFLUENT: [sys.executable, str(_PROGRAMS / "confluent.py")]}
        if java_class_path is not None:
            program = str(_PROGRAMS / "Soak.java")
            self._commands[JAVA] = [find_java(), *_JVM, "-cp", java_class_path, program]
        self._clients: list[_Client] = []
        self._arguments: list[str] = []
        self._final_until_ns = 0
        self._reads_all = False

    def start(self, bootstrap: str, began_ns: int, stop_us: int, end_us: int) -> None:
        """The cluster has been up since `began_ns` of the monotonic clock. Relative to that,
        clients end at `stop_us` and the final readers at `end_us`."""
        self._arguments = [bootstrap, TOPIC, str(PARTITIONS), str(began_ns)]
        self._final_until_ns = began_ns + end_us * 1000
        for house in self._commands:
            for role, name in ROLES[house]:
                self._launch(house, role, name, began_ns + stop_us * 1000)

    def _launch(self, house: str, role: str, name: str, until_ns: int) -> None:
        words = [*self._commands[house], role, name, *self._arguments, str(until_ns)]
        self._clients.append(_Client(name, words, self._folder))

    def advance(self) -> None:
        """Start the next programs when the previous ones have ended. Call this regularly."""
        if not self._clients or self._reads_all:
            return
        if all(client.child.has_ended for client in self._clients):
            self._reads_all = True
            for house in self._commands:
                self._launch(house, "final", FINAL[house], self._final_until_ns)

    def failures(self) -> list[str]:
        """The failures of programs."""
        return [why for client in self._clients if (why := client.failure())]

    @property
    def are_done(self) -> bool:
        """Whether everything was read once more."""
        return self._reads_all and all(client.child.has_ended for client in self._clients)

    def __enter__(self) -> SoakClients:
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._clients:
            if not client.child.has_ended:
                client.child.kill()

    def write_history(self) -> Path:
        """Merge all files, after all programs have ended."""
        path = self._run / HISTORY
        merged_history([client.history for client in self._clients], path)
        return path
