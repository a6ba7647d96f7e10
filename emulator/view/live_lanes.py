"""Lanes that grow: of a run that goes on, each time the rows that are new.

Owns what has been shown, and when the columns' names are due again. What a row is and how it is
drawn is the business of `rows` and `lanes`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.text import Text

from emulator.trace.events import AnyEvent
from emulator.trace.state.timeline import Timeline
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

    def new_lines(
        self, events: Sequence[AnyEvent], width: int, marked: Mapping[int, str] | None = None
    ) -> Iterator[Text]:
        """What has happened since the last time; the columns' names now and then, and whenever
        they are others. `marked`: events to mark, with why."""
        timeline = Timeline(events)
        choice = Choice(from_seq=self.from_seq, details=DETAILS, marked=marked or {})
        found = rows(timeline, choice)
        self.from_seq = events[-1].seq + 1 if events else 0
        lanes = [
            lane for lane in lanes_of(found, timeline) if lane != CLIENTS or _room(timeline, width)
        ]
        if set(lanes) - set(self._lanes):
            self._lanes, self._since_header = lanes, HEADER_EVERY
        drawn = Lanes(found, self._lanes, gutters_of(timeline), timeline, None).sheet(width)
        for row in found:
            if not row.cells.keys() - {CLIENTS}:
                self._without_column(row)
            if row.banner or row.fold or row.cells.keys() & set(self._lanes):
                yield from self._row(drawn, row)

    def _without_column(self, row: Row) -> None:
        """What a client is refused is said across the table where it has no column."""
        cell = row.cells.get(CLIENTS)
        if cell is not None and cell.tone == "refused" and CLIENTS not in self._lanes:
            row.banner = f"clients: {cell.headline}, {cell.numbers}"

    def _row(self, drawn: Sheet, row: Row) -> Iterator[Text]:
        if self._since_header >= HEADER_EVERY:
            yield from drawn.header()
            self._since_header = 0
        self._since_header += 1
        yield from drawn.one(row)

    def back_to(self, seq: int) -> None:
        """What comes after `seq` has not happened."""
        self.from_seq = min(self.from_seq, seq)


def _room(timeline: Timeline, width: int) -> bool:
    """Would a column more, for the clients, change nothing about the form of the table?"""
    columns = len(timeline.brokers) + 2
    wide = [(width - TIME) // count >= NARROWEST for count in (columns, columns + 1)]
    return wide[0] == wide[1]
