"""Compiles a log4j pattern to regular expressions for its lines.

Owns the conversions (`%d %p %m (%c)%n`) and date formats of log4j 1 and 2. The message splits a
pattern: the part before it begins an entry, the part after it ends the message, which may have
several rows. It must not know particular patterns.
"""

from __future__ import annotations

import calendar
import re
import time
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache

import msgspec

LEVELS = "TRACE|DEBUG|INFO|WARN|ERROR|FATAL"
_ISO = (
    r"(?P<second>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)(?:[,.](?P<fraction>\d{1,9}))?"
    r" ?(?P<zone>Z|UTC|GMT|[+-]\d\d:?\d\d)?"
)
ISO = "iso"
"""A date like `2026-11-22 03:00:00`, with a blank or a T."""
_CONVERSION = re.compile(r"%(?P<width>[-.\d]*)(?P<name>[A-Za-z]+|%)")
_OPTION = re.compile(r"\{([^}]*)\}")
_NAMES = {
    "date": "d", "level": "p", "logger": "c", "message": "m", "msg": "m", "thread": "t",
    "tn": "t", "threadName": "t",
}  # fmt: skip
_IGNORED_AT_END = frozenset({"n", "ex", "exception", "throwable", "xEx", "xThrowable", "rEx"})
_LETTERS = {
    "yyyy": r"\d{4}", "yy": r"\d\d", "MMM": r"[A-Z][a-z]{2}", "MM": r"\d\d", "dd": r"\d\d",
    "d": r"\d\d?", "HH": r"\d\d", "mm": r"\d\d", "ss": r"\d\d", "EEE": r"[A-Z][a-z]{2}",
}  # fmt: skip
_STRPTIME = {
    "yyyy": "%Y", "yy": "%y", "MMM": "%b", "MM": "%m", "dd": "%d", "d": "%d", "HH": "%H",
    "mm": "%M", "ss": "%S", "EEE": "%a",
}  # fmt: skip
_DATE_TOKEN = re.compile(r"'([^']*)'|([A-Za-z])\2*|[^A-Za-z']+")


class PatternError(ValueError):
    """Why a pattern is not supported, in one line."""


class LinePattern(msgspec.Struct, frozen=True):
    """`head` matches the beginning of an entry up to its message, `tail` the end of the message's
    last row (None: the message ends with its row). `date`: the strptime format of the group
    `second` (empty: the lines have no date)."""

    head: re.Pattern[str]
    tail: re.Pattern[str] | None
    date: str


def compile_pattern(pattern: str) -> LinePattern:
    parts: list[str] = []
    head: str | None = None
    names: list[str] = []
    date, place = "", 0
    pattern = re.sub(
        r"%(?:highlight|style)\{((?:[^{}]|\{[^{}]*\})*)\}(?:\{[^{}]*\})?", r"\1", pattern
    )
    while place < len(pattern):
        match = _CONVERSION.match(pattern, place)
        if match is None:
            parts.append(re.escape(pattern[place]))
            place += 1
            continue
        place = match.end()
        name = match["name"]
        # `%pkafka`: log4j uses the longest known name, which may be a single letter.
        if name not in _NAMES and name not in _IGNORED_AT_END and len(name) > 1:
            place -= len(name) - 1
            name = name[0]
        name, options = _NAMES.get(name, name), []
        while option := _OPTION.match(pattern, place):
            options.append(option[1])
            place = option.end()
        if name in names and name in "dpcm":
            raise PatternError(f"%{name} is twice in it")
        names.append(name)
        if name == "m":
            head, parts = "".join(parts), []
            continue
        if name == "d":
            text, date = _date(options[0] if options else "")
        else:
            text = _conversion(name, options)
        is_padded = any(one.isdigit() and one != "0" for one in match["width"])
        parts.append(f" *{text} *" if is_padded else text)
    if head is None:
        raise PatternError("%m is missing: the message")
    if "c" not in names:
        raise PatternError("%c is missing: the logger tells what a message is about")
    tail = "".join(parts)
    level = "" if "p" in names else "(?P<level>)"
    seconds = "" if "d" in names and date else "(?P<second>)(?P<fraction>)(?P<zone>)"
    return LinePattern(
        re.compile(level + seconds + head), re.compile(rf"{tail}\s*$") if tail else None, date
    )


def _conversion(name: str, options: list[str]) -> str:
    """The regular expression of a conversion other than the date and the message."""
    match name:
        case "p":
            return f"(?P<level>{LEVELS})"
        case "c" if options and options[0]:
            raise PatternError(f"%c{{{options[0]}}} cuts the logger's name: %c is needed")
        case "c":
            return r"(?P<logger>[\w.$-]+)"
        case "%":
            return "%"
        case "L" | "r":
            return r"(?:\d+|\?)"
        case "t":
            return r"[^\]\n]*?"
    return "" if name in _IGNORED_AT_END else r"[^\n]*?"


def _date(form: str) -> tuple[str, str]:
    """The regular expression of a date, and the strptime format of its group `second`."""
    if form in ("", "ISO8601", "DEFAULT", "ISO8601_BASIC") or form.startswith("ISO8601_"):
        return _ISO, ISO
    named = {
        "DATE": "dd MMM yyyy HH:mm:ss,SSS",
        "COMPACT": "yyyyMMddHHmmssSSS",
        "ABSOLUTE": "HH:mm:ss,SSS",
    }
    if form in ("UNIX", "UNIX_MILLIS"):
        raise PatternError(f"%d{{{form}}} is not supported")
    second, after, date, is_second = "", "", "", True
    for token in _DATE_TOKEN.finditer(named.get(form, form)):
        text = token[0]
        if text[0] == "S":
            is_second = False
            # The separator between seconds and their fraction belongs to neither.
            after += rf"(?P<fraction>\d{{{len(text)}}})"
        elif text[0] in "XZz":
            is_second = False
            after += r"(?P<zone>Z|[A-Z]{3,4}|[+-]\d\d:?\d\d)"
        elif text in _LETTERS and is_second:
            second, date = second + _LETTERS[text], date + _STRPTIME[text]
        elif text[0] == "'" or not text[0].isalpha():
            literal = token[1] if text[0] == "'" else text
            following = named.get(form, form)[token.end() : token.end() + 1]
            if is_second and following not in ("S", "X", "Z", "z"):
                second, date = second + re.escape(literal), date + literal.replace("%", "%%")
            else:
                after += re.escape(literal)
        else:
            raise PatternError(f"%d{{{form}}}: {text} is not supported")
    text = f"(?P<second>{second}){after}"
    text += "" if "fraction" in text else "(?P<fraction>)"
    text += "" if "zone" in text else "(?P<zone>)"
    has_day = "%Y" in date and ("%m" in date or "%b" in date) and "%d" in date
    return text, date if has_day else ""


def milliseconds(date: str, second: str, fraction: str, zone: str, local: tzinfo) -> int:
    """Milliseconds since 1970. Raises ValueError."""
    return _seconds(date, second, zone, local) * 1000 + int(f"{fraction or 0}00"[:3])


@lru_cache(maxsize=4096)
def _seconds(date: str, second: str, zone: str, local: tzinfo) -> int:
    # Cached by strptime's arguments: many lines have the same second.
    parsed = time.strptime(second.replace("T", " ") if date == ISO else second,
                           "%Y-%m-%d %H:%M:%S" if date == ISO else date)  # fmt: skip
    if zone in ("Z", "UTC", "GMT") or (not zone and local is UTC):
        return calendar.timegm(parsed)
    if zone and zone[0] in "+-":
        east = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
        return calendar.timegm(parsed) - int(east.total_seconds()) * (1 if zone[0] == "+" else -1)
    return int(datetime(*parsed[:6], tzinfo=local).timestamp())
