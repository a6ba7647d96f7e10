"""What of one process's trace was led to by another's, for who puts their traces together.

A request carries who sent it (Kafka's client id, `broker-2-fetcher-0`) and a number that is unique
in that process (the correlation id: the number of a note here); the answer carries the number back.
Both ends note both: so Kafka's bytes stay Kafka's, and no clock is asked. A note has a place among
the events (`at`: the seq of the next one) and, where something goes out, the cause of it. What
comes in has `cause_of` its note as its cause: less than -1, which `merged_trace` resolves.
Owns the file of notes; knows neither sockets nor ZooKeeper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

SUFFIX = ".links"


class Span(msgspec.Struct, frozen=True, omit_defaults=True, array_like=True):
    """`kind`: sent, received, answered, got (an answer), asked (ZooKeeper), told (its answer),
    fired (a watch), session. `who`: a client id, or what is asked; `number`: the note of the
    request; `zxid` of ZooKeeper's; what `told` answers was sent in `session` as number `xid` (0:
    never)."""

    kind: str
    at: int
    who: str = ""
    number: int = -1
    cause: int = -1
    zxid: int = 0
    session: int = 0
    xid: int = 0


def cause_of(note: int) -> int:
    """What an event has as its cause that a note led to."""
    return -2 - note


def note_of(cause: int) -> int:
    """The number of the note; only of causes less than -1."""
    return -2 - cause


class CausalityLog:
    """The notes of one process. Without a file notes are numbers, and nobody reads them."""

    def __init__(self, path: Path | None, next_seq: Callable[[], int]) -> None:
        """A file that is there is carried on: numbers stay unique when a process starts again."""
        self._next_seq = next_seq
        self.count = 0
        self._file: BinaryIO | None = None
        self._encoder = msgspec.json.Encoder()
        if path is not None:
            cut_to_whole_lines(path)
            # Behind the cut: half a line of a killed process is no note, and its number is free
            # again.
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
        """Its number."""
        count, self.count = self.count, self.count + 1
        if self._file is not None:
            note = Span(kind, self._next_seq(), who, number, cause, zxid, session, xid)
            self._file.write(self._encoder.encode(note) + b"\n")
        return count

    def flush(self) -> None:
        """So that a kill cannot take it."""
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def read_notes(path: Path) -> Iterator[Span]:
    """In order; a last line that is no whole one is left out."""
    if not path.exists():
        return
    decoder = msgspec.json.Decoder(Span)
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield decoder.decode(line)


def cut_to_whole_lines(path: Path) -> None:
    """A process that was killed may have left half a line."""
    if path.exists():
        data = path.read_bytes()
        end = data.rfind(b"\n") + 1
        if end < len(data):
            path.write_bytes(data[:end])
