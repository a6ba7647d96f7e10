"""`isr soak` from start to end, as short as it can be with a fault in it: the long ones are run by
hand, and a soak that cannot be judged would be noticed only there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.test_soak import soak

pytestmark = [pytest.mark.live, pytest.mark.clients]


def test_a_minute_of_kills_is_judged(tmp_path: Path) -> None:
    words = ("--minutes", "3", "--seed", "5", "--java", "none", "--fault", "kill")
    code, result = soak(tmp_path, *words)
    assert result["history"]["findings"] == []
    assert code in (0, 2)  # 2: the trace shows what has no name yet, as fresh seeds may
    assert result["history"]["acknowledged"] > 100
