"""Reads a run directory for views: the trace's header and events, and the summary if there is one.

Owns the file names for readers of a run. It writes nothing. Any problem with a directory becomes
`NoRun` with a one-line message.
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
    """The path is not a run directory, or its trace is unreadable; the message is one line."""


class StoredRun(msgspec.Struct, frozen=True):
    """A finished run, or the events that a killed run wrote."""

    directory: Path
    header: Header
    events: list[AnyEvent]
    summary: dict[str, Any]


def open_run(path: str | Path) -> StoredRun:
    """Read a run directory or a trace file. Raises NoRun."""
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
        summary = {}  # the run was killed before it wrote a summary
    if header.trace < 2:
        # Traces before version 2 had no ProcessStateChanged, and the facts of a violation use the
        # numbers that events had without it.
        numbers = [one.seq for one in events if not isinstance(one, ProcessStateChanged)]
        for broken in summary.get("violations", ()):
            for field in ("facts", "chain"):
                broken[field] = [
                    numbers[seq] if 0 <= seq < len(numbers) else seq for seq in broken[field]
                ]
    return StoredRun(directory, header, events, summary)
