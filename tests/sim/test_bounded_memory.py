"""A run in virtual time that is written keeps a bounded number of events and levels, however long
it is."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from emulator.runs import session
from emulator.runs.play import SIMULATED
from emulator.runs.session import Request, RunListeners, play_run
from emulator.scenario.load import loads
from emulator.trace.event import Event
from emulator.trace.on_disk import EventsOnDisk
from emulator.trace.reader import read_events
from emulator.trace.state.water_levels import Level

KEPT = 500
SCENARIO = """
about: Two brokers, records all the time, an ISR that shrinks.
cluster:
  brokers: 2
  config: {replica.lag.time.max.ms: 2000}
topics:
  orders: {partitions: [[1, 2]]}
workload:
  - {produce: orders, rate: 20, acks: all, from: 2s}
faults:
  - {at: 3s, cut_link: {broker: 1, peer: 2}, until: 8s}
run: TIME
"""


def request(tmp_path: Path, text: str) -> Request:
    return Request(scenario=loads(text, "long"), seed=1, zookeeper=SIMULATED, base=tmp_path)


def retained(kind: type) -> int:
    """Reachable objects of a kind. The collector does not track events, so it searches the objects
    that refer to them."""
    gc.collect()
    seen: set[int] = set()
    for holder in gc.get_objects():
        for one in gc.get_referents(holder):
            if isinstance(one, kind):
                seen.add(id(one))
    return len(seen)


def test_a_long_run_holds_as_many_events_as_a_short_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "EVENTS_KEPT_MAX", KEPT)
    before = retained(Event)
    counts: list[tuple[int, int, int]] = []
    for run in ("20s", "80s"):
        listening: list[RunListeners] = []
        played = play_run(request(tmp_path, SCENARIO.replace("TIME", run)), attach=listening.append)
        levels = listening[0].state.water_levels.levels
        kept = sum(len(of) for brokers in levels.values() for of in brokers.values())
        counts.append((len(played.events), retained(Event) - before, kept))
        del listening, played
    (short, held_short, levels_short), (long, held_long, levels_long) = counts
    assert long > 3 * short > 6 * KEPT
    assert max(held_short, held_long) < 2 * KEPT
    assert levels_short == levels_long == 2


def test_an_expectation_that_asks_for_levels_gets_them(tmp_path: Path) -> None:
    sentence = "hw of orders-0 reaches 6 at broker 2 at least 0ms after broker 1"
    listening: list[RunListeners] = []
    text = f"{SCENARIO.replace('TIME', '12s')}expect: [{sentence}]\n"
    played = play_run(request(tmp_path, text), attach=listening.append)
    assert [one.held for one in played.summary.expectations] == [True]
    assert len(listening[0].state.water_levels.levels) == 1
    assert any(
        isinstance(level, Level) and level.hw == 6
        for of in listening[0].state.water_levels.levels.values()
        for level in of[2]
    )


def test_what_a_long_run_gives_is_what_a_short_one_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = SCENARIO.replace("TIME", "20s")
    whole = play_run(request(tmp_path, text))
    monkeypatch.setattr(session, "EVENTS_KEPT_MAX", KEPT)
    spilled = play_run(request(tmp_path, text))
    assert isinstance(spilled.events, EventsOnDisk)
    assert spilled.events == whole.events
    assert spilled.directory is not None
    assert list(read_events(spilled.directory / "trace.ndjson")) == whole.events
    assert spilled.summary.isr_changes == whole.summary.isr_changes > 0
