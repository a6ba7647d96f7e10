"""Why a controller wrote a state: what led to it, from the first thing that the trace knows.

Owns the way back along the causes of a write, and which of them are worth telling: what was done to
the cluster, sessions that ended, what the controller found, what it was asked for. It knows the
trace vocabulary; it must know nothing of how the story is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.state import actions as stimuli
from emulator.trace.state.partitions import State
from emulator.trace.state.timeline import Timeline
from emulator.view.telling import ids

LOOKING = "BrokerChange"


class Because(msgspec.Struct, frozen=True):
    """One thing that led to the write; milliseconds since the cluster was up."""

    at_ms: float
    text: str


def because(timeline: Timeline, write: State) -> list[Because]:
    """The causes worth telling, the first one first."""
    chain = list(_causes(timeline, write.seq))
    found = [(event.t, text) for event in chain if (text := _told(event))]
    expired = next((event for event in chain if _ended_session(event)), None)
    if expired is not None:
        found += _faults_on(timeline, expired)
    told = dict.fromkeys(sorted(found))
    return [Because((t - timeline.origin_us) / 1000, text) for t, text in told]


def _causes(timeline: Timeline, seq: int) -> Iterator[AnyEvent]:
    """The event and what led to it, back to where the trace knows no more."""
    by_seq = {event.seq: event for event in timeline.events}
    at = by_seq.get(seq)
    while at is not None:
        yield at
        at = by_seq.get(at.cause)


def _told(event: AnyEvent) -> str:
    """A few words, or none for what is only on the way."""
    match event:
        case e.Stimulus(do=do) if do not in stimuli.SILENT:
            lane = stimuli.lane_of(event)
            return f"{_who(lane)}{stimuli.describe(event)}"
        case e.ZkTransaction(op="closeSession", broker=broker) if broker:
            return f"the ZooKeeper session of broker {broker} ended"
        case e.BrokerChange():
            return _found(event)
        case e.ControllerElected():
            return f"broker {event.broker} became controller, epoch {event.controller_epoch}"
        case e.ControllerEventQueued(event=name) if name != LOOKING:
            return f"controller {event.broker} had {name} to do"
    return ""


def _who(lane: str) -> str:
    if lane.isdigit():
        return f"broker {lane} "
    return f"{lane} " if lane else ""


def _found(event: e.BrokerChange) -> str:
    changes = (("new", event.added), ("dead", event.deleted), ("bounced", event.bounced))
    text = ", ".join(f"{ids(who)} {what}" for what, who in changes if who)
    return f"controller {event.broker} found {text}" if text else ""


def _ended_session(event: AnyEvent) -> bool:
    return isinstance(event, e.ZkTransaction) and event.op == "closeSession" and event.broker > 0


def _faults_on(timeline: Timeline, expired: AnyEvent) -> Iterator[tuple[int, str]]:
    """What was the matter with the broker (or the server) when the session ended: nothing in the
    trace leads from silence to its end."""
    for fault in stimuli.faults(timeline.events, timeline.end_us):
        struck = fault.lane in (str(expired.broker), "zookeeper")
        if struck and fault.from_us <= expired.t <= fault.to_us:
            yield fault.from_us, f"{_who(fault.lane)}{fault.text}"
