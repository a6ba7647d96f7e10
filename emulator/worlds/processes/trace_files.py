"""The traces of a run's processes, read from their files and from the server's log.

Owns what the files are called and how a transaction of the log becomes an event; the order of all
is `merged_trace`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from emulator.kernel.scheduler import Kernel
from emulator.trace.reader import read_events
from emulator.trace.sink import Sink
from emulator.worlds.live_causality import changes_of
from emulator.worlds.network.cause_links import SUFFIX, read_notes
from emulator.worlds.processes.trace_merge import Logged, Part, merged
from emulator.worlds.processes.wire_requests import passed
from emulator.worlds.zk_observer import TracingObserver
from zk.ops import Transaction
from zk.real.tap import Exchange
from zk.real.txnlog import Entry

RUNNER = "run"
_SESSIONS = {"createSession": "connect", "closeSession": "closeSession"}


class Ran(NamedTuple):
    """What there is of a run, beside what its processes left in `folder`. `own` are the events of
    the process that ran it all, `entries` the server's log, `asked` what passed on the wire to it;
    `began_ms` is when the world began, by the clock that the server's log has."""

    folder: Path
    brokers: Sequence[int]
    own: Sequence[Any]
    entries: Sequence[Entry]
    began_ms: float
    asked: Sequence[Exchange] = ()


def merged_run(ran: Ran) -> list[Any]:
    """One trace of it all."""
    folder = ran.folder
    parts = {RUNNER: Part(ran.own, list(read_notes(folder / (RUNNER + SUFFIX))))}
    for broker in ran.brokers:
        trace = folder / f"broker-{broker}.ndjson"
        events = list(read_events(trace)) if trace.exists() else []
        notes = list(read_notes(trace.with_name(trace.name + SUFFIX)))
        parts[f"broker-{broker}"] = Part(events, notes)
    log = logged(ran.entries, sessions_of(parts), ran.began_ms)
    wire = {who: all_ for who, all_ in passed(ran.asked).items() if who in parts}
    return merged(parts, log, wire)


def sessions_of(parts: dict[str, Part]) -> dict[int, str]:
    """Whose session is whose."""
    return {
        note.zxid: who
        for who, part in parts.items()
        for note in part.notes
        if note.kind == "session" and note.zxid
    }


def logged(entries: Sequence[Entry], whose: dict[int, str], began_ms: float) -> list[Logged]:
    """The server's log as events; what was before the world began is at its beginning."""
    sink = Sink()
    kernel = Kernel(sink)
    lane = kernel.process("zookeeper").lane("SyncThread")
    observer = TracingObserver(kernel, lambda session_id: whose.get(session_id, ""))
    found: list[Logged] = []
    for entry in entries:
        transaction = entry.transaction
        kernel.now = max(kernel.now, int((entry.at_ms - began_ms) * 1000), 0)
        kernel.current, kernel.cause = lane.action(None, -1), -1
        observer.on_transaction(kernel.now, transaction)
        changes = tuple(f"{kind.value} {path}" for kind, path in changes_of(transaction))
        who = whose.get(transaction.session_id, "")
        event = sink.events[-1]
        asked, session = asked_with(transaction), transaction.session_id
        found.append(Logged(event, transaction.zxid, who, asked, changes, session, entry.cxid))
    return found


def asked_with(transaction: Transaction) -> tuple[str, ...]:
    """As whoever asked for it noted it; what failed does not say what it was."""
    if transaction.op in _SESSIONS:
        return (_SESSIONS[transaction.op],)
    last = transaction.ops[-1] if transaction.ops else transaction
    return (f"{transaction.op} {last.path}",) if last.path else ()
