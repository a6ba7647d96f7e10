"""The distance of runs: nothing from the same source, and growing with what differs."""

import json
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

from emulator.conformance.distance import distance, real_runs_too_far
from emulator.conformance.recording import Recording, read_recording
from emulator.conformance.repeatability import Near
from tests.conformance.alterations import ALTERATIONS

FOLDER = Path(__file__).parents[2] / "recordings" / "repeats" / "kafka-2.6.3" / "random-pauses-6"
BY_NAME = {alteration.name: alteration for alteration in ALTERATIONS}


@cache
def real_runs() -> list[Recording]:
    return [read_recording(FOLDER / str(n)) for n in range(1, 5)]


def test_the_same_runs_again_are_as_near_as_can_be() -> None:
    one = real_runs()[0]
    found = distance([one, one], [one, one])
    assert all(m.real_to_real == m.run_to_real == 0 for m in found.points.values())
    assert found.near_enough
    assert found.p == 1


def test_real_runs_cannot_be_told_from_real_runs() -> None:
    reals = real_runs()
    assert distance(reals[:2], reals[2:]).p >= 0.05


def test_runs_of_another_kind_can_be_told_and_are_not_near() -> None:
    reals = real_runs()
    blank = [replace(run, events=run.events[: 60 + i]) for i, run in enumerate(reals * 2)]
    found = distance(reals, blank)
    assert not found.near_enough
    assert found.p < 0.05


def test_a_real_run_is_held_to_the_others_as_ours_are_to_all() -> None:
    one = real_runs()[0]
    other = BY_NAME["a lost state write"].altered(one, 3)
    points = ("1", "2", "3", "4", "5", "6", "7", "all")
    assert real_runs_too_far([one, one, one]) == dict.fromkeys(points, 0)
    assert real_runs_too_far([one, one, one, other]) == {
        point: int(point in ("1", "all")) for point in points
    }


def test_a_change_in_one_point_moves_that_point_alone() -> None:
    one = real_runs()[0]
    other = BY_NAME["a lost state write"].altered(one, 3)
    found = distance([one, one], [other])
    moved = {point for point, medians in found.points.items() if medians.run_to_real}
    assert moved == {"1", "all"}


def test_the_more_is_lost_the_further_a_run_is() -> None:
    one = real_runs()[0]
    total = len(one.events)
    shorter = [replace(one, events=one.events[:kept]) for kept in (total, total // 2, total // 4)]
    apart = [distance([one, one], [run]).points["all"].run_to_real for run in shorter]
    assert all(near < far for near, far in pairwise(apart))


def test_the_json_names_each_point_and_the_p_value() -> None:
    one = real_runs()[0]
    told = distance([one, one], [one]).as_json()
    assert list(told) == ["1", "2", "3", "4", "5", "6", "7", "all", "p"]
    assert told["4"] == {"real_to_real": 0.0, "run_to_real": 0.0}


def test_relabelings_are_beside_the_distance_in_the_json() -> None:
    """The distance itself is what the definition's tool prints."""
    one = real_runs()[0]
    told = json.loads(json.dumps(Near(("1", "2"), 1, distance([one, one], [one])).as_json()))
    assert told["by_chance"]["4"] == {"as_far": 1.0, "too_far": 0.0}


def test_relabelings_tell_a_difference_from_the_luck_of_few_recordings() -> None:
    """Two recordings that are alike make any third too far; relabelings know that."""
    reals = real_runs()
    blank = [replace(run, events=run.events[: 60 + i]) for i, run in enumerate(reals * 2)]
    assert distance(reals, blank).relabelings["all"].as_far < 0.01
    luck = distance([reals[0], reals[0]], reals[1:])
    assert not luck.points["all"].near_enough
    assert luck.relabelings["all"].as_far > 0.05
    assert luck.relabelings["all"].too_far > 0.3
