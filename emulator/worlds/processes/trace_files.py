"""The traces of a run's processes, read from their files and from the server's log.

Owns the file names, and how a transaction of the log becomes an event; `merged_trace` owns the
order. A run whose own process was killed is recovered from its folder, except for the requests on
the wire to ZooKeeper: those were in that process's memory.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from emulator.kernel.scheduler import Kernel
from emulator.trace.events import AnyEvent, ZkTransaction
from emulator.trace.reader import (
    BadTrace,
    Header,
    TraceWriter,
    has_header,
    read_events,
    read_header,
)
from emulator.trace.sink import Sink
from emulator.trace.untrusted_json import decode_untrusted
from emulator.worlds.live_causality import changes_of
from emulator.worlds.network.cause_links import SUFFIX, CausalityLog, read_notes
from emulator.worlds.processes.trace_merge import Logged, Part, merged
from emulator.worlds.processes.wire_requests import requests_by_client
from emulator.worlds.zk_observer import TracingObserver
from zk.real.jute import Malformed
from zk.real.tap import Exchange
from zk.real.txnlog import Entry, read_log

RUNNER = "run"
PROCESSES = "processes"
"""The folder of a run that has them."""

_BEGAN, _LOCK = "began.json", ".lock"
_SESSIONS = {"createSession": "connect", "closeSession": "closeSession"}


class UntracedPart(NamedTuple):
    """What is known of a broker without a trace: the log of a real one, and the ids of its
    sessions."""

    events: Sequence[AnyEvent]
    sessions: Sequence[int]


class RunnerTrace:
    """The trace of the process that runs the others, and the start of its clock. `sync` flushes all
    its notes to the operating system. The file is locked while the process lives: until then only
    that process may merge the traces.
    """

    def __init__(self, folder: Path, header: Header, notes: CausalityLog) -> None:
        self._folder, self._notes = folder, notes
        self._lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._writer = TraceWriter(folder / f"{RUNNER}.ndjson", header)
        self._writer.flush()

    def begin(self, began_ms: float) -> None:
        """`began_ms`: time zero, on the clock of ZooKeeper's log."""
        (self._folder / _BEGAN).write_bytes(msgspec.json.encode(began_ms))

    def __call__(self, event: AnyEvent) -> None:
        """Write an event at once, so that a kill cannot lose it: such events are few."""
        self._writer(event)
        self._writer.flush()
        self._notes.flush()

    def close(self) -> None:
        self._writer.close()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


@contextmanager
def _unless_it_lives(folder: Path) -> Iterator[bool]:
    """Whether the process that runs the others is gone, for good."""
    lock = os.open(folder / _LOCK, os.O_RDWR)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(lock)


def recover_killed_run(run: Path, trace: Path) -> bool:
    """Recover the trace of a run whose process was killed before it merged the parts; False if
    there is nothing to do. `run` is the run's directory, `trace` its trace, which has only a
    header. BadTrace.
    """
    folder = run / PROCESSES
    began = folder / _BEGAN
    if not began.exists() or not has_header(trace):
        return False
    with _unless_it_lives(folder) as is_dead:
        if not is_dead or next(iter(read_events(trace)), None) is not None:
            return False
        try:
            began_ms = decode_untrusted(began.read_bytes(), msgspec.json.Decoder(float))
        except msgspec.DecodeError as error:
            raise BadTrace(f"{began}: {error}") from None
        entries: list[Entry] = []
        for place in sorted({log.parent for log in run.rglob("log.*") if log.is_file()}):
            with suppress(Malformed):  # cut off, as its server was
                entries += read_log(place)
        names = sorted(path.stem for path in folder.glob("broker-*.ndjson"))
        events = merged_run(
            folder,
            [int(name.rpartition("-")[2]) for name in names],
            list(read_events(folder / f"{RUNNER}.ndjson")),
            entries,
            began_ms,
            [],
        )
        aside = trace.with_name(f".{trace.name}.part")
        with TraceWriter(aside, read_header(trace)) as writer:
            for event in events:
                writer(event)
        aside.replace(trace)
        return True


def merged_run(
    folder: Path,
    brokers: Iterable[int],
    own: Sequence[AnyEvent],
    entries: Iterable[Entry],
    began_ms: float,
    requests: Iterable[Exchange],
    untraced: Mapping[int, UntracedPart] | None = None,
) -> list[AnyEvent]:
    """One trace of everything in `folder`: the processes' traces, the `own` events of the process
    that ran them, the server's log, and the `requests` on the wire to it. `began_ms`: the start of
    the world on the clock of the server's log; `untraced` are brokers without a trace of their own.
    """
    parts = {RUNNER: Part(own, list(read_notes(folder / (RUNNER + SUFFIX))))}
    for broker in brokers:
        trace = folder / f"broker-{broker}.ndjson"
        events = list(read_events(trace)) if has_header(trace) else []
        notes = list(read_notes(trace.with_name(trace.name + SUFFIX)))
        parts[f"broker-{broker}"] = Part(events, notes)
    for broker, one in (untraced or {}).items():
        parts[f"broker-{broker}"] = Part(one.events)
    whose = {
        note.zxid: who
        for who, part in parts.items()
        for note in part.notes
        if note.kind == "session" and note.zxid
    }
    for broker, one in (untraced or {}).items():
        whose |= dict.fromkeys(one.sessions, f"broker-{broker}")
    wire = {who: all_ for who, all_ in requests_by_client(requests).items() if who in parts}
    return merged(parts, logged(entries, whose, began_ms), wire)


def logged(entries: Iterable[Entry], whose: dict[int, str], began_ms: float) -> list[Logged]:
    """The server's log as events; earlier events are put at the start of the world."""
    sink = Sink()
    kernel = Kernel(sink)
    lane = kernel.process("zookeeper").lane("SyncThread")
    observer = TracingObserver(kernel, lambda session_id: whose.get(session_id, ""))
    transactions: list[Logged] = []
    for entry in entries:
        transaction = entry.transaction
        # Before time zero, and wherever the wall clock was set back, time stays.
        kernel.now = max(kernel.now, int((entry.at_ms - began_ms) * 1000), 0)
        kernel.current, kernel.cause = lane.callback(None, -1), -1
        observer.on_transaction(kernel.now, transaction)
        event = sink.events[-1]
        assert isinstance(event, ZkTransaction)
        # The name in the client's span. A failed transaction does not say which operation it was.
        request_names: tuple[str, ...] = ()
        last = transaction.ops[-1] if transaction.ops else transaction
        if transaction.op in _SESSIONS:
            request_names = (_SESSIONS[transaction.op],)
        elif last.path:
            request_names = (f"{transaction.op} {last.path}",)
        changes = tuple(f"{kind.value} {path}" for kind, path in changes_of(transaction))
        session = transaction.session_id
        who = whose.get(session, "")
        transactions.append(
            Logged(event, transaction.zxid, who, request_names, changes, session, entry.cxid)
        )
    return transactions
