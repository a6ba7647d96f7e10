"""kcat with broker processes, as in an interactive session."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.live.processes.cluster import Brokers

FINDS_IT = Path(__file__).resolve().parents[3] / ".ci" / "kcat"


class Kcat:
    """The command, at one broker."""

    def __init__(self, command: str, libraries: str) -> None:
        self._command = command
        self._environment = {**os.environ, "LD_LIBRARY_PATH": libraries}

    def __call__(self, brokers: Brokers, broker: int, *words: str, given: str = "") -> str:
        """Its output; it must report no problem."""
        code, said, complaints = self.complaining(brokers, broker, *words, given=given)
        assert code == 0, complaints
        assert "ERROR" not in complaints
        return said

    def complaining(
        self, brokers: Brokers, broker: int, *words: str, given: str = ""
    ) -> tuple[int, str, str]:
        """Exit code, what it says, and what it complains of."""
        with self.typing(brokers, broker, *words) as session:
            said, complaints = session.communicate(given, timeout=60)
        return session.returncode, said, complaints

    @contextmanager
    def typing(self, brokers: Brokers, broker: int, *words: str) -> Iterator[subprocess.Popen[str]]:
        """An interactive session, ended when the context is left."""
        with subprocess.Popen(
            (self._command, "-b", f"127.0.0.1:{brokers.ports[broker]}", *words),
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as session:
            try:
                yield session
            finally:
                session.kill()


def found() -> Kcat:
    """Debian's, unpacked where there is none."""
    command, libraries = subprocess.check_output(FINDS_IT, text=True).splitlines()
    return Kcat(command, libraries)
