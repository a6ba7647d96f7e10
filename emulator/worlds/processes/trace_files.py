"""The traces of a run's processes, read from their files and from the server's log.

Owns what the files are called and how a transaction of the log becomes an event; the order of all
is `merged_trace`'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from emulator.kernel.scheduler import Kernel
from emulator.trace.events import AnyEvent, ZkTransaction
from emulator.trace.reader import has_header, read_events
from emulator.trace.sink import Sink
from emulator.worlds.live_causality import changes_of
from emulator.worlds.network.cause_links import SUFFIX, read_notes
from emulator.worlds.processes.trace_merge import Logged, Part, merged
from emulator.worlds.processes.wire_requests import requests_by_client
from emulator.worlds.zk_observer import TracingObserver
from zk.real.tap import Exchange
from zk.real.txnlog import Entry

RUNNER = "run"
_SESSIONS = {"createSession": "connect", "closeSession": "closeSession"}


def merged_run(
    folder: Path,
    brokers: Iterable[int],
    own: Sequence[AnyEvent],
    entries: Iterable[Entry],
    began_ms: float,
    requests: Iterable[Exchange],
) -> list[AnyEvent]:
    """One trace of all that processes left in `folder`, the `own` events of the process that ran
    them, the server's log and the `requests` that passed on the wire to it. `began_ms`: when the
    world began, by the clock that the server's log has."""
    parts = {RUNNER: Part(own, list(read_notes(folder / (RUNNER + SUFFIX))))}
    for broker in brokers:
        trace = folder / f"broker-{broker}.ndjson"
        events = list(read_events(trace)) if has_header(trace) else []
        notes = list(read_notes(trace.with_name(trace.name + SUFFIX)))
        parts[f"broker-{broker}"] = Part(events, notes)
    whose = {
        note.zxid: who
        for who, part in parts.items()
        for note in part.notes
        if note.kind == "session" and note.zxid
    }
    wire = {who: all_ for who, all_ in requests_by_client(requests).items() if who in parts}
    return merged(parts, logged(entries, whose, began_ms), wire)


def logged(entries: Iterable[Entry], whose: dict[int, str], began_ms: float) -> list[Logged]:
    """The server's log as events; what was before the world began is at its beginning."""
    sink = Sink()
    kernel = Kernel(sink)
    lane = kernel.process("zookeeper").lane("SyncThread")
    observer = TracingObserver(kernel, lambda session_id: whose.get(session_id, ""))
    transactions: list[Logged] = []
    for entry in entries:
        transaction = entry.transaction
        # Before time zero, and wherever the wall clock was set back, time does not move.
        kernel.now = max(kernel.now, int((entry.at_ms - began_ms) * 1000), 0)
        kernel.current, kernel.cause = lane.callback(None, -1), -1
        observer.on_transaction(kernel.now, transaction)
        event = sink.events[-1]
        assert isinstance(event, ZkTransaction)
        # The name that the client's span has. A failed transaction does not say what it was.
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
