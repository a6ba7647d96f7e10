"""Kinds of rows that a data set of many runs has beside the events of the vocabulary.

A trace file says in its header and its summary what a run was and what came of it, and a server's
log lies beside it. In a data set all of it is rows: a run's first row, its last one, and one for
each transaction that its ZooKeeper server itself logged. They look like events, have a `seq` of -1,
and never happen in a trace; the vocabulary of events stays closed.
"""

from __future__ import annotations

import msgspec

from emulator.trace.event import Event
from emulator.trace.values import LoggedOp


class Setting(msgspec.Struct, frozen=True, gc=False):
    """A Kafka setting by its name."""

    name: str
    value: str


class Figure(msgspec.Struct, frozen=True, gc=False):
    """A figure of a run's summary by its name (`docs/summary.md`)."""

    name: str
    value: float


class BrokenRow(msgspec.Struct, frozen=True, gc=False):
    """A violated invariant; `hazard`: the known hazard of Kafka that explains it, if any."""

    invariant: str
    text: str
    hazard: str
    topic: str | None
    partition: int | None
    on_broker: int


class RunBegan(Event, frozen=True, gc=False):
    """The start of a run: its seed (hexadecimal, up to 64 bits), all settings in force, those that
    a sweep or `--set` chose, and the command that replays it. `traced`: the data set has its
    events."""

    seed: str
    zookeeper: str
    settings: tuple[Setting, ...]
    chosen: tuple[Setting, ...]
    replay: str
    traced: bool


class RunEnded(Event, frozen=True, gc=False):
    """The outcome of a run; `t` is its end. A run without this row was killed or is still going."""

    verdict: str
    interrupted: bool
    figures: tuple[Figure, ...]
    violations: tuple[BrokenRow, ...]


class ZkLogged(Event, frozen=True, gc=False):
    """A transaction in the log that the run's own ZooKeeper server wrote, read back from its files:
    `broker` is the owner of the session (0: none is known), `logged_ms` the server's wall clock."""

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
