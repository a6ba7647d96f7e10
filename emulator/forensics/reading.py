"""Reads a folder of logs: each broker's account, and the moments that relate their clocks.

Combines rotated files, and reads a broker's three logs in parallel, in order of time. It knows the
file formats and the readers of lines, but no sentence.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import emulator.forensics.controller_log
import emulator.forensics.server_log  # noqa: F401  (they register what lines mean)
from emulator.forensics.account import Account
from emulator.forensics.causes import Causes
from emulator.forensics.layouts import Line
from emulator.forensics.log_files import (
    CONTROLLER,
    KINDS,
    MIXED,
    SERVER,
    STATE_CHANGE,
    LogFile,
    ReadOptions,
    find_logs,
    in_order,
)
from emulator.forensics.state_change import LOGGER as STATE_CHANGE_LOGGER

SILENT_MINUTES = 15
"""Longer than the interval of 10 minutes at which every broker logs expired offsets."""


@dataclass
class Reading:
    """The accounts by broker, and the files read."""

    accounts: dict[int, Account]
    causes: Causes
    files: list[LogFile]
    lines: Counter[str] = field(default_factory=Counter)
    minutes: set[int] = field(default_factory=set)
    """The minutes in which any log has a line."""
    ended_ms: int = 0
    """The time of the last line of any log."""

    def missing(self) -> dict[int, list[str]]:
        """The missing logs of each broker. A single output may contain all three; then its loggers
        count."""
        present = {(file.broker, file.kind) for file in self.files}
        for broker, account in self.accounts.items():
            if (broker, MIXED) in present:
                present |= {(broker, kind_of(logger)) for logger, _ in account.levels}
        lacks = {b: [k for k in KINDS if (b, k) not in present] for b in self.accounts}
        return {broker: kinds for broker, kinds in lacks.items() if kinds}

    def silences(self) -> list[tuple[int, int]]:
        """Periods longer than SILENT_MINUTES without a line in any log, in milliseconds."""
        minutes = sorted(self.minutes)
        return [
            ((before + 1) * 60_000, after * 60_000)
            for before, after in itertools.pairwise(minutes)
            if after - before > SILENT_MINUTES
        ]

    @property
    def without_states(self) -> list[int]:
        """Brokers whose state-change.log is not at TRACE: INFO has the number of requests, but not
        their content."""
        traced = (STATE_CHANGE_LOGGER, "TRACE")
        written = {(b, logger) for b, it in self.accounts.items() for logger, _ in it.levels}
        return [
            broker
            for broker, account in self.accounts.items()
            if (broker, STATE_CHANGE_LOGGER) in written and traced not in account.levels
        ]


def kind_of(logger: str) -> str:
    """The log to which Kafka's own configuration writes this logger's lines."""
    if logger == STATE_CHANGE_LOGGER:
        return STATE_CHANGE
    return CONTROLLER if logger.startswith("kafka.controller") else SERVER


def read_folders(folders: Sequence[Path], options: ReadOptions | None = None) -> Reading:
    """Raises UserError for folders without Kafka's logs."""
    return read_files(find_logs(folders, options))


def read_files(files: list[LogFile]) -> Reading:
    causes = Causes()
    reading = Reading({}, causes, files)
    for broker in sorted({file.broker for file in files if file.broker is not None}):
        account = reading.accounts[broker] = Account(broker, causes)
        own = [file for file in files if file.broker == broker]
        numbers = {file.path: number for number, file in enumerate(files)}
        streams = [_stream(own, kind, numbers, reading.lines) for kind in (*KINDS, MIXED)]
        for line, file in heapq.merge(*streams, key=lambda entry: entry[0].at_ms):
            reading.minutes.add(line.at_ms // 60_000)
            account.read(line, file)
        reading.ended_ms = max(reading.ended_ms, account.at_ms)
        account.end_of_metadata()
    return reading


def _stream(
    files: Iterable[LogFile], kind: str, numbers: Mapping[Path, int], counts: Counter[str]
) -> Iterator[tuple[Line, int]]:
    """One log from its oldest piece to its newest, each line with the number of its file."""
    for file in in_order([one for one in files if one.kind == kind]):
        number, count = numbers[file.path], 0
        for line in file.lines():
            count += 1
            yield line, number
        counts[str(file.path)] += count
