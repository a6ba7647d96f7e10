"""Lines of Kafka's log files: found in a folder, unpacked, put together, in order of writing.

Owns the default pattern of log4j (`[%d] %p %m (%c)%n`, 0.8.2 to 3.9), names of rotated files, and
which broker each file belongs to. A line that does not begin with a time continues the one before
(a stack trace). Nothing is dropped silently: unreadable lines are counted. What a file may take of
memory and time is bounded, whatever it unpacks to. It must not know what lines mean.
"""

from __future__ import annotations

import calendar
import gzip
import re
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import msgspec

from emulator.scenario.errors import UserError

KINDS = ("state-change", "controller", "server")
_FILE = re.compile(r"(?P<prefix>.*?)(?P<kind>state-change|controller|server)\.log(?P<rest>[\w.-]*)")
_LINE = re.compile(
    r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)[,.](\d{3})\] (TRACE|DEBUG|INFO|WARN|ERROR|FATAL) "
)
_LOGGER = re.compile(r"^(.*) \(([\w.$-]+)\)$", re.DOTALL)
_OWNER = (
    re.compile(r"\[(?:Broker|KafkaServer|Controller) id=(\d{1,10})\b"),
    re.compile(r"\bbroker\.id = (\d{1,10})\b"),
    re.compile(
        r"\[Partition \S+ broker=(\d{1,10})\]|^\[?(?:Kafka Server|Broker|Controller) (\d{1,10})\b"
    ),
)
LINE_BYTES = 64 * 1024
"""Of a longer line only the beginning is read."""

ENTRY_ROWS = 1000
"""Of an entry: a line and what continues it."""

RATIO, UNPACKED_BYTES = 200, 8 << 30
"""A gzipped log is about 20 times as long when it is unpacked, and 1,000 times is what gzip can do:
a file that unpacks to more than this is refused. So is one of more than 8 GiB."""

_SMALL = 16 << 20
"""What unpacks to less than this is no danger, whatever its ratio is."""

OTHER_COMPRESSION = frozenset({".xz", ".lzma", ".bz2", ".zip", ".zst", ".lz4", ".7z", ".Z"})

_SAMPLE = 20_000
"""Lines read to identify the file's broker."""


class Line(msgspec.Struct, frozen=True, gc=False):
    """One entry of a log: wall clock in milliseconds (as its broker's clock had it, taken for
    UTC)."""

    at_ms: int
    level: str
    text: str
    logger: str


@dataclass
class LogFile:
    """One file, plain or gzipped; `broker` is its owner, once known."""

    path: Path
    kind: str
    group: str
    broker: int | None = None
    unread: Counter[str] = field(default_factory=Counter)

    @property
    def name(self) -> str:
        return self.path.name

    def lines(self) -> Iterator[Line]:
        """Its entries; lines before the first that begins with a time are counted as unread."""
        rows: list[str] = []
        try:
            for raw in self._rows():
                row = raw.rstrip(b"\r\n").decode("utf-8", "replace")
                if _LINE.match(row):
                    yield from self._entry(rows)
                    rows = [row]
                elif len(rows) >= ENTRY_ROWS:
                    self.unread[f"behind line {ENTRY_ROWS:,} of an entry"] += 1
                elif rows:
                    rows.append(row)
                elif row.strip():
                    self.unread["before the first entry of a file"] += 1
        except (EOFError, zlib.error, gzip.BadGzipFile):
            self.unread["the gzipped file is cut off"] += 1
        yield from self._entry(rows, last=True)

    def _rows(self) -> Iterator[bytes]:
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

    def _entry(self, rows: list[str], *, last: bool = False) -> Iterator[Line]:
        """A logger's name ends the message; a stack trace may follow."""
        if not rows:
            return
        head = _LINE.match(rows[0])
        assert head is not None
        text = ""
        for number, row in enumerate(rows):
            text = f"{text}\n{row}" if number else row[head.end() :]
            if len(text) > 4 * LINE_BYTES:
                break
            # The name is the end of a row: a long message is looked at once.
            if row.endswith(")") and (message := _LOGGER.match(text)):
                try:
                    at_ms = _seconds(head[1]) * 1000 + int(head[2])
                except ValueError:
                    self.unread["a time that cannot be"] += 1
                    return
                yield Line(at_ms, head[3], message[1], message[2].rstrip("$"))
                return
        self.unread["cut in the middle" if last else "no logger at its end"] += 1


@lru_cache(maxsize=4096)
def _seconds(text: str) -> int:
    return calendar.timegm(time.strptime(text, "%Y-%m-%d %H:%M:%S"))


def find_logs(folder: Path) -> list[LogFile]:
    """All of Kafka's log files below a folder, each with its broker. Raises UserError."""
    if not folder.exists():
        raise UserError(f"{folder}: no such folder")
    if not folder.is_dir():
        raise UserError(f"{folder} is a file: give the folder that holds each broker's logs")
    files = []
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = _FILE.fullmatch(path.name)
        if name and path.suffix in OTHER_COMPRESSION:
            raise UserError(f"{path}: compressed; unpack it first (only .gz is read)")
        if name:
            group = f"{path.parent.relative_to(folder)}/{name['prefix']}"
            files.append(LogFile(path, name["kind"], group))
    if not files:
        raise UserError(
            f"{folder}: no state-change.log*, controller.log* or server.log* in or below it"
        )
    _find_owners(files)
    if not any(file.broker is not None for file in files):
        more = f" and {len(files) - 1} more" if len(files) > 1 else ""
        raise UserError(f"{folder}: {files[0].name}{more}: no line is in Kafka's log format")
    return files


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
        file.unread.clear()  # It is read again, and counted then.
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
