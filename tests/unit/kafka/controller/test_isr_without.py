"""The remaining state of a partition without a replica (spec §6.8)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.kafka.controller.replica_state_machine import isr_without
from zk.client.codec import LeaderAndIsr


@pytest.mark.parametrize(
    ("leader", "isr", "gone", "expected"),
    [
        (1, (1, 2, 3), 2, LeaderAndIsr(1, 5, (1, 3), 9)),
        (1, (1, 2, 3), 1, LeaderAndIsr(-1, 5, (2, 3), 9)),
        (1, (1,), 1, LeaderAndIsr(-1, 5, (1,), 9)),
        (2, (3, 2, 1), 3, LeaderAndIsr(2, 5, (2, 1), 9)),
    ],
    ids=["a follower", "the leader", "the last member stays", "order is kept"],
)
def test_the_state_without_a_replica(
    leader: int, isr: tuple[int, ...], gone: int, expected: LeaderAndIsr
) -> None:
    assert isr_without(LeaderAndIsr(leader, 4, isr, 9), gone) == expected


@settings(derandomize=True, deadline=None)
@given(st.lists(st.integers(1, 5), unique=True, min_size=1), st.integers(1, 5), st.integers(1, 5))
def test_the_isr_never_becomes_empty_and_the_epoch_always_moves(
    isr: list[int], leader: int, gone: int
) -> None:
    after = isr_without(LeaderAndIsr(leader, 4, tuple(isr), 9), gone)
    assert after.isr
    assert after.leader_epoch == 5
    assert after.leader != gone
    assert len(isr) == 1 or gone not in after.isr
