"""Actions for display: the broker that one affects, its description, and its duration.

Owns the pairing of a fault with the action that undoes it. Knows the names of actions in traces,
not their effects.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from emulator.trace.events import ActionApplied, AnyEvent

_UNDONE_BY = {
    "pause": ("resume",),
    "kill": ("registered", "broker_starting"),
    "fail_log_dir": ("repair_log_dir",),
    "use_up_descriptors": ("free_descriptors",),
    "disk": ("mend_disk",),
    "crash": ("registered", "broker_starting"),
    "terminate": ("registered", "broker_starting"),
    "cut_link": ("heal_link",),
    "cut_zookeeper_link": ("heal_zookeeper_link",),
    "stop_zookeeper": ("start_zookeeper",),
}
"""Maps a fault to the actions that end it. A fault with a magnitude (`delay_ms: 0`) is ended by
itself."""

_MEASURES = {
    "delay_link": "delay_ms",
    "link_latency": "high_ms",
    "lossy_link": "loss",
    "slow_link": "bytes_per_s",
    "slow_follower": "bytes_per_s",
    "slow_disk": "ms_per_append",
    "jump_clock": "offset_ms",
}

_PAST = {
    "pause": "paused",
    "kill": "killed",
    "crash": "crashed",
    "terminate": "told to stop",
    "resume": "runs again",
    "cut_link": "link cut",
    "heal_link": "link healed",
    "heal_zookeeper_link": "ZooKeeper link healed",
    "cut_zookeeper_link": "ZooKeeper link cut",
    "delay_link": "link slow",
    "link_latency": "link slow",
    "lossy_link": "link loses packets",
    "slow_link": "link narrow",
    "break_connection": "connection breaks",
    "drop_connection": "ZooKeeper connection breaks",
    "expire_session": "session ended",
    "forget_session": "session forgotten",
    "end_session": "forgotten session ended",
    "fail_authentication": "ZooKeeper authentication failed",
    "hold": "to be held",
    "release": "released",
    "stop_zookeeper": "stopped",
    "start_zookeeper": "started again",
    "slow_follower": "slow follower",
    "slow_disk": "slow disk",
    "fail_log_dir": "log directory failed",
    "repair_log_dir": "log directory repaired",
    "use_up_descriptors": "no file descriptors left",
    "free_descriptors": "file descriptors free again",
    "disk": "disk fault",
    "jump_clock": "clock off",
    "mend_disk": "disk mended",
}

SILENT = frozenset({"up", "start", "registered", "exited"})
"""Actions that are not displayed because other events show them."""

CLIENTS = frozenset({"produce", "produce_stop", "send", "consume"})


class Fault(msgspec.Struct):
    """A fault on an actor's lane during [from_us, to_us)."""

    lane: str
    do: str
    text: str
    from_us: int
    to_us: int
    seq: int


def lane_of(event: ActionApplied) -> str:
    """The actor that an action affects; empty for the whole cluster."""
    if event.parameters.server == "zookeeper" or event.do in ("stop_zookeeper", "start_zookeeper"):
        return "zookeeper"
    return str(event.broker) if event.broker else ""


def describe(event: ActionApplied) -> str:
    """A short description of the action, without the broker, which its lane names."""
    values: dict[str, Any] = msgspec.to_builtins(event.parameters)
    values.pop("server", None)
    name = event.do.replace("_", " ")
    if event.do == "create_topic":
        replicas = " ".join(",".join(map(str, ids)) for ids in values.pop("assignment", ()))
        on = f" on {replicas}" if replicas else ""
        return f"create topic {values.pop('topic', '?')}{on}{_remaining_arguments(values)}"
    if event.do in CLIENTS:
        return f"{name} {_target(values)}{_remaining_arguments(values)}"
    return f"{_PAST.get(event.do, name)}{_remaining_arguments(values)}"


def _target(values: dict[str, Any]) -> str:
    topic, partitions = values.pop("topic", "?"), values.pop("partitions", ())
    if 0 < len(partitions) <= 4:
        return " ".join(f"{topic}-{p}" for p in partitions)
    return f"{topic} ({len(partitions)} partitions)" if partitions else str(topic)


def _remaining_arguments(values: dict[str, Any]) -> str:
    shown = [
        f"{k.replace('_', ' ')} {_plain(v)}" for k, v in values.items() if v not in ({}, [], "")
    ]
    return ", " + ", ".join(shown) if shown else ""


def _plain(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def faults(events: Iterable[AnyEvent], end_us: int) -> list[Fault]:
    """Every fault with its duration; a fault that is never undone lasts to the end."""
    all_faults: list[Fault] = []
    running: dict[tuple[str, str, str], Fault] = {}
    for event in events:
        for key in _ended_by(event):
            if key in running:
                running.pop(key).to_us = event.t
        if isinstance(event, ActionApplied) and _starts(event):
            fault = Fault(lane_of(event), event.do, describe(event), event.t, end_us, event.seq)
            running[_key(event, event.do)] = fault
            all_faults.append(fault)
    return all_faults


def _starts(event: ActionApplied) -> bool:
    measure = _MEASURES.get(event.do)
    return bool(getattr(event.parameters, measure)) if measure else event.do in _UNDONE_BY


def _ended_by(event: AnyEvent) -> list[tuple[str, str, str]]:
    if not isinstance(event, ActionApplied):
        if event.kind != "broker_starting":
            return []
        return [(do, str(event.broker), "") for do in ("kill", "crash", "terminate")]
    names = [do for do, ends in _UNDONE_BY.items() if event.do in ends]
    return [_key(event, do) for do in ([event.do] if event.do in _MEASURES else names)]


def _key(event: ActionApplied, do: str) -> tuple[str, str, str]:
    return do, lane_of(event), str(event.parameters.peer or "")
