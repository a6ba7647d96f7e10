"""A data set of traces on disk: where things lie, and which of its files can be used.

Owns the layout (`events/`, one directory per run; `runs/`, what was run and what came of it), its
names, and the look at every file's footer before Spark reads it: a footer that is not there, a
column or a version that nobody knows, is told with the file's name. It reads no rows but those of
`runs/`, and starts no Spark.
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
"""Ends of names in `runs/`, of a run that is written while it goes on."""
NO_END = "has no end: the run was killed, or still goes on"
_READERS = 8
_ROW_BYTES = 20
"""Of a row on disk, roughly: the longer the runs, the fewer."""


class RunKey(NamedTuple):
    """Which run: its directories, from the outermost."""

    scenario: str
    profile: str
    propagation: str
    run: str

    @property
    def directory(self) -> Path:
        """Below `events/`, as Spark and everybody names partitions."""
        pairs = zip(PARTITIONED_BY, self, strict=True)
        return Path(*(f"{name}={quote(value, safe=' ')}" for name, value in pairs))

    @property
    def file_name(self) -> str:
        """The same in one name, for a file of `runs/`."""
        return "~".join(quote(value, safe=" ") for value in self)


class Problem(msgspec.Struct, frozen=True):
    """A file (or a run's directory) that cannot be used, and why."""

    path: Path
    why: str

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"


class Dataset(msgspec.Struct):
    """What of a data set can be read: pieces of events, files of runs; and what cannot."""

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
    """Look at all files, or `only` these. The first problem is a BadDataset, unless `skip_bad`
    leaves them out; `unfinished`: a run may still go on; `thorough`: a footer's word is not enough,
    every row is read."""
    if not base.is_dir():
        raise BadDataset(f"{base}: there is no such directory")
    every = (file for part in (EVENTS, RUNS) for file in pieces(base / part))
    files = sorted(every if only is None else only)
    if not files:
        raise BadDataset(f"{base}: an empty data set: it has no Parquet file in {EVENTS} or {RUNS}")
    with ThreadPoolExecutor(_READERS) as pool:
        looked = list(pool.map(_read_through if thorough else _look_at, files))
    versions = [seen.version for seen in looked if isinstance(seen, _Seen)]
    version = max(set(versions), key=lambda one: (versions.count(one), one), default=0)
    found = Dataset(base, [], [], version=version)
    for file, seen in zip(files, looked, strict=True):
        _sort_in(found, file, seen, version)
    if not unfinished:
        _leave_out_without_end(found)
    if found.problems and not skip_bad:
        more = f" (and {len(found.problems) - 1} more)" if len(found.problems) > 1 else ""
        raise BadDataset(f"{found.problems[0]}{more}; --skip-bad leaves it out")
    if not found.events and not found.runs:
        raise BadDataset(f"{base}: nothing of it can be read: {found.problems[0]}")
    return found


def pieces(folder: Path) -> Iterator[Path]:
    """Whole files below a folder; what is hidden is not done yet."""
    for file in folder.rglob("*.parquet"):
        if not any(part.startswith(".") for part in file.relative_to(folder).parts):
            yield file


def rows_about(base: Path) -> int:
    """How many rows there are, by the size of the files alone: for who cannot wait for footers."""
    files = (file for part in (EVENTS, RUNS) for file in pieces(base / part))
    return sum(file.stat().st_size for file in files) // _ROW_BYTES


def key_of(base: Path, piece: Path) -> RunKey:
    """Whose piece it is."""
    parts = piece.relative_to(base / EVENTS).parts[:-1]
    return RunKey(*(unquote(part.partition("=")[2]) for part in parts))


def ended_runs(files: Iterable[Path]) -> set[RunKey]:
    """The runs that have come to their end, from files of `runs/`."""
    return set().union(*(_runs_in(file, "run_ended") for file in files))


def _runs_in(file: Path, kind: str) -> set[RunKey]:
    rows = pq.read_table(file, columns=["kind", *PARTITIONED_BY], partitioning=None)
    of_kind = rows.filter(pc.equal(rows["kind"], kind)).to_pylist()
    return {RunKey(*(row[name] for name in PARTITIONED_BY)) for row in of_kind}


class _Seen(NamedTuple):
    version: int
    rows: int
    size: int


def _look_at(file: Path) -> _Seen | str:
    """What its footer says, or what is wrong with it."""
    try:
        footer = pq.read_metadata(file)
        found = footer.schema.to_arrow_schema()
    except (pa.ArrowException, OSError) as error:
        return f"cannot be read as Parquet: {_first_line(error)}"
    said = (footer.metadata or {}).get(VERSION_KEY)
    if said is None:
        return "is no file of a trace data set (its metadata has no isr.dataset)"
    version = int(said)
    if version > DATASET_VERSION:
        return f"data set version {version}; this isr knows {DATASET_VERSION} and before"
    strange = _strange_column(found.serialize().to_pybytes())
    return strange or _Seen(version, footer.num_rows, file.stat().st_size)


def _read_through(file: Path) -> _Seen | str:
    """The same, of a file whose rows have all been read."""
    seen = _look_at(file)
    try:
        if isinstance(seen, _Seen):
            for _ in pq.ParquetFile(file).iter_batches():
                pass
    except (pa.ArrowException, OSError) as error:
        return f"is damaged: {_first_line(error)}"
    return seen


@cache
def _strange_column(schema_: bytes) -> str:
    """Most files of a data set have the same schema; to look at one takes milliseconds."""
    known = _known()
    for field in pa.ipc.read_schema(pa.py_buffer(schema_)):
        if field.name not in known.names:
            return f"unknown column {field.name}"
        wanted = known.field(field.name).type
        if not _same(field.type, wanted):
            return f"column {field.name} is {field.type}, not {wanted}"
    return ""


@cache
def _known() -> pa.Schema:
    return arrow_schema(schema())


def _same(one: pa.DataType, other: pa.DataType) -> bool:
    """A record of an older file may lack parts."""
    if pa.types.is_list(one) and pa.types.is_list(other):
        return _same(one.value_type, other.value_type)
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        parts = {field.name: field.type for field in other}
        return all(f.name in parts and _same(f.type, parts[f.name]) for f in one)
    return bool(one == other)


def _sort_in(found: Dataset, file: Path, seen: _Seen | str, version: int) -> None:
    if isinstance(seen, str):
        found.problems.append(Problem(file, seen))
    elif seen.version != version:
        why = f"mixed schema versions: this one is of {seen.version}, most are of {version}"
        found.problems.append(Problem(file, why))
    elif not seen.rows:
        found.problems.append(Problem(file, "has no rows"))
    else:
        found.rows += seen.rows
        found.size += seen.size
        mine = found.events if file.is_relative_to(found.base / EVENTS) else found.runs
        mine.append(file)


def _leave_out_without_end(found: Dataset) -> None:
    """A run's beginning and its pieces, where its end is in no file of all."""
    ended = ended_runs(found.runs)
    runs_of = {
        file: _runs_in(file, "run_began") for file in found.runs if file.stem.endswith(BEGAN)
    }
    runs_of |= {piece: {key_of(found.base, piece)} for piece in found.events}
    endless = {file: runs - ended for file, runs in runs_of.items() if runs - ended}
    found.events = [file for file in found.events if file not in endless]
    found.runs = [file for file in found.runs if file not in endless]
    missing = sorted(set().union(*endless.values()))
    found.problems += [Problem(found.base / EVENTS / k.directory, NO_END) for k in missing]


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0][:200]
