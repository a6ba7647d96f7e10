"""Trace files: a header, then one JSON object per line.

The trace of a killed run is readable up to its last complete line. Knows the vocabulary, but not
run directories.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from emulator.trace.events import (
    ActionApplied,
    ActionReturned,
    AnyEvent,
    BrokerExited,
    BrokerHalted,
    BrokerStarted,
    BrokerStarting,
    ProcessStateChanged,
)
from emulator.trace.untrusted_json import decode_untrusted
from emulator.trace.values import ProcessState

SCHEMA_VERSION = 3
"""Format 1 has no ProcessStateChanged and stores an action's parameters as text. Formats 1 and 2
use other names for the kinds of actions. All are still readable."""

_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)


class Header(msgspec.Struct, frozen=True):
    """The first line of a trace. `settings` are the explicit ones, `defaults` the version's for the
    rest; `guards` are the version's fixes (None: unknown)."""

    trace: int
    scenario: str
    seed: int
    profile: str
    zookeeper: str
    settings: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    guards: tuple[str, ...] | None = None


_header_decoder = msgspec.json.Decoder(Header)


class BadTrace(Exception):
    """Not a valid trace file; the message names file and line."""


class TraceWriter:
    """Writes events as they happen; every line except the last is complete."""

    def __init__(self, path: Path, header: Header, *, append: bool = False) -> None:
        """`append`: continue an existing trace that already has its header."""
        self.path = path
        self._file: BinaryIO = path.open("ab" if append else "wb")
        self._encoder = msgspec.json.Encoder()
        if not append:
            try:
                self._file.write(self._encoder.encode(header) + b"\n")
            except OSError:
                with suppress(OSError):
                    self._file.close()
                raise

    def __call__(self, event: AnyEvent) -> None:
        self._file.write(self._encoder.encode(event) + b"\n")

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def flush(self) -> None:
        """Pass buffered lines to the operating system, so that they survive a kill."""
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def read_header(path: Path) -> Header:
    """Raises BadTrace if the first line is not a header."""
    with path.open("rb") as file:
        line = file.readline()
    try:
        return decode_untrusted(line, _header_decoder)
    except msgspec.DecodeError as error:
        raise BadTrace(f"{path}: line 1 is not a trace header: {error}") from None


def has_header(path: Path) -> bool:
    """Whether the first line is complete. A process killed during start-up leaves none."""
    if not path.exists():
        return False
    with path.open("rb") as file:
        return file.readline().endswith(b"\n")


def decode_event(line: bytes) -> AnyEvent:
    """Decode one line of a trace, of this format or an older one. Raises msgspec.DecodeError."""
    if line.startswith(_OLDER_LINES):
        line = _in_current_format(line)
    return decode_untrusted(line, _decoder)


OLDER_KINDS = {
    "stimulus": "action_applied",
    "stimulus_returned": "action_returned",
    "told_shrink_counted": "controller_shrink_counted",
}
_OLDER_LINES = tuple(f'{{"kind":"{kind}"'.encode() for kind in OLDER_KINDS)


def _in_current_format(line: bytes) -> bytes:
    """Convert a line of format 1 or 2 to format 3."""
    event = msgspec.json.decode(line, type=dict[str, Any])
    event["kind"] = OLDER_KINDS[event["kind"]]
    if "arguments" in event:
        event["parameters"] = msgspec.Raw(event.pop("arguments").encode() or b"{}")
    return msgspec.json.encode(event)


def read_events(path: Path) -> Iterator[AnyEvent]:
    """The events of a trace in order, in the current format. An incomplete last line (of a killed
    run) is ignored."""
    header = read_header(path)
    events = _read_lines(path)
    return with_process_states(events) if header.trace < 2 else events


def _read_lines(path: Path) -> Iterator[AnyEvent]:
    with path.open("rb") as file:
        file.readline()
        for number, line in enumerate(file, start=2):
            if not line.endswith(b"\n"):
                return
            try:
                yield decode_event(line)
            except msgspec.DecodeError as error:
                raise BadTrace(f"{path}: line {number}: {error}") from None


# -- format 1: without ProcessStateChanged ---------------------------------------------------------


def with_process_states(events: Iterable[AnyEvent]) -> Iterator[AnyEvent]:
    """Add to a trace of format 1 the process states that its actions and starts imply. Events get
    new sequence numbers."""
    numbers: dict[int, int] = {}
    states: dict[int, ProcessState] = {}
    before_pause: dict[int, ProcessState] = {}
    seq = 0
    for event in events:
        numbers[event.seq] = seq
        cause = numbers.get(event.cause, -1)
        renumbered: AnyEvent = msgspec.structs.replace(event, seq=seq, cause=cause)
        if isinstance(renumbered, ActionReturned):
            renumbered = msgspec.structs.replace(renumbered, of=numbers.get(renumbered.of, -1))
        yield renumbered
        seq += 1
        broker, state = _process_after(event, before_pause)
        was = states.get(broker)
        if not broker or state is None or state == was:
            continue
        if was == "dead" and isinstance(event, ActionApplied) and event.do != "registered":
            continue
        if state == "paused":
            before_pause[broker] = was or "up"
        states[broker] = state
        yield ProcessStateChanged(seq, event.t, broker, event.thread, numbers[event.seq], state)
        seq += 1


def _process_after(
    event: AnyEvent, before_pause: dict[int, ProcessState]
) -> tuple[int, ProcessState | None]:
    """The broker whose process an event of format 1 changes, and the new state."""
    match event:
        case BrokerStarting():
            return event.broker, "starting"
        case BrokerStarted():
            return event.broker, "up"
        case BrokerExited() | BrokerHalted():
            return event.broker, "dead"
        case ActionApplied():
            if event.do == "resume":
                return event.broker, before_pause.pop(event.broker, None)
            return event.broker, _STATE_AFTER_ACTION.get(event.do)
    return 0, None


_STATE_AFTER_ACTION: dict[str, ProcessState] = {
    "kill": "dead",
    "crash": "dead",
    "exited": "dead",
    "terminate": "stopping",
    "pause": "paused",
    "registered": "up",
}
"""In a recording, `registered` is the start of a process that has no other start event."""
