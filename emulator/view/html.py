"""The lanes as one self-contained page: time to the right, a lane per actor, drawn in the browser
from data.

Owns the page's data (bands of known states, staleness, faults, marks with their causes, counts of
frequent events) and keeps it small for any size of trace: frequent events are counted per slice of
time, and of very many partitions only the most eventful ones are drawn; the page says what was left
out. `lanes.html.j2`, `lanes.css` and `lanes.js` define its look, and must not need a network.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import jinja2
import msgspec

from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.reader import Header
from emulator.trace.state.actions import faults
from emulator.trace.state.spans import Known
from emulator.trace.state.timeline import Timeline
from emulator.trace.values import TopicPartition
from emulator.view.event_text import (
    CLIENTS,
    CONTROLLER,
    ZOOKEEPER,
    EventText,
    Level,
    fields_of,
    ids,
    partitions_of,
    scene,
)
from emulator.view.wording import describe_event

PARTITIONS_MAX = 200
STORIES_MAX = 9_000
DETAILS_MAX = 6_000
SLICES = 600
FIELDS_MAX = 240
"""The maximum length of an event's own fields on the page."""

Json = dict[str, object]


def render_html(runs: Sequence[tuple[Header, Iterable[AnyEvent]]], title: str = "") -> str:
    """The page of a run; several runs share one time axis."""
    panels = [panel(header, events) for header, events in runs]
    name = title or " · ".join(dict.fromkeys(header.scenario for header, _ in runs))
    return render_page("lanes.html.j2", panels, title=name)


def render_page(template: str, panels: Sequence[Json], **values: object) -> str:
    """A page with these panels from a template of this package."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("emulator.view", "."),
        autoescape=True,
        keep_trailing_newline=True,
    )
    data = script_json({"panels": panels})
    return environment.get_template(template).render(data=data, panels=panels, **values)


def script_json(value: object) -> str:
    """JSON for a script element. It has no double slash, so that nothing looks like an address."""
    text = msgspec.json.encode(value).decode()
    return text.replace("<", "\\u003c").replace("/", "\\/")


def facts_of(header: Header) -> list[str]:
    """The facts beside the name of a run."""
    return [f"seed {header.seed}", f"Kafka {header.profile}", f"ZooKeeper {header.zookeeper}"]


def panel(header: Header, events: Iterable[AnyEvent], facts: Sequence[str] | None = None) -> Json:
    """The data of one run. Times are milliseconds since the cluster was up."""
    timeline = Timeline(events)
    on = scene(timeline)
    texts = [describe_event(event, on) for event in timeline.events]
    # The partitions with the most versions; all if there are few.
    drawn = sorted(timeline.partitions, key=lambda p: (-len(timeline.states(p)), p))
    drawn = sorted(drawn[:PARTITIONS_MAX])
    marks, left_out = _marks(timeline, texts, drawn)
    note = []
    if len(drawn) < len(timeline.partitions):
        of = len(timeline.partitions)
        note.append(f"{len(drawn)} of {of} partitions are drawn: those with the most state changes")
    if left_out:
        of = len(timeline.events)
        note.append(f"{left_out:,} of {of:,} events are only counted in the lanes' traffic")
    lanes = [{"id": CONTROLLER, "name": "controller"}, {"id": ZOOKEEPER, "name": "ZooKeeper"}]
    lanes += [{"id": str(broker), "name": f"broker {broker}"} for broker in timeline.brokers]
    if any(one.lane in (CLIENTS, "") and one.level is Level.STORY for one in texts):
        lanes.append({"id": CLIENTS, "name": "clients"})
    return {
        "scenario": header.scenario,
        "facts": facts or facts_of(header),
        "from": _ms(timeline, timeline.events[0].t if timeline.events else 0),
        "to": _ms(timeline, timeline.end_us),
        "lanes": lanes,
        "partitions": [str(partition) for partition in drawn],
        "bands": [_bands(timeline, partition) for partition in drawn],
        "changes": [_changes(timeline, partition) for partition in drawn],
        "faults": [
            [f.lane, _ms(timeline, f.from_us), _ms(timeline, f.to_us), f.text]
            for f in faults(timeline.events, timeline.end_us)
        ],
        "marks": marks,
        "traffic": _traffic(timeline, texts),
        "note": "; ".join(note),
    }


def _ms(timeline: Timeline, at_us: int) -> float:
    return (at_us - timeline.origin_us) / 1000


# -- bands: known states ---------------------------------------------------------------------------


def _bands(timeline: Timeline, partition: TopicPartition) -> Json:
    """The states known to each lane: [from, to, version, ISR, leader, leader epoch, fullness, stale
    pieces]; a stale piece is [from, to, missed versions].
    """
    states = timeline.states(partition)
    replicas = max((len(write.isr) for write in states), default=0)
    known = timeline.state.controller.history.get(partition, [])
    by_lane: dict[str, tuple[Sequence[Known], int | None]] = {ZOOKEEPER: (states, None)}
    if known:
        by_lane[CONTROLLER] = known, 0
    for broker in timeline.brokers:
        if spans := timeline.state.metadata.spans(broker, partition):
            by_lane[str(broker)] = spans, broker
    return {
        lane: [_band(timeline, one, replicas, cache) for one in entries]
        for lane, (entries, cache) in by_lane.items()
    }


def _band(timeline: Timeline, known: Known, replicas: int, cache: int | None) -> list[object]:
    """One state. `cache`: its owner (0: the controller); None: ZooKeeper, which is never stale."""
    stale = [
        [_ms(timeline, one.from_us), _ms(timeline, one.to_us), list(one.missed)]
        for one in (timeline.state.staleness.of_entry(cache, known) if cache is not None else ())
    ]
    # 0: all replicas in sync, 1: some are missing, 2: the leader is alone, 3: no leader.
    if known.leader < 0:
        fullness = 3
    elif len(known.isr) >= replicas:
        fullness = 0
    else:
        fullness = 2 if len(known.isr) == 1 else 1
    times = _ms(timeline, known.from_us), _ms(timeline, timeline.until(known))
    leader = known.leader, known.leader_epoch
    return [*times, known.version, ids(known.isr), *leader, fullness, stale]


def _changes(timeline: Timeline, partition: TopicPartition) -> list[Json]:
    """The partition's versions as a table: time, broker, old and new ISR; and when each broker
    showed it, or a newer version instead: [at, version] (null: never).
    """
    changes: list[Json] = []
    history = timeline.states(partition)
    for before, write in zip([None, *history], history, strict=False):
        first = [
            timeline.state.propagation.first_known(broker, write) for broker in timeline.brokers
        ]
        changes.append(
            {
                "version": write.version,
                "at": _ms(timeline, write.from_us),
                "by": f"controller {write.by}" if write.by_controller else f"leader {write.by}",
                "from": ids(before.isr) if before is not None else "",
                "to": ids(write.isr),
                "leader": write.leader,
                "shown": [
                    None if known is None else [_ms(timeline, known.from_us), known.version]
                    for known in first
                ],
            }
        )
    return changes


# -- marks and traffic -----------------------------------------------------------------------------


def _marks(
    timeline: Timeline, texts: list[EventText], drawn: list[TopicPartition]
) -> tuple[list[list[object]], int]:
    """[t, lane, source, tone, headline, numbers, partitions, place of the cause, seq, kind,
    thread, fields, small].
    """
    place = {partition: index for index, partition in enumerate(drawn)}
    # Events of the story for drawn partitions, and details if there are few.
    shown = [one for one in texts if one.level is Level.STORY and _is_drawn(one, place)]
    if len(shown) > STORIES_MAX:
        busy = Counter(p for one in shown for p in partitions_of(one.event))
        quiet = {p for p, _ in busy.most_common()[PARTITIONS_MAX // 10 :]}
        shown = [one for one in shown if not quiet.issuperset(partitions_of(one.event) or ("",))]
        shown = shown[:STORIES_MAX]
    details = [one for one in texts if one.level is Level.DETAIL and _is_drawn(one, place)]
    if len(details) <= DETAILS_MAX:
        shown = sorted(shown + details, key=lambda one: (one.event.t, one.event.seq))
    index_of: dict[int, int] = {}
    marks: list[list[object]] = []
    causes = {event.seq: event.cause for event in timeline.events}
    for one in shown:
        event = one.event
        about = [place[p] for p in partitions_of(event) if p in place]
        # The nearest drawn event among its causes; -1 if there is none.
        cause = event.cause
        while cause >= 0 and cause not in index_of:
            cause = causes.get(cause, -1)
        parent = index_of.get(cause, -1)
        words = one.lane or CLIENTS, one.source, one.tone, one.headline, one.numbers, about, parent
        small = 0 if one.level is Level.STORY else 1
        fields = "" if small else fields_of(event)
        if len(fields) > FIELDS_MAX:
            fields = f"{fields[:FIELDS_MAX]} …"
        index_of[event.seq] = len(marks)
        raw = event.seq, event.kind, event.thread, fields, small
        marks.append([_ms(timeline, event.t), *words, *raw])
    return marks, len(texts) - len(shown)


def _is_drawn(one: EventText, place: dict[TopicPartition, int]) -> bool:
    about = partitions_of(one.event)
    return not about or any(partition in place for partition in about)


def _traffic(timeline: Timeline, texts: list[EventText]) -> Json:
    """Frequent events per lane and slice of time, which show how busy an actor was."""
    begin = timeline.events[0].t if timeline.events else 0
    width = max((timeline.end_us - begin) / SLICES, 1)
    lanes: dict[str, list[int]] = {}
    for one in texts:
        if one.level is Level.STORY or not one.lane:
            continue
        event = one.event
        counts = lanes.setdefault(one.lane, [0] * SLICES)
        counts[min(int((event.t - begin) / width), SLICES - 1)] += (
            event.leo - event.base_offset if isinstance(event, e.RecordsAppended) else 1
        )
    return {"ms": width / 1000, "lanes": lanes}
