"""The lanes as one self-contained page: time to the right, a lane per actor, drawn in the browser
from data.

Owns the data that the page gets (bands of who knew what, staleness, faults, marks with their
causes, counts of everyday traffic) and keeps it small whatever the trace's size: hot events are
counted per slice of time, and of very many partitions only the most eventful ones are drawn; the
page says what was left out. How it looks is the business of `lanes.html.j2`, `lanes.css` and
`lanes.js`, which must need no network.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import jinja2
import msgspec

from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.reader import Header
from emulator.trace.state.actions import faults
from emulator.trace.state.partitions import State
from emulator.trace.state.spans import Known
from emulator.trace.state.timeline import Timeline
from emulator.trace.values import TopicPartition
from emulator.view.telling import (
    CLIENTS,
    CONTROLLER,
    ZOOKEEPER,
    Level,
    Scene,
    Told,
    fields_of,
    ids,
    partitions_of,
    scene,
)
from emulator.view.wording import tell

PARTITIONS_MAX = 200
STORIES_MAX = 9_000
DETAILS_MAX = 6_000
SLICES = 600
FIELDS_MAX = 240
"""Characters of an event's own fields that the page keeps."""

Json = dict[str, Any]


def render_html(runs: Sequence[tuple[Header, Iterable[AnyEvent]]], title: str = "") -> str:
    """The page of a run; several runs are stacked on one axis of time."""
    panels = [panel(header, events) for header, events in runs]
    name = title or " · ".join(dict.fromkeys(header.scenario for header, _ in runs))
    return render_page("lanes.html.j2", panels, title=name)


def render_page(template: str, panels: Sequence[Json], **values: object) -> str:
    """A page with these panels, one above the other, from a template of this package."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("emulator.view", "."),
        autoescape=True,
        keep_trailing_newline=True,
    )
    data = script_json({"panels": panels})
    return environment.get_template(template).render(data=data, panels=panels, **values)


def script_json(value: object) -> str:
    """JSON that may stand inside a script element; no slash pair in it, so that nothing looks
    like an address.
    """
    text = msgspec.json.encode(value).decode()
    return text.replace("<", "\\u003c").replace("/", "\\/")


def panel(header: Header, events: Iterable[AnyEvent]) -> Json:
    """All that the page draws of one run. Times are milliseconds since the cluster was up."""
    timeline = Timeline(events)
    on = scene(timeline, TopicPartition("", -1) if len(timeline.partitions) > 1 else None)
    drawn = _drawn_partitions(timeline)
    told = [tell(event, _named(on)) for event in timeline.events]
    marks, left_out = _marks(timeline, told, drawn)
    return {
        "scenario": header.scenario,
        "facts": [
            f"seed {header.seed}",
            f"Kafka {header.profile}",
            f"ZooKeeper {header.zookeeper}",
        ],
        "from": _ms(timeline, timeline.events[0].t if timeline.events else 0),
        "to": _ms(timeline, timeline.end_us),
        "lanes": _lanes(timeline, told),
        "partitions": [str(partition) for partition in drawn],
        "bands": [_bands(timeline, partition) for partition in drawn],
        "changes": [_changes(timeline, partition) for partition in drawn],
        "faults": [
            [f.lane, _ms(timeline, f.from_us), _ms(timeline, f.to_us), f.text]
            for f in faults(timeline.events, timeline.end_us)
        ],
        "marks": marks,
        "traffic": _traffic(timeline, told),
        "note": _note(timeline, drawn, left_out),
    }


def _named(on: Scene) -> Scene:
    """Wording with the partitions' names, unless there is only one partition."""
    return on if on.only is None or on.only.partition >= 0 else Scene(on.timeline, None, on.by_seq)


def _ms(timeline: Timeline, at_us: int) -> float:
    return (at_us - timeline.origin_us) / 1000


def _note(timeline: Timeline, drawn: list[TopicPartition], left_out: int) -> str:
    parts = []
    if len(drawn) < len(timeline.partitions):
        of = len(timeline.partitions)
        parts.append(f"{len(drawn)} of {of} partitions are drawn, the most eventful ones")
    if left_out:
        parts.append(
            f"{left_out:,} of {len(timeline.events):,} events are counted in the lanes' traffic"
            " only"
        )
    return "; ".join(parts)


def _drawn_partitions(timeline: Timeline) -> list[TopicPartition]:
    """Those with most versions first; all of them, by name, where they are few."""
    if len(timeline.partitions) <= PARTITIONS_MAX:
        return list(timeline.partitions)
    order = sorted(timeline.partitions, key=lambda p: (-len(timeline.states(p)), p))
    return sorted(order[:PARTITIONS_MAX])


def _lanes(timeline: Timeline, told: list[Told]) -> list[Json]:
    """Lanes in drawing order, with names; clients where they have a story."""
    lanes = [{"id": CONTROLLER, "name": "controller"}, {"id": ZOOKEEPER, "name": "ZooKeeper"}]
    lanes += [{"id": str(broker), "name": f"broker {broker}"} for broker in timeline.brokers]
    if any(one.lane in (CLIENTS, "") and one.level is Level.STORY for one in told):
        lanes.append({"id": CLIENTS, "name": "clients"})
    return lanes


# -- bands: who knew what --------------------------------------------------------------------------


def _bands(timeline: Timeline, partition: TopicPartition) -> Json:
    """Per lane the states that it knew: [from, to, version, ISR, leader, leader epoch, fullness,
    stale pieces].
    """
    replicas = max((len(write.isr) for write in timeline.states(partition)), default=0)
    bands: Json = {
        ZOOKEEPER: [_band(timeline, k, replicas, []) for k in timeline.states(partition)]
    }
    known = timeline.state.controller.history.get(partition, [])
    if known:
        bands[CONTROLLER] = [_band(timeline, k, replicas, _stale(timeline, 0, k)) for k in known]
    for broker in timeline.brokers:
        spans = timeline.state.metadata.spans(broker, partition)
        if spans:
            bands[str(broker)] = [
                _band(timeline, k, replicas, _stale(timeline, broker, k)) for k in spans
            ]
    return bands


def _stale(timeline: Timeline, broker: int, known: Known) -> list[list[object]]:
    """[from, to, versions that were missed] of one entry of a cache."""
    return [
        [_ms(timeline, one.from_us), _ms(timeline, one.to_us), list(one.missed)]
        for one in timeline.state.staleness.of_entry(broker, known)
    ]


def _band(
    timeline: Timeline, known: Known, replicas: int, stale: list[list[object]]
) -> list[object]:
    times = _ms(timeline, known.from_us), _ms(timeline, timeline.until(known))
    leader = known.leader, known.leader_epoch
    return [*times, known.version, ids(known.isr), *leader, _fullness(known, replicas), stale]


def _fullness(known: Known, replicas: int) -> int:
    """0: all replicas in sync, 1: some are missing, 2: the leader is alone, 3: no leader."""
    if known.leader < 0:
        return 3
    if len(known.isr) >= replicas:
        return 0
    return 2 if len(known.isr) == 1 else 1


def _changes(timeline: Timeline, partition: TopicPartition) -> list[Json]:
    """The partition's versions as a table: when, by whom, from what to what, and when every
    broker showed it.
    """
    found = []
    history = timeline.states(partition)
    for before, write in zip([None, *history], history, strict=False):
        found.append(
            {
                "version": write.version,
                "at": _ms(timeline, write.from_us),
                "by": f"controller {write.by}" if write.by_controller else f"leader {write.by}",
                "from": ids(before.isr) if before is not None else "",
                "to": ids(write.isr),
                "leader": write.leader,
                "shown": [_shown(timeline, broker, write) for broker in timeline.brokers],
            }
        )
    return found


def _shown(timeline: Timeline, broker: int, write: State) -> object:
    """When `broker` showed this version, or the newer one that it showed instead: [at, version];
    null: never.
    """
    known = timeline.state.propagation.first_known(broker, write)
    return None if known is None else [_ms(timeline, known.from_us), known.version]


# -- marks and traffic -----------------------------------------------------------------------------


def _marks(
    timeline: Timeline, told: list[Told], drawn: list[TopicPartition]
) -> tuple[list[list[object]], int]:
    """[t, lane, source, tone, headline, numbers, partitions, place of the cause, seq, kind,
    thread, fields, small].
    """
    place = {partition: index for index, partition in enumerate(drawn)}
    kept = _kept(told, place)
    index_of: dict[int, int] = {}
    marks: list[list[object]] = []
    causes = {event.seq: event.cause for event in timeline.events}
    for one in kept:
        event = one.event
        about = [place[p] for p in partitions_of(event) if p in place]
        parent = _ancestor(event.cause, causes, index_of)
        words = one.lane or CLIENTS, one.source, one.tone, one.headline, one.numbers, about, parent
        small = 0 if one.level is Level.STORY else 1
        raw = event.seq, event.kind, event.thread, "" if small else _fields(event)
        index_of[event.seq] = len(marks)
        marks.append([_ms(timeline, event.t), *words, *raw, small])
    return marks, len(told) - len(kept)


def _kept(told: list[Told], place: dict[TopicPartition, int]) -> list[Told]:
    """Stories of the partitions that are drawn, and details where they are few."""
    stories = [one for one in told if one.level is Level.STORY and _is_drawn(one, place)]
    if len(stories) > STORIES_MAX:
        busy = Counter(p for one in stories for p in partitions_of(one.event))
        quiet = {p for p, _ in busy.most_common()[PARTITIONS_MAX // 10 :]}
        stories = [
            one for one in stories if not quiet.issuperset(partitions_of(one.event) or ("",))
        ]
        stories = stories[:STORIES_MAX]
    details = [one for one in told if one.level is Level.DETAIL and _is_drawn(one, place)]
    if len(details) > DETAILS_MAX:
        return stories
    return sorted(stories + details, key=lambda one: (one.event.t, one.event.seq))


def _is_drawn(one: Told, place: dict[TopicPartition, int]) -> bool:
    about = partitions_of(one.event)
    return not about or any(partition in place for partition in about)


def _ancestor(cause: int, causes: dict[int, int], index_of: dict[int, int]) -> int:
    """The place of the nearest drawn event among the causes; -1: none."""
    while cause >= 0:
        if cause in index_of:
            return index_of[cause]
        cause = causes.get(cause, -1)
    return -1


def _fields(event: AnyEvent) -> str:
    """The event's own fields as text, for whoever wants every number."""
    shown = fields_of(event)
    return shown if len(shown) <= FIELDS_MAX else shown[:FIELDS_MAX] + " …"


def _traffic(timeline: Timeline, told: list[Told]) -> Json:
    """Everyday events per lane and slice of time: how busy an actor was."""
    begin = timeline.events[0].t if timeline.events else 0
    width = max((timeline.end_us - begin) / SLICES, 1)
    lanes: dict[str, list[int]] = {}
    for one in told:
        if one.level is Level.STORY or not one.lane:
            continue
        counts = lanes.setdefault(one.lane, [0] * SLICES)
        counts[min(int((one.event.t - begin) / width), SLICES - 1)] += _weight(one.event)
    return {"ms": width / 1000, "lanes": lanes}


def _weight(event: AnyEvent) -> int:
    return event.leo - event.base_offset if isinstance(event, e.RecordsAppended) else 1
