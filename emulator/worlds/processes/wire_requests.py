"""Requests on the wire to ZooKeeper as events of a merged trace.

Owns how a request that a proxy has read becomes an event, and to which span of a process it
belongs. Session and xid identify it: the span of its response, or of its loss, has both. A request
without a response (the process had died) and a connection (which has no xid) are matched by order:
each lies between known neighbours, so a guess cannot change the order of others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from emulator.kernel.scheduler import Kernel
from emulator.trace.events import AnyEvent
from emulator.trace.sink import Sink
from emulator.worlds.network.cause_links import Span
from emulator.worlds.processes.linked_sessions import named
from emulator.worlds.zk_observer import TracingObserver
from zk.real.tap import Exchange


class WireRequest(NamedTuple):
    """The request as an event, its name in its client's spans, and its session and xid."""

    event: AnyEvent
    name: str
    session: int = 0
    xid: int = 0


def requests_by_client(exchanges: Iterable[Exchange]) -> dict[str, list[WireRequest]]:
    """By client, in order."""
    sink = Sink()
    kernel = Kernel(sink)
    observer = TracingObserver(kernel, lambda _: "")
    requests: dict[str, list[WireRequest]] = defaultdict(list)
    for one in exchanges:
        kernel.now = max(kernel.now, one.at_us)
        kernel.cause = -1
        observer.on_request(one.at_us, one.client, one.request)
        name = one.request if isinstance(one.request, str) else named(one.request)
        requests[one.client].append(WireRequest(sink.events[-1], name, one.session, one.xid))
    return dict(requests)


def notes_of(
    wire: Sequence[WireRequest], notes: Sequence[Span], events: Sequence[AnyEvent]
) -> dict[int, int]:
    """For each request on the wire, by position, the note of its request; never a later note, by
    the machine's clock (`events` are those that notes lie between)."""
    answers = {(note.session, note.xid): note.number for note in notes if note.kind == "told"}
    matches = {
        place: answers[one.session, one.xid]
        for place, one in enumerate(wire)
        if one.xid and (one.session, one.xid) in answers
    }
    # Requests without any response, by name.
    answered = {note.number for note in notes if note.kind == "told"}
    silent: dict[str, list[int]] = defaultdict(list)
    for number, note in enumerate(notes):
        if note.kind == "asked" and number not in answered:
            silent[note.who].append(number)
    # For each position the lowest note of later requests: a guess stays below it.
    until = [len(notes)] * (len(wire) + 1)
    for place in reversed(range(len(wire))):
        until[place] = min(until[place + 1], matches.get(place, len(notes)))
    after = -1
    for place, one in enumerate(wire):
        if place not in matches:
            fits = (number for number in silent[one.name] if after < number < until[place])
            first = next(fits, None)
            if first is None or since(notes[first], events) > one.event.t:
                continue
            matches[place] = first
        after = max(after, matches[place])
    return matches


def since(note: Span, events: Sequence[AnyEvent]) -> int:
    """A note is not older than the event before it."""
    return events[note.at - 1].t if 0 < note.at <= len(events) else 0
