"""A sweep on executors: the same rows as one after the other, with tasks that are tried again, and
when it was broken off and resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import SparkContext, TaskContext
from pyspark.sql import SparkSession

from emulator.analysis.dataset import open_dataset, pieces
from emulator.analysis.sweep.batch import BatchResult, play_batch
from emulator.analysis.sweep.grid import Batch, Grid, batches, grid_of, points
from emulator.analysis.sweep.spark import Progress, prepare, sweep

pytestmark = pytest.mark.spark

SCENARIO = """\
cluster: {config: {replica.lag.time.max.ms: 1000}}
topics: {orders: {partitions: [[1, 2, 3]]}}
faults: [{at: 1s, pause: {broker: 2}, for: 2s}]
run: 5s
"""
SETS = ["replica.lag.time.max.ms=1000,4000"]


@pytest.fixture(scope="module")
def grid() -> Grid:
    """Two settings, 12 seeds: four batches."""
    return grid_of(Path("small.yaml"), SCENARIO, points(SETS, (), (), ()), 1, 12)


@pytest.fixture(scope="module")
def expected(grid: Grid, tmp_path_factory: Any) -> dict[str, pa.Table]:
    """One after the other, without Spark."""
    base = tmp_path_factory.mktemp("expected")
    for batch in batches(grid):
        play_batch(grid, base, batch)
    return contents(base)


def contents(base: Path) -> dict[str, pa.Table]:
    """Every file, by its path."""
    return {
        str(file.relative_to(base)): pq.read_table(file, partitioning=None)
        for file in sorted(pieces(base))
    }


def flaky(grid: Grid, base: Path, batch: Batch) -> BatchResult:
    """Every task fails the first time, half of them when all is written."""
    task = TaskContext.get()
    assert task is not None
    if task.attemptNumber() == 0 and batch.number % 2:
        raise OSError("the machine went away")
    found = play_batch(grid, base, batch)
    if task.attemptNumber() == 0:
        raise OSError("the machine went away when it was done")
    return found


def test_executors_and_attempts_change_no_row(
    spark: SparkSession, grid: Grid, expected: dict[str, pa.Table], tmp_path: Path
) -> None:
    told: list[Progress] = []
    left = prepare(grid, tmp_path, resume=False)
    sweep(spark.sparkContext, grid, tmp_path, left, told.append, flaky)
    assert contents(tmp_path) == expected
    assert (told[-1].runs, told[-1].of, told[-1].violated) == (24, 24, 0)
    assert open_dataset(tmp_path).problems == []
    assert not [file for file in tmp_path.rglob(".*") if file.name.endswith(".part")]


def test_a_sweep_that_was_broken_off_goes_on_from_what_is_complete(
    spark: SparkSession, grid: Grid, expected: dict[str, pa.Table], tmp_path: Path
) -> None:
    def break_off(progress: Progress) -> None:
        if progress.runs:
            raise KeyboardInterrupt

    context: SparkContext = spark.sparkContext
    first = prepare(grid, tmp_path, resume=False)
    with pytest.raises(KeyboardInterrupt):
        sweep(context, grid, tmp_path, first, break_off)
    left = prepare(grid, tmp_path, resume=True)
    assert len(left) < len(first)
    told: list[Progress] = []
    sweep(context, grid, tmp_path, left, told.append)
    assert contents(tmp_path) == expected
    assert told[-1].runs == 24


def test_only_runs_with_a_broken_invariant_are_traced_if_that_is_asked(tmp_path: Path) -> None:
    from msgspec.structs import replace

    small = grid_of(Path("small.yaml"), SCENARIO, points([], (), (), ()), 1, 2)
    for traces, files in (("none", 1), ("violations", 1), ("all", 3)):
        base = tmp_path / traces
        one = replace(small, traces=traces)
        for batch in batches(one):
            play_batch(one, base, batch)
        assert len(list(pieces(base))) == files
        assert len(pq.read_table(next(pieces(base / "runs")), partitioning=None)) == 4
