"""Why a controller wrote a state: its causes, from the earliest one in the trace.

Follows the causes of a write backwards, and selects the relevant ones: actions on the cluster,
ended sessions, what the controller observed, the requests it received. Knows the trace vocabulary,
but not how the explanation is drawn.
"""

from __future__ import annotations

import msgspec

from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.state import actions
from emulator.trace.state.partitions import State
from emulator.trace.state.timeline import Timeline
from emulator.view.event_text import ids

LOOKING = "BrokerChange"


class CauseStep(msgspec.Struct, frozen=True):
    """One cause of the write; milliseconds since the cluster was up."""

    at_ms: float
    text: str


def causes_of(timeline: Timeline, write: State) -> list[CauseStep]:
    """The relevant causes, earliest first."""
    by_seq = {event.seq: event for event in timeline.events}
    chain: list[AnyEvent] = []
    at = by_seq.get(write.seq)
    while at is not None:
        chain.append(at)
        at = by_seq.get(at.cause)
    causes = [(event.t, text) for event in chain if (text := _words(event))]
    for expired in chain:
        if isinstance(expired, e.ZkTransaction) and _ends_session(expired):
            # The fault on the broker (or server) when its session ended: the trace has no causal
            # link from missing pings to the expiry.
            for fault in actions.faults(timeline.events, timeline.end_us):
                struck = fault.lane in (str(expired.broker), "zookeeper")
                if struck and fault.from_us <= expired.t <= fault.to_us:
                    causes.append((fault.from_us, f"{_lane_prefix(fault.lane)}{fault.text}"))
            break
    return [
        CauseStep((t - timeline.origin_us) / 1000, text)
        for t, text in dict.fromkeys(sorted(causes))
    ]


def _ends_session(event: e.ZkTransaction) -> bool:
    return event.op == "closeSession" and event.broker > 0


def _words(event: AnyEvent) -> str:
    """A short description; empty for irrelevant events."""
    match event:
        case e.ActionApplied(do=do) if do not in actions.SILENT:
            return f"{_lane_prefix(actions.lane_of(event))}{actions.describe(event)}"
        case e.ZkTransaction() if _ends_session(event):
            return f"the ZooKeeper session of broker {event.broker} ended"
        case e.BrokerChange():
            changes = (("new", event.added), ("dead", event.deleted), ("bounced", event.bounced))
            text = ", ".join(f"{ids(who)} {what}" for what, who in changes if who)
            return f"controller {event.broker} found {text}" if text else ""
        case e.ControllerElected():
            return f"broker {event.broker} became controller, epoch {event.controller_epoch}"
        case e.ControllerEventQueued(event=name) if name != LOOKING:
            return f"controller {event.broker} queued {name}"
    return ""


def _lane_prefix(lane: str) -> str:
    if lane.isdigit():
        return f"broker {lane} "
    return f"{lane} " if lane else ""
