"""Every measurement of `make bench` runs: at a tiny size, where its ratios say nothing."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest

from tools.bench.__main__ import MEASUREMENTS

REAL_SERVER = ("brokers", "hollow", "updates", "shrink")
SPARK = ("report", "tables", "sweep", "skew", "millions")
OTHER_SIZES = ("fifty",)
"""The same function as another's, at larger sizes: at tiny ones it would run twice."""
MARKS = dict.fromkeys(REAL_SERVER, pytest.mark.live) | dict.fromkeys(SPARK, pytest.mark.spark)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=MARKS.get(name, ()))
        for name in MEASUREMENTS
        if name not in OTHER_SIZES
    ],
)
def test_it_runs(name: str) -> None:
    figures = MEASUREMENTS[name].tiny()
    assert figures
    for figure in figures:
        assert figure.what
        assert figure.scope
        assert math.isfinite(figure.value)


def test_a_name_that_it_does_not_know_is_a_mistake() -> None:
    command = [sys.executable, "-m", "tools.bench", "nothing"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "there is no nothing" in done.stderr
