"""Lanes that grow: of a run that goes on, each time the rows that are new.

Owns what has been shown, and when the columns' names are due again. What a row is and how it is
drawn is the business of `rows` and `lanes`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from emulator.trace.events import AnyEvent
from emulator.view.derive import Derived, derive
from emulator.view.lanes import HEADER_EVERY, NARROWEST, TIME, Lanes, Sheet, gutters_of
from emulator.view.rows import Choice, Row, lanes_of, rows
from emulator.view.telling import CLIENTS

DETAILS = 24
"""Of a moment with so few details each is a row: a short look shows everything."""


class Growing:
    """The lanes of one run as far as they were shown."""

    def __init__(self) -> None:
        self.from_seq = 0
        self._lanes: list[str] = []
        self._since_header = HEADER_EVERY

    def new_lines(self, events: Sequence[AnyEvent], width: int) -> Iterator[Text]:
        """What has happened since the last time; the columns' names now and then, and whenever
        they are others."""
        derived = derive(events)
        found = rows(derived, Choice(from_seq=self.from_seq, details=DETAILS))
        self.from_seq = events[-1].seq + 1 if events else 0
        lanes = [
            lane for lane in lanes_of(found, derived) if lane != CLIENTS or _room(derived, width)
        ]
        if set(lanes) - set(self._lanes):
            self._lanes, self._since_header = lanes, HEADER_EVERY
        drawn = Lanes(found, self._lanes, gutters_of(derived), derived, None).sheet(width)
        for row in found:
            if row.banner or row.fold or row.cells.keys() & set(self._lanes):
                yield from self._row(drawn, row)

    def _row(self, drawn: Sheet, row: Row) -> Iterator[Text]:
        if self._since_header >= HEADER_EVERY:
            yield from drawn.header()
            self._since_header = 0
        self._since_header += 1
        yield from drawn.one(row)

    def back_to(self, seq: int) -> None:
        """What comes after `seq` has not happened."""
        self.from_seq = min(self.from_seq, seq)


def _room(derived: Derived, width: int) -> bool:
    """Is the table still wide with a column more, for the clients?"""
    columns = len(derived.brokers) + 3
    return (width - TIME) // columns >= NARROWEST
