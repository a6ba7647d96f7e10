"""One trace from many sources: broker logs, ZooKeeper's transaction log, actions and requests.

Owns the order within one millisecond (actions, requests, ZooKeeper transactions, broker log lines,
client results), the numbering, and the causes that follow from the facts alone. It must not know
the origin of a source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import msgspec

from emulator.forensics.causes import Causes
from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.values import LoggedOp, TopicPartition
from emulator.worlds.zk_observer import TracingObserver
from zk.client.codec import decode_isr_change
from zk.paths import broker_of_path, partition_of_state_path
from zk.real.txnlog import Entry

E = TypeVar("E", bound=AnyEvent)

ACTIONS, REQUESTS, TRANSACTIONS, BROKER_LOGS, CLIENT_RESULTS = range(5)


class Source(msgspec.Struct):
    """The events of one source in order; `t` is the wall clock in microseconds."""

    rank: int
    events: list[AnyEvent]


class Maker:
    """Makes events without numbers, at a given time."""

    def __init__(self) -> None:
        self.events: list[AnyEvent] = []
        self.at_us = 0

    def emit(self, event_type: Callable[..., E], broker: int, *fields: object) -> E:
        event = event_type(0, self.at_us, broker, "", -1, *fields)
        self.events.append(event)
        return event


_NOTIFICATION = "/isr_change_notification/isr_change_"


def applied(entries: Iterable[Entry], client_of: Callable[[int], str]) -> Source:
    """The events in ZooKeeper's log, and those that follow from it: notification znodes created and
    deleted (with `quiet_ms` still unknown). Registrations come from broker logs."""
    maker = Maker()
    observer = TracingObserver(maker, client_of)
    for entry in entries:
        maker.at_us = entry.at_ms * 1000
        observer.on_transaction(maker.at_us, entry.transaction)
        event = maker.events[-1]
        assert isinstance(event, e.ZkTransaction)
        path = event.path or ""
        if event.op == "create" and path.startswith(_NOTIFICATION):
            named = decode_isr_change(path, (event.data or "").encode())
            maker.emit(e.IsrChangeNotified, event.broker, path, tuple(named), -1, -1)
        for op in event.ops:
            if op.op == "delete" and (op.path or "").startswith(_NOTIFICATION):
                maker.emit(e.IsrChangeCleared, event.broker, (op.path,))
    return Source(TRANSACTIONS, maker.events)


def owners(entries: Iterable[Entry]) -> dict[int, str]:
    """The broker of each session, according to its registration: `broker-2`."""
    clients: dict[int, str] = {}
    for entry in entries:
        for op in entry.transaction.ops or (entry.transaction,):
            broker = broker_of_path(op.path) if op.op == "create" else None
            if broker is not None:
                clients[entry.transaction.session_id] = f"broker-{broker}"
    return clients


def assemble(sources: Iterable[Source], began_us: int) -> list[AnyEvent]:
    """One trace; times are relative to `began_us`."""
    # Within a millisecond the rank decides, then the source's own order.
    ordered = sorted(
        (
            (one.t // 1000, source.rank, n, one)
            for source in sources
            for n, one in enumerate(source.events)
        ),
        key=lambda it: it[:3],
    )
    trace: list[AnyEvent] = []
    causes = _CauseFinder()
    for seq, (_, _, _, event) in enumerate(ordered):
        cause = causes.cause_of(event, seq)
        changed: dict[str, int] = {"seq": seq, "t": max(0, event.t - began_us), "cause": cause}
        if isinstance(event, e.IsrChangeNotified):
            changed |= causes.quiet(event)
        if isinstance(event, e.RecordsProduced):
            changed["handed_over"] = event.handed_over - began_us
            changed["polled_at"] = event.polled_at - began_us
        trace.append(msgspec.structs.replace(event, **changed))
    return trace


class _CauseFinder:
    """Finds causes from the facts alone: of a write, its decision; of an observation, the write."""

    def __init__(self) -> None:
        self._decided: dict[tuple[int, TopicPartition], int] = {}
        self._written: dict[tuple[TopicPartition, int], int] = {}
        self._received: dict[tuple[int, TopicPartition], int] = {}
        self._changed: dict[int, int] = {}
        self._notified: dict[int, int] = {}
        self._last_transaction = -1
        self._process: (
            e.ActionApplied | e.BrokerStarting | e.BrokerStarted | e.BrokerExited | None
        ) = None
        self._process_seq = -1

    def quiet(self, event: e.IsrChangeNotified) -> dict[str, int]:
        """How long ago the leader last changed an ISR, and last notified."""
        changed = self._changed.get(event.broker, event.t)
        notified = self._notified.get(event.broker, 0)
        self._notified[event.broker] = event.t
        return {
            "quiet_ms": (event.t - changed) // 1000,
            "since_propagation_ms": (event.t - notified) // 1000 if notified else -1,
        }

    def cause_of(self, event: AnyEvent, seq: int) -> int:
        match event:
            case e.ActionApplied() | e.BrokerStarting() | e.BrokerStarted() | e.BrokerExited():
                self._process, self._process_seq = event, seq
                return -1
            case e.ProcessStateChanged():
                last = self._process
                is_same = last is not None and (last.broker, last.t) == (event.broker, event.t)
                return self._process_seq if is_same else -1
            case e.IsrUpdateStarted():
                self._decided[event.broker, event.partition] = seq
                return -1
            case e.AlterIsrProposed() | e.IsrUpdateRejected() | e.AlterIsrFailed():
                return self._decided.get((event.broker, event.partition), -1)
            case e.ZkTransaction():
                return self._cause_of_transaction(event, seq)
            case e.IsrChangeNotified() | e.IsrChangeCleared():
                return self._last_transaction
            case e.IsrUpdated():
                self._changed[event.broker] = event.t
                written = self._written.get((event.partition, event.zk_version), -1)
                decided = self._decided.get((event.broker, event.partition), -1)
                return written if written >= 0 else decided
            case e.LeaderAndIsr():
                self._received[event.broker, event.state.partition] = seq
                return self._written.get((event.state.partition, event.state.zk_version), -1)
            case e.LeaderAndIsrIgnored():
                return self._received.get((event.broker, event.state.partition), -1)
            case e.BecomesLeader() | e.BecomesFollower():
                return self._received.get((event.broker, event.partition), -1)
            case e.MetadataCacheUpdated() if event.states:
                first = event.states[0]
                return self._written.get((first.partition, first.zk_version), -1)
        return -1

    def _cause_of_transaction(self, event: e.ZkTransaction, seq: int) -> int:
        self._last_transaction, cause = seq, -1
        for partition, op in state_writes(event):
            self._written[partition, op.version or 0] = seq
            if op is event:  # A leader writes without a multi; a multi is the controller's.
                cause = self._decided.get((event.broker, partition), -1)
        return cause


def state_writes(
    event: e.ZkTransaction,
) -> Iterator[tuple[TopicPartition, LoggedOp | e.ZkTransaction]]:
    """The partitions whose states a transaction wrote, each with the operation."""
    for op in event.ops or (event,):
        partition = partition_of_state_path(op.path or "")
        if partition is not None and op.op in ("create", "setData"):
            yield TopicPartition(*partition), op


def add_moments(source: Source, causes: Causes, clock: str) -> None:
    """Add ZooKeeper's transactions as causes of brokers' observations and as effects of their
    decisions."""
    for event in source.events:
        if not isinstance(event, e.ZkTransaction):
            continue
        at_ms = event.t // 1000
        causes.written(("zxid", event.zxid), clock, at_ms)
        for op in event.ops or (event,):
            if op.op == "create" and op.path == f"/brokers/ids/{event.broker}":
                causes.arrived(("registers", event.broker), clock, at_ms)
                causes.sent(("registered", event.broker), clock, at_ms)
        for partition, op in state_writes(event):
            version = op.version or 0
            causes.written(("state", partition, version), clock, at_ms)
            causes.arrived(("decided", event.broker, partition, version), clock, at_ms)
