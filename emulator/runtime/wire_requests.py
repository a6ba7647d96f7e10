"""Requests as they passed on the wire to ZooKeeper, as events of a trace that is put together.

Owns how one that was read along becomes an event, and which of a process's notes it was asked with.
Whether a request that never got an answer was on the wire the notes do not say: of those that look
alike the ones with an answer were, and of the others the earliest.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from emulator.kernel.scheduler import Kernel
from emulator.runtime.cause_links import Note
from emulator.runtime.linked_sessions import named
from emulator.runtime.zk_observer import TracingObserver
from emulator.trace.sink import Sink
from zk.ops import Request


class Asked(msgspec.Struct, frozen=True):
    """A request as it passed, with the time on the world's clock."""

    at_us: int
    client: str
    request: Request | str


class Passed(NamedTuple):
    """It as an event, and its name in the notes of whoever asked."""

    event: Any
    name: str


def passed(asked: Iterable[Asked]) -> dict[str, list[Passed]]:
    """By client, in order."""
    sink = Sink()
    kernel = Kernel(sink)
    observer = TracingObserver(kernel, lambda _: "")
    found: dict[str, list[Passed]] = defaultdict(list)
    for one in asked:
        kernel.now = max(kernel.now, one.at_us)
        kernel.cause = -1
        observer.on_request(one.at_us, one.client, one.request)
        name = one.request if isinstance(one.request, str) else named(one.request)
        found[one.client].append(Passed(sink.events[-1], name))
    return dict(found)


def notes_of(
    wire: Sequence[Passed], notes: Sequence[Note], events: Sequence[Any]
) -> dict[int, int]:
    """For each that passed, by its place, the number of the note that it was asked with; never of
    one that was made later, by the machine's clock (`events` are those that notes lie between)."""
    sure = {note.number for note in notes if note.kind == "told" and note.zxid > 0}
    asked = [(number, note.who) for number, note in enumerate(notes) if note.kind == "asked"]
    spare = Counter(one.name for one in wire)
    spare.subtract(name for number, name in asked if number in sure)
    waiting: dict[str, deque[int]] = defaultdict(deque)
    for number, name in asked:
        if number not in sure:
            spare[name] -= 1
        if number in sure or spare[name] >= 0:
            waiting[name].append(number)
    found: dict[int, int] = {}
    for place, one in enumerate(wire):
        first = waiting[one.name]
        if first and since(notes[first[0]], events) <= one.event.t:
            found[place] = first.popleft()
    return found


def since(note: Note, events: Sequence[Any]) -> int:
    """A note is no older than the event before it."""
    return events[note.at - 1].t if 0 < note.at <= len(events) else 0
