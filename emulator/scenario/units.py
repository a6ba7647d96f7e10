"""Times as people write them: `5s`, `500ms`, `1.5min`, and back.

A time has a unit; only 0 goes without. Values are whole microseconds, computed without floats, so
that a scenario means the same on every machine. Nothing here knows what a time is for.
"""

from __future__ import annotations

import re
from fractions import Fraction

_US = {"us": 1, "ms": 1_000, "s": 1_000_000, "min": 60_000_000, "h": 3_600_000_000}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(us|ms|s|min|h)")

DURATION = r"\d+(?:\.\d+)?\s*(?:us|ms|s|min|h)\b"
"""How a time looks inside a sentence (a regular expression)."""


class BadDuration(ValueError):
    """Not a time; the message says how times are written."""


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
    """Microseconds as people read them: `350 ms`, `7.125 s`."""
    sign, us = ("-", -us) if us < 0 else ("", us)
    if us < 1_000_000:
        return f"{sign}{_decimal(us, 1_000)} ms"
    return f"{sign}{_decimal(us // 1_000 * 1_000, 1_000_000)} s"


def _decimal(value: int, unit: int) -> str:
    whole, fraction = divmod(value, unit)
    if not fraction:
        return str(whole)
    return f"{whole}.{fraction:0{len(str(unit)) - 1}d}".rstrip("0")
