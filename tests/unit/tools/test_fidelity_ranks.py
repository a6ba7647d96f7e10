"""The rank of a recorded delay among emulated ones."""

import pytest

from tools.fidelity.ranks import kind_of, rank


@pytest.mark.parametrize(
    ("recorded", "expected"), [(1, 0.0), (5, 0.25), (10, 0.5), (15, 0.75), (99, 1.0)]
)
def test_a_rank_is_the_share_of_shorter_delays_and_half_of_the_equal_ones(
    recorded: float, expected: float
) -> None:
    assert rank(recorded, [4, 10, 10, 20]) == expected


def test_delays_of_all_partitions_and_brokers_are_of_one_kind_but_waits_are_of_another() -> None:
    announced = [
        kind_of(f"{partition}: state write to metadata of broker {broker}", ms)
        for partition, broker, ms in [("orders-0 v1", 4, 12), ("audit-11 v3", 1, 900)]
    ]
    assert set(announced) == {"state write to metadata of broker N"}
    waited = kind_of("orders-0 v1: state write to metadata of broker 4", 5012)
    assert waited == "state write to metadata of broker N, above 1 s"
