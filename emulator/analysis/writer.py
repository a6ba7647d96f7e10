"""Writes traces into a data set, in files that appear complete or not at all.

Owns writing and renaming. A run in progress is written piece by piece (`RunWriter`), so that a
killed run leaves readable data. A finished run is written at once (`write_run`), so that a task
that is retried or runs twice leaves one copy. `runs/` has the run's parameters and, at the end, its
outcome: written last, it marks the run as complete. Knows rows, not worlds.
"""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from emulator.analysis.arrow import arrow_schema, by_kind, columns_of, table_of
from emulator.analysis.dataset import BEGAN, ENDED, EVENTS, RUNS, RunKey
from emulator.analysis.errors import AnalysisError
from emulator.trace.columns import PARTITIONED_BY, SETTING
from emulator.trace.event import Event
from emulator.trace.rows import RunBegan, RunEnded

PIECE_EVENTS = 200_000
PIECE_S = 5.0
"""The longest time between two pieces of a live run, so that `--follow` sees them soon."""
GROUP_ROWS = 16_384
"""A kind with more rows in a piece gets its own row groups, which queries for others skip."""

_SHORT_FOOTER: dict[str, Any] = {"write_statistics": ["kind"], "store_schema": False}
"""Most files are small, and every reader reads their footers: these were a third of the size."""


class RunWriter:
    """A listener that writes a run while it is in progress."""

    def __init__(self, base: Path, key: RunKey, began: RunBegan) -> None:
        self.base, self.key = base, key
        self.setting = setting_of(began)
        self.failure: OSError | None = None
        self._folder = base / EVENTS / key.directory
        self._events: list[Event] = []
        self._pieces = 0
        self._written_s = time.monotonic()
        with _errors_in_one_line(base):
            self._folder.mkdir(parents=True, exist_ok=True)
            _write_rows(base, f"{key.file_name}{BEGAN}", {key: (self.setting, [began])})

    def __call__(self, event: Event) -> None:
        """Buffer an event; flush a full buffer."""
        self._events.append(event)
        if len(self._events) >= PIECE_EVENTS:
            self.flush()

    def flush_if_due(self) -> None:
        """Flush the buffer, if the last flush is PIECE_S ago."""
        if time.monotonic() - self._written_s > PIECE_S:
            self.flush()

    def flush(self) -> None:
        """Write the buffered events. After an error (a full disk) nothing more is written."""
        events, self._events = self._events, []
        self._written_s = time.monotonic()
        if not events or self.failure is not None:
            return
        try:
            write_piece(self._folder / f"part-{self._pieces:05}.parquet", events, self.setting)
        except OSError as error:
            self.failure = error
        self._pieces += 1

    def finish(self, ended: RunEnded) -> None:
        """The run is over: write its last piece, then its outcome."""
        self.flush()
        with _errors_in_one_line(self.base):
            if self.failure is not None:
                raise self.failure
            name = f"{self.key.file_name}{ENDED}"
            _write_rows(self.base, name, {self.key: (self.setting, [ended])})


def write_run(
    base: Path, key: RunKey, began: RunBegan, events: Iterable[Event], ended: RunEnded
) -> None:
    """Write a finished run into the data set at `base`: events first (none if `began.traced` is
    false), the outcome last. Existing files of the same run stay."""
    if began.traced:
        write_events(base, key, setting_of(began), events)
    write_runs(base, key.file_name, {key: (began, ended)})


def write_events(base: Path, key: RunKey, setting: str, events: Iterable[Event]) -> None:
    """Write all events of a run; its directory appears when it is complete."""
    folder = base / EVENTS / key.directory
    with _errors_in_one_line(base):
        if folder.exists():
            return
        aside = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.part")
        aside.mkdir(parents=True)
        try:
            every = list(events)
            for number, start in enumerate(range(0, len(every), PIECE_EVENTS)):
                piece = every[start : start + PIECE_EVENTS]
                write_piece(aside / f"part-{number:05}.parquet", piece, setting)
            try:
                aside.rename(folder)
            except OSError:
                # Another attempt at the same run may have been faster; its data are the same.
                if not folder.exists():
                    raise
        finally:
            shutil.rmtree(aside, ignore_errors=True)


def write_runs(base: Path, name: str, runs: Mapping[RunKey, tuple[RunBegan, RunEnded]]) -> None:
    """Write the parameters and outcomes of several runs, as one file `runs/NAME.parquet`."""
    with _errors_in_one_line(base):
        _write_rows(base, name, {key: (setting_of(rows[0]), rows) for key, rows in runs.items()})


def setting_of(began: RunBegan) -> str:
    """The chosen settings of a run, as one string."""
    return " ".join(f"{one.name}={one.value}" for one in began.chosen)


def write_piece(file: Path, events: Sequence[Event], setting: str) -> None:
    """Write one Parquet file, which appears only when complete."""
    kinds = by_kind(events)
    into = arrow_schema(columns_of(kinds))
    tables = {k: table_of(k, group, into, {SETTING: setting}) for k, group in kinds.items()}
    frequent = [table for table in tables.values() if table.num_rows > GROUP_ROWS]
    rare = [table for table in tables.values() if table.num_rows <= GROUP_ROWS]
    _write(file, into, [*([pa.concat_tables(rare)] if rare else []), *frequent])


def _write_rows(
    base: Path, name: str, rows: Mapping[RunKey, tuple[str, Sequence[RunBegan | RunEnded]]]
) -> None:
    """Write rows of runs. They have the run's key as columns; events have it in directory names."""
    into = arrow_schema({*columns_of(("run_began", "run_ended")), *PARTITIONED_BY})
    tables = []
    for key, (setting, of_run) in rows.items():
        constants = {SETTING: setting, **dict(zip(PARTITIONED_BY, key, strict=True))}
        for kind, group in by_kind(of_run).items():
            tables.append(table_of(kind, group, into, constants))
    (base / RUNS).mkdir(parents=True, exist_ok=True)
    _write(base / RUNS / f"{name}.parquet", into, [pa.concat_tables(tables)])


def _write(file: Path, into: pa.Schema, tables: Sequence[pa.Table]) -> None:
    aside = file.with_name(f".{file.name}.{secrets.token_hex(4)}.part")
    try:
        with pq.ParquetWriter(
            aside, into, compression="zstd", write_page_checksum=True, **_SHORT_FOOTER
        ) as writer:
            for table in tables:
                writer.write_table(table, row_group_size=8 * GROUP_ROWS)
            writer.add_key_value_metadata(into.metadata)
        aside.replace(file)
    finally:
        aside.unlink(missing_ok=True)


@contextmanager
def _errors_in_one_line(base: Path) -> Iterator[None]:
    """Turn an OSError (a full disk, no permission) into a message of one line."""
    try:
        yield
    except OSError as error:
        raise AnalysisError(f"{error.filename or base}: {error.strerror or error}") from None
