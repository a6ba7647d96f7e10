"""A hundred brokers in one process on one real ZooKeeper server: `make bench` measures the same."""

from __future__ import annotations

import pytest

from tests.live.leftovers import nothing_stays
from tools.bench.figures import show
from tools.bench.many_brokers import BROKERS, LATE_MS, play

pytestmark = pytest.mark.live


def test_a_hundred_brokers_start_change_one_isr_each_and_stop() -> None:
    with nothing_stays():
        seen = play(BROKERS)
    show(seen.figures(BROKERS))
    assert seen.partitions_changed == BROKERS
    assert seen.sessions_lost == 0
    assert seen.late_ms < LATE_MS
