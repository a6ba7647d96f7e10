"""A process's wall clock follows the machine's, at the offset that a file has at that moment."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from emulator.worlds.processes.wall_clock import WallClock, set_wall_clock

YEAR_MS = 365 * 24 * 3_600_000


def difference_ms(clock: WallClock, offset_ms: int) -> float:
    """How much later than just before it is said to be."""
    before_ms = int(time.time() * 1000)
    return clock.now_ms() - offset_ms - before_ms


def test_without_a_file_it_is_the_machines() -> None:
    assert 0 <= difference_ms(WallClock(None), 0) < YEAR_MS


@given(offsets=st.lists(st.integers(-30 * YEAR_MS, 30 * YEAR_MS), min_size=1, max_size=4))
def test_it_jumps_whenever_the_file_changes(offsets: list[int]) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "clock"
        set_wall_clock(file, 0)
        with closing(WallClock(file)) as clock:
            for offset_ms in offsets:
                set_wall_clock(file, offset_ms)
                assert 0 <= difference_ms(clock, offset_ms) < 60_000
