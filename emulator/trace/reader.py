"""Traces as files: a header, then one JSON object per line.

Readable up to the last whole line of a run that was killed. Knows the vocabulary, no run directory.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import msgspec

from emulator.trace.events import AnyEvent

SCHEMA_VERSION = 2
"""1: without ProcessStateChanged, parameters of a stimulus as text. Older traces are read."""

_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)


class Header(msgspec.Struct, frozen=True):
    """The first line of a trace. `settings` are those that were given, `defaults` the version's for
    the others; `guards` the fixes that the version has (None: the trace does not say)."""

    trace: int
    scenario: str
    seed: int
    profile: str
    zookeeper: str
    settings: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    guards: tuple[str, ...] | None = None


class BadTrace(Exception):
    """A trace file that is not one; names file and line."""


class TraceWriter:
    """Writes events as they happen; a line is either there as a whole or it is the last one."""

    def __init__(self, path: Path, header: Header, *, append: bool = False) -> None:
        """`append` to a trace that is there, header and all."""
        self.path = path
        self._file: BinaryIO = path.open("ab" if append else "wb")
        self._encoder = msgspec.json.Encoder()
        if not append:
            self._file.write(self._encoder.encode(header) + b"\n")

    def __call__(self, event: AnyEvent) -> None:
        self._file.write(self._encoder.encode(event) + b"\n")

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def flush(self) -> None:
        """Give what is written to the operating system, so that a kill cannot take it."""
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def read_header(path: Path) -> Header:
    """The trace's first line; BadTrace when it is none."""
    with path.open("rb") as file:
        line = file.readline()
    try:
        return msgspec.json.decode(line, type=Header)
    except msgspec.DecodeError as error:
        raise BadTrace(f"{path}: line 1 is no trace header: {error}") from None


def decode_event(line: bytes) -> AnyEvent:
    """One line of a trace. Raises msgspec.DecodeError."""
    if line.startswith(_STIMULUS) and b'"arguments":"' in line:
        line = _with_parameters(line)
    return _decoder.decode(line)


_STIMULUS = b'{"kind":"stimulus"'


def _with_parameters(line: bytes) -> bytes:
    """Format 1 had them as a text with JSON in it."""
    event = msgspec.json.decode(line, type=dict[str, Any])
    event["parameters"] = msgspec.Raw(event.pop("arguments").encode() or b"{}")
    return msgspec.json.encode(event)


def read_events(path: Path) -> Iterator[AnyEvent]:
    """The events of a trace in order; an unfinished last line (the run was killed) is left out."""
    read_header(path)
    with path.open("rb") as file:
        file.readline()
        for number, line in enumerate(file, start=2):
            if not line.endswith(b"\n"):
                return
            try:
                yield decode_event(line)
            except msgspec.DecodeError as error:
                raise BadTrace(f"{path}: line {number}: {error}") from None
