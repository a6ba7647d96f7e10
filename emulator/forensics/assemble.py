"""One trace from many sources: broker logs, ZooKeeper's transaction log, what was done and asked.

Owns the order of what happened in the same millisecond (what was done, requests, what ZooKeeper
applied, what brokers wrote down, what clients were told), the numbering, and the causes that follow
from the facts alone. It must not know where a source came from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.values import TopicPartition
from emulator.worlds.zk_observer import TracingObserver, broker_of
from zk.client.codec import decode_isr_change
from zk.real.txnlog import Entry

DONE, ASKED, APPLIED, SAID, TOLD = range(5)


class Source(msgspec.Struct):
    """Events of one kind of source in their own order; `t` is the wall clock in microseconds."""

    rank: int
    events: list[AnyEvent]


class Maker:
    """Makes events without a number, at a moment that is set."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.at_us = 0

    def emit(self, event_type: Callable[..., Any], broker: int, *fields: Any) -> Any:
        event = event_type(0, self.at_us, broker, "", -1, *fields)
        self.events.append(event)
        return event


def applied(entries: Iterable[Entry], client_of: Callable[[int], str]) -> Source:
    """What ZooKeeper's log tells, and what follows from it: registrations are in broker logs."""
    maker = Maker()
    observer = TracingObserver(maker, client_of)
    for entry in entries:
        maker.at_us = entry.at_ms * 1000
        observer.on_transaction(maker.at_us, entry.transaction)
        _notifications(maker, maker.events[-1])
    return Source(APPLIED, maker.events)


_NOTIFICATION = "/isr_change_notification/isr_change_"


def _notifications(maker: Maker, event: e.ZkTransaction) -> None:
    """Notification nodes come and go; how long it had been quiet is not known yet."""
    path = event.path or ""
    if event.op == "create" and path.startswith(_NOTIFICATION):
        named = decode_isr_change(path, (event.data or "").encode())
        maker.emit(e.IsrChangeNotified, event.broker, path, tuple(named), -1, -1)
    for op in event.ops:
        if op.op == "delete" and (op.path or "").startswith(_NOTIFICATION):
            maker.emit(e.IsrChangeCleared, event.broker, (op.path,))


def owners(entries: Iterable[Entry]) -> dict[int, str]:
    """Whose sessions they are, from the registrations that they made: `broker-2`."""
    found: dict[int, str] = {}
    for entry in entries:
        for op in entry.transaction.ops or (entry.transaction,):
            parent, _, name = op.path.rpartition("/")
            if op.op == "create" and parent == "/brokers/ids" and name.isdecimal():
                found[entry.transaction.session_id] = f"broker-{name}"
    return found


def assemble(sources: Iterable[Source], began_us: int) -> list[AnyEvent]:
    """One trace; times since `began_us`."""
    ordered = sorted(
        ((one.t // 1000, source.rank, n, one) for source in sources for n, one in _told(source)),
        key=lambda it: it[:3],
    )
    trace: list[Any] = []
    because = _Because()
    for seq, (_, _, _, event) in enumerate(ordered):
        cause = because.of(event, seq)
        changed: dict[str, int] = {"seq": seq, "t": max(0, event.t - began_us), "cause": cause}
        if isinstance(event, e.IsrChangeNotified):
            changed |= because.quiet(event)
        if isinstance(event, e.RecordsProduced):
            changed |= {key: getattr(event, key) - began_us for key in ("handed_over", "told")}
        trace.append(msgspec.structs.replace(event, **changed))
    return trace


def _told(source: Source) -> Iterable[tuple[int, Any]]:
    """With a number that keeps the source's own order within a millisecond."""
    return enumerate(source.events)


class _Because:
    """The causes that facts alone give: a decision, its write, what was learnt from it."""

    def __init__(self) -> None:
        self._decided: dict[tuple[int, TopicPartition], int] = {}
        self._written: dict[tuple[TopicPartition, int], int] = {}
        self._received: dict[tuple[int, TopicPartition], int] = {}
        self._changed: dict[int, int] = {}
        self._notified: dict[int, int] = {}
        self._last_transaction = -1
        self._process: e.Stimulus | e.BrokerStarting | e.BrokerStarted | e.BrokerExited | None = (
            None
        )
        self._process_seq = -1

    def quiet(self, event: e.IsrChangeNotified) -> dict[str, int]:
        """How long the leader had changed no ISR, and not told of one."""
        changed = self._changed.get(event.broker, event.t)
        told = self._notified.get(event.broker, 0)
        self._notified[event.broker] = event.t
        return {
            "quiet_ms": (event.t - changed) // 1000,
            "since_propagation_ms": (event.t - told) // 1000 if told else -1,
        }

    def of(self, event: AnyEvent, seq: int) -> int:
        match event:
            case e.Stimulus() | e.BrokerStarting() | e.BrokerStarted() | e.BrokerExited():
                self._process, self._process_seq = event, seq
                return -1
            case e.ProcessStateChanged():
                last = self._process
                led = last is not None and (last.broker, last.t) == (event.broker, event.t)
                return self._process_seq if led else -1
            case e.IsrUpdateStarted():
                self._decided[event.broker, event.partition] = seq
                return -1
            case e.AlterIsrProposed() | e.IsrUpdateRejected() | e.AlterIsrFailed():
                return self._decided.get((event.broker, event.partition), -1)
            case e.ZkTransaction():
                return self._of_transaction(event, seq)
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

    def _of_transaction(self, event: e.ZkTransaction, seq: int) -> int:
        self._last_transaction = seq
        cause = -1
        for op in event.ops or (event,):
            partition = partition_of_state(op.path or "")
            if partition is None or op.op not in ("create", "setData"):
                continue
            self._written[partition, op.version or 0] = seq
            cause = self._decided.get((event.broker, partition), -1) if op is event else cause
        return cause


def partition_of_state(path: str) -> TopicPartition | None:
    """The partition whose state znode it is."""
    parts = path.split("/")
    if len(parts) == 7 and parts[1:3] == ["brokers", "topics"] and parts[6] == "state":
        return TopicPartition(parts[3], int(parts[5]))
    return None


def moments(source: Source, causes: Any, clock: str) -> None:
    """What ZooKeeper applied, as causes of what brokers saw and effects of what they decided."""
    for event in source.events:
        if not isinstance(event, e.ZkTransaction):
            continue
        at_ms = event.t // 1000
        causes.written(("zxid", event.zxid), clock, at_ms)
        for op in event.ops or (event,):
            if op.op == "create" and op.path == f"/brokers/ids/{event.broker}":
                causes.arrived(("registers", event.broker), clock, at_ms)
                causes.sent(("registered", event.broker), clock, at_ms)
            partition = partition_of_state(op.path or "")
            if partition is not None and op.op in ("create", "setData"):
                version = op.version or 0
                causes.written(("state", partition, version), clock, at_ms)
                causes.arrived(("decided", event.broker, partition, version), clock, at_ms)


__all__ = ["Source", "applied", "assemble", "broker_of", "moments", "owners"]
