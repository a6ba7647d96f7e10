"""A trace file read as a sequence is what a list of its events is."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.on_disk import STRIDE, EventsOnDisk
from emulator.trace.reader import SCHEMA_VERSION, Header, TraceWriter

COUNT = 2 * STRIDE + 7
EVENTS: list[AnyEvent] = [
    e.ZkSessionState(seq, seq * 10, 1, "main", seq - 1, "x" * (seq % 50), seq)
    for seq in range(COUNT)
]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trace") / "trace.ndjson"
    with TraceWriter(path, Header(SCHEMA_VERSION, "x", 1, "2.6", "simulated")) as writer:
        for event in EVENTS:
            writer(event)
    return path


PLACE = st.integers(-COUNT - 2, COUNT + 2) | st.none()


@given(start=PLACE, stop=PLACE, step=st.sampled_from([None, 1, 500, -700]))
def test_a_slice_is_that_of_a_list(
    path: Path, start: int | None, stop: int | None, step: int | None
) -> None:
    some = slice(start, stop, step)
    part = EventsOnDisk(path, COUNT)[some]
    assert (len(part), list(part)) == (len(EVENTS[some]), EVENTS[some])


@given(start=st.integers(0, COUNT), stop=st.integers(0, COUNT), place=st.integers(0, COUNT))
def test_a_place_within_a_slice_is_counted_from_its_start(
    path: Path, start: int, stop: int, place: int
) -> None:
    part, listed = EventsOnDisk(path, COUNT)[start:stop], EVENTS[start:stop]
    if place < len(listed):
        assert part[place] == listed[place]
        assert part[-1 - place] == listed[-1 - place]
    else:
        with pytest.raises(IndexError):
            part[place]


@given(start=st.integers(0, COUNT), stop=st.integers(0, COUNT))
def test_it_can_be_read_backwards(path: Path, start: int, stop: int) -> None:
    part = EventsOnDisk(path, COUNT)[start:stop]
    assert list(reversed(part)) == EVENTS[start:stop][::-1]


def test_two_sequences_are_equal_when_their_events_are(path: Path) -> None:
    assert EventsOnDisk(path, COUNT) == EVENTS
    assert EventsOnDisk(path, COUNT - 1) != EVENTS
    assert EventsOnDisk(path, COUNT) == EventsOnDisk(path, COUNT)
