"""The lines of a transcript: requests to ZooKeeper, messages to brokers and events, in few words.

`W` marks a read that sets a watch, as in the spec's request sequences (§2.12). The state znode of
orders-0 is called by its partition, and its payload is spelt out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from emulator.kafka.protocol.messages import (
    AlterIsrRequest,
    FetchRequest,
    LeaderAndIsrRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from emulator.trace import events
from emulator.trace.values import PartitionState
from zk import paths
from zk.client import codec
from zk.ops import Check, Create, CreateMode, Delete, Exists, GetChildren, GetData, Multi, SetData

_KINDS = {
    CreateMode.PERSISTENT: "create",
    CreateMode.EPHEMERAL: "create ephemeral",
    CreateMode.PERSISTENT_SEQUENTIAL: "create sequential",
}


def line_of_request(request: Any) -> str:
    """A request to ZooKeeper."""
    match request:
        case Multi(ops=ops):
            return "[" + ", ".join(line_of_request(op) for op in ops) + "]"
        case Exists(path=path, watch=watch):
            return f"exists {_short(path)}" + " W" * watch
        case GetData(path=path, watch=watch):
            return f"getData {_short(path)}" + " W" * watch
        case GetChildren(path=path, watch=watch):
            return f"getChildren {_short(path)}" + " W" * watch
        case SetData(path=path, data=payload, version=version):
            return f"set {_short(path)} at v{version}{_payload(path, payload)}"
        case Create(path=path, data=payload, mode=mode):
            return f"{_KINDS[mode]} {_short(path)}{_payload(path, payload)}"
        case Delete(path=path, version=version):
            return f"delete {_short(path)}" + (f" at v{version}" if version >= 0 else "")
        case Check(path=path, version=version):
            return f"check {path} v{version}"
    return str(request)


def _short(path: str) -> str:
    found = paths.partition_of_state_path(path)
    return path if found is None else f"{found[0]}-{found[1]}"


def _payload(path: str, payload: bytes | None) -> str:
    if not payload:
        return ""
    if paths.partition_of_state_path(path) is not None:
        it = codec.decode_state(path, payload, 0)
        state = it.leader_and_isr
        return (
            f": leader {state.leader}, epoch {state.leader_epoch}, isr {_list(state.isr)}, "
            f"controller {it.controller_epoch}"
        )
    if path.startswith(paths.ISR_CHANGE_NOTIFICATION):
        return ": " + " ".join(str(p) for p in codec.decode_isr_change(path, payload))
    if path == paths.CONTROLLER_EPOCH:
        return f": {payload.decode()}"
    if path == paths.CONTROLLER:
        return f": broker {codec.decode_controller(payload).broker_id}"
    if path.startswith((paths.TOPICS, paths.BROKER_IDS, paths.CONFIG)):
        return ""
    return f": {payload.decode()}"


def line_of_message(request: Any) -> str:
    """A request to another broker."""
    match request:
        case LeaderAndIsrRequest(states=states):
            return "LeaderAndIsr" + "".join(f" {_state(s)}{' new' * s.is_new}" for s in states)
        case UpdateMetadataRequest(states=states, live_brokers=live):
            brokers = _list(tuple(b.broker for b in live))
            return f"UpdateMetadata live {brokers}" + "".join(f" {_state(s)}" for s in states)
        case StopReplicaRequest(partitions=stopped):
            return "StopReplica" + "".join(
                f" {p.partition} epoch {p.leader_epoch}{' delete' * p.delete}" for p in stopped
            )
        case AlterIsrRequest(broker_epoch=epoch, partitions=asked):
            return f"AlterIsr of epoch {epoch}" + "".join(
                f" ({p.partition} epoch {p.leader_epoch} isr {_list(p.new_isr)}"
                f" for v{p.current_isr_version})"
                for p in asked
            )
        case FetchRequest(partitions=wanted, forgotten=forgotten):
            named = " ".join(f"{p.partition}@{p.fetch_offset}" for p in wanted)
            gone = "".join(f" -{p}" for p in forgotten)
            return f"Fetch {named or 'nothing new'}{gone}"
    return type(request).__name__


def _state(state: PartitionState) -> str:
    return f"({state.partition} leader {state.leader} isr {_list(state.isr)} v{state.zk_version})"


_EVENTS: dict[type, Callable[[Any], str]] = {
    events.IsrUpdated: lambda e: f"isr {_list(e.isr)} v{e.zk_version}",
    events.IsrUpdateRejected: lambda e: f"rejected, still v{e.cached_zk_version}",
    events.AlterIsrProposed: lambda e: f"{e.pending} {_list(e.isr)}",
    events.AlterIsrFailed: lambda e: f"{e.change} {e.error}: {e.outcome}",
    events.HwAdvanced: lambda e: f"hw {e.hw}",
    events.ZnodeMalformed: lambda e: f"malformed {_short(e.path)}",
    events.ThreadFailed: lambda e: f"{e.what} failed: {e.error}",
    events.ControllerElected: lambda e: (
        f"controller in epoch {e.controller_epoch}, v{e.epoch_zk_version}"
    ),
    events.ControllerResigned: lambda _: "resigned",
    events.BecomesLeader: lambda e: f"leads {e.partition} in epoch {e.leader_epoch}",
    events.BecomesFollower: lambda e: (
        f"follows {e.leader} for {e.partition} in epoch {e.leader_epoch}"
    ),
    events.LeaderAndIsrIgnored: lambda e: f"ignored: {e.error}",
    events.ControlRequestRefused: lambda e: f"{e.request} refused: {e.error}",
    events.LogStartMoved: lambda e: f"{e.partition} starts at {e.log_start_offset}: {e.reason}",
    events.LogLoaded: lambda e: f"{e.partition} loaded up to {e.leo}",
    events.LogTruncated: lambda e: f"{e.partition} truncated to {e.to_offset}",
    events.PartitionDelayed: lambda e: f"{e.partition} delayed: {e.reason}",
    events.PartitionMarkedFailed: lambda e: f"{e.partition} marked as failed: {e.reason}",
}


def line_of_event(event: Any) -> str | None:
    """An event of the trace that is worth a line; None: it is not."""
    line = _EVENTS.get(type(event))
    return None if line is None else line(event)


def _list(numbers: tuple[int, ...]) -> str:
    return ",".join(str(n) for n in numbers)
