"""Where two traces first differ: as files, line by line, from the first event to the last.

Two runs that should be identical are compared literally, every field of every event; the header
(the parameters of the run) is ignored. Knows the form of a trace file, nothing of runs.
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
    """The first event that is not the same: its place, both sides as their lines say it (None: that
    trace has ended), the events before it, and when the cluster was up (None: not yet)."""

    event: int
    before: tuple[str, ...]
    first: str | None
    second: str | None
    up_us: int | None


class Compared(msgspec.Struct, frozen=True):
    """How many events are the same, from the start, and where that ends."""

    events: int
    difference: TraceDifference | None


def digest_of(events: Iterable[AnyEvent]) -> str:
    """Of every event, to the last field: the same for two runs that are the same."""
    digest = hashlib.sha256()
    for event in events:
        digest.update(msgspec.json.encode(event))
    return digest.hexdigest()


def compare_traces(first: Path, second: Path) -> Compared:
    """Both files at once, never a whole one in memory. A last line without an end is left out."""
    with first.open("rb") as one, second.open("rb") as other:
        return compare_lines(_events(one), _events(other))


def compare_lines(first: Iterable[bytes], second: Iterable[bytes]) -> Compared:
    """The same of lines without their ends."""
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
