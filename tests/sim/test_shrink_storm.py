"""A follower of 600 partitions is paused: figures of a leader with many partitions.

Which of them lost a race at their creation cannot match; the duration of the passes and the time
and content of notifications can: the recording's figures are compared with those of one blind play.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from emulator.conformance.player import script_of, simulate
from emulator.conformance.recording import Recording, read_recording

RECORDING = Path(__file__).parents[1] / "recordings" / "figures" / "kafka-2.6.3" / "shrink-storm"
PARTITIONS = 600
PAUSED_MS = 17_846
"""Everything before belongs to the creation of the topic."""


@dataclass(frozen=True)
class Figures:
    """Milliseconds."""

    creation: int
    shrinks: list[int]
    expands: list[int]
    named: list[tuple[int, int]]
    told: list[int]


def figures(run: Recording) -> Figures:
    became = [f["t"] for kind in ("becomes_leader", "becomes_follower") for f in run.of(kind)]
    return Figures(
        max(became) - min(became),
        [f["t"] for f in run.of("shrink") if f["t"] > PAUSED_MS],
        [f["t"] for f in run.of("expand") if f["t"] > PAUSED_MS],
        list(_notifications(run)),
        [f["t"] for f in run.of("update_metadata") if f["t"] > PAUSED_MS],
    )


def _notifications(run: Recording) -> Iterator[tuple[int, int]]:
    """(when, how many partitions)"""
    for op in run.transactions:
        created = op.op == "create" and op.path.startswith("/isr_change_notification/")
        if created and op.data and op.t > PAUSED_MS:
            yield op.t, op.data.count('"partition"')


@pytest.fixture(scope="module")
def real() -> Figures:
    return figures(read_recording(RECORDING))


@pytest.fixture(scope="module")
def ours() -> Figures:
    return figures(simulate(script_of(read_recording(RECORDING)), seed=1))


def test_six_hundred_logs_are_made_in_as_many_seconds(real: Figures, ours: Figures) -> None:
    assert 0.7 * real.creation <= ours.creation <= 1.6 * real.creation


@pytest.mark.parametrize("which", ["shrinks", "expands"])
def test_each_partition_is_written_once_one_after_the_other(
    which: str, real: Figures, ours: Figures
) -> None:
    recorded, seen = getattr(real, which), getattr(ours, which)
    assert len(recorded) == len(seen) == PARTITIONS
    took_ms = recorded[-1] - recorded[0]
    assert 0.7 * took_ms <= seen[-1] - seen[0] <= 1.5 * took_ms
    assert abs(seen[0] - recorded[0]) <= 150


def test_one_notification_names_them_all_13_s_after_the_first_shrink(
    real: Figures, ours: Figures
) -> None:
    """None goes between: the expands restart the five seconds of quiet."""
    for each in (real, ours):
        ((at, partitions),) = each.named
        assert partitions == PARTITIONS
        assert 12_900 <= at - each.shrinks[0] <= 13_100


def test_every_broker_is_told_of_every_partition_once_and_at_once(
    real: Figures, ours: Figures
) -> None:
    for each in (real, ours):
        assert len(each.told) == 3 * PARTITIONS
        assert max(each.told) - each.named[0][0] <= 300
