"""A data set in many files, and the same put together as one: the same rows, the same tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from emulator.analysis import tables
from emulator.analysis.analyse import analyse
from emulator.analysis.dataset import Dataset, RunKey, open_dataset
from emulator.analysis.derived import RARE, RARE_COLUMNS, of_kinds
from emulator.analysis.event_counts import COLUMNS
from emulator.analysis.merged_files import FILES_MIN, merge_small_files
from emulator.analysis.session import SMALL_ROWS
from emulator.analysis.writer import write_run
from tests.spark.test_analysis import add
from tests.unit.analysis.random_events import EVENTS
from tests.unit.analysis.test_dataset import damage, piece_of, truncated
from tests.unit.analysis.test_writer import BEGAN, ENDED

pytestmark = pytest.mark.spark


@pytest.fixture
def many(tmp_path: Path) -> Dataset:
    """Eight runs, on both paths."""
    base = tmp_path / "data"
    for seed in range(FILES_MIN // 2):
        add(base, seed, "rpc" if seed % 2 else "zk")
    found = open_dataset(base)
    assert len(found.events) + len(found.runs) == FILES_MIN
    return found


def rows_of(spark: SparkSession, found: Dataset) -> DataFrame:
    return tables.events(spark, found, {*COLUMNS, *RARE_COLUMNS})


@given(st.lists(EVENTS, min_size=FILES_MIN, max_size=FILES_MIN))
@settings(max_examples=5, deadline=None, derandomize=True)
def test_rare_rows_are_the_same_and_so_is_what_is_counted_of_the_rest(
    spark: SparkSession, events: list[list[Any]]
) -> None:
    """Whatever happened, and whatever the runs are called."""
    with TemporaryDirectory() as folder:
        for number, of_run in enumerate(events):
            write_run(
                Path(folder), RunKey("a =ß", "2.6", "zk", f"{number} ½"), BEGAN, of_run, ENDED
            )
        found = open_dataset(Path(folder))
        one = merge_small_files(found, Path(folder))
        assert (one.events, len(one.runs), one.rows) == ([], 1, found.rows)
        before, after = (rows_of(spark, of) for of in (found, one))
        assert content(of_kinds(before, *RARE)) == content(of_kinds(after, *RARE))
        assert content(before.select(*COLUMNS)) == content(after.select(*COLUMNS))


def content(rows: DataFrame) -> list[str]:
    columns = sorted(rows.columns)
    return sorted(map(repr, rows.select(*columns).collect()))


def test_tables_and_runs_are_the_same(spark: SparkSession, many: Dataset, tmp_path: Path) -> None:
    before, after = (analyse(spark, found) for found in (many, merge_small_files(many, tmp_path)))
    assert all(after.tables[name].equals(before.tables[name]) for name in before.tables)
    assert (after.runs, after.events) == (before.runs, before.events)


def test_who_wants_rare_kinds_passes_the_rest_by(
    spark: SparkSession, many: Dataset, tmp_path: Path
) -> None:
    groups = pq.ParquetFile(merge_small_files(many, tmp_path).runs[0])
    of_groups = [
        set(groups.read_row_group(number, columns=["kind"])["kind"].to_pylist())
        for number in range(groups.num_row_groups)
    ]
    assert len(of_groups) == 2
    assert [kinds <= {*RARE} for kinds in of_groups] == [False, True]
    assert not of_groups[0] & {*RARE}
    assert scanned(of_kinds(rows_of(spark, merge_small_files(many, tmp_path)), *RARE)) == sum(
        kind in RARE
        for table in [groups.read(columns=["kind"])]
        for kind in table["kind"].to_pylist()
    )


def scanned(rows: DataFrame) -> int:
    """How many rows Spark took from the files."""
    rows.collect()
    plan = rows._jdf.queryExecution().executedPlan().collectLeaves()
    return sum(plan.apply(n).metrics().apply("numOutputRows").value() for n in range(plan.size()))


def test_few_files_and_many_rows_are_read_as_they_are(many: Dataset, tmp_path: Path) -> None:
    few = msgspec.structs.replace(many, events=many.events[:3], runs=many.runs[:3])
    large = msgspec.structs.replace(many, rows=SMALL_ROWS + 1)
    for found in (few, large):
        assert merge_small_files(found, tmp_path) is found
    assert not list(tmp_path.glob("*.parquet"))


def test_a_part_that_a_record_did_not_have_before_is_null_as_for_spark(
    spark: SparkSession, many: Dataset, tmp_path: Path
) -> None:
    for piece in many.events[::2]:
        table = pq.read_table(piece, partitioning=None)
        states = table["states"].combine_chunks()
        names = [part.name for part in states.type.value_type if part.name != "leader"]
        parts = [states.values.field(name) for name in names]
        less = pa.ListArray.from_arrays(
            states.offsets, pa.StructArray.from_arrays(parts, names), mask=states.is_null()
        )
        place = table.schema.get_field_index("states")
        pq.write_table(table.set_column(place, "states", less), piece)
    both = [
        of_kinds(rows_of(spark, found), "metadata_cache_updated").select("seq", "run", "states")
        for found in (many, merge_small_files(many, tmp_path))
    ]
    assert content(both[0]) == content(both[1])
    leaders = both[1].select("states.leader").collect()
    assert {None} < {leader for (row,) in leaders for leader in row}


@pytest.mark.parametrize("change", [truncated, damage])
def test_what_is_damaged_is_left_to_spark(
    change: Callable[[Path], None], many: Dataset, tmp_path: Path
) -> None:
    change(piece_of(many.base, "0x3"))
    assert merge_small_files(many, tmp_path) is many
