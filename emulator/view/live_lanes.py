"""Lanes that grow: of a run that goes on, each time the rows that are new.

Owns what has been shown, and when the columns' names are due again. What a row is and how it is
drawn is the business of `rows` and `lanes`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.text import Text

from emulator.trace.events import AnyEvent
from emulator.trace.state.timeline import Timeline
from emulator.view.event_text import CLIENTS
from emulator.view.lanes import HEADER_EVERY, NARROWEST, TIME, Lanes, gutters_of
from emulator.view.rows import Choice, lanes_of, rows

DETAILS = 24
"""Of a moment with so few details each is a row: a short look shows everything."""


class LiveLanes:
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
        new_rows = rows(timeline, choice)
        self.from_seq = events[-1].seq + 1 if events else 0
        # A column more, for the clients, may not change the form of the table.
        columns = len(timeline.brokers) + 2
        is_wide = [(width - TIME) // count >= NARROWEST for count in (columns, columns + 1)]
        has_room = is_wide[0] == is_wide[1]
        lanes = [lane for lane in lanes_of(new_rows, timeline) if lane != CLIENTS or has_room]
        if set(lanes) - set(self._lanes):
            self._lanes, self._since_header = lanes, HEADER_EVERY
        drawn = Lanes(new_rows, self._lanes, gutters_of(timeline), timeline, None).sheet(width)
        for row in new_rows:
            # What a client is refused is said across the table where it has no column.
            cell = row.cells.get(CLIENTS)
            is_alone = len(row.cells) == 1 and CLIENTS not in self._lanes
            if cell is not None and cell.tone == "refused" and is_alone:
                row.banner = f"clients: {cell.headline}, {cell.numbers}"
            if row.banner or row.fold or row.cells.keys() & set(self._lanes):
                if self._since_header >= HEADER_EVERY:
                    yield from drawn.header()
                    self._since_header = 0
                self._since_header += 1
                yield from drawn.one(row)

    def back_to(self, seq: int) -> None:
        """What comes after `seq` has not happened."""
        self.from_seq = min(self.from_seq, seq)
