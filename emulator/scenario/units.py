"""Parsing and formatting of durations: `5s`, `500ms`, `1.5min`.

A duration needs a unit, unless it is 0. Values are integer microseconds, computed without floats,
so that a scenario means the same on every machine.
"""

from __future__ import annotations

import re
from fractions import Fraction

_US = {"us": 1, "ms": 1_000, "s": 1_000_000, "min": 60_000_000, "h": 3_600_000_000}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(us|ms|s|min|h)")

DURATION = r"\d+(?:\.\d+)?\s*(?:us|ms|s|min|h)\b"
"""A regular expression for a duration inside a sentence."""


class BadDuration(ValueError):
    """Not a duration; the message explains the format."""


def duration_us(text: str) -> int:
    """`1.5s` -> 1500000. Raises BadDuration."""
    if text.strip() == "0":
        return 0
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise BadDuration(f"{text!r} is not a duration: write 5s, 500ms, 1.5min")
    exact = Fraction(match[1]) * _US[match[2]]
    if exact.denominator != 1:
        raise BadDuration(f"{text!r} is finer than a microsecond")
    return int(exact)


def show_us(us: int) -> str:
    """Microseconds as text with a suitable unit: `350 ms`, `7.125 s`."""
    sign, us = ("-", -us) if us < 0 else ("", us)
    if us < 1_000_000:
        return f"{sign}{_decimal(us, 1_000)} ms"
    return f"{sign}{_decimal(us // 1_000 * 1_000, 1_000_000)} s"


def _decimal(value: int, unit: int) -> str:
    whole, fraction = divmod(value, unit)
    if not fraction:
        return str(whole)
    return f"{whole}.{fraction:0{len(str(unit)) - 1}d}".rstrip("0")
