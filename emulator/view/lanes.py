"""The lane table on a terminal: one column per actor, time downwards.

Owns the drawing: columns and their gutters (whose glyph marks stale metadata or a paused process),
arrows from the cause of a row, and a narrow form for narrow terminals. `rows` decides what is
shown.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from emulator.trace.events import AnyEvent
from emulator.trace.state.processes import DEAD, PAUSED
from emulator.trace.state.spans import Interval, merged
from emulator.trace.state.timeline import Timeline
from emulator.trace.values import TopicPartition
from emulator.view.canvas import Canvas, wrapped
from emulator.view.event_text import CLIENTS, CONTROLLER, ZOOKEEPER
from emulator.view.rows import Cell, Choice, Row, lanes_of, rows

STYLES = {
    "shrink": "bold yellow",
    "expand": "bold green",
    "write": "green",
    "refused": "bold red",
    "notice": "magenta",
    "metadata": "cyan",
    "fault": "bold red",
    "life": "bold",
    "plain": "",
    "fold": "dim",
}
TIME, NARROWEST, WIDEST = 10, 20, 46
FRESH, OLD, STILL, GONE = ("│", "dim"), ("┃", "yellow"), ("░", "red"), ("·", "red")
HEADER_EVERY, MANY = 60, 5
TITLES = {CONTROLLER: "controller", ZOOKEEPER: "ZooKeeper", CLIENTS: "clients"}


def render_lanes(
    events: Iterable[AnyEvent],
    *,
    partition: TopicPartition | None = None,
    actor: str | None = None,
    kinds: Collection[str] = (),
    from_us: int | None = None,
    to_us: int | None = None,
    detail: bool = False,
    width: int | None = None,
    marked: Collection[int] | Mapping[int, str] = (),
) -> Lanes:
    """The lane table of a trace as a rich renderable.

    `actor` is `controller`, `zookeeper`, `clients` or a broker's id as text; times are microseconds
    since the cluster was up; `marked` has the `seq` of rows to mark, with their texts if it is a
    mapping.
    """
    notes = marked if isinstance(marked, Mapping) else dict.fromkeys(marked, "violation")
    choice = Choice(partition, actor, frozenset(kinds), from_us, to_us, detail, notes)
    timeline = Timeline(events)
    shown_rows = rows(timeline, choice)
    return Lanes(
        shown_rows, lanes_of(shown_rows, timeline), gutters_of(timeline, partition), timeline, width
    )


# -- gutters: old metadata, paused processes ------------------------------------------------------


class Gutters(msgspec.Struct):
    """The starts and ends of intervals in each lane, merged and in order."""

    old: dict[str, list[tuple[int, int]]]
    still: dict[str, list[tuple[int, int]]]
    gone: dict[str, list[tuple[int, int]]]

    def glyph(self, lane: str, at_us: int) -> tuple[str, str]:
        """The gutter's character and style at that moment."""
        if _inside(self.gone.get(lane, []), at_us):
            return GONE
        if _inside(self.still.get(lane, []), at_us):
            return STILL
        return OLD if _inside(self.old.get(lane, []), at_us) else FRESH


def _inside(spans: list[tuple[int, int]], at_us: int) -> bool:
    place = bisect_right(spans, (at_us, 1 << 62)) - 1
    return place >= 0 and at_us < spans[place][1]


def gutters_of(timeline: Timeline, only: TopicPartition | None = None) -> Gutters:
    """When each broker's metadata was stale, and its process paused or dead."""
    partitions = timeline.partitions if only is None else (only,)
    state, brokers = timeline.state, timeline.brokers
    end_us = timeline.end_us + 1  # intervals that are open at the end include the last row
    old: dict[str, list[Interval]] = {}
    for broker in brokers:
        spans = [span for one in partitions for span in state.staleness.episodes(broker, one)]
        if any(state.staleness.is_stale(broker, one) for one in partitions):
            spans.append((timeline.end_us, end_us))
        old[str(broker)] = merged(spans)
    still = {str(broker): state.processes.spans(broker, PAUSED, end_us) for broker in brokers}
    gone = {str(broker): state.processes.spans(broker, DEAD, end_us) for broker in brokers}
    return Gutters(old, still, gone)


# -- drawing ---------------------------------------------------------------------------------------


class Lanes:
    """A rich renderable, as wide as the console unless `width` is set."""

    def __init__(
        self,
        shown_rows: list[Row],
        lanes: list[str],
        gutters: Gutters,
        timeline: Timeline,
        width: int | None,
    ) -> None:
        self.rows, self.lanes, self.gutters = shown_rows, lanes, gutters
        self.timeline, self.width = timeline, width

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from self.sheet(options.max_width).lines()

    def sheet(self, max_width: int) -> Sheet:
        """The layout: wide if the columns have room for text."""
        width = self.width or max_width
        column = min((width - TIME) // len(self.lanes), WIDEST)
        return (Wide if column >= NARROWEST else Narrow)(self, width, column)


class Sheet(ABC):
    """The common part of the wide and the narrow form: the order of lines, and the time column."""

    def __init__(self, lanes: Lanes, width: int, column: int) -> None:
        self.of, self.width, self.column = lanes, width, column
        self.x = {lane: TIME + i * column for i, lane in enumerate(lanes.lanes)}

    def lines(self) -> Iterator[Text]:
        """Header, rows, legend."""
        for number, row in enumerate(self.of.rows):
            if number % HEADER_EVERY == 0:
                yield from self.header()
            yield from self.one(row)
        drawn = self.of.gutters
        if any(drawn.old.values()):
            yield Text("┃ shows an older ISR than ZooKeeper has", style="yellow")
        if any(drawn.still.values()):
            yield Text("░ process paused", style="red")
        if any(drawn.gone.values()):
            yield Text("· no process", style="red")

    def one(self, row: Row) -> Iterator[Text]:
        """A row with its notes and arrows."""
        if row.banner:
            canvas = Canvas(self.width, 1)
            canvas.put(0, 0, self.time(row), "bold")
            canvas.put(TIME, 0, f"── {row.banner} ", "bold")
            canvas.line(TIME + 4 + len(row.banner), self.width, 0, "dim")
            yield from canvas.texts()
        else:
            yield from self.row(row)
        if row.note:
            yield Text(f" ✗ {row.note}", style="bold white on red", no_wrap=True)

    @abstractmethod
    def header(self) -> Iterator[Text]:
        """The lanes' names."""

    @abstractmethod
    def row(self, row: Row) -> Iterator[Text]:
        """One row, which may take several lines."""

    def time(self, row: Row) -> str:
        """Seconds since the cluster was up; the duration, for a row that only counts."""
        if row.fold:
            return f"… {(row.to_us - row.from_us) / 1e6:.1f} s".rjust(TIME - 1)
        return f"{(row.from_us - self.of.timeline.origin_us) / 1e6:.3f}".rjust(TIME - 1)

    def gutters(self, canvas: Canvas, at_us: int) -> None:
        for y in range(canvas.height):
            for lane, x in self.x.items():
                canvas.put(x, y, *self.of.gutters.glyph(lane, at_us))

    def title(self, lane: str) -> str:
        """A lane's name, with its role if that never changes."""
        timeline = self.of.timeline
        terms = timeline.state.controller.terms
        if lane == CONTROLLER and len({term.broker for term in terms}) == 1:
            return f"controller (b{terms[0].broker})"
        leaders = {one.leader for name in timeline.partitions for one in timeline.states(name)}
        role = (
            " (leader)"
            if len(timeline.partitions) == 1 and leaders == {int(lane) if lane.isdigit() else 0}
            else ""
        )
        return TITLES.get(lane, f"broker {lane}{role}")


def cell_text(cell: Cell) -> str:
    """The headline, with the delay relative to the row's time."""
    return (
        f"{cell.headline} +{cell.later_us / 1000:.0f}ms" if cell.later_us >= 1000 else cell.headline
    )


class Wide(Sheet):
    """Every lane is a column of text."""

    def header(self) -> Iterator[Text]:
        canvas = Canvas(self.width, 2)
        canvas.put(0, 0, "time".rjust(TIME - 1), "bold")
        canvas.line(0, self.width, 1, "dim")
        for lane, x in self.x.items():
            title = self.title(lane)
            fits = len(title) <= self.column - 3
            canvas.put(x + 2, 0, title if fits else title.split(" (")[0], "bold")
            canvas.put(x, 1, "┬", "dim")
        yield from canvas.texts()

    def row(self, row: Row) -> Iterator[Text]:
        blocks: dict[str, list[tuple[str, str]]] = {}
        room = self.column - 3
        for lane, cell in row.cells.items():
            if lane in self.x:
                style = STYLES["fold" if row.fold else cell.tone]
                head = [(line, style) for line in wrapped(cell_text(cell), room)]
                blocks[lane] = head + [(line, "dim") for line in wrapped(cell.numbers, room)]
        height = max((len(block) for block in blocks.values()), default=1)
        canvas = Canvas(self.width, max(height, 1))
        self.gutters(canvas, row.to_us if not row.fold else row.from_us)
        canvas.put(0, 0, self.time(row), "dim" if row.fold else "")
        if row.note:
            canvas.put(0, 0, "✗", "bold red")
        for lane, block in blocks.items():
            for y, (line, style) in enumerate(block):
                canvas.put(self.x[lane] + 2, y, line, style)
        # An arrow from the source's gutter to each target; it only covers blanks, so that text
        # stays readable.
        style = STYLES[next(iter(row.cells.values())).tone] if row.cells else ""
        for target in row.targets if row.source in self.x else ():
            if target not in self.x:
                continue
            start, end = self.x[row.source], self.x[target]
            if end < start:
                end += len(blocks[target][0][0]) + 3
                canvas.put(end, 0, "◀", style)
                canvas.line(end + 1, start, 0, style)
            else:
                canvas.put(end + 1, 0, "▶", style)
                canvas.line(start + 2, end, 0, style)
        yield from canvas.texts()


def who(lane: str) -> str:
    """A lane's name in running text."""
    return f"b{lane}" if lane.isdigit() else TITLES.get(lane, lane)


def together(lanes: list[str]) -> str:
    """Several lanes in running text, or their number if there are many."""
    if len(lanes) > MANY:
        return f"{who(lanes[0])}, {who(lanes[1])} … {who(lanes[-1])} ({len(lanes)})"
    return ", ".join(who(lane) for lane in lanes)


class Narrow(Sheet):
    """Lanes are thin lines on the left, with text on the right: for many brokers, or few
    columns.
    """

    def __init__(self, lanes: Lanes, width: int, column: int) -> None:
        digits = max((len(lane) for lane in lanes.lanes if lane.isdigit()), default=1)
        super().__init__(lanes, width, max(3, digits + 1))
        self.words = TIME + self.column * len(lanes.lanes) + 1

    def header(self) -> Iterator[Text]:
        canvas = Canvas(self.width, 1)
        canvas.put(0, 0, "time".rjust(TIME - 1), "bold")
        for lane, x in self.x.items():
            canvas.put(x, 0, lane if lane.isdigit() else lane[0].upper(), "bold")
        names = [f"{lane[0].upper()} {self.title(lane)}" for lane in self.x if not lane.isdigit()]
        canvas.put(self.words, 0, ", ".join(names), "bold")
        yield from canvas.texts()

    def row(self, row: Row) -> Iterator[Text]:
        room = self.width - self.words
        lines: list[tuple[str, str]] = []
        if row.fold:
            counts = [
                f"{who(lane)} {row.cells[lane].headline}" for lane in self.x if lane in row.cells
            ]
            lines = [(line, STYLES["fold"]) for line in wrapped(" · ".join(counts), room)]
        else:
            # Lanes with the same text share a line.
            alike: dict[tuple[str, str, str], list[str]] = {}
            for lane, cell in row.cells.items():
                alike.setdefault((cell.headline, cell.numbers, cell.tone), []).append(lane)
            for (headline, numbers, tone), lanes in alike.items():
                names = together([lane for lane in self.x if lane in lanes])
                lines += [(line, STYLES[tone]) for line in wrapped(f"{names}: {headline}", room)]
                lines += [(f"  {line}", "dim") for line in wrapped(numbers, room - 2)]
        canvas = Canvas(self.width, max(len(lines), 1))
        self.gutters(canvas, row.to_us if not row.fold else row.from_us)
        canvas.put(0, 0, self.time(row), "dim" if row.fold else "")
        for y, (line, style) in enumerate(lines):
            canvas.put(self.words, y, line, style)
        if not row.fold:
            for lane, cell in row.cells.items():
                if lane in self.x:
                    canvas.put(self.x[lane], 0, "●", STYLES[cell.tone])
            if row.source in self.x and row.targets:
                ends = [self.x[target] for target in row.targets if target in self.x]
                start = self.x[row.source]
                canvas.put(start, 0, "○")
                for end in ends:
                    canvas.put(end, 0, "◀" if end < start else "▶")
                canvas.line(min(*ends, start) + 1, max(*ends, start), 0, "dim")
        yield from canvas.texts()
