"""Finds Kafka's log files in folders, unpacks them, and orders the pieces of rotated logs.

Owns the names of rotated files, and which broker each file belongs to. A file's layout is found by
trying, so a file may have any name; Kafka's own names identify the log. A row that begins no entry
continues the previous one (a stack trace). Unreadable lines are counted, never dropped silently.
Memory and time per file are bounded, whatever it unpacks to. It must not know what lines mean.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from itertools import islice
from pathlib import Path

import msgspec

from emulator.forensics.layouts import ENVELOPES, LAYOUTS, Format, Layout, Line, Settings, choose
from emulator.scenario.errors import UserError

STATE_CHANGE, CONTROLLER, SERVER = KINDS = ("state-change", "controller", "server")
MIXED = ""
"""The kind of a file that may contain all logs, such as a container's output."""
_FILE = re.compile(r"(?P<prefix>.*?)(?P<kind>state-change|controller|server)\.log(?P<rest>[\w.-]*)")
_OWNER = (
    re.compile(r"\[(?:Broker|KafkaServer|Controller) id=(\d{1,10})\b"),
    re.compile(r"\bbroker\.id = (\d{1,10})\b"),
    re.compile(
        r"\[Partition \S+ broker=(\d{1,10})\]|^\[?(?:Kafka Server|Broker|Controller) (\d{1,10})\b"
    ),
)
_OF_KAFKA = ("kafka.", "state.change.logger", "org.apache.kafka.")
LINE_BYTES = 64 * 1024
"""Only the beginning of a longer line is read."""

RATIO, UNPACKED_BYTES = 200, 8 << 30
"""A log gzips to about 1/20 of its size; gzip can reach 1/1000. Files beyond this ratio or 8 GiB
are refused."""

_SMALL = 16 << 20
"""Files that unpack to less are accepted with any ratio."""

OTHER_COMPRESSION = frozenset({".xz", ".lzma", ".bz2", ".zip", ".zst", ".lz4", ".7z", ".Z"})

_SAMPLE = 20_000
"""Lines read to identify the file's broker."""
_LOG_SUFFIXES = frozenset({".log", ".gz", ".out", ".txt", ".json"})
"""The suffixes of possible logs with unknown names."""
_TRIED_ROWS = 400
"""Rows read to find the file's layout."""


class ReadOptions(msgspec.Struct, frozen=True):
    """The user's options: the time zone of times without one, and a layout to try first."""

    zone: tzinfo = UTC
    layout: Layout | None = None


@dataclass
class LogFile:
    """One file, plain or gzipped; `broker` is its owner, once known. `format` None: no entry has a
    known layout."""

    path: Path
    kind: str
    group: str
    format: Format | None = None
    first_row: str = ""
    broker: int | None = None
    unread: Counter[str] = field(default_factory=Counter)

    @property
    def name(self) -> str:
        return self.path.name

    def lines(self) -> Iterator[Line]:
        """The entries; rows before the first entry are counted as unread."""
        if self.format is not None:
            yield from self.format.entries(self.rows(), self.unread)

    def rows(self) -> Iterator[str]:
        """Rows as text; a damaged file is read up to the damage."""
        try:
            for raw in self._raw_rows():
                yield raw.rstrip(b"\r\n").decode("utf-8", "replace")
        except (EOFError, zlib.error, gzip.BadGzipFile):
            self.unread["the gzipped file is cut off"] += 1

    def _raw_rows(self) -> Iterator[bytes]:
        """Unpacked lines, limited to 64 KB each. Raises UserError for a file that unpacks to too
        much."""
        gzipped = self.path.suffix == ".gz"
        with gzip.open(self.path) if gzipped else self.path.open("rb") as file:
            packed = self.path.stat().st_size
            most = min(max(RATIO * packed, _SMALL), UNPACKED_BYTES) if gzipped else None
            unpacked, is_rest = 0, False
            while raw := file.readline(LINE_BYTES):
                unpacked += len(raw)
                if most is not None and unpacked > most:
                    raise UserError(
                        f"{self.path}: unpacks from {packed:,} to more than {most:,} bytes: not a"
                        " log; leave it out, or unpack it if it is"
                    )
                if not is_rest:
                    yield raw
                is_whole = raw.endswith(b"\n")
                if not is_whole and len(raw) == LINE_BYTES and not is_rest:
                    self.unread["the rest of a line of more than 64 KB"] += 1
                is_rest = not is_whole


def find_logs(folders: Sequence[Path], options: ReadOptions | None = None) -> list[LogFile]:
    """All log files of Kafka below these folders, each with its broker. Raises UserError."""
    options = options or ReadOptions()
    files: list[LogFile] = []
    refused: list[LogFile] = []
    for folder in folders:
        if not folder.exists():
            raise UserError(f"{folder}: no such folder")
        if not folder.is_dir():
            raise UserError(f"{folder} is a file: give the folder that holds each broker's logs")
        paths = sorted(p for p in folder.rglob("*") if p.is_file())
        # Beside Kafka's own files, or above them, another file repeats their lines:
        # kafkaServer.out.
        named = {above for path in paths if _FILE.fullmatch(path.name) for above in path.parents}
        for path in paths:
            name = _FILE.fullmatch(path.name)
            if name is None and path.parent in named:
                continue
            if name and path.suffix in OTHER_COMPRESSION:
                raise UserError(f"{path}: compressed; unpack it first (only .gz is read)")
            # A folder may contain several brokers' logs if each has its own prefix.
            group = f"{path.parent}/{name['prefix'] if name else path.name}"
            file = LogFile(path, name["kind"] if name else MIXED, group)
            _find_format(file, options)
            if name or file.format is not None:
                files.append(file)
            elif file.first_row and path.suffix in _LOG_SUFFIXES:
                refused.append(file)
    if not files and refused:
        raise UserError(_refusal(refused))
    if not files:
        raise UserError(
            f"{', '.join(map(str, folders))}: no log of Kafka's in or below it (state-change.log*,"
            " controller.log*, server.log*, or a container's output in a known layout)"
        )
    _find_owners(files)
    if not any(file.broker is not None for file in files):
        raise UserError(_refusal(files))
    return files


def _find_format(file: LogFile, options: ReadOptions) -> None:
    """Find the file's layout. A file without one of Kafka's names must have lines of Kafka's
    loggers."""
    with file.path.open("rb") as start:
        if b"\0" in start.read(4096) and file.path.suffix != ".gz":
            return  # ZooKeeper's log, or another binary file
    year = datetime.fromtimestamp(file.path.stat().st_mtime, options.zone).year
    rows = list(islice(file.rows(), _TRIED_ROWS))
    file.first_row = next((row for row in rows if row.strip()), "")
    settings = Settings(options.zone, year)
    chosen = choose(rows, settings, options.layout) if options.layout else None
    chosen = chosen or choose(rows, settings)
    if chosen is not None and file.kind == MIXED:
        lines = chosen.entries(iter(rows), {})
        if not any(line.logger.startswith(_OF_KAFKA) for line in lines):
            return
    file.format = chosen
    file.unread.clear()  # they are counted when the file is read again


def _refusal(files: Sequence[LogFile]) -> str:
    """Why none of these files is usable, in one line."""
    for file in files:
        if file.format is None:
            more = f" ({len(files) - 1} more)" if len(files) > 1 else ""
            tried = ", ".join(layout.name for layout in LAYOUTS)
            around = ", ".join(envelope.name for envelope in ENVELOPES[1:])
            return (
                f"{file.path}{more}: no line is in a known layout; the first is"
                f" {file.first_row[:120]!r}; tried: {tried}, each also in {around}; give the log4j"
                " pattern with --layout"
            )
    return f"{files[0].path}: no line names its broker, in this file and {len(files) - 1} more"


def _find_owners(files: list[LogFile]) -> None:
    """Identify each file's broker from its contents, else from the files beside it."""
    owners: dict[str, set[int]] = {}
    for file in files:
        votes: Counter[int] = Counter()
        for number, line in enumerate(file.lines()):
            matches = (pattern.search(line.text) for pattern in _OWNER)
            match = next(filter(None, matches), None)
            if match is not None:
                votes[int(next(filter(None, match.groups())))] += 1
            if number >= _SAMPLE or votes.total() >= 20:
                break
        file.unread.clear()
        if votes:
            file.broker = votes.most_common(1)[0][0]
            owners.setdefault(file.group, set()).add(file.broker)
    for file in files:
        beside = owners.get(file.group, set())
        if file.broker is None and len(beside) == 1:
            (file.broker,) = beside


def in_order(files: list[LogFile]) -> list[LogFile]:
    """The pieces of one rotated log, oldest first, according to their first entries."""
    begun = []
    for file in files:
        first = next(file.lines(), None)
        file.unread.clear()
        if first is not None:
            begun.append((first.at_ms, file))
    return [file for _, file in sorted(begun, key=lambda entry: entry[0])]
