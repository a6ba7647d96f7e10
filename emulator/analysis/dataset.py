"""A data set of traces on disk: its layout, and which of its files are usable.

Owns the layout (`events/` has one directory per run, `runs/` the runs and their outcomes) and its
names. Checks every file's footer before Spark reads it; a missing footer, an unknown column or an
unknown version is reported with the file's name. Reads only rows of `runs/`; does not start Spark.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from emulator.analysis.arrow import VERSION_KEY, arrow_schema
from emulator.analysis.errors import BadDataset
from emulator.trace.columns import DATASET_VERSION, PARTITIONED_BY, schema

EVENTS, RUNS = "events", "runs"
BEGAN, ENDED = ".began", ".ended"
"""Suffixes of the two files in `runs/` for a run that is written while it is still going."""
NO_END = "has no end: the run was killed or is still going"
_READERS = 8
_ROW_BYTES = 20
"""A rough size of a row on disk; longer runs need fewer bytes per row."""


class RunKey(NamedTuple):
    """Identifies a run by the names of its directories, outermost first."""

    scenario: str
    profile: str
    propagation: str
    run: str

    @property
    def directory(self) -> Path:
        """The path below `events/`, with Hive-style names (`key=value`) as Spark expects them."""
        pairs = zip(PARTITIONED_BY, self, strict=True)
        return Path(*(f"{name}={quote(value, safe=' ')}" for name, value in pairs))

    @property
    def file_name(self) -> str:
        """The key as one file name, for `runs/`."""
        return "~".join(quote(value, safe=" ") for value in self)


class Problem(msgspec.Struct, frozen=True):
    """An unusable file (or directory of a run), and the reason."""

    path: Path
    why: str

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"


class Dataset(msgspec.Struct):
    """The readable files of a data set (pieces of events, files of runs), and its problems."""

    base: Path
    events: list[Path]
    runs: list[Path]
    rows: int = 0
    size: int = 0
    problems: list[Problem] = []
    version: int = DATASET_VERSION


def open_dataset(
    base: Path,
    *,
    skip_bad: bool = False,
    unfinished: bool = False,
    thorough: bool = False,
    only: Collection[Path] | None = None,
) -> Dataset:
    """Check all files, or `only` these. The first problem raises BadDataset; with `skip_bad` bad
    files are skipped instead. `unfinished`: accept runs that are still going. `thorough`: read
    every row, not just the footers."""
    if not base.is_dir():
        raise BadDataset(f"{base}: no such directory")
    every = (file for part in (EVENTS, RUNS) for file in pieces(base / part))
    files = sorted(every if only is None else only)
    if not files:
        raise BadDataset(f"{base}: the data set is empty: no Parquet file in {EVENTS} or {RUNS}")
    with ThreadPoolExecutor(_READERS) as pool:
        footers = list(pool.map(_read_all_rows if thorough else _read_footer, files))
    versions = [footer.version for footer in footers if isinstance(footer, _Footer)]
    version = max(set(versions), key=lambda one: (versions.count(one), one), default=0)
    dataset = Dataset(base, [], [], version=version)
    for file, footer in zip(files, footers, strict=True):
        if isinstance(footer, str):
            dataset.problems.append(Problem(file, footer))
        elif footer.version != version:
            why = f"mixed schema versions: this file has {footer.version}, most have {version}"
            dataset.problems.append(Problem(file, why))
        elif not footer.rows:
            dataset.problems.append(Problem(file, "has no rows"))
        else:
            dataset.rows += footer.rows
            dataset.size += footer.size
            (dataset.events if file.is_relative_to(base / EVENTS) else dataset.runs).append(file)
    if not unfinished:
        _drop_unfinished_runs(dataset)
    if dataset.problems and not skip_bad:
        more = f" (and {len(dataset.problems) - 1} more)" if len(dataset.problems) > 1 else ""
        raise BadDataset(f"{dataset.problems[0]}{more}; use --skip-bad to skip it")
    if not dataset.events and not dataset.runs:
        raise BadDataset(f"{base}: no readable file: {dataset.problems[0]}")
    return dataset


def pieces(folder: Path) -> Iterator[Path]:
    """Complete files below a folder. Hidden files are still being written."""
    for file in folder.rglob("*.parquet"):
        if not any(part.startswith(".") for part in file.relative_to(folder).parts):
            yield file


def estimate_rows(base: Path) -> int:
    """The approximate number of rows, from file sizes alone; reading all footers takes too long."""
    files = (file for part in (EVENTS, RUNS) for file in pieces(base / part))
    return sum(file.stat().st_size for file in files) // _ROW_BYTES


def key_of(base: Path, piece: Path) -> RunKey:
    """The run to which a piece belongs."""
    parts = piece.relative_to(base / EVENTS).parts[:-1]
    return RunKey(*(unquote(part.partition("=")[2]) for part in parts))


def ended_runs(files: Iterable[Path]) -> set[RunKey]:
    """The runs that have ended, according to files of `runs/`."""
    return set().union(*(_runs_in(file, "run_ended") for file in files))


def _runs_in(file: Path, kind: str) -> set[RunKey]:
    columns = ["kind", *PARTITIONED_BY]
    try:
        rows = pq.read_table(
            file, columns=columns, partitioning=None, page_checksum_verification=True
        )
    except (pa.ArrowException, OSError) as error:
        raise BadDataset(f"{file}: its runs cannot be read: {_first_line(error)}") from None
    of_kind = rows.filter(pc.equal(rows["kind"], kind)).to_pylist()
    return {RunKey(*(row[name] for name in PARTITIONED_BY)) for row in of_kind}


class _Footer(NamedTuple):
    version: int
    rows: int
    size: int


def _read_footer(file: Path) -> _Footer | str:
    """The file's footer, or the reason that the file is unusable."""
    try:
        footer = pq.read_metadata(file)
        columns = footer.schema.to_arrow_schema()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        return f"cannot be read as Parquet: {_first_line(error)}"
    version_text = (footer.metadata or {}).get(VERSION_KEY)
    if version_text is None or not version_text.isdigit():
        return "is not part of a trace data set (its metadata lacks isr.dataset)"
    version = int(version_text)
    if version > DATASET_VERSION:
        return f"has data set version {version}; this isr reads up to version {DATASET_VERSION}"
    difference = _schema_difference(columns.serialize().to_pybytes())
    return difference or _Footer(version, footer.num_rows, file.stat().st_size)


def _read_all_rows(file: Path) -> _Footer | str:
    """Read the footer and all rows, to detect damage that the footer does not show."""
    footer = _read_footer(file)
    try:
        if isinstance(footer, _Footer):
            parquet = pq.ParquetFile(file, page_checksum_verification=True)
            # Whole columns: how many values a page has is not covered by its checksum.
            for group in range(parquet.num_row_groups):
                parquet.read_row_group(group)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        return f"is damaged: {_first_line(error)}"
    return footer


@cache
def _schema_difference(schema_: bytes) -> str:
    """Cached: most files of a data set have the same schema, and a comparison takes
    milliseconds."""
    known = _full_schema()
    for field in pa.ipc.read_schema(pa.py_buffer(schema_)):
        if field.name not in known.names:
            return f"unknown column {field.name}"
        expected = known.field(field.name).type
        if not _is_compatible(field.type, expected):
            return f"column {field.name} is {field.type}, expected {expected}"
    return ""


@cache
def _full_schema() -> pa.Schema:
    return arrow_schema(schema())


def _is_compatible(one: pa.DataType, other: pa.DataType) -> bool:
    """Equal, except that a record of an older file may lack fields."""
    if pa.types.is_list(one) and pa.types.is_list(other):
        return _is_compatible(one.value_type, other.value_type)
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        parts = {field.name: field.type for field in other}
        return all(f.name in parts and _is_compatible(f.type, parts[f.name]) for f in one)
    return bool(one == other)


def _drop_unfinished_runs(dataset: Dataset) -> None:
    """Drop the start and the pieces of every run whose end is in no file."""
    ended = ended_runs(dataset.runs)
    runs_of = {
        file: _runs_in(file, "run_began") for file in dataset.runs if file.stem.endswith(BEGAN)
    }
    runs_of |= {piece: {key_of(dataset.base, piece)} for piece in dataset.events}
    endless = {file: runs - ended for file, runs in runs_of.items() if runs - ended}
    dataset.events = [file for file in dataset.events if file not in endless]
    dataset.runs = [file for file in dataset.runs if file not in endless]
    missing = sorted(set().union(*endless.values()))
    dataset.problems += [Problem(dataset.base / EVENTS / k.directory, NO_END) for k in missing]


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0][:200]
