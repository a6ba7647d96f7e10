"""A run in progress is divided into groups, and its choices alone repeat it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from emulator.conformance.compare import Reference
from emulator.conformance.player import script_of
from emulator.conformance.recording import read_recording
from emulator.kernel.rng import Choice, Stream
from emulator.search.guided.choices import chosen_run, replay
from emulator.search.guided.guided_run import LONG_MS, GuidedRun, groups_of
from emulator.search.guided.partial import Contradiction, RealSide

ROOT = Path(__file__).parents[4]
NAMES = [
    "tests/recordings/kafka-2.6.3/leader-crash",
    "tests/recordings/kafka-2.7.2/shrink-expand",
    "tools/fidelity/recordings/kafka-1.1.1/topic-lifecycle",
]
each = pytest.mark.parametrize("name", NAMES)


@each
def test_every_moment_of_a_recording_belongs_to_one_group_and_none_is_long(name: str) -> None:
    real = read_recording(ROOT / name)
    script = script_of(real)
    groups = groups_of(script, RealSide(Reference(real)))
    ends_ms = [group.moments[-1] for group in groups]
    assert ends_ms == sorted(ends_ms)
    assert ends_ms[-1] == script.scenario.duration_us // 1000
    for before, group in pairwise(groups):
        assert group.moments == tuple(sorted(group.moments))
        assert before.is_divided == (group.since_us is not None)
        if group.since_us is None:
            assert group.segments[0] == before.segments[-1] + 1
        else:
            assert group.segments[0] == before.segments[-1]
            assert group.since_us // 1000 == before.moments[-1]
            assert group.moments[-1] - before.moments[-1] < 2 * LONG_MS


@each
def test_a_run_that_was_played_group_by_group_is_repeated_by_its_choices(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each group restarts all streams; contradictions are ignored."""
    real = read_recording(ROOT / name)
    script, side = script_of(real), RealSide(Reference(real))
    groups = groups_of(script, side)
    monkeypatch.setattr(GuidedRun, "_judge", lambda *_: None)
    monkeypatch.setattr(
        "emulator.search.guided.partial.RunningJudgement.wrong_state", lambda *_: None
    )
    run, stream = GuidedRun(script, side, groups, seed=5), Stream(77)
    for group in groups:
        candidate: dict[Choice, int] = {
            (segment, "", group.since): stream.bits() for segment in group.segments
        }
        contradiction: Contradiction | None = run.play_next_group(candidate)
        assert contradiction is None
    repeated, _ = replay(script, chosen_run(5, run.choices))
    assert repeated.events == run.whole().events
    assert repeated.results == run.whole().results
