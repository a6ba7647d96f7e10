"""One replica's log without its records: a list of pieces, each of one leader epoch.

Two logs hold the same record at an offset if and only if they have the same epoch there. These are
structs, which cannot be compiled; `logs` may be, so they are separate.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec


class Piece(msgspec.Struct):
    """Offsets [base, end) that were appended in one leader epoch."""

    base: int
    end: int
    epoch: int


class ReplicaLog(msgspec.Struct):
    """One replica's log: pieces in order without gaps, its high watermark, and its leader."""

    pieces: list[Piece] = []
    hw: int = 0
    leader: int = -1
    start: int = 0

    @property
    def leo(self) -> int:
        return self.pieces[-1].end if self.pieces else self.start

    def delete_before(self, offset: int) -> None:
        """The log starts there now."""
        self.start = offset
        self.pieces = [piece for piece in self.pieces if piece.end > offset]
        if self.pieces and self.pieces[0].base < offset:
            self.pieces[0].base = offset

    def truncate(self, to_offset: int) -> None:
        while self.pieces and self.pieces[-1].base >= to_offset:
            self.pieces.pop()
        if self.pieces and self.pieces[-1].end > to_offset:
            self.pieces[-1].end = to_offset

    def append(self, base: int, end: int, epoch: int) -> None:
        """Add [base, end) at the end of the log."""
        pieces = self.pieces
        if pieces and pieces[-1].epoch == epoch and pieces[-1].end == base:
            pieces[-1].end = end
        elif end > base:
            pieces.append(Piece(base, end, epoch))

    def append_from(self, log: ReplicaLog, end: int) -> None:
        """Copy what another log has from the end of this one up to `end`."""
        leo, last = self.leo, log.pieces[-1] if log.pieces else None
        if last is not None and last.base <= leo < last.end:
            self.append(leo, min(end, last.end), last.epoch)
            return
        for piece in reversed(list(log.between(leo, end))):
            self.append(piece.base, piece.end, piece.epoch)

    def epoch_at(self, offset: int) -> int | None:
        """The leader epoch of the record at `offset`; None if there is no such record."""
        for piece in reversed(self.pieces):
            if piece.base <= offset:
                return piece.epoch if offset < piece.end else None
        return None

    def between(self, base: int, end: int) -> Iterator[Piece]:
        """The pieces that overlap [base, end), cut to it."""
        for piece in reversed(self.pieces):
            if piece.end <= base:
                return
            if piece.base < end:
                yield Piece(max(base, piece.base), min(end, piece.end), piece.epoch)
