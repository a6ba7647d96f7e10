"""Summary, expectations, lanes, `why`, `describe`, `top`, `report`, page and `compare` give one
account of a trace.

Of every shipped scenario (virtual time, seed 1), of recorded runs of real Kafka and of imported
logs: the same staleness, propagation, water levels and process life, wherever they are read. What
each reader shows is taken from its own output and held against the others'.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from emulator.forensics.findings import STALE_FROM_US, Findings, find
from emulator.forensics.imported import import_folders
from emulator.runs.comparison import Measured, measure
from emulator.runs.session import Request, RunListeners, header_of, play_in_memory
from emulator.runs.summary import RunFacts, Summary, spread, summarize
from emulator.scenario.expectations.base import checks, parse
from emulator.scenario.units import show_us
from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.reader import SCHEMA_VERSION, Header, with_process_states
from emulator.trace.state import TraceState
from emulator.trace.state.processes import DEAD, PAUSED, STARTING
from emulator.trace.state.spans import merged, span_at
from emulator.trace.state.timeline import Timeline
from emulator.trace.values import ProcessState, TopicPartition
from emulator.view.describe import Description, describe
from emulator.view.html import panel
from emulator.view.lanes import gutters_of
from emulator.view.live.top_model import SAME, UNKNOWN, BrokerLook, Look, headline, views
from emulator.view.live.zookeeper_view import SeenPartition, SeenState, seen
from emulator.view.stored import open_run
from emulator.view.why import explain_version
from tests.sim.shipped_runs import NAMES, scenario
from tests.unit.forensics.strangers import LOGS, given
from tests.unit.view.recorded import every_recording, recorded
from zk.ops import Stat
from zk.real.mirror import ZNode

RECORDED = every_recording()
IMPORTS = sorted(folder.name for folder in LOGS.glob("kafka-*"))
MOMENTS = 7
STORIES = 6


class Account(NamedTuple):
    """One run as its readers have it; `measured` is what `compare` keeps of it."""

    header: Header
    state: TraceState
    summary: Summary
    measured: Measured | None
    timeline: Timeline
    page: dict[str, Any]

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        return self.timeline.partitions


@pytest.fixture(scope="module", params=NAMES)
def shipped(request: pytest.FixtureRequest) -> Account:
    states: list[TraceState] = []

    def attach(listeners: RunListeners) -> None:
        states.append(listeners.state)

    loaded = scenario(request.param)
    played = play_in_memory(Request(scenario=loaded, seed=1), attach=attach)
    measured = measure(played, states[0])
    header = header_of(loaded, 1, "simulated")
    return account(header, played.events, states[0], played.summary, measured)


@pytest.fixture(scope="module", params=RECORDED)
def of_kafka(request: pytest.FixtureRequest) -> Account:
    events = list(with_process_states(recorded(RECORDED[request.param], traffic=False)))
    state = TraceState()
    for event in events:
        state(event)
    header = Header(SCHEMA_VERSION, request.param, 0, "2.6", "real")
    facts = RunFacts(
        scenario=request.param,
        seed=0,
        profile="2.6",
        zookeeper="real",
        time_scale=1,
        settings={},
        run_directory="",
        virtual_us=state.clock.now_us,
        wall_ms=0,
        kernel_late_us_max=0,
        interrupted=False,
        kernel_was_late=False,
    )
    return account(header, events, state, summarize(facts, state, []), None)


@pytest.fixture(scope="module", params=IMPORTS)
def imported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Account:
    """What `isr import` wrote, read back as every command reads it."""
    folder: Path = tmp_path_factory.mktemp("import")
    written = import_folders([given(request.param, folder / "logs")], folder / "runs").performed
    stored, state = open_run(written.directory), TraceState()
    for event in stored.events:
        state(event)
    return account(stored.header, stored.events, state, written.summary, None)


def account(
    header: Header,
    events: list[AnyEvent],
    state: TraceState,
    summary: Summary,
    measured: Measured | None,
) -> Account:
    return Account(header, state, summary, measured, Timeline(events), panel(header, events))


def test_a_shipped_scenario_has_one_account(shipped: Account) -> None:
    check_staleness(shipped)
    check_propagation(shipped)
    check_processes(shipped)
    check_water_levels(shipped)
    check_report(shipped)
    assert check_top(shipped)


def test_a_recorded_run_has_one_account(of_kafka: Account) -> None:
    check_staleness(of_kafka)
    check_propagation(of_kafka)
    check_processes(of_kafka)
    check_water_levels(of_kafka)
    check_report(of_kafka)
    check_top(of_kafka)


def test_an_imported_run_has_one_account(imported: Account) -> None:
    check_staleness(imported)
    check_propagation(imported)
    check_processes(imported)
    check_water_levels(imported)
    check_report(imported)
    check_top(imported)


# -- staleness -------------------------------------------------------------------------------------


def page_staleness(one: Account) -> dict[tuple[str, TopicPartition], list[tuple[int, int]]]:
    """The hatched pieces of the page, in microseconds, by lane and partition."""
    found: dict[tuple[str, TopicPartition], list[tuple[int, int]]] = {}
    names = {str(name): name for name in one.partitions}
    for name, bands in zip(one.page["partitions"], one.page["bands"], strict=True):
        for lane, drawn in bands.items():
            if lane.isdigit():
                pieces = [us(one, *piece[:2]) for band in drawn for piece in band[-1]]
                found[lane, names[name]] = pieces
    return found


def us(one: Account, *ms: float) -> Any:
    return tuple(round(each * 1000) + one.timeline.origin_us for each in ms)


def check_staleness(one: Account) -> None:
    drawn = page_staleness(one)
    if len(one.page["partitions"]) < len(one.partitions):
        return  # a page of very many partitions draws some of them
    sums = {key: sum(end - start for start, end in pieces) for key, pieces in drawn.items()}
    longest = {
        key: max((end - start for start, end in merged(pieces)), default=0)
        for key, pieces in drawn.items()
    }
    if one.measured is not None:
        assert one.measured.stale_us == sum(sums.values())
        assert one.measured.stale_us_max == max(longest.values(), default=0)
    assert one.summary.stale_metadata_ms_max * 1000 == pytest.approx(
        max(longest.values(), default=0)
    )
    for (lane, name), longest_us in longest.items():
        text = f"metadata of {name} at broker {lane} is stale for at least 0ms"
        assert finding(one, text).seen == show_us(longest_us)
    gutters = gutters_of(one.timeline)
    end_us = one.timeline.end_us
    for broker in one.timeline.brokers:
        pieces = [piece for key, spans in drawn.items() if key[0] == str(broker) for piece in spans]
        ours = [(start, min(end, end_us)) for start, end in gutters.old[str(broker)]]
        assert [span for span in ours if span[0] < span[1]] == merged(pieces)


def finding(one: Account, text: str) -> Any:
    expectation = parse(text)
    return checks()[expectation.check](expectation.arguments, one.state).at_end()


# -- propagation -----------------------------------------------------------------------------------


def check_propagation(one: Account) -> None:
    if len(one.page["partitions"]) < len(one.partitions):
        return
    arrivals = list(page_arrivals(one))
    delays = [us for us, is_this in arrivals if is_this]
    never_shown = len(arrivals) - len(delays)
    assert one.summary.propagation_samples == len(delays)
    assert one.summary.propagation_ms == spread(delays)
    assert one.summary.never_shown == never_shown
    assert finding(one, f"versions never shown: {never_shown}").held is not False
    if one.measured is None:
        return
    assert one.measured.counts["changes_never_shown"] == never_shown
    decided = one.state.propagation.decided
    assert one.measured.effective_us == [change.leader_us for change in decided]
    for topic in {change.attempt.started.partition.topic for change in decided}:
        text = f"the slowest isr change of {topic} takes at least 0ms to take effect"
        slowest_us = max(c.leader_us for c in decided if c.attempt.started.partition.topic == topic)
        assert finding(one, text).seen == show_us(slowest_us)
    for change in decided[:STORIES]:
        started = change.attempt.started
        versions = [state.version for state in one.timeline.states(started.partition)]
        if versions.count(started.zk_version + 1) != 1:
            continue  # a topic of that name was made twice
        story = explain_version(one.timeline, one.header, started.partition, started.zk_version + 1)
        legs = {leg.to: round((leg.at_ms - story.at_ms) * 1000) for leg in story.legs}
        assert legs["leader"] == change.leader_us
        assert change.controller_us is None or legs["controller"] == change.controller_us
        for broker, took_us in change.metadata_us.items():
            assert legs[f"broker {broker}"] == took_us


def page_arrivals(one: Account) -> Iterator[tuple[int, bool]]:
    """From the page's table of versions: from each write of an ISR change to each broker that had
    the version before, and then showed this very one, or a later one that superseded it."""
    for name, rows in zip(one.partitions, one.page["changes"], strict=True):
        for state, row in zip(one.timeline.states(name), rows, strict=True):
            had = {arrival.broker for arrival in one.state.propagation.arrivals(state)}
            for broker, shown in zip(one.timeline.brokers, row["shown"], strict=True):
                in_time = process_at(one, broker, state.from_us) != DEAD
                if state.isr_change and broker in had and shown and in_time:
                    at_us, version = us(one, shown[0])[0], shown[1]
                    if not died(one, broker, state.from_us, at_us):
                        yield at_us - state.from_us, version == state.version


def died(one: Account, broker: int, from_us: int, to_us: int) -> bool:
    """Or began again: an imported run may not tell of a death, only of the next start."""
    life = one.state.processes.history.get(broker, [])
    ends = [span.from_us for span in life if span.state in (DEAD, STARTING)]
    return any(from_us <= end_us <= to_us for end_us in ends)


# -- processes and logs ----------------------------------------------------------------------------


def moments(one: Account) -> Iterator[tuple[int, Description]]:
    """`describe` at a few moments, including the end."""
    for at_us, state, _ in states(one):
        yield at_us, describe(state, at_us, one.timeline.origin_us)


def states(one: Account) -> Iterator[tuple[int, TraceState, ZNodes]]:
    """All that is known, and the znodes, at a few moments, the end among them."""
    first, last = one.timeline.events[0].t, one.timeline.end_us
    state, znodes, place = TraceState(), ZNodes(), 0
    for number in range(1, MOMENTS + 1):
        at_us = first + (last - first) * number // MOMENTS
        while place < len(one.timeline.events) and one.timeline.events[place].t <= at_us:
            event = one.timeline.events[place]
            state(event)
            if isinstance(event, e.ZkTransaction):
                znodes.commit(event)
            place += 1
        yield at_us, state, znodes


def process_at(one: Account, broker: int, at_us: int) -> ProcessState | None:
    life = span_at(one.state.processes.history.get(broker, []), at_us)
    return None if life is None else life.state


def check_processes(one: Account) -> None:
    gutters = gutters_of(one.timeline)
    for at_us, description in moments(one):
        for described in description.brokers:
            if described.broker not in one.timeline.brokers:
                continue
            assert described.process == process_at(one, described.broker, at_us)
            glyph = gutters.glyph(str(described.broker), at_us)[0]
            assert (glyph == "·") == (described.process == DEAD)
            assert (glyph == "░") == (described.process == PAUSED)


def check_water_levels(one: Account) -> None:
    levels, end_us = one.state.water_levels, one.timeline.end_us
    for at_us, description in moments(one):
        for partition in description.partitions:
            for replica in partition.replicas:
                if replica.role != "none":
                    level = levels.at(partition.partition, replica.broker, at_us)
                    known = (None, None) if level is None else (level.leo, level.hw)
                    assert known == (replica.leo, replica.hw)
    for name in one.partitions[:STORIES]:
        text = f"hw of {name} does not advance for at least 0ms while records arrive"
        stalls = levels.stalls(name, end_us)
        longest_us = max((end - start for start, end in stalls), default=0)
        assert finding(one, text).seen == f"{show_us(longest_us)} at most"
        lagging = merged(
            (lag.from_us, lag.to_us) for lag in levels.hw_lags(name, end_us) if lag.records > 0
        )
        assert levels.behind_us(name, end_us) == sum(end - start for start, end in lagging)


# -- isr report ------------------------------------------------------------------------------------


def check_report(one: Account) -> None:
    report = find(one.timeline.events)
    if len(one.page["partitions"]) == len(one.partitions):
        check_stale_rows(one, report)
    for endings, life in (((" dies", " has ended"), DEAD), ((" is paused",), PAUSED)):
        said = {(m.broker, m.t_us) for m in report.timeline if m.text.endswith(endings)}
        assert said == {
            (broker, span.from_us)
            for broker, spans in one.state.processes.history.items()
            for span in spans
            if span.state == life
        }
    gauges = one.state.gauges
    stuck = [row for row in report.stuck if row.leader >= 0]
    assert len(stuck) == gauges.under_replicated
    for row in stuck:
        assert gauges.under_replicated_us(row.partition, report.end_us) >= (
            report.end_us - row.since_us
        )


def check_stale_rows(one: Account, report: Findings) -> None:
    drawn = {
        (int(lane), name): [span for span in merged(pieces) if span[1] - span[0] >= STALE_FROM_US]
        for (lane, name), pieces in page_staleness(one).items()
    }
    rows: dict[tuple[int, TopicPartition], list[tuple[int, int]]] = {key: [] for key in drawn}
    for row in report.stale:
        end_us = report.end_us if row.to_us is None else row.to_us
        rows[row.broker, row.partition].append((row.from_us, end_us))
    assert rows == drawn


# -- isr top ---------------------------------------------------------------------------------------


class ZNodes:
    """The znodes that the transactions of a trace have made."""

    def __init__(self) -> None:
        self.nodes: dict[str, ZNode] = {}

    def commit(self, event: e.ZkTransaction) -> None:
        if any(op.op == "error" for op in event.ops):
            return
        for path in event.removed:
            self.nodes.pop(path, None)
        for op in event.ops or (event,):
            if op.path is None or op.code:
                continue
            if op.op == "delete":
                self.nodes.pop(op.path, None)
            elif op.op in ("create", "setData"):
                data = (op.data or "").encode()
                before = self.nodes.get(op.path)
                version = 0 if op.op == "create" or before is None else before.stat.version + 1
                if op.op == "setData" and op.version is not None:
                    version = op.version
                stat = Stat(event.zxid, 0, 0, 0, version, 0, 0, 0, len(data), 0, 0)
                self.nodes[op.path] = ZNode(data, stat)

    @property
    def children(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for path in self.nodes:
            parent, _, name = path.rpartition("/")
            found[parent] = (*found.get(parent, ()), name)
        return found


def check_top(one: Account) -> int:
    """How many views were compared: a recording may not tell of the topics' znodes."""
    compared = 0
    for at_us, state, znodes in states(one):
        description = describe(state, at_us, one.timeline.origin_us)
        described = {str(partition.partition): partition for partition in description.partitions}
        look = Look(seen(znodes.nodes, znodes.children), looks_of_brokers(state))
        assert look.seen.controller == description.controller
        shown = [p for p in look.seen.partitions.values() if p.state is not None]
        if all(has_the_assignment(state, partition) for partition in shown):
            gauges = state.gauges
            counts = f"{gauges.under_replicated} under-replicated, {gauges.offline} offline"
            assert counts in headline(look)
        for partition in shown:
            name = TopicPartition(partition.topic, partition.partition)
            caches = {v.broker: v for v in described[str(name)].views if v.of == "metadata"}
            for whose, _, cell in views(look, partition):
                what, _, broker = whose.partition(" ")
                if what != "metadata" or cell == UNKNOWN or int(broker) not in caches:
                    continue
                compared += 1
                cache = caches[int(broker)]
                isr_differs = {*(cache.isr or ())} != {*partition.state.isr}
                fields = {*cache.differs} & {"leader", "leader_epoch", "zk_version"}
                assert (cell == SAME) == (not fields and not isr_differs)
                assert cell != SAME or not state.staleness.is_stale(int(broker), name)
    return compared


def looks_of_brokers(state: TraceState) -> dict[int, BrokerLook]:
    """What the status page of each shows of its metadata cache."""
    return {
        broker: BrokerLook(
            {
                str(name): SeenState(it.leader, it.leader_epoch, it.isr, it.zk_version)
                for name, it in state.metadata.shown(broker).items()
            }
        )
        for broker in state.processes.history
        if state.processes.state(broker) != DEAD
    }


def has_the_assignment(state: TraceState, shown: SeenPartition) -> bool:
    """A trace learns of it from the first LeaderAndIsr after the znode."""
    known = state.partitions.of(TopicPartition(shown.topic, shown.partition))
    return (known.replicas, known.adding) == (shown.replicas, shown.adding)
