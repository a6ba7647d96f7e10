"""The description of an event: lane, headline, numbers, importance.

Owns its structure, the scene on which wording depends, and the registry of describing functions
(which are in `wording`). It must not know widths, colours or pixels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import Any, TypeVar

import msgspec

from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.state.notifications import notified_partitions
from emulator.trace.state.partitions import applied_ops, is_fenced, state_partition
from emulator.trace.state.timeline import Timeline
from emulator.trace.values import TopicPartition

CONTROLLER, ZOOKEEPER, CLIENTS = "controller", "zookeeper", "clients"
BAD_VERSION = -103
CODES = {
    -4: "CONNECTIONLOSS",
    -101: "NONODE",
    -102: "NOAUTH",
    -103: "BADVERSION",
    -110: "NODEEXISTS",
    -111: "NOTEMPTY",
    -112: "SESSIONEXPIRED",
}


class Level(IntEnum):
    """STORY is always shown, DETAIL only if there are few events, TRAFFIC only counted."""

    STORY = 0
    DETAIL = 1
    TRAFFIC = 2


class EventText(msgspec.Struct):
    """The text of one event. `source`: the lane that caused it, if it is another one (drawn as an
    arrow).

    `tone` classifies it: shrink, expand, write, refused, notice, metadata, fault, life, plain.
    """

    event: AnyEvent
    lane: str
    headline: str
    numbers: str = ""
    level: Level = Level.STORY
    tone: str = "plain"
    source: str = ""


class Scene(msgspec.Struct):
    """The context of an event's wording: the whole trace, and whether partitions are named."""

    timeline: Timeline
    only: TopicPartition | None
    by_seq: dict[int, AnyEvent]

    def name(self, partition: TopicPartition) -> str:
        """The partition's name and a blank; empty if there is only one partition."""
        return "" if self.only is not None else f"{partition} "

    def names(self, partitions: tuple[TopicPartition, ...]) -> str:
        """A few names, or their number."""
        if len(partitions) > 3:
            return f"{partitions[0]} and {len(partitions) - 1} more"
        return ", ".join(map(str, partitions))

    def requester(self, event: AnyEvent) -> str:
        """The lane that sent a ZooKeeper request: the controller's, or a broker's own."""
        if isinstance(event, e.ZkTransaction) and is_fenced(event):
            return CONTROLLER
        at: AnyEvent | None = event
        for _ in range(4):
            if at is None:
                break
            if at.thread.startswith("controller-event-thread"):
                return CONTROLLER
            at = self.by_seq.get(at.cause)
        return str(event.broker) if event.broker > 0 else ""


def scene(timeline: Timeline, only: TopicPartition | None = None) -> Scene:
    """The scene of a whole trace; partitions are not named if there is only one."""
    if only is None and len(timeline.partitions) == 1:
        only = timeline.partitions[0]
    return Scene(timeline, only, {event.seq: event for event in timeline.events})


def ids(brokers: tuple[int, ...]) -> str:
    """`[1,3,2]`, in the given order."""
    return f"[{','.join(map(str, brokers))}]"


def span(us: float) -> str:
    """A rounded duration with a suitable unit: `0.2 ms`, `17 ms`, `2.5 s`, `60 s`."""
    if us >= 999_500:
        return f"{us / 1e6:,.1f}".removesuffix(".0") + " s"
    ms = f"{us / 1000:.1f}" if 0 < us < 9_950 else f"{us / 1000:.0f}"
    return f"{ms.removesuffix('.0')} ms"


def counted(count: int, noun: str) -> str:
    """`1 conflict`, `2 conflicts`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def exact_span(ms: int) -> str:
    """An exact duration, for comparison with a limit: `10.004 s`, `500 ms`."""
    return f"{ms / 1000:,.3f}".rstrip("0").removesuffix(".") + " s" if ms >= 1000 else f"{ms} ms"


def seconds(ms: float) -> str:
    """A moment: `7.250 s`."""
    return f"{ms / 1000:.3f} s"


def partitions_of(event: AnyEvent) -> tuple[TopicPartition, ...]:
    """The partitions of an event; none: it concerns the broker or the cluster."""
    many: Iterable[TopicPartition] | None
    many = getattr(event, "partitions", None) or getattr(event, "pending", None)
    if many is not None:
        return tuple(many)
    if isinstance(event, e.ZkTransaction):
        names: dict[TopicPartition, None] = {}
        for op in applied_ops(event):
            partition = state_partition(op.path)
            if partition is not None:
                names[partition] = None
            elif op.op == "create" and "/isr_change_" in (op.path or ""):
                names.update(dict.fromkeys(notified_partitions(op.data)))
        return tuple(names)
    if isinstance(event, e.MetadataCacheUpdated):
        return (*(state.partition for state in event.states), *event.removed)
    if isinstance(event, e.FetchSent):
        return tuple(offset.partition for offset in event.offsets)
    if isinstance(event, (e.LeaderAndIsr, e.LeaderAndIsrIgnored)):
        return (event.state.partition,)
    if isinstance(event, (e.ZkReply, e.ZkSent)):
        partition = state_partition(event.path)
        return (partition,) if partition is not None else ()
    one: TopicPartition | None = getattr(event, "partition", None)
    return (one,) if one is not None else ()


# -- the registry ----------------------------------------------------------------------------------

E = TypeVar("E")
Describer = Callable[[Any, Scene], EventText]
DESCRIBERS: dict[type[object], Describer] = {}


def describes(
    kind: type[E],
) -> Callable[[Callable[[E, Scene], EventText]], Callable[[E, Scene], EventText]]:
    """Register the function that describes events of `kind`."""

    def register(describer: Callable[[E, Scene], EventText]) -> Callable[[E, Scene], EventText]:
        DESCRIBERS[kind] = describer
        return describer

    return register


def lane_of(event: AnyEvent) -> str:
    """The lane of a broker's own event; broker 0 is a client."""
    return str(event.broker) if event.broker > 0 else CLIENTS


_COMMON = frozenset({"kind", "seq", "t", "broker", "thread", "cause"})
_NAME = re.compile(r'\["([^"]+)",(\d+)\]')


def fields_of(event: AnyEvent) -> str:
    """The event's own fields as `name value` pairs; partitions by name."""
    fields: dict[str, object] = msgspec.to_builtins(event)
    own = ((name, value) for name, value in fields.items() if name not in _COMMON)
    return ", ".join(f"{name.replace('_', ' ')} {_plain(value)}" for name, value in own)


def _plain(value: object) -> str:
    """A value without JSON's quotes and without empty nested values."""
    if isinstance(value, dict):
        filled = {k: v for k, v in value.items() if v or (v == 0 and v is not False)}
        return " ".join(f"{name.replace('_', ' ')} {_plain(one)}" for name, one in filled.items())
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], dict):
        return "; ".join(map(_plain, value))
    if isinstance(value, str):
        return value
    return _NAME.sub(r"\1-\2", msgspec.json.encode(value).decode())
