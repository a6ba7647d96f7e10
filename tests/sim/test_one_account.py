"""Summary, expectations, lanes, `why`, `describe`, page and `compare` give one account of a trace.

Of every shipped scenario (virtual time, seed 1) and of recorded runs of real Kafka: the same
staleness, propagation, water levels and process life, wherever they are read. What each reader
shows is taken from its own output and held against the others'.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from emulator.runs.comparison import Measured, measure
from emulator.runs.session import Request, RunListeners, header_of, play_in_memory
from emulator.runs.summary import RunFacts, Summary, spread, summarize
from emulator.scenario.expectations.base import checks, parse
from emulator.scenario.units import show_us
from emulator.trace.events import AnyEvent
from emulator.trace.reader import SCHEMA_VERSION, Header, with_process_states
from emulator.trace.state import TraceState
from emulator.trace.state.processes import DEAD, PAUSED
from emulator.trace.state.spans import merged, span_at
from emulator.trace.state.timeline import Timeline
from emulator.trace.values import ProcessState, TopicPartition
from emulator.view.describe import Description, describe
from emulator.view.html import panel
from emulator.view.lanes import gutters_of
from emulator.view.why import explain_version
from tests.sim.shipped_runs import NAMES, scenario
from tests.unit.view.recorded import every_recording, recorded

RECORDED = every_recording()
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


def test_a_recorded_run_has_one_account(of_kafka: Account) -> None:
    check_staleness(of_kafka)
    check_propagation(of_kafka)
    check_processes(of_kafka)
    check_water_levels(of_kafka)


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
    gone = gutters_of(one.timeline).gone[str(broker)]
    return any(from_us <= start <= to_us for start, _ in gone)


# -- processes and logs ----------------------------------------------------------------------------


def moments(one: Account) -> Iterator[tuple[int, Description]]:
    """`describe` at a few moments, including the end."""
    first, last = one.timeline.events[0].t, one.timeline.end_us
    state, place = TraceState(), 0
    for number in range(1, MOMENTS + 1):
        at_us = first + (last - first) * number // MOMENTS
        while place < len(one.timeline.events) and one.timeline.events[place].t <= at_us:
            state(one.timeline.events[place])
            place += 1
        yield at_us, describe(state, at_us, one.timeline.origin_us)


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
