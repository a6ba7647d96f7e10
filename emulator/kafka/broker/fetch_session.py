"""Incremental fetch sessions (KIP-227): both ends store the partitions; messages contain only
changes.

`FetchSession` is the leader's end, `FetchSessionHandler` the fetcher's. Both keep partitions in
order; a partition in a response moves to the end, so that the response limit cannot starve others.
A partition whose fetch would change only times can be *idle* (`idle_fetches` decides): it is not
read, and the session stores the time of its last fetch for all idle partitions. Sources:
server/FetchSession.scala@2.6.3, clients/…/FetchSessionHandler.java@2.6.3.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from operator import attrgetter

import msgspec

from emulator.kafka.broker.replica import Replica
from emulator.kafka.model.errors import NO_ERROR, Errors
from emulator.kafka.model.offset_log import OffsetLog
from emulator.kafka.protocol.messages import (
    NO_EPOCH,
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    FetchResponse,
)
from emulator.trace.values import TopicPartition

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
INVALID_SESSION_ID = 0

EVICTION_MS = 120_000
"""KafkaServer.scala@2.6.3 MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS."""


def next_epoch(epoch: int) -> int:
    """The epoch after `epoch`; a wrap skips the special values 0 and -1."""
    return 1 if epoch == (1 << 31) - 1 else epoch + 1


class CachedPartition:
    """The leader's record of one partition: the request's parameters, the offsets last sent, and
    its place in the order. While it is idle, also the follower that has to get the session's fetch
    time.
    """

    __slots__ = (
        "high_watermark",
        "idle_replica",
        "log_start_offset",
        "partition",
        "place",
        "request",
        "session",
    )

    def __init__(self, session: FetchSession, request: FetchPartition) -> None:
        self.session, self.request = session, request
        self.partition = request.partition
        self.high_watermark = self.log_start_offset = -1
        self.place = session.next_place()
        self.idle_replica: Replica | None = None

    def maybe_update_response_data(self, answer: FetchedPartition) -> bool:
        """Store the offsets of this response. True if the response must include the partition:
        records, an error, or a changed offset (maybeUpdateResponseData)."""
        hw, start = answer.high_watermark, answer.log_start_offset
        changed = hw != self.high_watermark or start != self.log_start_offset
        self.high_watermark, self.log_start_offset = hw, start
        # The first response after an error includes the partition even if no offset has changed.
        if answer.error is not NO_ERROR:
            self.high_watermark = -1
            return True
        # The response must always include it: the follower has to truncate, or the consumer should
        # read elsewhere.
        if answer.diverging_epoch is not None or answer.preferred_read_replica >= 0:
            return True
        return changed or bool(answer.batches)

    def is_noop(self, log: OffsetLog, replica: Replica) -> bool:
        """Whether the same fetch would read nothing and leave the follower's state unchanged."""
        request, end = self.request, log.log_end_offset
        return (
            request.fetch_offset == replica.log_end_offset == end
            and replica.last_fetch_leader_log_end_offset == end
            and replica.log_start_offset == request.log_start_offset
            and self.high_watermark == log.high_watermark
            and self.log_start_offset == log.log_start_offset
        )


class FetchSession:
    """The leader's end of a session with one follower or consumer (-1). A follower's session is
    privileged: a consumer cannot take its slot before it has lived for EVICTION_MS."""

    def __init__(
        self,
        session_id: int,
        replica_id: int,
        partitions: Iterable[FetchPartition],
        now_ms: int,
        *,
        keeps_epochs: bool = True,
    ) -> None:
        self.session_id, self.is_privileged = session_id, replica_id >= 0
        self._keeps_epochs = keeps_epochs
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.created_ms = self.last_used_ms = now_ms
        self.fetched_ms = 0
        self.on_wake: Callable[[TopicPartition], None] = _no_parked_fetch
        self._last_place = 0
        self._in_order: list[CachedPartition] | None = None
        self.partitions = {
            fetch.partition: CachedPartition(self, fetch) for fetch in self._to_cache(partitions)
        }
        self.awake = dict(self.partitions)
        """The partitions that are not idle: a fetch reads these."""
        self._woken: list[tuple[CachedPartition, Replica]] = []
        """Idle partitions that changed since the last fetch began to read, which may have missed
        them."""
        self.context = FetchContext(self)
        self.cached_size = len(self.partitions)

    def touch(self, now_ms: int) -> None:
        """The session is used; its size counts for evictions."""
        self.last_used_ms, self.cached_size = now_ms, len(self.partitions)

    @property
    def is_long_lived(self) -> bool:
        """Whether its last use was more than EVICTION_MS after its creation."""
        return self.last_used_ms - self.created_ms > EVICTION_MS

    @property
    def evictable_key(self) -> tuple[bool, int, int]:
        """Sort key: the least valuable session comes first."""
        return self.is_privileged, self.cached_size, self.session_id

    def fetch_completed(self) -> None:
        """The waiting fetch gets its response."""
        self.on_wake = _no_parked_fetch

    def next_place(self) -> int:
        self._last_place += 1
        return self._last_place

    def update(self, request: FetchRequest) -> None:
        """Apply the request's added, changed and removed partitions."""
        for fetch in self._to_cache(request.partitions):
            cached = self.partitions.get(fetch.partition)
            if cached is None:
                cached = CachedPartition(self, fetch)
                self.partitions[fetch.partition] = self.awake[fetch.partition] = cached
            else:
                # Wake it first: it must get the time of earlier fetches, and the new request may
                # differ.
                self.wake(cached)
                cached.request = fetch
        for partition in request.forgotten:
            self.partitions.pop(partition, None)
            self.awake.pop(partition, None)
        if request.partitions or request.forgotten:
            self._in_order = None
        self.epoch = next_epoch(self.epoch)

    def _to_cache(self, fetches: Iterable[FetchPartition]) -> Iterable[FetchPartition]:
        """The fetches as the session's next ones read them: up to 2.4 without leader epochs, so
        that no leader refuses them (KAFKA-9338)."""
        if self._keeps_epochs:
            return fetches
        return [msgspec.structs.replace(f, current_leader_epoch=NO_EPOCH) for f in fetches]

    def in_turn(self, but: Container[TopicPartition] = ()) -> Iterator[FetchPartition]:
        """The partitions that are not idle, in order, without those in `but`. The reader may wait
        for a partition's lock between two of them: a partition that wakes meanwhile is included if
        its place is still ahead.
        """
        place = 0
        while True:
            order = self._in_order
            if order is None:
                order = self._in_order = sorted(self.awake.values(), key=_PLACE)
            # A new order starts at the front; partitions that were already returned are skipped by
            # place.
            for cached in order:
                if cached.place > place:
                    place = cached.place
                    if cached.partition not in but:
                        yield cached.request
                        if self._in_order is not order:
                            break
            else:
                return

    def select(
        self, answers: Iterable[FetchedPartition]
    ) -> tuple[tuple[FetchedPartition, ...], list[CachedPartition]]:
        """The partitions that the response includes, which move to the end of the order, and those
        without records, whose next fetch may be a no-op."""
        named: list[FetchedPartition] = []
        without_records: list[CachedPartition] = []
        for answer in answers:
            cached = self.partitions.get(answer.partition)
            if cached is None:
                continue
            if cached.maybe_update_response_data(answer):
                named.append(answer)
                # So that a limited response starves no partition (KIP-74).
                self._last_place += 1
                cached.place = self._last_place
                self._in_order = None
            if not answer.batches and answer.diverging_epoch is None:
                without_records.append(cached)
        return tuple(named), without_records

    def fetch_arrived(self) -> None:
        """The read of a new fetch begins."""
        self._woken.clear()

    def fetch_recorded(self, now_ms: int, partitions: Iterable[TopicPartition]) -> None:
        """One time for all idle fetches of the session, and for those that were idle in their turn
        and have changed since: the reader may have waited for a lock. `partitions`: what it read.
        """
        self.fetched_ms = now_ms
        if self._woken:
            read = set(partitions)
            for cached, replica in self._woken:
                if cached.partition not in read:
                    replica.caught_up_until(now_ms)

    def idle(self, cached: CachedPartition, replica: Replica) -> None:
        """Until it wakes, its follower counts as caught up at each fetch of the session."""
        cached.idle_replica = replica
        self.awake.pop(cached.partition, None)
        self._in_order = None

    def wake(self, cached: CachedPartition) -> None:
        """Read the partition again; its follower gets the time of the session's last fetch."""
        replica = cached.idle_replica
        if replica is None:
            return
        cached.idle_replica = None
        replica.caught_up_until(self.fetched_ms)
        self._woken.append((cached, replica))
        if self.partitions.get(cached.partition) is cached:
            self.awake[cached.partition] = cached
            self._in_order = None
            # A waiting fetch of this session does not watch idle partitions: register it.
            self.on_wake(cached.partition)


_PLACE = attrgetter("place")


def _no_parked_fetch(partition: TopicPartition) -> None:
    """The session has no waiting fetch."""


class FetchContext:
    """The partitions that one Fetch request reads, and its response. A full request
    (FullFetchContext, or SessionlessFetchContext) has its own partitions; an incremental one
    (IncrementalFetchContext) those of its session.
    """

    def __init__(
        self, session: FetchSession | None, fetches: tuple[FetchPartition, ...] = ()
    ) -> None:
        self.session, self._fetches = session, fetches
        # A delayed fetch calls this for each attempt: the session's method is used directly.
        self.in_turn = self._in_request if session is None or fetches else session.in_turn

    def _in_request(self, but: Container[TopicPartition] = ()) -> Iterator[FetchPartition]:
        return (fetch for fetch in self._fetches if fetch.partition not in but)

    def respond(
        self, answers: tuple[FetchedPartition, ...]
    ) -> tuple[FetchResponse, list[CachedPartition]]:
        """The response, and the session's partitions without records."""
        if self.session is None:
            return FetchResponse(NO_ERROR, INVALID_SESSION_ID, answers), []
        named, without_records = self.session.select(answers)
        if self._fetches:
            # A full response includes all partitions; the next response shows which may be idle.
            named, without_records = answers, []
        return FetchResponse(NO_ERROR, self.session.session_id, named), without_records


class FetchSessions:
    """All sessions at one broker (FetchManager with its FetchSessionCache)."""

    def __init__(self, slots: int, now_ms: Callable[[], int], *, keeps_epochs: bool = True) -> None:
        self._slots, self._now_ms, self._keeps_epochs = slots, now_ms, keeps_epochs
        self._sessions: dict[int, FetchSession] = {}
        # Kafka draws ids at random. A follower closes the session that it had with this broker's
        # last process: its id must not belong to another follower now.
        self._last_id = now_ms()

    def __len__(self) -> int:
        return len(self._sessions)

    def context_of(self, request: FetchRequest) -> FetchContext | Errors:
        """A new session for epoch 0, otherwise the cached one; or the error."""
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            # Epoch 0 or -1 with a session id closes that session.
            self._sessions.pop(request.session_id, None)
            session = None
            if request.session_epoch == INITIAL_EPOCH:
                session = self._maybe_create_session(request)
            return FetchContext(session, request.partitions)
        session = self._sessions.get(request.session_id)
        if session is None:
            return Errors.FETCH_SESSION_ID_NOT_FOUND
        # A request was lost or arrived twice: the two ends have different partitions.
        if session.epoch != request.session_epoch:
            return Errors.INVALID_FETCH_SESSION_EPOCH
        session.update(request)
        if not session.partitions:
            del self._sessions[session.session_id]
            return FetchContext(None, request.partitions)
        session.touch(self._now_ms())
        return session.context

    def _maybe_create_session(self, request: FetchRequest) -> FetchSession | None:
        """None if there is neither a free slot nor a session to evict."""
        is_privileged, size = request.replica_id >= 0, len(request.partitions)
        if len(self._sessions) >= self._slots and not self._try_evict(
            size, is_privileged=is_privileged
        ):
            return None
        self._last_id = self._last_id % ((1 << 31) - 1) + 1
        while self._last_id in self._sessions:
            self._last_id = self._last_id % ((1 << 31) - 1) + 1
        session = FetchSession(
            self._last_id,
            request.replica_id,
            request.partitions,
            self._now_ms(),
            keeps_epochs=self._keeps_epochs,
        )
        self._sessions[self._last_id] = session
        return session

    def _try_evict(self, size: int, *, is_privileged: bool) -> bool:
        """Evict a session that was not used for EVICTION_MS. Otherwise evict the least valuable
        session that is long-lived (or, for a follower, a consumer's), unless the new one is less
        valuable (tryEvict).
        """
        sessions = self._sessions.values()
        if not sessions:
            return False
        oldest = min(sessions, key=lambda one: (one.last_used_ms, one.session_id))
        if self._now_ms() - oldest.last_used_ms > EVICTION_MS:
            del self._sessions[oldest.session_id]
            return True
        evictable = [
            one
            for one in sessions
            if one.is_long_lived or (is_privileged and not one.is_privileged)
        ]
        least = min(evictable, key=lambda one: one.evictable_key, default=None)
        if least is None or (is_privileged, size, 0) < least.evictable_key:
            return False
        del self._sessions[least.session_id]
        return True


class FetchSessionHandler:
    """The fetcher's end: one per connection."""

    def __init__(self) -> None:
        self.session_id = INVALID_SESSION_ID
        self.epoch = INITIAL_EPOCH
        self._partitions: dict[TopicPartition, FetchPartition] = {}
        self._places: dict[TopicPartition, int] = {}
        self._last_place = 0

    @property
    def is_full(self) -> bool:
        """Whether the next request has to contain every partition."""
        return self.epoch == INITIAL_EPOCH

    @property
    def can_forget(self) -> bool:
        """Whether the leader has partitions of this session that a request can drop."""
        return bool(self._partitions) and not self.is_full

    def fetch_of(self, partition: TopicPartition) -> FetchPartition | None:
        """The last fetch of a partition, whether or not that request contained it."""
        return self._partitions.get(partition)

    def build(
        self, fetches: dict[TopicPartition, FetchPartition]
    ) -> tuple[tuple[FetchPartition, ...], tuple[TopicPartition, ...]]:
        """(partitions to send, partitions to forget) for the next request; added ones come before
        changed ones."""
        # A full request contains all partitions in the fetcher's order and defines the places.
        if self.is_full:
            self._partitions, self._places = {}, {}
            self._remember(fetches.values())
            return tuple(fetches.values()), ()
        forgotten = tuple(p for p in self._partitions if p not in fetches)
        altered = []
        for partition, old in self._partitions.items():
            new = fetches.get(partition)
            if new is not None and new != old:
                altered.append(new)
        added = [new for partition, new in fetches.items() if partition not in self._partitions]
        for partition in forgotten:
            del self._partitions[partition], self._places[partition]
        self._remember((*altered, *added))
        return (*added, *altered), forgotten

    def build_moved(self, moved: Iterable[FetchPartition]) -> tuple[FetchPartition, ...]:
        """The partitions to send if only these may differ from the last request."""
        altered = [new for new in moved if new != self._partitions[new.partition]]
        altered.sort(key=lambda new: self._places[new.partition])
        for new in altered:
            self._partitions[new.partition] = new
        return tuple(altered)

    def _remember(self, requests: Iterable[FetchPartition]) -> None:
        for request in requests:
            if request.partition not in self._partitions:
                self._last_place += 1
                self._places[request.partition] = self._last_place
            self._partitions[request.partition] = request

    def handle_response(self, response: FetchResponse) -> bool:
        """Adopt the session of the response. False if the session was rejected: the next request is
        full."""
        if response.error is Errors.FETCH_SESSION_ID_NOT_FOUND:
            self.session_id, self.epoch = INVALID_SESSION_ID, INITIAL_EPOCH
            return False
        if response.error is not NO_ERROR:
            self.close_existing()
            return False
        # No session granted: the leader is older than 1.1, or its session cache is full.
        if response.session_id == INVALID_SESSION_ID:
            self.epoch, self.session_id = INITIAL_EPOCH, INVALID_SESSION_ID
        else:
            self.session_id = response.session_id
            self.epoch = next_epoch(self.epoch)
        return True

    def close_existing(self) -> None:
        """The connection broke, or the epoch was rejected. The next request closes the session by
        its id and requests a new one (nextCloseExistingAttemptNew)."""
        self.epoch = INITIAL_EPOCH
