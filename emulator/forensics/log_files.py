"""Kafka's log files: found in folders, unpacked, put together, in order of writing.

Owns names of rotated files, and which broker each file belongs to. A file's layout is found by
trying, so a file may have any name; the names of Kafka's own say which of its logs it is. A row
that begins no entry continues the one before (a stack trace). Nothing is dropped silently:
unreadable lines are counted. What a file may take of memory and time is bounded, whatever it
unpacks to. It must not know what lines mean.
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
"""The kind of a file that may hold all of them: a container has one output."""
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
"""Of a longer line only the beginning is read."""

RATIO, UNPACKED_BYTES = 200, 8 << 30
"""A gzipped log is about 20 times as long when it is unpacked, and 1,000 times is what gzip can do:
a file that unpacks to more than this is refused. So is one of more than 8 GiB."""

_SMALL = 16 << 20
"""What unpacks to less than this is no danger, whatever its ratio is."""

OTHER_COMPRESSION = frozenset({".xz", ".lzma", ".bz2", ".zip", ".zst", ".lz4", ".7z", ".Z"})

_SAMPLE = 20_000
"""Lines read to identify the file's broker."""
_LOG_SUFFIXES = frozenset({".log", ".gz", ".out", ".txt", ".json"})
"""Of a file that a user takes for a log, whatever it is named."""
_TRIED_ROWS = 400
"""Rows read to find the file's layout."""


class ReadOptions(msgspec.Struct, frozen=True):
    """What a user says of logs: the time zone of times without one, and a layout to try first."""

    zone: tzinfo = UTC
    layout: Layout | None = None


@dataclass
class LogFile:
    """One file, plain or gzipped; `broker` is its owner, once known. `format` None: no entry of it
    is in a known layout."""

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
        """Its entries; rows before the first entry are counted as unread."""
        if self.format is not None:
            yield from self.format.entries(self.rows(), self.unread)

    def rows(self) -> Iterator[str]:
        """Rows as text; what a damaged file holds up to the damage."""
        try:
            for raw in self._raw_rows():
                yield raw.rstrip(b"\r\n").decode("utf-8", "replace")
        except (EOFError, zlib.error, gzip.BadGzipFile):
            self.unread["the gzipped file is cut off"] += 1

    def _raw_rows(self) -> Iterator[bytes]:
        """Lines as they lie in the file, unpacked; of long ones the first 64 KB. UserError for a
        file that unpacks to too much."""
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
    """All of Kafka's log files below these folders, each with its broker. Raises UserError."""
    options = options or ReadOptions()
    files: list[LogFile] = []
    refused: list[LogFile] = []
    for folder in folders:
        if not folder.exists():
            raise UserError(f"{folder}: no such folder")
        if not folder.is_dir():
            raise UserError(f"{folder} is a file: give the folder that holds each broker's logs")
        paths = sorted(p for p in folder.rglob("*") if p.is_file())
        # Beside Kafka's own files, or above them, another one repeats them: kafkaServer.out.
        named = {above for path in paths if _FILE.fullmatch(path.name) for above in path.parents}
        for path in paths:
            name = _FILE.fullmatch(path.name)
            if name is None and path.parent in named:
                continue
            if name and path.suffix in OTHER_COMPRESSION:
                raise UserError(f"{path}: compressed; unpack it first (only .gz is read)")
            # A folder may hold several brokers' logs, if each has its own prefix.
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
    """A file that is not named as Kafka's has to hold lines of its loggers."""
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
    file.unread.clear()  # It is read again, and counted then.


def _refusal(files: Sequence[LogFile]) -> str:
    """Why none of these files can be used; one line."""
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
    """The pieces of one rotated log, oldest first: by their first entry."""
    begun = []
    for file in files:
        first = next(file.lines(), None)
        file.unread.clear()
        if first is not None:
            begun.append((first.at_ms, file))
    return [file for _, file in sorted(begun, key=lambda entry: entry[0])]
