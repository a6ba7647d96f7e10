"""A run's trace in the format of recordings, so that the judge can hold it to a real one.

One function per kind of event that recordings know; everything else of the trace is left out. Times
are milliseconds since the cluster was up, as there. Knows the trace vocabulary and the format.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from emulator.conformance.recording import Fact, ProduceResult, Recording
from emulator.trace import events
from emulator.trace.event import Event
from emulator.trace.events import AnyEvent
from emulator.trace.values import LoggedOp, PartitionState, TopicPartition

_TIMESTAMP = re.compile(r'"timestamp":"\d+"')


def export(trace: Iterable[AnyEvent], settings: Fact, name: str = "") -> Recording:
    """The recording of a run. `settings` is the first line, as a real recording has it."""
    trace = list(trace)
    up_us = _up_us(trace)
    facts: list[Fact] = []
    proposed = {e.cause for e in trace if isinstance(e, events.AlterIsrProposed)}
    for event in trace:
        if event.seq in proposed and isinstance(event, events.IsrUpdateStarted):
            facts.extend({"t": (event.t - up_us) // 1000, **f} for f in _shrink_only(event))
            continue
        convert = _CONVERTERS.get(type(event))
        if convert is not None:
            t = (event.t - up_us) // 1000
            facts.extend({"t": t, **fact} for fact in convert(event))
    return Recording(settings, facts, _results(trace, up_us), name)


def _up_us(trace: Iterable[AnyEvent]) -> int:
    for event in trace:
        if isinstance(event, events.Stimulus) and event.do == "up":
            return event.t
    raise ValueError("the cluster of this run was never up")


def _fact(event: Event, kind: str, **fields: Any) -> Fact:
    return {"kind": kind, "broker": event.broker, **fields}


def _named(partition: TopicPartition) -> Fact:
    return {"topic": partition.topic, "partition": partition.partition}


# -- the world, ZooKeeper -------------------------------------------------------------------------


def _stimulus(event: events.Stimulus) -> Iterator[Fact]:
    broker = {"broker": event.broker} if event.broker else {}
    said = {"acks": "1"} if event.do == "produce" else {}  # a recording always says it
    parameters: Fact = msgspec.to_builtins(event.parameters)
    yield {"kind": "stimulus", "do": event.do, **broker, **said, **parameters}


def _started(event: events.BrokerStarting) -> Iterator[Fact]:
    yield {"kind": "stimulus", "do": "start", "broker": event.broker}


def _registered(event: events.BrokerRegistered) -> Iterator[Fact]:
    yield {"kind": "stimulus", "do": "registered", "broker": event.broker}


def _request(event: events.ZkRequest) -> Iterator[Fact]:
    """Recordings have what passed at the brokers' taps."""
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


def _transaction(event: events.ZkTransaction) -> Iterator[Fact]:
    """Sessions that are no broker's (whoever looked whether the server is ready) are left out."""
    if not event.broker and event.op in ("createSession", "closeSession"):
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


def _session_state(event: events.ZkSessionState) -> Iterator[Fact]:
    if event.state == "Expired":
        yield _fact(event, "session_expired")


# -- brokers --------------------------------------------------------------------------------------


def _state(state: PartitionState) -> Fact:
    fact = {
        **_named(state.partition),
        "leader": state.leader,
        "leader_epoch": state.leader_epoch,
        "isr": list(state.isr),
        "zk_version": state.zk_version,
        "deciding_controller_epoch": state.controller_epoch,
        "replicas": list(state.replicas),
    }
    for key in ("adding_replicas", "removing_replicas"):
        if getattr(state, key):
            fact[key] = list(getattr(state, key))
    return fact


def _sender(event: Any) -> Fact:
    return {"from": event.sender, "controller_epoch": event.sender_epoch}


def _leader_and_isr(event: events.LeaderAndIsr) -> Iterator[Fact]:
    state = _state(event.state)
    yield _fact(event, "leader_and_isr", **_sender(event), **state, is_new=event.state.is_new)


def _leader_and_isr_ignored(event: events.LeaderAndIsrIgnored) -> Iterator[Fact]:
    named = _named(event.state.partition)
    yield _fact(event, "leader_and_isr_ignored", **named, leader_epoch=event.state.leader_epoch)


def _metadata(event: events.MetadataCacheUpdated) -> Iterator[Fact]:
    for state in event.states:
        fact = _fact(event, "update_metadata", **_sender(event), **_state(state))
        yield fact | {"offline_replicas": list(state.offline_replicas)}
    for partition in event.removed:
        yield _fact(event, "metadata_removed", **_sender(event), **_named(partition))


def _stop_replica(event: events.StopReplica) -> Iterator[Fact]:
    fact = _fact(event, "stop_replica", **_sender(event), **_named(event.partition))
    yield fact | {"leader_epoch": event.leader_epoch, "delete": event.delete}


def _stop_replica_ignored(event: events.StopReplicaIgnored) -> Iterator[Fact]:
    yield _fact(event, "stop_replica_ignored", **_named(event.partition))


def _becomes(event: events.BecomesLeader | events.BecomesFollower) -> Iterator[Fact]:
    kind = "becomes_leader" if isinstance(event, events.BecomesLeader) else "becomes_follower"
    fact = _fact(event, kind, **_named(event.partition), leader_epoch=event.leader_epoch)
    yield fact | {"leo": event.leo, "hw": event.hw}


def _isr_update_started(event: events.IsrUpdateStarted) -> Iterator[Fact]:
    fact = _fact(event, event.change, **_named(event.partition))
    fact |= {"from_isr": list(event.from_isr), "to_isr": list(event.to_isr)}
    if event.change == "shrink":
        out = [{"replica": it.replica, "leo": it.leo} for it in event.out_of_sync]
        fact |= {"hw": event.hw, "leo": event.leo, "out_of_sync": out}
    yield fact


def _shrink_only(event: events.IsrUpdateStarted) -> Iterator[Fact]:
    """A leader that proposes its ISR to the controller logs no expansion but the proposal."""
    if event.change == "shrink":
        yield from _isr_update_started(event)


def _alter_isr_proposed(event: events.AlterIsrProposed) -> Iterator[Fact]:
    fact = _fact(event, "alter_isr_proposed", **_named(event.partition), isr=list(event.isr))
    fact |= {"leader_epoch": event.leader_epoch, "zk_version": event.zk_version}
    yield fact | {"pending": event.pending}


def _isr_updated(event: events.IsrUpdated) -> Iterator[Fact]:
    named = _named(event.partition)
    yield _fact(event, "isr_updated", **named, isr=list(event.isr), zk_version=event.zk_version)


def _isr_update_rejected(event: events.IsrUpdateRejected) -> Iterator[Fact]:
    named = _named(event.partition)
    yield _fact(event, "isr_update_rejected", **named, cached_zk_version=event.cached_zk_version)


def _log_truncated(event: events.LogTruncated) -> Iterator[Fact]:
    yield _fact(event, "log_truncated", **_named(event.partition), to_offset=event.to_offset)


def _broker_started(event: events.BrokerStarted) -> Iterator[Fact]:
    yield _fact(event, "broker_started")


# -- the controller -------------------------------------------------------------------------------


def _controller_elected(event: events.ControllerElected) -> Iterator[Fact]:
    yield _fact(
        event,
        "controller_elected",
        controller_epoch=event.controller_epoch,
        epoch_zk_version=event.epoch_zk_version,
    )


def _controller_resigned(event: events.ControllerResigned) -> Iterator[Fact]:
    yield _fact(event, "controller_resigned")


def _broker_change(event: events.BrokerChange) -> Iterator[Fact]:
    fields = {k: list(getattr(event, k)) for k in ("added", "deleted", "bounced", "live")}
    yield _fact(event, "broker_change", **fields)


def _partition_state(event: events.PartitionStateChanged) -> Iterator[Fact]:
    fact = _fact(event, "partition_state", controller_epoch=event.controller_epoch)
    fact |= _named(event.partition)
    yield fact | {"from_state": event.from_state, "to_state": event.to_state}


def _replica_state(event: events.ReplicaStateChanged) -> Iterator[Fact]:
    fact = _fact(event, "replica_state", controller_epoch=event.controller_epoch)
    fact |= _named(event.partition) | {"replica": event.replica}
    yield fact | {"from_state": event.from_state, "to_state": event.to_state}


_CONVERTERS: dict[type, Callable[[Any], Iterator[Fact]]] = {
    events.Stimulus: _stimulus,
    events.BrokerStarting: _started,
    events.BrokerRegistered: _registered,
    events.ZkRequest: _request,
    events.ZkTransaction: _transaction,
    events.ZkSessionState: _session_state,
    events.LeaderAndIsr: _leader_and_isr,
    events.LeaderAndIsrIgnored: _leader_and_isr_ignored,
    events.MetadataCacheUpdated: _metadata,
    events.StopReplica: _stop_replica,
    events.StopReplicaIgnored: _stop_replica_ignored,
    events.BecomesLeader: _becomes,
    events.BecomesFollower: _becomes,
    events.IsrUpdateStarted: _isr_update_started,
    events.AlterIsrProposed: _alter_isr_proposed,
    events.IsrUpdated: _isr_updated,
    events.IsrUpdateRejected: _isr_update_rejected,
    events.LogTruncated: _log_truncated,
    events.BrokerStarted: _broker_started,
    events.ControllerElected: _controller_elected,
    events.ControllerResigned: _controller_resigned,
    events.BrokerChange: _broker_change,
    events.PartitionStateChanged: _partition_state,
    events.ReplicaStateChanged: _replica_state,
}


# -- producers ------------------------------------------------------------------------------------


def _results(trace: Iterable[AnyEvent], up_us: int) -> list[ProduceResult]:
    """One line per record, at the round of its driver after the answer, as recordings have it: of
    records that were sent one by one, without a driver, none has the results."""
    results: list[ProduceResult] = []
    handed = _without_a_driver(trace)
    for event in trace:
        if isinstance(event, events.RecordsProduced) and event.client not in handed:
            results.extend(_records(event, up_us))
    return sorted(results, key=lambda result: result.t)


def _without_a_driver(trace: Iterable[AnyEvent]) -> set[str]:
    """Clients of `send`; producers are numbered as they begin."""
    begun = [e for e in trace if isinstance(e, events.Stimulus) and e.do in ("produce", "send")]
    return {f"producer-{n}" for n, event in enumerate(begun, 1) if event.do == "send"}


def _records(event: events.RecordsProduced, up_us: int) -> Iterator[ProduceResult]:
    t = ((event.told or event.t) - up_us) // 1000
    topic, partition = event.partition
    for n in range(event.count):
        offset = event.base_offset + n if event.base_offset >= 0 else None
        yield ProduceResult(t, topic, event.acks, partition, event.result, offset)
