"""The kinds of rows that a data set of many runs has in addition to events.

A trace file describes its run in the header and in the summary, and the server's log lies beside
it. In a data set these are rows: the first and the last row of a run, and one row for each
transaction in its ZooKeeper server's own log. They look like events with `seq` -1 but never occur
in a trace, so the vocabulary of events stays closed.
"""

from __future__ import annotations

import msgspec

from emulator.trace.event import Event
from emulator.trace.values import LoggedOp


class Setting(msgspec.Struct, frozen=True, gc=False):
    """A Kafka setting."""

    name: str
    value: str


class Figure(msgspec.Struct, frozen=True, gc=False):
    """A figure of a run's summary (`docs/summary.md`)."""

    name: str
    value: float


class BrokenRow(msgspec.Struct, frozen=True, gc=False):
    """A violated invariant; `hazard` is the known Kafka hazard that explains it, if any."""

    invariant: str
    text: str
    hazard: str
    topic: str | None
    partition: int | None
    on_broker: int


class RunBegan(Event, frozen=True, gc=False):
    """The start of a run: its seed (hexadecimal, up to 64 bits), all settings in force, those
    chosen by a sweep or `--set`, and the command that replays it. `traced`: the data set has its
    events."""

    seed: str
    zookeeper: str
    settings: tuple[Setting, ...]
    chosen: tuple[Setting, ...]
    replay: str
    traced: bool


class RunEnded(Event, frozen=True, gc=False):
    """The outcome of a run; `t` is its end. A run without this row was killed or is still
    running."""

    verdict: str
    interrupted: bool
    figures: tuple[Figure, ...]
    violations: tuple[BrokenRow, ...]


class ZkLogged(Event, frozen=True, gc=False):
    """A transaction from the log files of the run's own ZooKeeper server. `broker` owns the session
    (0: unknown); `logged_ms` is the server's wall clock."""

    zxid: int
    op: str
    path: str | None
    data: str | None
    version: int | None
    ephemeral: bool
    zk_transaction_ops: tuple[LoggedOp, ...]
    code: int | None
    timeout_ms: int | None
    removed: tuple[str, ...]
    session_id: int
    logged_ms: int


ROWS: tuple[type[Event], ...] = (RunBegan, RunEnded, ZkLogged)
