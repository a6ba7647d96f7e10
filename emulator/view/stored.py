"""A run directory as views need it: the trace's header and events, and the summary when the run got
that far.

Owns the file names that a reader of a run meets. It writes nothing, and turns every way in which a
directory can be no run into `NoRun` with one clear line.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from emulator.trace.events import AnyEvent, ProcessStateChanged
from emulator.trace.reader import BadTrace, Header, read_events, read_header
from emulator.trace.untrusted_json import decode_untrusted

TRACE = "trace.ndjson"
_SUMMARY = msgspec.json.Decoder(dict[str, Any])


class NoRun(BadTrace):
    """The path is no run directory, or its trace cannot be read; the message says which, in one
    line.
    """


class StoredRun(msgspec.Struct, frozen=True):
    """One run that is over (or was killed: then what it wrote until then)."""

    directory: Path
    header: Header
    events: list[AnyEvent]
    summary: dict[str, Any]


def open_run(path: str | Path) -> StoredRun:
    """Read a run directory, or a trace file itself. NoRun says what is wrong with it."""
    place = Path(path)
    trace = place if place.is_file() else place / TRACE
    try:
        header = read_header(trace)
        events = list(read_events(trace))
    except BadTrace as error:
        raise NoRun(str(error)) from None
    except OSError:
        missing = f"not a run directory: it has no {TRACE}" if place.exists() else "no such run"
        raise NoRun(f"{place}: {missing}") from None
    directory = trace.parent.resolve()
    try:
        file = directory / "summary.json"
        summary = decode_untrusted(file.read_bytes(), _SUMMARY)
    except (OSError, msgspec.DecodeError):
        summary = {}  # the run was killed before it wrote one
    if header.trace < 2:
        # Before version 2 there was no ProcessStateChanged: the facts of a broken invariant name
        # events by the numbers that they had without it.
        numbers = [one.seq for one in events if not isinstance(one, ProcessStateChanged)]
        for broken in summary.get("violations", ()):
            for field in ("facts", "chain"):
                broken[field] = [
                    numbers[seq] if 0 <= seq < len(numbers) else seq for seq in broken[field]
                ]
    return StoredRun(directory, header, events, summary)
