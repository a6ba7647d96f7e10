"""Converts events to rows of the lane table: selects, joins and counts them.

Owns the selection (partition, actor, time, kind), the joining of a request with its response and of
one message to several brokers, and the folding of bursts and of frequent events. It must not know
the terminal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

import msgspec

from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.state.timeline import Timeline
from emulator.trace.values import TopicPartition
from emulator.view.event_text import (
    CLIENTS,
    CONTROLLER,
    ZOOKEEPER,
    EventText,
    Level,
    partitions_of,
    scene,
    span,
)
from emulator.view.wording import describe_event

JOIN_US = 250_000
"""An event within this time after its cause shares its row."""
BURST_US = 500_000
BURST = 3
"""More than this many equal rows of different partitions, without a pause of BURST_US, become
one.
"""
DETAILS = 150
"""Details get their own rows up to this number; a narrower selection shows them again."""
CLIENT_RESULTS = 24
"""Up to this many client results are shown individually; beyond that only refusals."""
BRIEF_US = 50_000
"""Shorter periods of traffic get no row that counts them."""
QUIET_US = 1_000_000
"""The minimum length of a period without events that gets its own row."""


class Cell(msgspec.Struct):
    """The text of one lane in a row, and its delay relative to the row's time."""

    headline: str
    numbers: str = ""
    tone: str = "plain"
    later_us: int = 0


class Row(msgspec.Struct):
    """One line of the table. `targets` are the lanes that an arrow from `source` points to; a
    banner has no lane.

    `fold`: only counts of events until `to_us`. `note`: why the row is marked.
    """

    from_us: int
    to_us: int
    kind: str
    cells: dict[str, Cell]
    seqs: list[int]
    source: str = ""
    targets: list[str] = []
    banner: str = ""
    fold: bool = False
    note: str = ""
    key: tuple[object, ...] | None = None
    about: tuple[TopicPartition, ...] = ()


class Choice(msgspec.Struct, frozen=True):
    """The user's selection; times are microseconds since the cluster was up. `from_seq`: only
    events from this one on; `details`: the number of details up to which they get their own
    rows."""

    partition: TopicPartition | None = None
    actor: str | None = None
    kinds: frozenset[str] = frozenset()
    from_us: int | None = None
    to_us: int | None = None
    detail: bool = False
    marked: Mapping[int, str] = {}
    from_seq: int = 0
    details: int = DETAILS


def rows(timeline: Timeline, choice: Choice) -> list[Row]:
    """The rows of a trace, in order."""
    until_us = timeline.end_us
    if choice.to_us is not None:
        until_us = min(timeline.origin_us + choice.to_us, until_us)
    on = scene(timeline, choice.partition)
    texts = [describe_event(event, on) for event in _chosen(timeline, choice, until_us)]
    # An actor's rows are those in its lane or caused by it, and those without a lane.
    texts = [
        one
        for one in texts
        if choice.actor is None or not one.lane or choice.actor in (one.lane, one.source)
    ]
    _weigh(texts, choice)
    out: list[Row] = []
    between: list[EventText] = []
    for one in texts:
        if one.level is Level.STORY:
            _add_fold(out, between, one.event.t)
            _add(out, _row(one, choice))
            between = []
        else:
            between.append(one)
    _add_fold(out, between, until_us)
    return _without_bursts(out)


def has_story(timeline: Timeline) -> bool:
    """Whether any event is always shown."""
    on = scene(timeline)
    return any(describe_event(event, on).level is Level.STORY for event in timeline.events)


def _weigh(texts: list[EventText], choice: Choice) -> None:
    """Raise requested events and, if there are few, details to the story; lower client results if
    there are many.
    """
    clients = [one for one in texts if one.lane == CLIENTS and one.level is Level.DETAIL]
    if len(clients) > CLIENT_RESULTS and choice.actor != CLIENTS:
        for one in clients:
            one.level = Level.TRAFFIC
    few = sum(one.level is Level.DETAIL for one in texts) <= choice.details
    for one in texts:
        is_chosen = (
            choice.detail or one.event.seq in choice.marked or one.event.kind in choice.kinds
        )
        if is_chosen or (few and one.level is Level.DETAIL):
            one.level = Level.STORY


def _add_fold(out: list[Row], between: list[EventText], until_us: int) -> None:
    """Add a dim row with counts, unless the period is very short; or one that shows that nothing
    happened.
    """
    if between and between[-1].event.t - between[0].event.t >= BRIEF_US:
        lanes: dict[str, list[AnyEvent]] = {}
        for one in between:
            lanes.setdefault(one.lane, []).append(one.event)
        cells = {
            lane: Cell(text) for lane, events in lanes.items() if lane and (text := _counts(events))
        }
        first, last = between[0].event, between[-1].event
        out.append(Row(first.t, last.t, "fold", cells, [], fold=True))
    elif out and until_us - out[-1].to_us >= QUIET_US:
        out.append(Row(out[-1].to_us, until_us, "fold", {}, [], fold=True))


def _chosen(timeline: Timeline, choice: Choice, until_us: int) -> Iterator[AnyEvent]:
    """The selected events by time, kind and partition."""
    since_us = timeline.origin_us + choice.from_us if choice.from_us is not None else 0
    for event in timeline.events:
        if not since_us <= event.t <= until_us or event.seq < choice.from_seq:
            continue
        if choice.kinds and event.kind not in choice.kinds:
            continue
        about = partitions_of(event)
        if choice.partition is None or not about or choice.partition in about:
            yield event


def _row(text: EventText, choice: Choice) -> Row:
    event = text.event
    row = Row(event.t, event.t, event.kind, {}, [event.seq])
    row.note = choice.marked.get(event.seq, "")
    row.about = partitions_of(event)
    if isinstance(event, (e.BecomesLeader, e.BecomesFollower)):
        row.key = "becomes", event.partition
    elif isinstance(event, e.LeaderAndIsr):
        row.key = event.kind, event.sender, event.state.partition, event.state.leader_epoch
    elif isinstance(event, e.MetadataCacheUpdated):
        row.key = event.kind, event.sender, text.headline
    if not text.lane:
        row.banner = text.headline
        return row
    row.cells[text.lane] = Cell(text.headline, text.numbers, text.tone)
    if text.source and text.source != text.lane:
        row.source, row.targets = text.source, [text.lane]
    return row


# -- joining ---------------------------------------------------------------------------------------

_ANSWERS = frozenset({"isr_updated", "isr_update_rejected", "isr_change_notified"})


def _add(out: list[Row], row: Row) -> None:
    """Append a row, or join it to a recent one."""
    for before in reversed(out[-6:]):
        if before.fold or before.banner or row.banner or row.from_us - before.from_us > JOIN_US:
            break
        is_same_message = (
            row.key is not None
            and before.key == row.key
            and not before.cells.keys() & row.cells.keys()
        )
        # The requester's reaction to the ZooKeeper response in `before`.
        is_answer = (
            row.kind in _ANSWERS
            and before.targets == [ZOOKEEPER]
            and before.source in row.cells
            and before.source not in before.cells
            and set(before.about) == set(row.about)
        )
        if is_same_message or is_answer:
            for lane, cell in row.cells.items():
                cell.later_us = row.from_us - before.from_us if row.key is not None else 0
                before.cells[lane] = cell
            before.targets += [lane for lane in row.targets if row.key is not None]
            before.to_us = max(before.to_us, row.to_us)
            before.seqs += row.seqs
            before.note = before.note or row.note
            return
    out.append(row)


# -- folding ---------------------------------------------------------------------------------------


def _without_bursts(out: list[Row]) -> list[Row]:
    """Replace bursts of equal rows of different partitions by their first row."""
    bursts: list[list[Row]] = []
    for row in out:
        last = bursts[-1][-1] if bursts else None
        # A burst ends at a pause or a banner.
        if last is None or row.banner or row.fold or row.from_us - last.from_us > BURST_US:
            bursts.append([])
        bursts[-1].append(row)
    shown: list[Row] = []
    for burst in bursts:
        shapes = Counter(_shape(row) for row in burst)
        about: dict[object, set[tuple[TopicPartition, ...]]] = {}
        for row in burst:
            about.setdefault(_shape(row), set()).add(row.about)
        first: dict[object, Row] = {}
        for row in burst:
            shape = _shape(row)
            if shape is None or len(about[shape]) <= BURST:
                shown.append(row)
            elif shape not in first:
                first[shape] = row
                shown.append(row)
            else:
                first[shape].seqs += row.seqs
                first[shape].to_us = row.to_us
        for shape, row in first.items():
            cell = next(iter(row.cells.values()))
            cell.numbers = (
                f"and {shapes[shape] - 1} more like it in {span(row.to_us - row.from_us)}"
            )
    return shown


def _shape(row: Row) -> object:
    """The content of a row without its partition; None: the row is never folded."""
    if row.note or row.banner or row.fold:
        return None
    if row.key is not None:
        return row.key[0]
    return row.kind, tuple((lane, cell.tone) for lane, cell in row.cells.items()), row.source


def _counts(events: list[AnyEvent]) -> str:
    """The frequent events of a lane: `120 fetches, 60 records, HW 118`."""
    counts: Counter[str] = Counter()
    for event in events:
        if isinstance(event, e.RecordsAppended):
            counts["records"] += event.leo - event.base_offset
        elif isinstance(event, e.RecordsProduced):
            counts["acknowledged"] += event.count
        elif isinstance(event, e.RecordsConsumed):
            counts["read"] += event.to_offset - event.from_offset
        elif noun := _NOUNS.get(type(event)):
            counts[noun] += 1
    parts = []
    for noun, number in counts.items():
        one = "fetch" if noun == "fetches" else noun.removesuffix("s")
        parts.append(f"{number:,} {noun if number != 1 else one}")
    heights = [event.hw for event in events if isinstance(event, e.HwAdvanced)]
    if heights:
        parts.append(f"HW {heights[-1]}")
    return ", ".join(parts)


_NOUNS: dict[type[AnyEvent], str] = {
    e.FetchSent: "fetches",
    e.ZkRequest: "requests",
    e.ZkTransaction: "writes",
    e.ControllerEventProcessed: "events",
    e.PartitionStateChanged: "transitions",
    e.ReplicaStateChanged: "transitions",
}


def lanes_of(shown_rows: list[Row], timeline: Timeline) -> list[str]:
    """The lanes in order: controller, ZooKeeper, each broker, and clients if a row needs them."""
    brokers = [str(broker) for broker in timeline.brokers]
    needed: Collection[str] = {lane for row in shown_rows if not row.fold for lane in row.cells}
    return [CONTROLLER, ZOOKEEPER, *brokers, *([CLIENTS] if CLIENTS in needed else [])]
