"""A folder of logs read as a whole: each broker's account, and the moments that tie them together.

Puts rotated files together and reads a broker's three logs side by side, in order of time. It knows
the format of files and who reads lines, no sentence.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import emulator.forensics.controller_log
import emulator.forensics.server_log
import emulator.forensics.state_change  # noqa: F401  (they register what lines mean)
from emulator.forensics.account import Account
from emulator.forensics.causes import Causes
from emulator.forensics.log_files import KINDS, Line, LogFile, find_logs, in_order


@dataclass
class Reading:
    """What was read: by broker, and of which files."""

    accounts: dict[int, Account]
    causes: Causes
    files: list[LogFile]
    lines: Counter[str] = field(default_factory=Counter)

    @property
    def orphans(self) -> list[LogFile]:
        """Files whose broker is unknown."""
        return [file for file in self.files if file.broker is None]

    def missing(self) -> dict[int, list[str]]:
        """Which of the three logs is missing, by broker."""
        present = {(file.broker, file.kind) for file in self.files}
        lacks = {b: [k for k in KINDS if (b, k) not in present] for b in self.accounts}
        return {broker: kinds for broker, kinds in lacks.items() if kinds}


def read_folder(folder: Path) -> Reading:
    """Raises UserError for a folder with nothing of Kafka's in it."""
    return read_files(find_logs(folder))


def read_files(files: list[LogFile]) -> Reading:
    causes = Causes()
    reading = Reading({}, causes, files)
    for broker in sorted({file.broker for file in files if file.broker is not None}):
        account = reading.accounts[broker] = Account(broker, causes)
        own = [file for file in files if file.broker == broker]
        streams = [_stream(own, kind, reading.lines) for kind in KINDS]
        for line in heapq.merge(*streams, key=lambda line: line.at_ms):
            account.read(line)
        account.end_of_metadata()
    return reading


def _stream(files: Iterable[LogFile], kind: str, counts: Counter[str]) -> Iterator[Line]:
    """One log from its oldest piece to its newest; a clock that was set back stays where it is."""
    for file in in_order([one for one in files if one.kind == kind]):
        for line in file.lines():
            counts[str(file.path)] += 1
            yield line
