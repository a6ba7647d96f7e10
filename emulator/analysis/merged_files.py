"""Merges many small files into one, because Spark opens each file twice, at milliseconds each.

Owns the merged copy. It holds the columns that tables read, with rare kinds in row groups of their
own that queries can select; frequent kinds keep only the columns that are counted. The copy is made
while Spark starts, if Spark runs locally and there are few rows. Spark reports damaged files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from emulator.analysis.arrow import arrow_schema
from emulator.analysis.dataset import EVENTS, Dataset, key_of
from emulator.analysis.derived import RARE, RARE_COLUMNS
from emulator.analysis.event_counts import COLUMNS
from emulator.analysis.session import SMALL_ROWS
from emulator.trace.columns import DATASET_VERSION, PARTITIONED_BY

FILES_MIN = 16
GROUP_ROWS = 64 * 1024
"""Spark distributes a file among its cores by row groups."""
_READERS = 2
_TEXT = pa.dictionary(pa.int32(), pa.string())
"""Dictionary encoding, as in the files: repeated strings are stored once. `kind` is not encoded,
because a reader skips a row group by the list of kinds that occur in it."""


def merge_small_files(dataset: Dataset, folder: Path) -> Dataset:
    """A data set with the same rows in one file below `folder`; `dataset` where merging gains
    little."""
    is_small = len(dataset.events) + len(dataset.runs) < FILES_MIN
    if is_small or dataset.rows > SMALL_ROWS or dataset.version < DATASET_VERSION:
        return dataset
    file = folder / "merged.parquet"
    try:
        _write_merged(dataset, file)
    except (pa.ArrowException, OSError):
        return dataset
    return msgspec.structs.replace(dataset, events=[], runs=[file])


def _write_merged(dataset: Dataset, file: Path) -> None:
    into = pa.schema(
        field.with_type(_TEXT) if field.type == pa.string() and field.name != "kind" else field
        for field in arrow_schema({*COLUMNS, *RARE_COLUMNS})
    )
    files = [*dataset.runs, *dataset.events]
    rare: list[pa.Table] = []
    with (
        ThreadPoolExecutor(_READERS) as pool,
        pq.ParquetWriter(file, into, compression="none", write_statistics=False) as writer,
    ):
        tables = pool.map(partial(_read_rows, dataset.base, into), files)
        for group in _row_groups(_split_off_rare(table, into, rare) for table in tables):
            writer.write_table(group)
        for group in _row_groups(rare):
            writer.write_table(group)


def _read_rows(base: Path, schema: pa.Schema, file: Path) -> pa.Table:
    """The rows of one file, with the run's key from the names of its directories."""
    footer = pq.read_metadata(file)
    present = [name for name in footer.schema.to_arrow_schema().names if name in schema.names]
    texts = [name for name in present if schema.field(name).type == _TEXT]
    with pq.ParquetFile(
        file, metadata=footer, read_dictionary=texts, page_checksum_verification=True
    ) as parquet:
        read = parquet.read(columns=present, use_threads=False)
    columns = dict(zip(read.column_names, read.columns, strict=True))
    if file.is_relative_to(base / EVENTS):
        of_run = zip(PARTITIONED_BY, key_of(base, file), strict=True)
        place = pa.repeat(pa.scalar(0, pa.int32()), read.num_rows)
        columns |= {n: pa.DictionaryArray.from_arrays(place, [value]) for n, value in of_run}
    return _with_all_columns(columns, read.num_rows, schema)


def _with_all_columns(columns: dict[str, pa.Array], rows: int, into: pa.Schema) -> pa.Table:
    """All columns of `into`, and all fields of records; missing ones are null."""
    every = [
        columns[field.name] if field.name in columns else pa.nulls(rows, field.type)
        for field in into
    ]
    return pa.Table.from_arrays(every, schema=into)


def _split_off_rare(table: pa.Table, into: pa.Schema, rare: list[pa.Table]) -> pa.Table:
    """Append the rows of rare kinds to `rare`; return the counted columns of all other rows."""
    is_rare = pc.is_in(table["kind"], pa.array(RARE))
    rare.append(table.filter(is_rare))
    frequent = table.select(COLUMNS).filter(pc.invert(is_rare))
    return _with_all_columns(
        dict(zip(COLUMNS, frequent.columns, strict=True)), frequent.num_rows, into
    )


def _row_groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Concatenate tables into row groups of at least GROUP_ROWS rows."""
    group: list[pa.Table] = []
    for table in tables:
        group.append(table)
        if sum(one.num_rows for one in group) >= GROUP_ROWS:
            yield pa.concat_tables(group).unify_dictionaries()
            group = []
    if group:
        yield pa.concat_tables(group).unify_dictionaries()
