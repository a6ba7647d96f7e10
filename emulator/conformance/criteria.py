"""Criteria 1 to 6 of the comparison: their entries in a recording, by key, in order.

They are state history (1), notifications (2), controllers (3), control requests (4), ISR decisions
(5), ZooKeeper requests (6) and producer results (7, in `producers`). In code and JSON a criterion
is a numbered *point*. A *lane* is one key of it (a partition, a broker's thread) with its entries
in order. Each entry has its time: the verdict on whole runs ignores it, the judgement of prefixes
cuts by it. State history, controllers and control requests must be equal in one run together; the
others depend on races and are compared key by key. Facts that an old version does not log are not
compared: the `Lens`, made from the real recording, leaves them out. This module must not know how
lanes are compared.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from emulator.conformance.recording import Fact, Recording, partition_of
from emulator.conformance.requests import Threads, batches_sorted, sent_requests
from emulator.conformance.znodes import (
    BROKER_IDS,
    NOTIFICATIONS,
    decode_notification,
    decode_state,
    partition_of_state,
)

Entry: TypeAlias = Hashable
Timed: TypeAlias = tuple[int, Entry]
Lanes: TypeAlias = dict[str, list[Timed]]

Part: TypeAlias = tuple[int, str]
"""A point and its key, or `DELAYS` and one of `compare.Reference.delay_gaps`."""

CRITERIA = {
    1: "state history",
    2: "notifications",
    3: "controllers",
    4: "control requests",
    5: "ISR decisions",
    6: "ZooKeeper requests",
    7: "producer results",
}
"""The criteria's names for people, by point."""

DELAYS = 0
"""Takes the place of a point's number for delays."""

EVER = -(2**62)
"""Earlier than any recording: all ZooKeeper requests are compared."""

CONTROL_REQUESTS = (
    "leader_and_isr",
    "leader_and_isr_ignored",
    "stop_replica",
    "stop_replica_ignored",
    "update_metadata",
    "metadata_removed",
)
_NAMED_BY_LANE = {"t", "kind", "broker", "topic", "partition"}
_WRITES = ("create", "setData")


@dataclass(frozen=True)
class Lens:
    """The facts that the real version logs, and the time from which its requests are compared."""

    compared: dict[str, frozenset[str] | None]
    """The fields to compare for each kind of control request; None (never seen): all of them."""
    requests_recorded: bool
    requests_from_ms: int


def lens_of(real: Recording, requests_from_ms: int = EVER) -> Lens:
    compared: dict[str, frozenset[str] | None] = {}
    for kind in CONTROL_REQUESTS:
        if fields := real.fields(kind):
            compared[kind] = fields - _NAMED_BY_LANE
        elif real.version >= (2, 0):
            # This version logs every kind of request, so a missing one was never sent.
            compared[kind] = None
    recorded = next(real.of("zookeeper_request"), None) is not None
    return Lens(compared, recorded, requests_from_ms)


class StateWrite(NamedTuple):
    version: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    writer: int | None


class Removal(NamedTuple):
    what: str
    by: int | None


class Notification(NamedTuple):
    path: str
    by: int | None
    named: tuple[tuple[str, int], ...]


class OwnershipWrite(NamedTuple):
    op: str
    by: int | None
    data: str | None


class ControlRequest(NamedTuple):
    kind: str
    fields: str


class IsrChange(NamedTuple):
    kind: str
    from_isr: tuple[int, ...]
    to_isr: tuple[int, ...]


class Rejection(NamedTuple):
    kind: str
    cached_zk_version: int


class Proposal(NamedTuple):
    kind: str
    isr: tuple[int, ...]
    leader_epoch: int
    zk_version: int
    pending: object


def state_znodes(recording: Recording, lens: Lens) -> Lanes:
    lanes: Lanes = defaultdict(list)
    for op in recording.transactions:
        if (partition := partition_of_state(op.path)) is None:
            continue
        if op.op == "delete":
            lanes[partition].append((op.t, Removal("deleted", op.broker)))
        elif op.op in _WRITES:
            state = decode_state(op.data)
            write = StateWrite(
                op.version_after,
                state.leader,
                state.leader_epoch,
                state.isr,
                state.controller_epoch,
                op.broker,
            )
            lanes[partition].append((op.t, write))
    return lanes


def notifications(recording: Recording, lens: Lens) -> Lanes:
    lanes: Lanes = defaultdict(list)
    for op in recording.transactions:
        if not op.path.startswith(NOTIFICATIONS):
            continue
        if op.op == "create":
            named = sorted(decode_notification(op.data).partitions)
            pairs = tuple((p.topic, p.partition) for p in named)
            lanes["notifications"].append((op.t, Notification(op.path, op.broker, pairs)))
        elif op.op == "delete":
            lanes["deletions"].append((op.t, Removal(op.path, op.broker)))
    return lanes


SESSION_OF = "session of broker "
"""Begins the key of a broker's closed sessions."""


def controllers_and_registrations(recording: Recording, lens: Lens) -> Lanes:
    lanes: Lanes = defaultdict(list)
    for op in recording.transactions:
        if op.op == "closeSession":
            lanes[f"{SESSION_OF}{op.broker}"].append((op.t, "closed"))
        elif op.op in (*_WRITES, "delete") and op.path.startswith(("/controller", BROKER_IDS)):
            data = op.data if op.path == "/controller_epoch" else None
            lanes[op.path].append((op.t, OwnershipWrite(op.op, op.broker, data)))
    return lanes


def control_requests(recording: Recording, lens: Lens) -> Lanes:
    lanes: Lanes = defaultdict(list)
    for kind, fields in lens.compared.items():
        # Lanes are collected kind by kind: within one millisecond the log does not order different
        # kinds.
        role = "metadata" if "metadata" in kind else "replica"
        for fact in recording.of(kind):
            if "topic" not in fact:
                continue
            compared = {
                k: v for k, v in fact.items() if k != "t" and (fields is None or k in fields)
            }
            if "offline_replicas" in compared:  # its order is arbitrary
                compared["offline_replicas"] = sorted(compared["offline_replicas"])
            entry = ControlRequest(kind, _SORTED_JSON.encode(compared))
            lanes[f"broker {fact['broker']} {role} {partition_of(fact)}"].append((fact["t"], entry))
    return lanes


_SORTED_JSON = json.JSONEncoder(sort_keys=True)


def isr_decisions(recording: Recording, lens: Lens) -> Lanes:
    lanes: Lanes = defaultdict(list)
    for fact in recording.of(*_DECISIONS):
        key = f"broker {fact['broker']} {partition_of(fact)}"
        if fact["kind"] == "log_truncated":
            key += " truncations"
        lanes[key].append((fact["t"], _DECISIONS[fact["kind"]](fact)))
    return lanes


def _isr_change(fact: Fact) -> IsrChange:
    return IsrChange(fact["kind"], tuple(fact["from_isr"]), tuple(fact["to_isr"]))


_DECISIONS: dict[str, Callable[[Fact], Entry]] = {
    "shrink": _isr_change,
    "expand": _isr_change,
    "isr_update_rejected": lambda fact: Rejection("rejected", fact["cached_zk_version"]),
    "alter_isr_proposed": lambda fact: Proposal(
        "proposed",
        tuple(fact["isr"]),
        fact["leader_epoch"],
        fact["zk_version"],
        fact["pending"],
    ),
    "log_truncated": lambda fact: "truncated",
}


def zookeeper_requests(recording: Recording, lens: Lens, threads: Threads | None = None) -> Lanes:
    """`threads`: the threads inferred so far, for a recording that arrives in pieces."""
    lanes: Lanes = defaultdict(list)
    if lens.requests_recorded:
        threads = threads or Threads()
        for t, lane, request in sent_requests(recording, lens.requests_from_ms, threads):
            lanes[lane].append((t, request))
    return lanes


def as_recorded(lane: list[Timed]) -> list[Timed]:
    return lane


def by_time(lane: list[Timed]) -> list[Timed]:
    return sorted(lane, key=lambda timed: timed[0])


def without_retries(lane: list[Timed]) -> list[Timed]:
    """Consecutive repetitions of an entry, or of a pair, count once: the number of retries depends
    on timing."""
    out: list[Timed] = []
    for timed in lane:
        out.append(timed)
        while True:  # the remaining lane may end with another repetition
            entries = [entry for _, entry in out[-4:]]
            if entries[-1:] == entries[-2:-1]:
                del out[-1:]
            elif len(entries) == 4 and entries[:2] == entries[2:]:
                del out[-2:]
            else:
                break
    return out


class Point(NamedTuple):
    gather: Callable[[Recording, Lens], Lanes]
    tidy: Callable[[list[Timed]], list[Timed]]


POINTS = {
    1: Point(state_znodes, as_recorded),
    2: Point(notifications, as_recorded),
    3: Point(controllers_and_registrations, as_recorded),
    4: Point(control_requests, by_time),
    5: Point(isr_decisions, without_retries),
    6: Point(zookeeper_requests, lambda lane: without_retries(batches_sorted(lane))),
}
AGREED = (1, 3, 4)
REQUESTED = 6
PRODUCED = 7
BY_KEY = (2, 5, REQUESTED, PRODUCED)


def entries_of(point: int, recording: Recording, lens: Lens) -> dict[str, list[Entry]]:
    """Lanes without retries and times, for comparing whole runs."""
    gather, tidy = POINTS[point]
    lanes = gather(recording, lens).items()
    return {key: [entry for _, entry in tidy(lane)] for key, lane in lanes}


def all_keys(real: Mapping[str, object], run: Mapping[str, object]) -> list[str]:
    return sorted(real.keys() | run.keys())
