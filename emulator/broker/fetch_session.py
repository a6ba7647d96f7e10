"""Incremental fetch sessions (KIP-227): both ends remember the partitions, requests and answers
name what changed.

`FetchSession` is the leader's end, `FetchSessionHandler` the fetcher's. Both keep partitions in
order; what was answered moves to the end, so that a response limit starves nobody.
Sources: server/FetchSession.scala@2.6.3, clients/…/FetchSessionHandler.java@2.6.3.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from emulator.model.errors import Errors
from emulator.protocol.messages import FetchedPartition, FetchPartition, FetchRequest, FetchResponse
from emulator.trace.values import TopicPartition

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
INVALID_SESSION_ID = 0


def next_epoch(epoch: int) -> int:
    """The epoch after `epoch`; 0 and -1 are special and left out when it wraps."""
    return 1 if epoch == (1 << 31) - 1 else epoch + 1


@dataclass(slots=True)
class CachedPartition:
    """What the leader remembers of one partition: the request's parameters, and what it last
    answered."""

    request: FetchPartition
    high_watermark: int = -1
    log_start_offset: int = -1

    def must_respond(self, answer: FetchedPartition) -> bool:
        """Whether there is something to say: records, an error, or an offset that moved."""
        changed = (
            answer.high_watermark != self.high_watermark
            or answer.log_start_offset != self.log_start_offset
        )
        self.high_watermark, self.log_start_offset = answer.high_watermark, answer.log_start_offset
        if answer.error is not Errors.NONE:
            self.high_watermark = -1
            return True
        return changed or bool(answer.batches)


class FetchSession:
    """The leader's end."""

    def __init__(self, session_id: int, partitions: Iterable[FetchPartition]) -> None:
        self.session_id = session_id
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.partitions = {p.partition: CachedPartition(p) for p in partitions}

    def update(self, request: FetchRequest) -> None:
        """Take what the request adds, alters and forgets."""
        for wanted in request.partitions:
            cached = self.partitions.get(wanted.partition)
            if cached is None:
                self.partitions[wanted.partition] = CachedPartition(wanted)
            else:
                cached.request = wanted
        for partition in request.forgotten:
            self.partitions.pop(partition, None)
        self.epoch = next_epoch(self.epoch)

    def select(self, answers: Iterable[FetchedPartition]) -> tuple[FetchedPartition, ...]:
        """What the answer has to name; those partitions move to the end."""
        selected = []
        for answer in answers:
            cached = self.partitions.get(answer.partition)
            if cached is not None and cached.must_respond(answer):
                selected.append(answer)
                self.partitions[answer.partition] = self.partitions.pop(answer.partition)
        return tuple(selected)


class FetchSessions:
    """All sessions at one broker (FetchManager with its cache)."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._sessions: dict[int, FetchSession] = {}
        self._last_id = INVALID_SESSION_ID

    def __len__(self) -> int:
        return len(self._sessions)

    def context_of(
        self, request: FetchRequest
    ) -> tuple[FetchSession | None, tuple[FetchPartition, ...], Errors]:
        """(session, partitions to read in order, error): a new session for epoch 0, the cached one
        otherwise."""
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._sessions.pop(request.session_id, None)
            session = None
            if request.session_epoch == INITIAL_EPOCH and len(self._sessions) < self._slots:
                session = self._open(request.partitions)
            return session, request.partitions, Errors.NONE
        session = self._sessions.get(request.session_id)
        if session is None:
            return None, (), Errors.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != request.session_epoch:
            return None, (), Errors.INVALID_FETCH_SESSION_EPOCH
        session.update(request)
        wanted = tuple(cached.request for cached in session.partitions.values())
        if not wanted:
            del self._sessions[session.session_id]
        return session, wanted, Errors.NONE

    def _open(self, partitions: tuple[FetchPartition, ...]) -> FetchSession:
        self._last_id += 1
        session = self._sessions[self._last_id] = FetchSession(self._last_id, partitions)
        return session

    def response(
        self,
        request: FetchRequest,
        session: FetchSession | None,
        answers: tuple[FetchedPartition, ...],
    ) -> FetchResponse:
        """A full answer, or the part of it that an incremental session has to name."""
        if session is None:
            return FetchResponse(Errors.NONE, INVALID_SESSION_ID, answers)
        selected = session.select(answers)
        full = request.session_epoch == INITIAL_EPOCH
        return FetchResponse(Errors.NONE, session.session_id, answers if full else selected)


class FetchSessionHandler:
    """The fetcher's end: one per connection."""

    def __init__(self) -> None:
        self.session_id = INVALID_SESSION_ID
        self.epoch = INITIAL_EPOCH
        self._partitions: dict[TopicPartition, FetchPartition] = {}

    def build(
        self, wanted: dict[TopicPartition, FetchPartition]
    ) -> tuple[tuple[FetchPartition, ...], tuple[TopicPartition, ...]]:
        """(partitions to name, partitions to forget) of the next request; added ones before altered
        ones."""
        if self.epoch == INITIAL_EPOCH:
            self._partitions = dict(wanted)
            return tuple(wanted.values()), ()
        forgotten = tuple(p for p in self._partitions if p not in wanted)
        altered = []
        for partition, old in self._partitions.items():
            new = wanted.get(partition)
            if new is not None and new != old:
                altered.append(new)
        added = [new for partition, new in wanted.items() if partition not in self._partitions]
        for partition in forgotten:
            del self._partitions[partition]
        for request in (*altered, *added):
            self._partitions[request.partition] = request
        return (*added, *altered), forgotten

    def handle_response(self, response: FetchResponse) -> bool:
        """Take over the session that the answer grants; False when it was refused: the next one is
        full."""
        if response.error is not Errors.NONE:
            self.reset()
            return False
        if response.session_id == INVALID_SESSION_ID:
            self.epoch, self.session_id = INITIAL_EPOCH, INVALID_SESSION_ID
        else:
            self.session_id = response.session_id
            self.epoch = next_epoch(self.epoch)
        return True

    def reset(self) -> None:
        """The connection broke, or the session is unknown there: begin anew."""
        self.session_id, self.epoch = INVALID_SESSION_ID, INITIAL_EPOCH
        self._partitions = {}
