"""Many small files as one, before Spark reads them: Spark takes milliseconds to open each, twice.

Owns that copy: the columns that tables read, rare kinds by themselves, so that who wants those
passes the rest by, and of the rest what is counted. It is made while Spark starts, where Spark is
in this process and rows are few. What turns out to be damaged is left to Spark, which says so.
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
from emulator.analysis.counted import COLUMNS
from emulator.analysis.dataset import EVENTS, Dataset, key_of
from emulator.analysis.derived import RARE, RARE_COLUMNS
from emulator.analysis.session import SMALL_ROWS
from emulator.trace.columns import DATASET_VERSION, PARTITIONED_BY

FILES_MIN = 16
GROUP_ROWS = 64 * 1024
"""Spark shares a file among its cores by groups of rows."""
_READERS = 2
_TEXT = pa.dictionary(pa.int32(), pa.string())
"""As it lies in files: a text that is there many times is there once. Not so `kind`: a group of
rows must list the kinds that it has, and no other, for readers to pass it by."""


def gathered(found: Dataset, folder: Path) -> Dataset:
    """The same rows in one file below `folder`; `found` itself where that is not worth it."""
    is_small = len(found.events) + len(found.runs) < FILES_MIN
    if is_small or found.rows > SMALL_ROWS or found.version < DATASET_VERSION:
        return found
    file = folder / "gathered.parquet"
    try:
        _gather(found, file)
    except (pa.ArrowException, OSError):
        return found
    return msgspec.structs.replace(found, events=[], runs=[file])


def _gather(found: Dataset, file: Path) -> None:
    into = pa.schema(
        field.with_type(_TEXT) if field.type == pa.string() and field.name != "kind" else field
        for field in arrow_schema({*COLUMNS, *RARE_COLUMNS})
    )
    files = [*found.runs, *found.events]
    rare: list[pa.Table] = []
    with (
        ThreadPoolExecutor(_READERS) as pool,
        pq.ParquetWriter(file, into, compression="none", write_statistics=False) as writer,
    ):
        tables = pool.map(partial(_rows, found.base, into), files)
        for some in _in_groups(_of_the_rest(table, into, rare) for table in tables):
            writer.write_table(some)
        for some in _in_groups(rare):
            writer.write_table(some)


def _rows(base: Path, into: pa.Schema, file: Path) -> pa.Table:
    """Of one file; whose events they are the directories say."""
    footer = pq.read_metadata(file)
    there = [name for name in footer.schema.to_arrow_schema().names if name in into.names]
    texts = [name for name in there if into.field(name).type == _TEXT]
    with pq.ParquetFile(file, metadata=footer, read_dictionary=texts) as parquet:
        read = parquet.read(columns=there, use_threads=False)
    columns = dict(zip(read.column_names, read.columns, strict=True))
    if file.is_relative_to(base / EVENTS):
        of_run = zip(PARTITIONED_BY, key_of(base, file), strict=True)
        place = pa.repeat(pa.scalar(0, pa.int32()), read.num_rows)
        columns |= {n: pa.DictionaryArray.from_arrays(place, [value]) for n, value in of_run}
    return _filled(columns, read.num_rows, into)


def _filled(columns: dict[str, pa.Array], rows: int, into: pa.Schema) -> pa.Table:
    """With all columns of `into`, and all parts of records; those that are not there are null."""
    every = [
        columns[field.name] if field.name in columns else pa.nulls(rows, field.type)
        for field in into
    ]
    return pa.Table.from_arrays(every, schema=into)


def _of_the_rest(table: pa.Table, into: pa.Schema, rare: list[pa.Table]) -> pa.Table:
    """What is counted of the rows that are not rare; those that are go to `rare`."""
    is_rare = pc.is_in(table["kind"], pa.array(RARE))
    rare.append(table.filter(is_rare))
    rest = table.select(COLUMNS).filter(pc.invert(is_rare))
    return _filled(dict(zip(COLUMNS, rest.columns, strict=True)), rest.num_rows, into)


def _in_groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Together as many as a group of rows should have."""
    some: list[pa.Table] = []
    for table in tables:
        some.append(table)
        if sum(one.num_rows for one in some) >= GROUP_ROWS:
            yield pa.concat_tables(some).unify_dictionaries()
            some = []
    if some:
        yield pa.concat_tables(some).unify_dictionaries()
