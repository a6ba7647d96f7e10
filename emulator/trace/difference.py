"""The first difference between two trace files, line by line.

Two runs that should be identical are compared literally, every field of every event. The header
(the run's parameters) is ignored. Knows the trace file format, nothing about runs.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import Path

import msgspec

from emulator.trace.events import AnyEvent

CONTEXT = 3
_UP = b'"do":"up"'


class TraceDifference(msgspec.Struct, frozen=True):
    """The first event that differs: its index, its line on both sides (None: that trace has ended),
    the preceding events, and when the cluster was up (None: not yet)."""

    event: int
    before: tuple[str, ...]
    first: str | None
    second: str | None
    up_us: int | None


class Compared(msgspec.Struct, frozen=True):
    """The number of equal leading events, and the first difference."""

    events: int
    difference: TraceDifference | None


def digest_of(events: Iterable[AnyEvent]) -> str:
    """SHA-256 over every field of every event: equal for identical runs."""
    digest = hashlib.sha256()
    for event in events:
        digest.update(msgspec.json.encode(event))
    return digest.hexdigest()


def compare_traces(first: Path, second: Path) -> Compared:
    """Read both files in step, never a whole one into memory. An incomplete last line is
    ignored."""
    with first.open("rb") as one, second.open("rb") as other:
        return compare_lines(_events(one), _events(other))


def compare_lines(first: Iterable[bytes], second: Iterable[bytes]) -> Compared:
    """Like `compare_traces`, for lines without line ends."""
    before: deque[bytes] = deque(maxlen=CONTEXT)
    up_us = None
    number = 0
    for one, other in zip_longest(first, second):
        if one != other:
            sides = (_text(one), _text(other))
            return Compared(
                number, TraceDifference(number, tuple(map(bytes.decode, before)), *sides, up_us)
            )
        before.append(one)
        number += 1
        if up_us is None and _UP in one:
            up_us = int(msgspec.json.decode(one)["t"])
    return Compared(number, None)


def _events(file: Iterable[bytes]) -> Iterator[bytes]:
    lines = iter(file)
    next(lines, None)
    return (line[:-1] for line in lines if line.endswith(b"\n"))


def _text(line: bytes | None) -> str | None:
    return None if line is None else line.decode()
