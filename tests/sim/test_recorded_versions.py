"""Older versions do what real clusters of theirs did; and another version, or one guard switched,
does not.

Their controllers and ZkClient's event thread race over a connection, so some seeds are needed until
one has sent its requests in the recorded order.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.scenario.version import VersionOptions
from tests.sim.blind_seeds import RECORDINGS, judged

STORIES = Path(__file__).parents[2] / "tools" / "fidelity" / "recordings"
OLDER = [
    path.relative_to(RECORDINGS).as_posix()
    for version in ("kafka-0.8.2.2", "kafka-1.0.2")
    for path in sorted((RECORDINGS / version).iterdir())
]


@pytest.mark.parametrize("name", OLDER)
def test_a_recording_of_an_older_version_is_matched(name: str) -> None:
    verdict = judged(name)
    assert verdict.points == dict.fromkeys(range(1, 8), True), verdict.nearest_differences
    assert verdict.matched


@pytest.mark.parametrize(
    ("name", "chosen", "point"),
    [
        (OLDER[2], VersionOptions("2.6"), 1),
        (OLDER[2], VersionOptions(guards=("stay-at-log-end=on",)), 1),
        (OLDER[2], VersionOptions(guards=("isr-change-notifications=off",)), 2),
        (OLDER[3], VersionOptions("1.1"), 6),
        (OLDER[3], VersionOptions("0.9.0"), 6),
        (OLDER[3], VersionOptions(guards=("fenced-controller-writes=on",)), 6),
        (OLDER[3], VersionOptions(guards=("atomic-election=on",)), 6),
        (OLDER[3], VersionOptions(guards=("broker-epochs=on",)), 6),
    ],
    ids=lambda value: " ".join(value.words()) if isinstance(value, VersionOptions) else str(value),
)
def test_what_the_version_had_not_is_noticed(name: str, chosen: VersionOptions, point: int) -> None:
    verdict = judged(name, chosen, seeds_max=1)
    assert not verdict.points[point]


@pytest.mark.parametrize("kafka", ["0.9.0.1", "0.10.2.2", "1.1.1", "2.1.1"])
def test_up_to_2_3_a_producer_stalls_when_a_reassignment_removes_its_leader(kafka: str) -> None:
    name = str(STORIES / f"kafka-{kafka}" / "reassignment")
    answers = VersionOptions(guards=("stopped-replica-answers=on",))
    assert judged(name).matched
    assert not judged(name, answers, seeds_max=1).points[7]


@pytest.mark.parametrize(
    "chosen", [VersionOptions("0.9.0"), VersionOptions(guards=("lag-by-time-only=on",))]
)
def test_by_time_alone_the_laggard_leaves_later_than_it_did(chosen: VersionOptions) -> None:
    """Seven messages against three: by their number it left 3.6 s after it had stopped."""
    timings = judged(OLDER[0], chosen, seeds_max=1).timings
    (left,) = [t for t in timings if t.what == "orders-0 v1: stimulus to state write"]
    assert left.recorded_ms == 3649 and (left.min_ms or 0) > 5000
