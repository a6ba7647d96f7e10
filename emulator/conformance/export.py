"""A run's trace in the format of recordings, so that the judge can compare it with a real one.

One function per kind of event that recordings contain; the rest of the trace is left out. Times are
in milliseconds since the cluster was up. Knows the trace vocabulary and the format.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

import msgspec

from emulator.conformance.actions import is_call
from emulator.conformance.recording import Fact, ProduceResult, Recording
from emulator.kafka.model.errors import Errors
from emulator.kafka.profiles.base import profile_of, profiles
from emulator.kafka.profiles.guards.following import TRUNCATION_BY_EPOCH
from emulator.trace import events
from emulator.trace.event import Event
from emulator.trace.events import AnyEvent
from emulator.trace.values import LoggedOp, PartitionState, TopicPartition
from zk import paths

CALL_LASTS_MS = 400
"""What brokers ask ZooKeeper later has nothing to do with a client's request."""

_TIMESTAMP = re.compile(r'"timestamp":"\d+"')

_COPIED: dict[type[Event], tuple[str, tuple[str, ...]]] = {
    events.StopReplica: (
        "stop_replica",
        ("sender", "sender_epoch", "partition", "leader_epoch", "delete"),
    ),
    events.StopReplicaIgnored: ("stop_replica_ignored", ("partition",)),
    events.BecomesLeader: ("becomes_leader", ("partition", "leader_epoch", "leo", "hw")),
    events.BecomesFollower: ("becomes_follower", ("partition", "leader_epoch", "leo", "hw")),
    events.AlterIsrProposed: (
        "alter_isr_proposed",
        ("partition", "isr", "leader_epoch", "zk_version", "pending"),
    ),
    events.IsrUpdated: ("isr_updated", ("partition", "isr", "zk_version")),
    events.IsrUpdateRejected: ("isr_update_rejected", ("partition", "cached_zk_version")),
    events.LogTruncated: ("log_truncated", ("partition", "to_offset")),
    events.BrokerStarted: ("broker_started", ()),
    events.ControllerElected: ("controller_elected", ("controller_epoch", "epoch_zk_version")),
    events.ControllerResigned: ("controller_resigned", ()),
    events.BrokerChange: ("broker_change", ("added", "deleted", "bounced", "live")),
    events.PartitionStateChanged: (
        "partition_state",
        ("controller_epoch", "partition", "from_state", "to_state"),
    ),
    events.ReplicaStateChanged: (
        "replica_state",
        ("controller_epoch", "partition", "replica", "from_state", "to_state"),
    ),
}
"""Events whose fields are copied as they are."""
_OTHER_NAMES = {"sender": "from", "sender_epoch": "controller_epoch"}

E = TypeVar("E", bound=Event)
Convert: TypeAlias = Callable[[E], Iterator[Fact]]
_CONVERTERS: dict[type[Event], Convert[Any]] = {}


def _converts(event_type: type[E]) -> Callable[[Convert[E]], Convert[E]]:
    """Register the function that converts these events."""

    def register(convert: Convert[E]) -> Convert[E]:
        _CONVERTERS[event_type] = convert
        return convert

    return register


def export(
    trace: Iterable[AnyEvent],
    settings: Fact,
    name: str = "",
    exits: Sequence[Fact] = (),
    *,
    is_play: bool = True,
) -> Recording:
    """The recording of a run. `settings` is its first line, as in a real recording; `exits` are the
    script's entries for exited processes. Of a play it notes clients' requests as a recorder does.
    """
    trace = list(trace)
    up_us = next((e.t for e in trace if isinstance(e, events.ActionApplied) and e.do == "up"), None)
    if up_us is None:
        raise ValueError("this run's cluster never came up, so there is nothing to compare")
    proposals = [e for e in trace if isinstance(e, events.AlterIsrProposed)]
    proposed = {e.cause for e in proposals}
    # Of a real broker among emulated ones the causes are unknown. Its log has one line for both.
    proposed_at = {(e.broker, e.partition, e.t) for e in proposals}
    # Clients of `send` send records without a driver, so a recording has no results for them.
    # Producers are numbered in order of their start.
    begun = [
        e for e in trace if isinstance(e, events.ActionApplied) and e.do in ("produce", "send")
    ]
    driverless = {f"producer-{n}" for n, event in enumerate(begun, 1) if event.do == "send"}

    # A judge compares what the version's logs say. Up to 0.10 a follower's truncation is logged
    # before anyone looks whether the log is that long (Log.scala@0.10.2.2 truncateTo).
    profile = profiles()[profile_of(settings["kafka"])]
    unlogged = () if TRUNCATION_BY_EPOCH in profile.guards else ("log_truncated",)

    facts: list[Fact] = []
    results: list[ProduceResult] = []
    for event in _started_once(trace):
        kind = type(event)
        if kind in _COPIED:
            converted: Iterable[Fact] = [_copied(event)]
        elif kind in _CONVERTERS:
            converted = _CONVERTERS[kind](event)
        else:
            if isinstance(event, events.RecordsProduced) and event.client not in driverless:
                results.extend(_results(event, up_us))
            continue
        if isinstance(event, events.IsrUpdateStarted) and event.change == "expand":
            # A leader that proposes its ISR to the controller logs the proposal instead of the
            # expansion.
            is_proposed = event.seq in proposed
            if is_proposed or (event.broker, event.partition, event.t) in proposed_at:
                converted = ()
        t = (event.t - up_us) // 1000
        facts.extend({"t": t, **fact} for fact in converted if fact["kind"] not in unlogged)
    if profile.request_versions.get("LeaderAndIsr", 0) == 0:
        for fact in facts:
            fact.pop("is_new", None)  # its version 0 does not say it
    # A process that ended made way for the next one, which may start in the same millisecond.
    facts = sorted([*exits, *facts], key=lambda fact: fact["t"])
    if is_play:
        facts = _calls_when_noted(facts, settings)
    return Recording(settings, facts, sorted(results, key=lambda result: result.t), name)


def _calls_when_noted(facts: list[Fact], settings: Fact) -> list[Fact]:
    """The facts with each request of a client when a broker first asked ZooKeeper for what it is
    about."""
    version = tuple(int(part) for part in settings["kafka"].split("."))
    calls = [
        number
        for number, fact in enumerate(facts)
        if fact["kind"] == "stimulus" and is_call(fact, version)
    ]
    if not calls:
        # A guided search exports a run in many small pieces, most of them without a call.
        return facts
    moved = list(facts)
    for number in calls:
        fact = facts[number]
        at_ms = _first_request_about(fact, facts[number:])
        if at_ms is not None:
            moved[number] = fact | {"t": at_ms}
    return sorted(moved, key=lambda fact: fact["t"])


def _first_request_about(call: Fact, facts: Iterable[Fact]) -> int | None:
    topic = str(call.get("topic", ""))
    for fact in facts:
        if fact["t"] > call["t"] + CALL_LASTS_MS:
            break
        if fact["kind"] == "zookeeper_request":
            named = [op.get("path") or "" for op in fact.get("ops", [fact])]
            if any(paths.is_about(path, topic) for path in named):
                at_ms: int = fact["t"]
                return at_ms
    return None


def _started_once(trace: Iterable[AnyEvent]) -> Iterator[AnyEvent]:
    """All events, but of an action that launches a process and the begin of that process only the
    action: a driver notes the launch, half a second before the JVM's first log line."""
    launched: set[int] = set()
    for event in trace:
        if isinstance(event, events.ActionApplied) and event.do == "start":
            if not event.parameters.if_down:
                launched.add(event.broker)
        elif isinstance(event, events.BrokerStarting) and event.broker in launched:
            launched.remove(event.broker)
            continue
        yield event


def _copied(event: Event) -> Fact:
    kind, fields = _COPIED[type(event)]
    fact = _fact(event, kind)
    for field in fields:
        value = getattr(event, field)
        if field == "partition":
            fact |= _named(value)
        else:
            if field.startswith("sender") and value < 0:
                continue  # logs before 2.6 do not name the sender
            fact[_OTHER_NAMES.get(field, field)] = list(value) if type(value) is tuple else value
    return fact


def _results(event: events.RecordsProduced, up_us: int) -> Iterator[ProduceResult]:
    """One line per record, timed at the driver's next round after the response, as in
    recordings."""
    t = ((event.polled_at or event.t) - up_us) // 1000
    topic, partition = event.partition
    for n in range(event.count):
        offset = event.base_offset + n if event.base_offset >= 0 else None
        yield ProduceResult(t, topic, event.acks, partition, event.result, offset)


def _fact(event: Event, kind: str, **fields: object) -> Fact:
    return {"kind": kind, "broker": event.broker, **fields}


def _named(partition: TopicPartition) -> Fact:
    return {"topic": partition.topic, "partition": partition.partition}


# -- the world, ZooKeeper -------------------------------------------------------------------------


@_converts(events.ActionApplied)
def _action(event: events.ActionApplied) -> Iterator[Fact]:
    if event.parameters.if_down:
        return  # whether this started a process, the process itself says
    broker = {"broker": event.broker} if event.broker else {}
    acks = {"acks": "1"} if event.do == "produce" else {}  # recordings always contain it
    parameters: Fact = msgspec.to_builtins(event.parameters)
    yield {"kind": "stimulus", "do": event.do, **broker, **acks, **parameters}


@_converts(events.BrokerStarting)
def _started(event: events.BrokerStarting) -> Iterator[Fact]:
    yield {"kind": "stimulus", "do": "start", "broker": event.broker}


@_converts(events.BrokerRegistered)
def _registered(event: events.BrokerRegistered) -> Iterator[Fact]:
    yield {"kind": "stimulus", "do": "registered", "broker": event.broker}


@_converts(events.ZkRequest)
def _request(event: events.ZkRequest) -> Iterator[Fact]:
    """Recordings contain the requests that passed the brokers' taps."""
    if not event.broker:
        return
    fact = _fact(event, "zookeeper_request", op=event.op)
    for key in ("path", "watch", "version", "flags"):
        value = getattr(event, key)
        if value is not None:
            fact[key] = value
    if event.ops:
        fact["ops"] = [msgspec.to_builtins(op) for op in event.ops]
    yield fact


@_converts(events.ZkTransaction)
def _transaction(event: events.ZkTransaction) -> Iterator[Fact]:
    """Sessions of clients other than brokers (readiness checks) are left out. So is the end of a
    session without a registration, which recordings need to identify a broker's session."""
    if not event.broker and event.op in ("createSession", "closeSession"):
        return
    if event.op == "closeSession" and paths.broker_id(event.broker) not in event.removed:
        return
    fact = _fact(event, "zookeeper", zxid=event.zxid, op=event.op)
    if event.timeout_ms is not None:
        fact["timeout"] = event.timeout_ms
    if event.ops:
        fact["ops"] = [_logged(op) for op in event.ops]
    yield fact | _logged(event)


def _logged(op: LoggedOp | events.ZkTransaction) -> Fact:
    fact: Fact = {"op": op.op}
    for key in ("path", "version", "code"):
        value = getattr(op, key)
        if value is not None:
            fact[key] = value
    if op.data is not None:
        fact["data"] = _TIMESTAMP.sub('"timestamp":"0"', op.data)
    if op.ephemeral:
        fact["ephemeral"] = True
    return fact


@_converts(events.ZkSessionState)
def _session_state(event: events.ZkSessionState) -> Iterator[Fact]:
    if event.state == "Expired":
        yield _fact(event, "session_expired")


# -- brokers --------------------------------------------------------------------------------------


def _state(event: events.LeaderAndIsr | events.MetadataCacheUpdated, state: PartitionState) -> Fact:
    """A partition's state in a control request, with the request's sender."""
    fact = {
        "from": event.sender,
        "controller_epoch": event.sender_epoch,
        **_named(state.partition),
        "leader": state.leader,
        "leader_epoch": state.leader_epoch,
        "isr": list(state.isr),
        "deciding_controller_epoch": state.controller_epoch,
        "replicas": list(state.replicas),
    }
    if state.zk_version >= 0:
        fact["zk_version"] = state.zk_version
    for key in ("adding_replicas", "removing_replicas"):
        if getattr(state, key):
            fact[key] = list(getattr(state, key))
    return fact


@_converts(events.LeaderAndIsr)
def _leader_and_isr(event: events.LeaderAndIsr) -> Iterator[Fact]:
    state = _state(event, event.state)
    yield _fact(event, "leader_and_isr", **state, is_new=event.state.is_new)


@_converts(events.LeaderAndIsrIgnored)
def _leader_and_isr_ignored(event: events.LeaderAndIsrIgnored) -> Iterator[Fact]:
    if event.error == Errors.UNKNOWN_TOPIC_OR_PARTITION.name:
        # A broker that is no replica logs no leader epoch; recordings have no such fact.
        return
    named = _named(event.state.partition)
    yield _fact(event, "leader_and_isr_ignored", **named, leader_epoch=event.state.leader_epoch)


@_converts(events.MetadataCacheUpdated)
def _metadata(event: events.MetadataCacheUpdated) -> Iterator[Fact]:
    for state in event.states:
        fact = _fact(event, "update_metadata", **_state(event, state))
        # Up to 0.10 brokers log neither versions nor offline replicas of the metadata cache.
        if state.zk_version >= 0:
            fact["offline_replicas"] = list(state.offline_replicas)
        yield fact
    sender = {"from": event.sender, "controller_epoch": event.sender_epoch}
    for partition in event.removed:
        yield _fact(event, "metadata_removed", **sender, **_named(partition))


@_converts(events.IsrUpdateStarted)
def _isr_update_started(event: events.IsrUpdateStarted) -> Iterator[Fact]:
    fact = _fact(event, event.change, **_named(event.partition))
    fact |= {"from_isr": list(event.from_isr), "to_isr": list(event.to_isr)}
    if event.change == "shrink":
        out = [{"replica": it.replica, "leo": it.leo} for it in event.out_of_sync]
        fact |= {"hw": event.hw, "leo": event.leo, "out_of_sync": out}
    yield fact
