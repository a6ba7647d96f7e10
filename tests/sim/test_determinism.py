"""Every shipped scenario comes out the same to the last event in another process with another hash
seed. Where it does not, `isr run NAME --seed N --check` says where.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.sim.shipped_runs import NAMES

ROOT = Path(__file__).resolve().parents[2]
SEEDS, MANY_SEEDS = range(1), range(1, 60)
HASH_SEEDS = ("0", "1")


def in_both_processes(names: Sequence[str], seeds: range) -> list[list[str]]:
    """Each process's output, a line for each name and seed."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.sim.trace_digests", ",".join(names), *map(str, seeds)],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for hash_seed in HASH_SEEDS
    ]
    told = [process.communicate()[0].splitlines() for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    return told


@pytest.mark.parametrize("names", [NAMES[::2], NAMES[1::2]], ids=["even", "odd"])
@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(SEEDS, marks=pytest.mark.slow),
        pytest.param(MANY_SEEDS, marks=pytest.mark.soak),
    ],
)
def test_another_process_with_another_hash_seed_plays_the_same(
    names: Sequence[str], seeds: range
) -> None:
    one, other = in_both_processes(names, seeds)
    assert one == other
    assert len(one) == len(set(one)) == len(names) * len(seeds)
    assert len({line.split()[3] for line in one}) == len(one)
