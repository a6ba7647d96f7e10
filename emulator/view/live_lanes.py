"""Growing lanes of a run in progress: each call returns the new rows.

Owns which rows were shown, and when the column names are repeated. `rows` and `lanes` make and draw
the rows.
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
"""If there are at most this many details, each gets a row: a short look shows everything."""


class LiveLanes:
    """The lanes of one run, and how far they were shown."""

    def __init__(self) -> None:
        self.from_seq = 0
        self._lanes: list[str] = []
        self._since_header = HEADER_EVERY

    def new_lines(
        self, events: Sequence[AnyEvent], width: int, marked: Mapping[int, str] | None = None
    ) -> Iterator[Text]:
        """The rows of events since the last call, with the column names now and then, and whenever
        they change. `marked`: events to mark, with texts."""
        timeline = Timeline(events)
        choice = Choice(from_seq=self.from_seq, details=DETAILS, marked=marked or {})
        new_rows = rows(timeline, choice)
        self.from_seq = events[-1].seq + 1 if events else 0
        # An additional column for clients must not change the form of the table.
        columns = len(timeline.brokers) + 2
        is_wide = [(width - TIME) // count >= NARROWEST for count in (columns, columns + 1)]
        has_room = is_wide[0] == is_wide[1]
        lanes = [lane for lane in lanes_of(new_rows, timeline) if lane != CLIENTS or has_room]
        if set(lanes) - set(self._lanes):
            self._lanes, self._since_header = lanes, HEADER_EVERY
        drawn = Lanes(new_rows, self._lanes, gutters_of(timeline), timeline, None).sheet(width)
        for row in new_rows:
            # Refused requests of clients are shown across the table if they have no column.
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
        """Events from `seq` on were undone."""
        self.from_seq = min(self.from_seq, seq)
