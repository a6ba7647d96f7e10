"""Points 1 to 6 of the comparison: what a recording says of each, by key, in order.

A *point* is one kind of thing compared (state znodes, notifications, ...), a *lane* is one key of
it (a partition, a broker's thread) with its entries in order. Each entry comes with its time: the
verdict on whole runs drops it, the judge of prefixes cuts by it. Points 1, 3 and 4 are what a
cluster agreed on and must be equal in one run together; the others decide races, key by key.
What the log of an old version does not say is not compared: that is the `Lens`, made of the real
recording. This module must not know how lanes are held against each other.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from emulator.conformance.recording import Fact, Recording, Transaction, partition_of
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
"""A point and a key of it, or `DELAYS` and the name of a delay."""

DELAYS = 0
"""Stands for delays where others are numbers of points."""

EVER = -(2**62)
"""Before every recording: the ZooKeeper requests are compared from the first one on."""

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
    """What the real version's log says at all, and from when its requests are compared."""

    said: dict[str, frozenset[str] | None]
    """By kind of control request, the fields to compare; None (never seen): all of them."""
    requests_recorded: bool
    requests_from_ms: int


def lens_of(real: Recording, requests_from_ms: int = EVER) -> Lens:
    said = {kind: _said(real, kind) for kind in CONTROL_REQUESTS}
    if real.version < (2, 0):
        said = {kind: fields for kind, fields in said.items() if fields is not None}
    recorded = next(real.of("zookeeper_request"), None) is not None
    return Lens(said, recorded, requests_from_ms)


def _said(real: Recording, kind: str) -> frozenset[str] | None:
    fields = real.fields(kind)
    return fields - _NAMED_BY_LANE if fields else None


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
    said: str


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
            lanes[partition].append((op.t, _state_write(op)))
    return lanes


def _state_write(op: Transaction) -> StateWrite:
    state = decode_state(op.data)
    return StateWrite(
        op.version_after,
        state.leader,
        state.leader_epoch,
        state.isr,
        state.controller_epoch,
        op.broker,
    )


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


def controllers_and_registrations(recording: Recording, lens: Lens) -> Lanes:
    lanes: Lanes = defaultdict(list)
    for op in recording.transactions:
        if op.op == "closeSession":
            lanes[f"session of broker {op.broker}"].append((op.t, "closed"))
        elif op.op in (*_WRITES, "delete") and op.path.startswith(("/controller", BROKER_IDS)):
            data = op.data if op.path == "/controller_epoch" else None
            lanes[op.path].append((op.t, OwnershipWrite(op.op, op.broker, data)))
    return lanes


def control_requests(recording: Recording, lens: Lens) -> Lanes:
    lanes: Lanes = defaultdict(list)
    for kind, fields in lens.said.items():
        # Lanes are gathered kind by kind: at one millisecond the log has no order between kinds.
        for fact in recording.of(kind):
            if "topic" in fact:
                entry = ControlRequest(kind, _as_said(fact, fields))
                lanes[_control_lane(fact)].append((fact["t"], entry))
    return lanes


def _control_lane(fact: Fact) -> str:
    lane = "metadata" if "metadata" in fact["kind"] else "replica"
    return f"broker {fact['broker']} {lane} {partition_of(fact)}"


_SAID = json.JSONEncoder(sort_keys=True)


def _as_said(fact: Fact, fields: frozenset[str] | None) -> str:
    said = {k: v for k, v in fact.items() if k != "t" and (fields is None or k in fields)}
    if "offline_replicas" in said:
        said["offline_replicas"] = sorted(said["offline_replicas"])
    return _SAID.encode(said)


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


def _proposal(fact: Fact) -> Proposal:
    epoch, version = fact["leader_epoch"], fact["zk_version"]
    return Proposal("proposed", tuple(fact["isr"]), epoch, version, fact["pending"])


_DECISIONS: dict[str, Callable[[Fact], Entry]] = {
    "shrink": _isr_change,
    "expand": _isr_change,
    "isr_update_rejected": lambda fact: Rejection("rejected", fact["cached_zk_version"]),
    "alter_isr_proposed": _proposal,
    "log_truncated": lambda fact: "truncated",
}


def zookeeper_requests(recording: Recording, lens: Lens, threads: Threads | None = None) -> Lanes:
    """`threads`: what a recording that comes piece by piece has given away before."""
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


def squeezed(lane: list[Timed]) -> list[Timed]:
    """Repeats in a row, of one entry or a pair, count once: how many retries is timing."""
    out: list[Timed] = []
    for timed in lane:
        out.append(timed)
        while length := _repeated_at_end(out):
            del out[-length:]
    return out


def _repeated_at_end(lane: list[Timed]) -> int:
    if len(lane) >= 2 and lane[-1][1] == lane[-2][1]:
        return 1
    pair = len(lane) >= 4 and lane[-1][1] == lane[-3][1] and lane[-2][1] == lane[-4][1]
    return 2 if pair else 0


def _batches_squeezed(lane: list[Timed]) -> list[Timed]:
    return squeezed(batches_sorted(lane))


class Point(NamedTuple):
    gather: Callable[[Recording, Lens], Lanes]
    tidy: Callable[[list[Timed]], list[Timed]]


POINTS = {
    1: Point(state_znodes, as_recorded),
    2: Point(notifications, as_recorded),
    3: Point(controllers_and_registrations, as_recorded),
    4: Point(control_requests, by_time),
    5: Point(isr_decisions, squeezed),
    6: Point(zookeeper_requests, _batches_squeezed),
}
AGREED = (1, 3, 4)
REQUESTED = 6
PRODUCED = 7
BY_KEY = (2, 5, REQUESTED, PRODUCED)


def entries_of(point: int, recording: Recording, lens: Lens) -> dict[str, list[Entry]]:
    """Tidy lanes without their times: what a whole run is compared by."""
    gather, tidy = POINTS[point]
    lanes = gather(recording, lens).items()
    return {key: [entry for _, entry in tidy(lane)] for key, lane in lanes}


def all_keys(real: Mapping[str, object], run: Mapping[str, object]) -> list[str]:
    return sorted(real.keys() | run.keys())
