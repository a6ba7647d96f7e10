"""Causal links between events in different processes, used when their traces are merged.

A request carries its sender (Kafka's client id, `broker-2-fetcher-0`) and a number that is unique
in that process (the correlation id, which is the number of a note here); the response carries that
number back. Both ends write notes of both. Kafka's bytes are thus unchanged, and no clock is
needed. A note has a position among the events (`at`: the seq of the next one) and, for an outgoing
message, its cause. An incoming message has `cause_of` its note as its cause: a number below -1,
which `merged_trace` resolves. Owns the file of notes; knows neither sockets nor ZooKeeper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from emulator.trace.reader import BadTrace
from emulator.trace.untrusted_json import decode_untrusted

SUFFIX = ".links"


class Span(msgspec.Struct, frozen=True, omit_defaults=True, array_like=True):
    """`kind`: sent, received, answered, got (a response), asked (a request to ZooKeeper), told (its
    response), fired (a watch), session. `who`: a client id, or the operation; `number`: the note of
    the request; `zxid` is ZooKeeper's. The request that `told` responds to was sent in `session` as
    number `xid` (0: never).
    """

    kind: str
    at: int
    who: str = ""
    number: int = -1
    cause: int = -1
    zxid: int = 0
    session: int = 0
    xid: int = 0


def cause_of(note: int) -> int:
    """The cause of an event that a note led to."""
    return -2 - note


def note_of(cause: int) -> int:
    """The number of the note; only for causes below -1."""
    return -2 - cause


class CausalityLog:
    """The notes of one process. Without a file notes are only numbers."""

    def __init__(self, path: Path | None, next_seq: Callable[[], int]) -> None:
        """An existing file is continued: numbers stay unique when a process restarts."""
        self._next_seq = next_seq
        self.count = 0
        self._file: BinaryIO | None = None
        self._encoder = msgspec.json.Encoder()
        if path is not None:
            cut_to_whole_lines(path)
            # After the truncation: half a line of a killed process is not a note, and its number is
            # free again.
            self.count = sum(1 for _ in read_notes(path))
            self._file = path.open("ab")

    def note(
        self,
        kind: str,
        who: str = "",
        number: int = -1,
        cause: int = -1,
        zxid: int = 0,
        session: int = 0,
        xid: int = 0,
    ) -> int:
        """Write a note; returns its number."""
        count, self.count = self.count, self.count + 1
        if self._file is not None:
            note = Span(kind, self._next_seq(), who, number, cause, zxid, session, xid)
            self._file.write(self._encoder.encode(note) + b"\n")
        return count

    def flush(self) -> None:
        """Flush the file, so that a kill cannot lose notes."""
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def read_notes(path: Path) -> Iterator[Span]:
    """Read notes in order; an incomplete last line is skipped. BadTrace."""
    if not path.exists():
        return
    decoder = msgspec.json.Decoder(Span)
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.endswith(b"\n"):
                try:
                    yield decode_untrusted(line, decoder)
                except msgspec.DecodeError as error:
                    raise BadTrace(f"{path}:{number}: {error}") from None


def cut_to_whole_lines(path: Path) -> None:
    """Truncate the half line that a killed process may have left."""
    if path.exists():
        data = path.read_bytes()
        end = data.rfind(b"\n") + 1
        if end < len(data):
            path.write_bytes(data[:end])
