"""A damaged data set gives a one-line error with the file's name; the rest is readable."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from emulator.analysis.arrow import VERSION_KEY
from emulator.analysis.dataset import RunKey, open_dataset, pieces
from emulator.analysis.errors import BadDataset
from emulator.analysis.writer import write_run
from tests.unit.analysis.test_writer import BEGAN, ENDED, story


@pytest.fixture
def three(tmp_path: Path) -> Path:
    """A data set of three runs."""
    for run in "abc":
        write_run(tmp_path, RunKey("s", "2.6", "zookeeper", run), BEGAN, story(), ENDED)
    return tmp_path


def piece_of(base: Path, run: str) -> Path:
    return next(file for file in pieces(base / "events") if f"run={run}" in str(file))


def of_version(version: int) -> Callable[[Path], None]:
    def change(piece: Path) -> None:
        table = pq.read_table(piece, partitioning=None)
        metadata = {VERSION_KEY: str(version)}
        pq.write_table(table.replace_schema_metadata(metadata), piece)

    return change


def truncated(piece: Path) -> None:
    piece.write_bytes(piece.read_bytes()[:-100])


def damage(piece: Path) -> None:
    """Zeros where the first column's values were; the footer says that all is well."""
    first = pq.ParquetFile(piece).metadata.row_group(0).column(0)
    start = first.dictionary_page_offset or first.data_page_offset
    data = bytearray(piece.read_bytes())
    data[start : start + first.total_compressed_size] = bytes(first.total_compressed_size)
    piece.write_bytes(data)


def with_a_column(piece: Path) -> None:
    table = pq.read_table(piece, partitioning=None)
    pq.write_table(table.append_column("mood", pa.nulls(len(table), pa.string())), piece)


def with_a_text_for_a_number(piece: Path) -> None:
    table = pq.read_table(piece, partitioning=None)
    place = table.schema.get_field_index("seq")
    pq.write_table(table.set_column(place, "seq", table["seq"].cast(pa.string())), piece)


def somebody_elses(piece: Path) -> None:
    pq.write_table(pa.table({"kind": ["x"]}), piece)


def without_rows(piece: Path) -> None:
    table = pq.read_table(piece, partitioning=None)
    pq.write_table(table.slice(0, 0), piece)


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (truncated, "cannot be read as Parquet"),
        (with_a_column, "unknown column mood"),
        (with_a_text_for_a_number, "column seq is string, expected int64"),
        (somebody_elses, "is not part of a trace data set"),
        (without_rows, "has no rows"),
        (of_version(0), "mixed schema versions: this file has 0, most have 2"),
        (of_version(99), "has data set version 99; this isr reads up to version 2"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_and_can_be_left_out(
    three: Path, spoil: Callable[[Path], None], why: str
) -> None:
    spoil(piece_of(three, "b"))
    with pytest.raises(BadDataset) as said:
        open_dataset(three)
    assert str(said.value).startswith(f"{piece_of(three, 'b')}: {why}")
    assert "\n" not in str(said.value) and "--skip-bad" in str(said.value)
    rest = open_dataset(three, skip_bad=True)
    assert [p.path for p in rest.problems] == [piece_of(three, "b")]
    assert rest.events == [piece_of(three, "a"), piece_of(three, "c")]


def test_a_file_whose_footer_is_whole_and_whose_rows_are_not_is_found_by_reading_it(
    three: Path,
) -> None:
    damage(piece_of(three, "b"))
    assert open_dataset(three).problems == []
    with pytest.raises(BadDataset) as said:
        open_dataset(three, thorough=True)
    assert str(said.value).startswith(f"{piece_of(three, 'b')}: is damaged")
    rest = open_dataset(three, thorough=True, skip_bad=True)
    assert rest.events == [piece_of(three, "a"), piece_of(three, "c")]


@pytest.mark.slow
def test_no_flipped_bit_of_a_page_is_read_as_another_value(three: Path) -> None:
    """Any bit before the footer: the file is read correctly or reported as damaged."""
    piece = piece_of(three, "b")
    whole, data = pq.read_table(piece, partitioning=None), piece.read_bytes()
    alone = [piece, *pieces(three / "runs")]
    end = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    damaged = 0
    for bit in range(32, end * 8, max(1, end * 8 // 150)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        piece.write_bytes(flipped)
        try:
            open_dataset(three, only=alone, thorough=True)
        except BadDataset:
            damaged += 1
        else:
            assert pq.read_table(piece, partitioning=None).equals(whole), bit
    assert damaged > 100


def test_of_some_files_only_those_are_looked_at(three: Path) -> None:
    truncated(piece_of(three, "b"))
    some = [piece_of(three, "a"), *pieces(three / "runs")]
    assert open_dataset(three, only=some).events == [piece_of(three, "a")]


def test_an_empty_data_set_and_one_that_is_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadDataset, match=r"the data set is empty: no Parquet file"):
        open_dataset(tmp_path)
    with pytest.raises(BadDataset, match=r"no such directory"):
        open_dataset(tmp_path / "not")


def test_where_nothing_can_be_read_skipping_does_not_help(tmp_path: Path) -> None:
    write_run(tmp_path, RunKey("s", "2.6", "zookeeper", "a"), BEGAN, story(), ENDED)
    for file in list(pieces(tmp_path)):
        truncated(file)
    with pytest.raises(BadDataset, match="no readable file"):
        open_dataset(tmp_path, skip_bad=True)


def test_a_data_set_of_an_older_version_only_is_read(three: Path) -> None:
    for file in list(pieces(three)):
        of_version(0)(file)
    assert len(open_dataset(three).events) == 3


def test_a_file_of_runs_that_says_nothing_of_whose_they_are_is_named(three: Path) -> None:
    file = next(pieces(three / "runs"))
    table = pq.read_table(file, partitioning=None)
    pq.write_table(table.drop_columns(["scenario"]), file)
    with pytest.raises(BadDataset, match="its runs cannot be read: No match for FieldRef"):
        open_dataset(three)
