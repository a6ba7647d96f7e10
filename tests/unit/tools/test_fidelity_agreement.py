"""Shares of plays that are equal to the recording, and to each other."""

import pytest

from tools.fidelity.agreement import kind_of, shares_of


@pytest.mark.parametrize(
    ("recorded", "to_recording"), [("often", 0.75), ("seldom", 0.25), ("never", 0.0)]
)
def test_a_recorded_lane_is_held_to_plays_and_plays_to_each_other(
    recorded: str, to_recording: float
) -> None:
    plays = ["often", "often", "often", "seldom"]
    assert shares_of(recorded, plays) == (to_recording, 0.5)


def test_what_is_more_frequent_among_plays_than_in_recordings_loses() -> None:
    assert shares_of("a", ["b", "b"]).lost == 1.0
    assert shares_of("b", ["b", "b"]).lost == 0.0


def test_lanes_of_all_brokers_and_partitions_are_of_one_kind() -> None:
    assert {kind_of("broker 2 metadata t1-0"), kind_of("broker 15 metadata t0-12")} == {
        "broker N metadata tN-N"
    }
