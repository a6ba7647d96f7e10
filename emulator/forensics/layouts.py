"""Layouts of logs: envelopes around lines, and formats of entries.

Owns both registries, and finds a file's format by trying. An envelope is what systemd, syslog,
Docker or Kubernetes put around each line; a layout is the application's own: a log4j pattern or
JSON. To add one, add a struct to `ENVELOPES` or `LAYOUTS`. It must not know what messages mean.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, tzinfo
from functools import cache

import msgspec

from emulator.forensics.log4j_pattern import (
    ISO,
    LinePattern,
    PatternError,
    compile_pattern,
    milliseconds,
)
from emulator.scenario.errors import UserError
from emulator.trace.untrusted_json import decode_untrusted

ENTRY_ROWS = 1000
"""The maximum number of rows of an entry: its line and continuations."""

_TRACE = re.compile(
    r"\s+at [\w.$/<>]+\(|\s*\.\.\. \d+ (?:more|common)|Caused by: |[\w.$]+(?:Exception|Error)\b"
)
"""Matches a row of a stack trace."""
_ANSI = re.compile(r"\x1b\[[\d;]*m")


class Line(msgspec.Struct, frozen=True, gc=False):
    """One entry of a log; the wall clock in milliseconds by the broker's own clock. `row`: its
    first row in the file, from 1."""

    at_ms: int
    level: str
    text: str
    logger: str
    row: int = 0


class Row(msgspec.Struct, gc=False):
    """A row without its envelope; `at_ms`: the envelope's time (None: none). `is_partial`: the next
    row continues it."""

    text: str
    number: int
    at_ms: int | None = None
    is_partial: bool = False


class Envelope(msgspec.Struct, frozen=True):
    """The text around each row. A pattern has the groups `second`, `fraction` and `zone` if it has
    a time, and the row follows it; `json` names the keys of message and time instead."""

    name: str
    pattern: str = ""
    date: str = ISO
    json: tuple[str, str] | None = None

    def unwrap(self, row: str, settings: Settings) -> Row | None:
        """None if the row is not in this envelope."""
        if self.json is not None:
            return self._from_json(row, settings)
        match = _compiled(self.pattern).match(row)
        if match is None:
            return None
        groups = match.groupdict()
        at_ms = None
        if second := groups.get("second"):
            # Dates of RFC 3164 have no year.
            text = f"{settings.year} {second}" if self.date.startswith("%Y %b") else second
            fraction, zone = groups.get("fraction") or "", groups.get("zone") or ""
            with contextlib.suppress(ValueError, OverflowError):  # an invalid time is ignored
                at_ms = milliseconds(self.date, text, fraction, zone, settings.zone)
        return Row(row[match.end() :], 0, at_ms, groups.get("partial") == "P")

    def _from_json(self, row: str, settings: Settings) -> Row | None:
        assert self.json is not None
        values = _json(row)
        text = values.get(self.json[0])
        if isinstance(text, list):  # journald writes a message that is not UTF-8 as a list of bytes
            text = bytes(text).decode("utf-8", "replace")
        if not isinstance(text, str):
            return None
        at = str(values.get(self.json[1], ""))
        at_ms = int(at) // 1000 if at.isdecimal() and len(at) < 20 else _moment(at, settings.zone)
        is_partial = self.json[0] == "log" and not text.endswith("\n")
        return Row(text.rstrip("\n"), 0, at_ms, is_partial)


class Settings(msgspec.Struct, frozen=True):
    """Facts missing in logs: the time zone of times without one, the year of dates without one."""

    zone: tzinfo = UTC
    year: int = 1970


class Layout(msgspec.Struct, frozen=True):
    """The format of an entry: a log4j pattern, or (without one) JSON, one object per row."""

    name: str
    pattern: str = ""

    @property
    def compiled(self) -> LinePattern | None:
        return _line_pattern(self.pattern) if self.pattern else None


_BSD_DATE = r"(?P<second>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d)"
_ISO_DATE = (
    r"(?P<second>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,](?P<fraction>\d{1,9}))?"
    r"(?P<zone>Z|[+-]\d\d:?\d\d)"
)
_TAG = r"[^\s:\[]+(?:\[\d+\])?: "

ENVELOPES = (
    Envelope("plain"),
    Envelope("Kubernetes (CRI)", _ISO_DATE + r" std(?:out|err) (?P<partial>[FP]) "),
    Envelope("Docker json-file", json=("log", "time")),
    Envelope("journald json", json=("MESSAGE", "__REALTIME_TIMESTAMP")),
    Envelope(
        "syslog (RFC 5424)",
        r"<\d{1,3}>1 " + _ISO_DATE + r" \S+ \S+ \S+ \S+ (?:-|(?:\[[^\]]*\])+) ?\ufeff?",
    ),
    Envelope("syslog (RFC 3164), journald short", r"(?:<\d{1,3}>)?" + _BSD_DATE + r" \S+ " + _TAG,
             "%Y %b %d %H:%M:%S"),
    Envelope("journald short-iso", _ISO_DATE + r" \S+ " + _TAG),
    Envelope(
        "journald short-full",
        r"[A-Z][a-z]{2} (?P<second>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:\.(?P<fraction>\d+))?"
        r" (?P<zone>UTC|GMT|[A-Z]{3,4}) \S+ " + _TAG,
    ),
    Envelope("kubectl logs --timestamps", r"(?:\[pod/\S+\] )?" + _ISO_DATE + " "),
    Envelope("kubectl logs --prefix, docker compose", r"(?:\[pod/\S+\] |[\w.-]+ +\| )"),
)  # fmt: skip

LAYOUTS = (
    Layout("log4j (Kafka, Confluent)", "[%d] %p %m (%c)%n"),
    Layout("log4j without brackets", "%d %p %m (%c)%n"),
    Layout("Strimzi", "%d %p %m (%c) [%t]%n"),
    Layout("Confluent for Kubernetes", "[%p] %d [%t] %c %M - %m%n"),
    Layout("logger in brackets", "[%d] %p [%c] %m%n"),
    Layout("thread and logger first, in brackets", "[%d] [%t] %-5p %c - %m%n"),
    Layout("thread first", "%d [%t] %-5p %c - %m%n"),
    Layout("thread after the level", "%d %-5p [%t] %c: %m%n"),
    Layout("logger with a dash", "%d %-5p %c - %m%n"),
    Layout("logger with a colon", "%d %-5p %c: %m%n"),
    Layout("logger in brackets, without brackets around the date", "%d %-5p [%c] %m%n"),
    Layout("without a date", "%p %m (%c)%n"),
    Layout("JSON"),
)

_KEYS = {
    "time": ("@timestamp", "instant", "timeMillis", "timestamp", "time", "asctime", "ts"),
    "level": ("level", "log.level", "severity", "levelname"),
    "logger": ("loggerName", "logger_name", "log.logger", "logger", "_logger", "loggername"),
    "message": ("message", "msg", "rawMessage"),
}
"""The keys of JSON layouts: log4j2's JsonLayout and its templates (ECS, Logstash, GCP)."""
_OBJECT = msgspec.json.Decoder(dict[str, object])
_SAMPLE_ROWS = 400


class Format(msgspec.Struct, frozen=True):
    """The envelope and the layout of one file."""

    envelope: Envelope
    layout: Layout
    settings: Settings = Settings()

    @property
    def name(self) -> str:
        if self.envelope.name == "plain":
            return self.layout.name
        return f"{self.layout.name} in {self.envelope.name}"

    def entries(self, rows: Iterable[str], unread: dict[str, int]) -> Iterator[Line]:
        """The entries of a file; rows outside of entries are counted in `unread`."""
        return self.of_rows(unwrapped(self.envelope, self.settings, rows, unread), unread)

    def of_rows(self, unwrapped: Iterator[Row], unread: dict[str, int]) -> Iterator[Line]:
        """The entries in rows without their envelope."""
        if self.layout.compiled is None:
            return self._json_entries(unwrapped, unread)
        return self._pattern_entries(unwrapped, self.layout.compiled, unread)

    def _pattern_entries(
        self, rows: Iterator[Row], pattern: LinePattern, unread: dict[str, int]
    ) -> Iterator[Line]:
        entry: list[str] = []
        head: re.Match[str] | None = None
        at_ms: int | None = None
        number = 0
        begins = pattern.head.match
        for row in rows:
            text = row.text
            if "\x1b" in text:
                text = _ANSI.sub("", text)
            match = begins(text)
            if match is not None:
                if head is not None:
                    yield from self._entry(pattern, head, entry, at_ms, number, unread)
                head, entry, at_ms, number = match, [text], row.at_ms, row.number
            elif head is None:
                if text.strip():
                    _count(unread, "before the first entry of a file")
            elif len(entry) >= ENTRY_ROWS:
                _count(unread, f"behind line {ENTRY_ROWS:,} of an entry")
            else:
                entry.append(text)
        if head is not None:
            yield from self._entry(pattern, head, entry, at_ms, number, unread, last=True)

    def _entry(
        self,
        pattern: LinePattern,
        head: re.Match[str],
        rows: list[str],
        at_ms: int | None,
        number: int,
        unread: dict[str, int],
        *,
        last: bool = False,
    ) -> Iterator[Line]:
        second, fraction, zone = head["second"], head["fraction"], head["zone"]
        if second and pattern.date:
            try:
                at_ms = milliseconds(
                    pattern.date, second, fraction or "", zone or "", self.settings.zone
                )
            except (ValueError, OverflowError):
                _count(unread, "a time that cannot be")
                return
        if at_ms is None:
            _count(unread, "without a date")
            return
        level, start = head["level"] or "", head.end()
        if pattern.tail is None:
            text = rows[0][start:]
            for row in rows[1:]:
                if _TRACE.match(row):
                    break
                text = f"{text}\n{row}"
            yield Line(at_ms, level, text, head["logger"].rstrip("$"), number)
            return
        text = ""
        for place, row in enumerate(rows):
            # The end of the message is searched on its first row, because a stack trace may follow.
            begins = start if place == 0 else 0
            ending = pattern.tail.search(row, begins)
            piece = row[begins : ending.start() if ending is not None else None]
            text = f"{text}\n{piece}" if place else piece
            if ending is not None:
                logger = ending["logger"] if "logger" in pattern.tail.groupindex else head["logger"]
                yield Line(at_ms, level, text, logger.rstrip("$"), number)
                return
        _count(unread, "cut in the middle" if last else "no logger at its end")

    def _json_entries(self, rows: Iterator[Row], unread: dict[str, int]) -> Iterator[Line]:
        for row in rows:
            values = _json(row.text)
            logger, message = (_text(values, _KEYS[key]) for key in ("logger", "message"))
            at_ms = _json_time(values, self.settings.zone)
            at_ms = row.at_ms if at_ms is None else at_ms
            if logger is None or message is None or at_ms is None:
                if row.text.strip():
                    _count(unread, "not an entry in JSON (message, logger, time)")
                continue
            level = _text(values, _KEYS["level"]) or ""
            yield Line(at_ms, level.upper(), message, logger.rstrip("$"), row.number)


def unwrapped(
    envelope: Envelope, settings: Settings, rows: Iterable[str], unread: dict[str, int]
) -> Iterator[Row]:
    """Rows without the envelope; others are counted in `unread`."""
    if envelope.name == "plain":
        yield from (Row(text, number) for number, text in enumerate(rows, 1))
        return
    begun: Row | None = None
    for number, text in enumerate(rows, 1):
        row = envelope.unwrap(text, settings)
        if row is None:
            if text.strip():
                _count(unread, f"not in the envelope ({envelope.name})")
            continue
        row.text = row.text.replace("#011", "\t")  # syslog's escaped tab
        row.number = number
        if begun is not None:
            row.text, row.at_ms, row.number = begun.text + row.text, begun.at_ms, begun.number
        begun = row if row.is_partial else None
        if begun is None:
            yield row
    if begun is not None:
        yield begun


def choose(rows: Sequence[str], settings: Settings, layout: Layout | None = None) -> Format | None:
    """The format that matches most of these rows; None if none matches any."""
    best, most = None, 0
    rows = rows[:_SAMPLE_ROWS]
    for envelope in ENVELOPES:
        inner = list(unwrapped(envelope, settings, rows, {}))
        for each in (LAYOUTS if layout is None else (layout,)) if inner else ():
            candidate = Format(envelope, each, settings)
            count = sum(1 for _ in candidate.of_rows(iter(inner), {}))
            if count > most:
                best, most = candidate, count
    return best


def layout_of(pattern: str) -> Layout:
    """The layout of a user's pattern. Raises UserError."""
    try:
        compile_pattern(pattern)
    except PatternError as why:
        raise UserError(f"--layout {pattern!r}: {why} (such as {LAYOUTS[0].pattern!r})") from None
    return Layout(pattern, pattern)


@cache
def _line_pattern(pattern: str) -> LinePattern:
    return compile_pattern(pattern)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _json(row: str) -> dict[str, object]:
    """A flattened object: `{"log": {"level": 1}}` also has `log.level`. Empty for anything else."""
    if not row.startswith("{"):
        return {}
    try:
        values = decode_untrusted(row.encode(), _OBJECT)
    except msgspec.DecodeError:
        return {}
    inner = [(key, value) for key, value in values.items() if isinstance(value, dict)]
    for key, value in inner:
        values.update({f"{key}.{name}": each for name, each in value.items()})
    return values


def _text(values: dict[str, object], keys: tuple[str, ...]) -> str | None:
    return next((value for key in keys if isinstance(value := values.get(key), str)), None)


def _json_time(values: dict[str, object], zone: tzinfo) -> int | None:
    for key in _KEYS["time"]:
        value = values.get(key)
        if isinstance(value, dict):  # log4j2's instant
            second, nano = value.get("epochSecond"), value.get("nanoOfSecond", 0)
            if isinstance(second, int) and isinstance(nano, int) and 0 <= second < 1e12:
                return second * 1000 + nano // 1_000_000
        elif isinstance(value, int | float):
            if 0 <= value < 1e15:
                return int(value) if value > 1e11 else int(value * 1000)
        elif isinstance(value, str) and (at_ms := _moment(value, zone)) is not None:
            return at_ms
    return None


def _moment(text: str, zone: tzinfo) -> int | None:
    """Milliseconds of an ISO date."""
    match = _compiled_iso().fullmatch(text)
    if match is None:
        return None
    fraction, of = match["fraction"] or "", match["zone"] or ""
    try:
        return milliseconds(ISO, match["second"], fraction, of, zone)
    except (ValueError, OverflowError):
        return None


@cache
def _compiled_iso() -> re.Pattern[str]:
    return re.compile(
        r"(?P<second>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)(?:[,.](?P<fraction>\d{1,9}))?"
        r"(?P<zone>Z|[+-]\d\d:?\d\d)?"
    )


def _count(unread: dict[str, int], what: str) -> None:
    unread[what] = unread.get(what, 0) + 1
