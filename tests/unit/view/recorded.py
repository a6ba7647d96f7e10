"""A recording of real Kafka as a trace: views are tried on what happened, before any emulator ran.

Facts become the events that say the same. What a recording cannot say (each fetch, each look of the
propagation task) is filled in by rule, so that a view meets the traffic that a run of ours has.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.values import (
    Lagging,
    LoggedOp,
    Offset,
    Parameters,
    PartitionState,
    TopicPartition,
)

EVERY = Path(__file__).resolve().parents[2] / "recordings"
RECORDINGS = EVERY / "kafka-2.6.3"
Fact = dict[str, Any]
Make = Callable[[Fact], tuple[Any, ...]]

SETTINGS = {"replica.lag.time.max.ms": 2000, "min.insync.replicas": 1}


def recorded(name: str, *, traffic: bool = True) -> list[AnyEvent]:
    """The trace of one recording, in order and numbered."""
    facts = [fact for fact in _lines(name, "recording") if fact["kind"] != "settings"]
    told = _completed([fact for fact in facts if fact["kind"] in KINDS])
    told += _ticks(told)
    _lengths(told)
    if traffic:
        told += _traffic(name, told)
    told.sort(key=lambda fact: float(fact["t"]))
    start = float(told[0]["t"])
    return [_event(seq, fact, start) for seq, fact in enumerate(told)]


def every_recording() -> dict[str, str]:
    """All recordings for `recorded`, of all versions, repeats and guided runs, by path."""
    files = sorted(EVERY.rglob("recording.jsonl*"))
    return {str(file.parent.relative_to(EVERY)): str(file.parent) for file in files}


def _lines(name: str, file: str) -> list[Fact]:
    for path in (RECORDINGS / name).glob(f"{file}.jsonl*"):
        data = path.read_bytes()
        text = gzip.decompress(data) if path.suffix == ".gz" else data
        return [json.loads(line) for line in text.splitlines()]
    return []


def _event(seq: int, fact: Fact, start: float) -> AnyEvent:
    kind, thread, fields = KINDS[fact["kind"]]
    t = round((float(fact["t"]) - start) * 1000)
    event: AnyEvent = kind(seq, t, fact.get("broker", 0) or 0, thread, -1, *fields(fact))
    return event


def _tp(fact: Fact) -> TopicPartition:
    return TopicPartition(fact["topic"], fact["partition"])


def _state(fact: Fact) -> PartitionState:
    return PartitionState(
        _tp(fact),
        fact["deciding_controller_epoch"],
        fact["leader"],
        fact["leader_epoch"],
        tuple(fact["isr"]),
        fact["zk_version"],
        tuple(fact["replicas"]),
    )


def _action(fact: Fact) -> tuple[Any, ...]:
    rest = {k: v for k, v in fact.items() if k not in ("t", "kind", "do", "returned")}
    return fact["do"], msgspec.convert(rest, Parameters)


def _transaction(fact: Fact) -> tuple[Any, ...]:
    ops = tuple(
        LoggedOp(op["op"], op.get("path"), op.get("data"), op.get("version"), code=op.get("code"))
        for op in fact.get("ops", ())
    )
    data, version = fact.get("data"), fact.get("version")
    return fact["zxid"], fact["op"], fact.get("path"), data, version, False, ops


def _started(fact: Fact) -> tuple[Any, ...]:
    lagging = tuple(
        Lagging(late["replica"], late["leo"], late.get("ms", 0))
        for late in fact.get("out_of_sync", ())
    )
    isr = tuple(fact["from_isr"]), tuple(fact["to_isr"])
    numbers = fact.get("hw", -1), fact.get("leo", -1), 0, fact.get("expects", 0)
    return _tp(fact), fact["kind"], *isr, *numbers, lagging


def _updated(fact: Fact) -> tuple[Any, ...]:
    return _tp(fact), "", tuple(fact["isr"]), fact["zk_version"], 0


KINDS: dict[str, tuple[type[Any], str, Make]] = {
    "stimulus": (e.ActionApplied, "", _action),
    "zookeeper": (e.ZkTransaction, "", _transaction),
    "broker_started": (e.BrokerStarted, "main", lambda f: ()),
    "controller_elected": (
        e.ControllerElected,
        "controller-event-thread",
        lambda f: (f["controller_epoch"], f["epoch_zk_version"]),
    ),
    "broker_change": (
        e.BrokerChange,
        "controller-event-thread",
        lambda f: tuple(tuple(f[k]) for k in ("added", "deleted", "bounced", "live")),
    ),
    "partition_state": (
        e.PartitionStateChanged,
        "controller-event-thread",
        lambda f: (f["controller_epoch"], _tp(f), f["from_state"], f["to_state"]),
    ),
    "leader_and_isr": (
        e.LeaderAndIsr,
        "kafka-request-handler-0",
        lambda f: (f["from"], f["controller_epoch"], _state(f)),
    ),
    "becomes_leader": (
        e.BecomesLeader,
        "kafka-request-handler-0",
        lambda f: (_tp(f), f["leader_epoch"], f["leo"], f["hw"]),
    ),
    "becomes_follower": (
        e.BecomesFollower,
        "kafka-request-handler-0",
        lambda f: (_tp(f), 1, f["leader_epoch"], f["leo"], f["hw"]),
    ),
    "update_metadata": (
        e.MetadataCacheUpdated,
        "kafka-request-handler-0",
        lambda f: (f["from"], f["controller_epoch"], (1, 2, 3), (_state(f),)),
    ),
    "shrink": (e.IsrUpdateStarted, "kafka-scheduler-1", _started),
    "expand": (e.IsrUpdateStarted, "kafka-request-handler-1", _started),
    "isr_updated": (e.IsrUpdated, "kafka-scheduler-1", _updated),
    "isr_update_rejected": (
        e.IsrUpdateRejected,
        "kafka-scheduler-1",
        lambda f: (_tp(f), "", f["cached_zk_version"]),
    ),
    "held": (
        e.IsrChangeHeld,
        "kafka-scheduler-2",
        lambda f: (f["pending"], round(f["quiet"]), round(f["since"])),
    ),
    "notified": (
        e.IsrChangeNotified,
        "kafka-scheduler-2",
        lambda f: (f["path"], f["partitions"], round(f["quiet"]), round(f["since"])),
    ),
    "appended": (
        e.RecordsAppended,
        "kafka-request-handler-2",
        lambda f: (_tp(f), f["role"], f["offset"], f["offset"] + 1, 0, 100),
    ),
    "fetch": (
        e.FetchSent,
        "ReplicaFetcherThread-0-1",
        lambda f: (1, (Offset(_tp(f), f["offset"]),), 7),
    ),
    "produced": (
        e.RecordsProduced,
        "producer",
        lambda f: ("p", _tp(f), f["acks"], f["result"], f.get("offset", -1), 1, 0),
    ),
}


# -- what the recording does not say ---------------------------------------------------------------


def _completed(facts: list[Fact]) -> list[Fact]:
    """0.8.2 logs no zkVersion: it is that of the last write of the same state. 1.0 does not log
    what a LeaderAndIsr says (left out), nor the epoch of an election: they are counted."""
    versions: dict[tuple[Any, ...], int] = {}
    elections = 0
    completed = []
    for fact in facts:
        if fact["kind"] == "zookeeper":
            for op in fact.get("ops") or [fact]:
                match = re.fullmatch(r".*/topics/(.+)/partitions/(\d+)/state", op.get("path") or "")
                if match and op["op"] in ("create", "setData"):
                    state = json.loads(op["data"])
                    where = match[1], int(match[2]), state["leader_epoch"], tuple(state["isr"])
                    versions[where] = op.get("version") or 0
        elif fact["kind"] == "controller_elected":
            elections += 1
            fact.setdefault("controller_epoch", elections)
            fact.setdefault("epoch_zk_version", elections - 1)
        elif fact["kind"] in ("leader_and_isr", "update_metadata"):
            if "isr" not in fact:
                continue
            where = fact["topic"], fact["partition"], fact["leader_epoch"], tuple(fact["isr"])
            fact.setdefault("zk_version", versions.get(where, 0))
        completed.append(fact)
    return completed


def _lengths(facts: list[Fact]) -> None:
    """A paused follower was caught up until its pause; the version that a write expects."""
    stopped: dict[int, float] = {}
    versions: dict[TopicPartition, int] = {}
    for fact in facts:
        if fact["kind"] == "stimulus" and fact["do"] == "pause" and "broker" in fact:
            stopped[fact["broker"]] = fact["t"]
        elif fact["kind"] == "isr_updated":
            versions[_tp(fact)] = fact["zk_version"]
        elif fact["kind"] in ("shrink", "expand"):
            fact["expects"] = versions.get(_tp(fact), 0)
            for late in fact.get("out_of_sync", ()):
                late["ms"] = round(fact["t"] - stopped.get(late["replica"], fact["t"] - 2500))


def _ticks(facts: list[Fact]) -> list[Fact]:
    """The propagation task's looks between a broker's first pending change and its notification."""
    found: list[Fact] = []
    changes: dict[int, list[Fact]] = {}
    last_sent: dict[int, float] = {}
    for fact in facts:
        broker = fact.get("broker", 0)
        if fact["kind"] == "isr_updated":
            changes.setdefault(broker, []).append(fact)
        elif str(fact.get("path")).startswith("/isr_change_notification/"):
            pending = changes.pop(broker, [])
            found += _held(fact, pending, last_sent.get(broker, -3000.0))
            last_sent[broker] = float(fact["t"])
    return found


def _held(node: Fact, pending: list[Fact], last_sent: float) -> Iterator[Fact]:
    at = float(node["t"])
    tick = at - 2500 * ((at - float(pending[0]["t"])) // 2500) if pending else at
    while tick <= at:
        seen = [change for change in pending if change["t"] <= tick]
        names = tuple(dict.fromkeys(_tp(change) for change in seen))
        numbers = {"quiet": tick - seen[-1]["t"], "since": tick - last_sent} if seen else {}
        common = {"t": tick, "broker": node["broker"], **numbers}
        if seen and tick < at:
            yield {"kind": "held", "pending": names, **common}
        elif seen:
            yield {"kind": "notified", "path": node["path"], "partitions": names, **common}
        tick += 2500


def _traffic(name: str, facts: list[Fact]) -> Iterator[Fact]:
    """Each record as its append and the fetches of the followers that run."""
    stops = [f for f in facts if f["kind"] == "stimulus" and f["do"] in ("pause", "resume")]
    for line in _lines(name, "produce"):
        yield {**line, "kind": "produced"}
        if line["result"] != "ok":
            continue
        at = {"topic": line["topic"], "partition": line["partition"], "offset": line["offset"]}
        yield {"t": line["t"] - 1, "kind": "appended", "broker": 1, "role": "leader", **at}
        for follower in (2, 3):
            before = [s for s in stops if s["t"] <= line["t"] and s.get("broker") == follower]
            if not before or before[-1]["do"] == "resume":
                yield {"t": line["t"], "kind": "fetch", "broker": follower, **at}
