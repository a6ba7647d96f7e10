"""Traces into a data set: pieces that are there as a whole or not at all.

Owns the writing and renaming. A run that goes on is written piece by piece (`RunWriter`), so that
whoever kills it leaves readable data; a run that is over comes as a whole (`write_run`), so that a
task that is tried again, or twice at once, leaves one. `runs/` has what was run, and at the end
what came of it: written last, it says that all the rest is there. Knows the rows, no world.
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
"""A run on the wall clock is written at least as often; whoever follows it waits no longer."""
GROUP_ROWS = 16_384
"""A kind with more rows in a piece has row groups of its own: who wants others passes over them."""

_SHORT_FOOTER: dict[str, Any] = {"write_statistics": ["kind"], "store_schema": False}
"""Most files are small: their footers are read by everybody, and were a third of them."""


class RunWriter:
    """A listener that writes a run while it goes on."""

    def __init__(self, base: Path, key: RunKey, began: RunBegan) -> None:
        self.base, self.key = base, key
        self.setting = setting_of(began)
        self.failure: OSError | None = None
        self._folder = base / EVENTS / key.directory
        self._events: list[Event] = []
        self._pieces = 0
        self._written_s = time.monotonic()
        with _told(base):
            self._folder.mkdir(parents=True, exist_ok=True)
            _write_rows(base, f"{key.file_name}{BEGAN}", {key: (self.setting, [began])})

    def __call__(self, event: Event) -> None:
        """Take an event; with many of them at hand, write them."""
        self._events.append(event)
        if len(self._events) >= PIECE_EVENTS:
            self.flush()

    def now_and_then(self) -> None:
        """Write what there is, if that is some seconds ago."""
        if time.monotonic() - self._written_s > PIECE_S:
            self.flush()

    def flush(self) -> None:
        """Write what there is. A full disk is remembered, and nothing more is written."""
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
        """The run is over: its last piece, and then what came of it."""
        self.flush()
        with _told(self.base):
            if self.failure is not None:
                raise self.failure
            name = f"{self.key.file_name}{ENDED}"
            _write_rows(self.base, name, {self.key: (self.setting, [ended])})


def write_run(
    base: Path, key: RunKey, began: RunBegan, events: Iterable[Event], ended: RunEnded
) -> None:
    """A run that is over, into the data set at `base`: events first (none if `began.traced` is
    false), what came of it last. Whatever was there of the same run stays."""
    if began.traced:
        write_events(base, key, setting_of(began), events)
    write_runs(base, key.file_name, {key: (began, ended)})


def write_events(base: Path, key: RunKey, setting: str, events: Iterable[Event]) -> None:
    """All events of a run, under its name at once."""
    folder = base / EVENTS / key.directory
    with _told(base):
        if folder.exists():
            return
        aside = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.part")
        aside.mkdir(parents=True)
        try:
            every = list(events)
            for number, start in enumerate(range(0, len(every), PIECE_EVENTS)):
                piece = every[start : start + PIECE_EVENTS]
                write_piece(aside / f"part-{number:05}.parquet", piece, setting)
            _put(aside, folder)
        finally:
            shutil.rmtree(aside, ignore_errors=True)


def write_runs(base: Path, name: str, runs: Mapping[RunKey, tuple[RunBegan, RunEnded]]) -> None:
    """What was run and what came of it, of several runs, as one file `runs/NAME.parquet`."""
    with _told(base):
        _write_rows(base, name, {key: (setting_of(rows[0]), rows) for key, rows in runs.items()})


def setting_of(began: RunBegan) -> str:
    """What was chosen for a run, in one text."""
    return " ".join(f"{one.name}={one.value}" for one in began.chosen)


def write_piece(file: Path, events: Sequence[Event], setting: str) -> None:
    """One Parquet file, whole or not at all."""
    kinds = by_kind(events)
    into = arrow_schema(columns_of(kinds))
    tables = {k: table_of(k, group, into, {SETTING: setting}) for k, group in kinds.items()}
    often = [table for table in tables.values() if table.num_rows > GROUP_ROWS]
    rare = [table for table in tables.values() if table.num_rows <= GROUP_ROWS]
    _write(file, into, [*([pa.concat_tables(rare)] if rare else []), *often])


def _write_rows(
    base: Path, name: str, rows: Mapping[RunKey, tuple[str, Sequence[RunBegan | RunEnded]]]
) -> None:
    """Rows of runs (each with its setting) carry what the directories say of events."""
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
        with pq.ParquetWriter(aside, into, compression="zstd", **_SHORT_FOOTER) as writer:
            for table in tables:
                writer.write_table(table, row_group_size=8 * GROUP_ROWS)
            writer.add_key_value_metadata(into.metadata)
        aside.replace(file)
    finally:
        aside.unlink(missing_ok=True)


def _put(aside: Path, folder: Path) -> None:
    """Another attempt at the same run may have been quicker: its data are the same."""
    try:
        aside.rename(folder)
    except OSError:
        if not folder.exists():
            raise


@contextmanager
def _told(base: Path) -> Iterator[None]:
    """A disk that is full, or not ours to write, is one line."""
    try:
        yield
    except OSError as error:
        raise AnalysisError(f"{error.filename or base}: {error.strerror or error}") from None
