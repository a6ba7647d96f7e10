"""Merges the traces of several processes and ZooKeeper's log into one, in causal order.

The events of one process stay in order. The effects of a message, a transaction or a watch come
after it; the processes' notes (`cause_links`) and ZooKeeper's zxids say which effects belong to
which cause. Clocks only decide between events that may come next; a time is raised if a clock was
behind the cause. Causes become those of the whole trace. Knows events and notes, no process.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import msgspec

from emulator.trace.events import AnyEvent, ZkTransaction
from emulator.worlds.network.cause_links import Span, note_of
from emulator.worlds.processes.wire_requests import WireRequest, notes_of, since

Place = tuple[str, int]
"""An event: whose it is, and which of his."""

NOWHERE: Place = ("", -1)


class Part(NamedTuple):
    """One process's share: its events by seq, and its notes in order."""

    events: Sequence[AnyEvent]
    notes: Sequence[Span] = ()


class Logged(NamedTuple):
    """A transaction of ZooKeeper's log as an event: its zxid, its client, the request's name
    (`setData /a`), its changes (`NodeDataChanged /a`), the session, and the request's number in it.
    """

    event: ZkTransaction
    zxid: int
    who: str
    request_names: tuple[str, ...]
    changes: tuple[str, ...]
    session: int = 0
    xid: int = -1


Wire = Mapping[str, Sequence[WireRequest]]
"""What each process's requests were on the wire to ZooKeeper."""

CLOCKS_US = 1_000_000
"""How wrong the server's clock may be, as we know it."""

ZOOKEEPER = "zookeeper"
ON_THE_WIRE = "on the wire: "
EXPIRED = "Expired"
_SESSIONS = {"SyncConnected": "createSession", EXPIRED: "closeSession"}
WRITES = ("create", "setData", "delete", "multi")


def merged(
    parts: dict[str, Part], logged: Sequence[Logged] = (), wire: Wire | None = None
) -> list[AnyEvent]:
    """All events, numbered from 0. Circular causes show that a guess was wrong (a transaction whose
    response was lost, the end of a session by another clock); then no guesses are used."""
    # A circle does not show which guess was wrong, so none is used.
    try:
        return _Merge(parts, logged, wire or {}, guess=True).run()
    except CircularCauses:
        return _Merge(parts, logged, wire or {}, guess=False).run()


class CircularCauses(Exception):
    """The notes contradict each other."""


def _op(name: str) -> str:
    """The operation of a note's name; the path of a sequential znode is known only to the
    server."""
    return name.partition(" ")[0]


Sends = dict[tuple[str, int], tuple[str, Span]]


def _by_number(parts: dict[str, Part], kind: str) -> Sends:
    """The sender of each number: a request is identified by its client id and correlation id, which
    for `sent` is the note's own position."""
    sends: Sends = {}
    for who, part in parts.items():
        for place, note in enumerate(part.notes):
            if note.kind == kind:
                number = place if kind == "sent" else note.number
                sends[note.who, number] = who, note
    return sends


class _Merge:
    def __init__(
        self, parts: dict[str, Part], logged: Sequence[Logged], wire: Wire, *, guess: bool
    ) -> None:
        self._parts = {**parts, ZOOKEEPER: Part([entry.event for entry in logged])}
        self._passed: dict[Place, Place] = {}
        self._wire_requests: dict[Place, Place] = {}
        # Requests on the wire are a part of their own: they happened neither in the process nor in
        # the server.
        for who, requests in wire.items():
            self._parts[ON_THE_WIRE + who] = Part([one.event for one in requests])
            for place, number in notes_of(requests, parts[who].notes, parts[who].events).items():
                self._wire_requests[ON_THE_WIRE + who, place] = who, number
                self._passed[who, number] = ON_THE_WIRE + who, place
        self._logged, self._guesses = logged, guess
        self._sent = _by_number(parts, "sent")
        self._answered = _by_number(parts, "answered")
        self._transactions = {entry.zxid: n for n, entry in enumerate(logged)}
        self._request_of = self._match_requests(wire)
        self._request_places = self._match_transactions(wire)
        self._changed: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for n, entry in enumerate(logged):
            for change in entry.changes:
                self._changed[change].append((entry.zxid, n))
        self._sessions = {(e.session, e.event.op): n for n, e in enumerate(logged) if e.session}
        self._new: dict[Place, int] = {}

    # -- what led to what --------------------------------------------------------------------------

    def _match_requests(self, wire: Wire) -> dict[int, Place]:
        """Match transactions with requests on the wire, by session and xid."""
        requests: dict[tuple[int, int], tuple[Place, str]] = {}
        for who, passed in wire.items():
            for place, one in enumerate(passed):
                key, at = (one.session, one.xid), (ON_THE_WIRE + who, place)
                requests.setdefault(key, (at, one.name))
        matches: dict[int, Place] = {}
        for n, entry in enumerate(self._logged):
            at, name = requests.get((entry.session, entry.xid), (NOWHERE, ""))
            # A session that this run ended on purpose is ended through another connection, whose
            # xids start again: the same number is then another request.
            if at != NOWHERE and (
                not entry.request_names or _op(name) in map(_op, entry.request_names)
            ):
                matches[n] = at
        return matches

    def _match_transactions(self, wire: Wire) -> dict[int, tuple[str, int]]:
        """Match each transaction with the note of its request: by the zxid of the response; if that
        was lost, by the request on the wire; if the wire was not observed, by order within the
        process.
        """
        matches = {
            n: self._wire_requests[p]
            for n, p in self._request_of.items()
            if p in self._wire_requests
        }
        for who, part in self._parts.items():
            for note in part.notes:
                n = self._transactions.get(note.zxid) if note.kind == "told" else None
                # A read's response has the zxid of the last write, which may be another client's.
                if n is not None and self._logged[n].who == who and _op(note.who) in WRITES:
                    matches.setdefault(n, (who, note.number))
        if not self._guesses:
            return matches
        answered = set(matches.values())
        for who, part in self._parts.items():
            if who in wire:
                continue
            waiting = deque(
                (number, note)
                for number, note in enumerate(part.notes)
                if note.kind == "asked" and (who, number) not in answered
            )
            for n, entry in enumerate(self._logged):
                if entry.who == who and n not in matches:
                    first = next((it for it in waiting if it[1].who in entry.request_names), None)
                    # Not requests that were sent after the transaction.
                    if first and since(first[1], part.events) <= entry.event.t + CLOCKS_US:
                        matches[n] = who, first[0]
                        waiting.remove(first)
        return matches

    def _cause_of(self, who: str, note: Span) -> tuple[Place, Place]:
        """The meaning of an incoming note: its cause, and the last earlier event of the process
        that it came from."""
        match note.kind:
            case "received":
                return self._from(self._sent, (note.who, note.number))
            case "got":
                return self._from(self._answered, (note.who, note.number))
            case "told":
                n = self._transactions.get(note.zxid, -1)
                mine = self._request_places.get(n) == (who, note.number)
                return (ZOOKEEPER, n) if mine else NOWHERE, (ZOOKEEPER, n)
            case "fired":
                changes = self._changed.get(note.who, ())
                place = ZOOKEEPER, next((n for zxid, n in changes if zxid > note.zxid), -1)
                return place if place[1] >= 0 else NOWHERE, place
            case "session":
                n = self._sessions.get((note.zxid, _SESSIONS.get(note.who, "")), -1)
                if n < 0:
                    return NOWHERE, NOWHERE
                if note.who == EXPIRED:
                    # The server rejects a client whose session is being closed before the close is
                    # in the log (SessionTrackerImpl touchSession: isClosing). If the clocks show or
                    # allow this, the client's event does not wait for the log's.
                    events = self._parts[who].events
                    after = note.at < len(events) and self._logged[n].event.t > events[note.at].t
                    if after or not self._guesses:
                        return NOWHERE, NOWHERE
                return (ZOOKEEPER, n), (ZOOKEEPER, n)
        return NOWHERE, NOWHERE

    def _from(self, sends: Sends, key: tuple[str, int]) -> tuple[Place, Place]:
        if key not in sends:
            return NOWHERE, NOWHERE
        who, note = sends[key]
        return self._resolved(who, note.cause), (who, note.at - 1)

    def _resolved(self, who: str, cause: int) -> Place:
        """The event that a cause represents, through any number of notes."""
        while cause < -1:
            notes = self._parts[who].notes
            if note_of(cause) >= len(notes):
                return NOWHERE  # a kill came before the note was in its file
            note = notes[note_of(cause)]
            place, _ = self._cause_of(who, note)
            if place == NOWHERE and note.kind == "told":
                place = self._passed.get((who, note.number), NOWHERE)
                if place == NOWHERE:
                    place = who, self._parts[who].notes[note.number].cause
            who, cause = place
        return (who, cause) if cause >= 0 else NOWHERE

    # -- the order ---------------------------------------------------------------------------------

    def _waits(self) -> dict[Place, list[Place]]:
        """For each event, the events of other processes that must precede it."""
        waits: dict[Place, list[Place]] = defaultdict(list)
        for who, part in self._parts.items():
            for note in part.notes:
                _, before = self._cause_of(who, note)
                if before[1] >= 0:
                    waits[who, note.at].append(before)
                if note.kind == "told" and (who, note.number) in self._passed:
                    waits[who, note.at].append(self._passed[who, note.number])
        for n, (who, number) in self._request_places.items():
            requested_at = who, self._parts[who].notes[number].at - 1
            waits[ZOOKEEPER, n] += [requested_at, self._passed.get((who, number), requested_at)]
        for n, request in self._request_of.items():
            waits[ZOOKEEPER, n].append(request)
        for passed, (who, number) in self._wire_requests.items():
            waits[passed].append((who, self._parts[who].notes[number].at - 1))
        return waits

    def run(self) -> list[AnyEvent]:
        """Of the events that may come next, choose the earliest by the clocks."""
        waits = self._waits()
        done = dict.fromkeys(self._parts, 0)
        blocked: dict[Place, list[str]] = defaultdict(list)
        # One entry for each process that can continue: its next event, by its own clock.
        ready = [(p.events[0].t, who) for who, p in self._parts.items() if p.events]
        heapify(ready)
        merged_events: list[AnyEvent] = []
        while ready:
            _, who = heappop(ready)
            at = done[who]
            for other, place in waits.get((who, at), ()):
                # A process that is not part of the run, or has no such event (it died before), is
                # not waited for.
                if other in done and done[other] <= place < len(self._parts[other].events):
                    blocked[other, place].append(who)  # it is looked at again after that one
                    break
            else:
                merged_events.append(self._numbered(who, at, merged_events))
                done[who] = at + 1
                for next_ in (who, *blocked.pop((who, at), ())):
                    events = self._parts[next_].events
                    if done[next_] < len(events):
                        heappush(ready, (events[done[next_]].t, next_))
        if blocked:
            count = sum(len(part.events) for part in self._parts.values())
            raise CircularCauses(f"of {count} events only {len(merged_events)} have an order")
        return merged_events

    def _numbered(self, who: str, at: int, before: Sequence[AnyEvent]) -> AnyEvent:
        """An event with its number, cause and time in the merged trace."""
        event = self._parts[who].events[at]
        if who.startswith(ON_THE_WIRE):
            cause = self._cause_of_request(self._wire_requests.get((who, at), NOWHERE))
        elif who == ZOOKEEPER:
            requested_at = self._request_places.get(at, NOWHERE)
            request = self._request_of.get(at) or self._passed.get(requested_at)
            cause = request or self._cause_of_request(requested_at)
        else:
            cause = self._resolved(who, event.cause)
        seq = self._new[who, at] = len(before)
        # An event before its cause (by its clock) gets the cause's time: a trace never goes
        # backwards.
        changes: dict[str, object] = {
            "seq": seq,
            "t": max(event.t, before[-1].t if before else 0),
            "cause": self._new.get(cause, -1),
        }
        if who.startswith(ON_THE_WIRE) and cause in self._new:
            changes["thread"] = before[self._new[cause]].thread  # the one that sent it
        of = getattr(event, "of", None)
        if isinstance(of, int):
            changes["of"] = self._new.get((who, of), -1)
        numbered: AnyEvent = msgspec.structs.replace(event, **changes)
        return numbered

    def _cause_of_request(self, request: Place) -> Place:
        """The cause of a request's span."""
        who, number = request
        return self._resolved(who, self._parts[who].notes[number].cause) if who else NOWHERE
