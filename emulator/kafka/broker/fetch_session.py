"""Incremental fetch sessions (KIP-227): both ends remember the partitions, requests and answers
name what changed.

`FetchSession` is the leader's end, `FetchSessionHandler` the fetcher's. Both keep partitions in
order; what was answered moves to the end, so that a response limit starves nobody. Partitions of
which a fetch would change nothing but the time can be *idle* (`idle_fetches` decides): they are not
read, and the session keeps the time of its last fetch for all of them.
Sources: server/FetchSession.scala@2.6.3, clients/…/FetchSessionHandler.java@2.6.3.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from operator import attrgetter

from emulator.kafka.broker.replica import Replica
from emulator.kafka.model.errors import Errors
from emulator.kafka.model.offset_log import OffsetLog
from emulator.kafka.protocol.messages import (
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
    """The epoch after `epoch`; 0 and -1 are special and left out when it wraps."""
    return 1 if epoch == (1 << 31) - 1 else epoch + 1


class CachedPartition:
    """What the leader remembers of one partition: the request's parameters, what it last answered,
    its place in the order; and, while it is idle, the follower that is owed the session's time."""

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
        """Take note of what this answer says; True if it has to be said (maybeUpdateResponseData):
        records, an error, or an offset that moved."""
        changed = (
            answer.high_watermark != self.high_watermark
            or answer.log_start_offset != self.log_start_offset
        )
        self.high_watermark, self.log_start_offset = answer.high_watermark, answer.log_start_offset
        # The next answer without an error is said too, even where no offset has moved.
        if answer.error is not Errors.NONE:
            self.high_watermark = -1
            return True
        # Always: the follower has to truncate.
        if answer.diverging_epoch is not None:
            return True
        return changed or bool(answer.batches)

    def is_noop(self, log: OffsetLog, replica: Replica) -> bool:
        """The same fetch again would read nothing, and leave the follower as it is known."""
        request, end = self.request, log.log_end_offset
        return (
            request.fetch_offset == replica.log_end_offset == end
            and replica.last_fetch_leader_log_end_offset == end
            and replica.log_start_offset == request.log_start_offset
            and self.high_watermark == log.high_watermark
            and self.log_start_offset == log.log_start_offset
        )


class FetchSession:
    """The leader's end, of one follower or consumer (-1). A follower's is privileged: no consumer
    takes its slot before it has lived for EVICTION_MS."""

    def __init__(
        self, session_id: int, replica_id: int, partitions: Iterable[FetchPartition], now_ms: int
    ) -> None:
        self.session_id, self.is_privileged = session_id, replica_id >= 0
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.created_ms = self.last_used_ms = now_ms
        self.fetched_ms = 0
        self.on_wake: Callable[[TopicPartition], None] = _no_parked_fetch
        self._last_place = 0
        self._in_order: list[CachedPartition] | None = None
        self.partitions = {p.partition: CachedPartition(self, p) for p in partitions}
        self.awake = dict(self.partitions)
        """Those that are not idle: what a fetch reads."""
        self.context = FetchContext(self)
        self.cached_size = len(self.partitions)

    def touch(self, now_ms: int) -> None:
        """The session is used, and counts with the partitions that it has now."""
        self.last_used_ms, self.cached_size = now_ms, len(self.partitions)

    @property
    def is_long_lived(self) -> bool:
        """Whether it was used when it had lived long enough."""
        return self.last_used_ms - self.created_ms > EVICTION_MS

    @property
    def evictable_key(self) -> tuple[bool, int, int]:
        """The least valuable session comes first."""
        return self.is_privileged, self.cached_size, self.session_id

    def fetch_completed(self) -> None:
        """The parked fetch is about to be answered."""
        self.on_wake = _no_parked_fetch

    def next_place(self) -> int:
        self._last_place += 1
        return self._last_place

    def update(self, request: FetchRequest) -> None:
        """Take what the request adds, alters and forgets."""
        for fetch in request.partitions:
            cached = self.partitions.get(fetch.partition)
            if cached is None:
                cached = CachedPartition(self, fetch)
                self.partitions[fetch.partition] = self.awake[fetch.partition] = cached
            else:
                # It is owed the time of the fetches before: the request may ask for something else.
                self.wake(cached)
                cached.request = fetch
        for partition in request.forgotten:
            self.partitions.pop(partition, None)
            self.awake.pop(partition, None)
        if request.partitions or request.forgotten:
            self._in_order = None
        self.epoch = next_epoch(self.epoch)

    def in_turn(self, but: Container[TopicPartition] = ()) -> Iterator[FetchPartition]:
        """What is not idle, in order, but for these. The reader may have to wait for a partition's
        lock: what is woken meanwhile has its turn too, if that is still to come."""
        place = 0
        while True:
            order = self._in_order
            if order is None:
                order = self._in_order = sorted(self.awake.values(), key=_PLACE)
            # A new order begins at the front again: what has had its turn is passed by its place.
            for cached in order:
                if cached.place > place:
                    place = cached.place
                    request = cached.request
                    if request.partition in but:
                        continue
                    yield request
                    if self._in_order is not order:
                        break
            else:
                return

    def select(
        self, answers: Iterable[FetchedPartition]
    ) -> tuple[tuple[FetchedPartition, ...], list[CachedPartition]]:
        """What the answer has to name, which moves to the end; and what brings no records, so that
        the next fetch of it may be a no-op."""
        named: list[FetchedPartition] = []
        without_records: list[CachedPartition] = []
        for answer in answers:
            cached = self.partitions.get(answer.partition)
            if cached is None:
                continue
            if cached.maybe_update_response_data(answer):
                named.append(answer)
                # So that a limit of the response starves nobody (KIP-74).
                cached.place = self.next_place()
                self._in_order = None
            if not answer.batches and answer.diverging_epoch is None:
                without_records.append(cached)
        return tuple(named), without_records

    def idle(self, cached: CachedPartition, replica: Replica) -> None:
        """Until it wakes, its follower fetched and was caught up whenever the session fetched."""
        cached.idle_replica = replica
        self.awake.pop(cached.partition, None)
        self._in_order = None

    def wake(self, cached: CachedPartition) -> None:
        """Read it again; its follower gets the time of the session's last fetch."""
        replica = cached.idle_replica
        if replica is None:
            return
        cached.idle_replica = None
        replica.caught_up_until(self.fetched_ms)
        if self.partitions.get(cached.partition) is cached:
            self.awake[cached.partition] = cached
            self._in_order = None
            # A parked fetch of this session has not been watching an idle partition.
            self.on_wake(cached.partition)


_PLACE = attrgetter("place")


def _no_parked_fetch(partition: TopicPartition) -> None:
    """No fetch of the session waits."""


class FetchContext:
    """What one Fetch request reads, and what its answer says. A full one (FullFetchContext, without
    a session SessionlessFetchContext) has its partitions itself; an incremental one
    (IncrementalFetchContext) those of its session."""

    def __init__(
        self, session: FetchSession | None, fetches: tuple[FetchPartition, ...] = ()
    ) -> None:
        self.session, self._fetches = session, fetches
        # A delayed fetch asks at each of its attempts: no call stands between it and its session.
        self.in_turn = self._in_request if session is None or fetches else session.in_turn

    def _in_request(self, but: Container[TopicPartition] = ()) -> Iterator[FetchPartition]:
        return (fetch for fetch in self._fetches if fetch.partition not in but)

    def respond(
        self, answers: tuple[FetchedPartition, ...]
    ) -> tuple[FetchResponse, list[CachedPartition]]:
        """The response, and the partitions of a session of which it has no records."""
        if self.session is None:
            return FetchResponse(Errors.NONE, INVALID_SESSION_ID, answers), []
        named, without_records = self.session.select(answers)
        if self._fetches:
            # A full answer names them all; what may be idle the next one says.
            named, without_records = answers, []
        return FetchResponse(Errors.NONE, self.session.session_id, named), without_records


class FetchSessions:
    """All sessions at one broker (FetchManager with its FetchSessionCache)."""

    def __init__(self, slots: int, now_ms: Callable[[], int]) -> None:
        self._slots, self._now_ms = slots, now_ms
        self._sessions: dict[int, FetchSession] = {}
        # Kafka draws ids. A follower closes the session that it had with this broker's last
        # process: that id must not be another follower's now.
        self._last_id = now_ms()

    def __len__(self) -> int:
        return len(self._sessions)

    def context_of(self, request: FetchRequest) -> FetchContext | Errors:
        """A new session for epoch 0, the cached one otherwise; or the error."""
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            # Epoch 0 or -1 with a session's id ends that session.
            self._sessions.pop(request.session_id, None)
            session = None
            if request.session_epoch == INITIAL_EPOCH:
                session = self._maybe_create_session(request)
            return FetchContext(session, request.partitions)
        session = self._sessions.get(request.session_id)
        if session is None:
            return Errors.FETCH_SESSION_ID_NOT_FOUND
        # A request was lost or came twice: the two ends do not remember the same partitions.
        if session.epoch != request.session_epoch:
            return Errors.INVALID_FETCH_SESSION_EPOCH
        session.update(request)
        if not session.partitions:
            del self._sessions[session.session_id]
            return FetchContext(None, request.partitions)
        session.touch(self._now_ms())
        return session.context

    def _maybe_create_session(self, request: FetchRequest) -> FetchSession | None:
        """None: there is neither a free slot nor a session that has to make room."""
        is_privileged, size = request.replica_id >= 0, len(request.partitions)
        if len(self._sessions) >= self._slots and not self._try_evict(
            size, is_privileged=is_privileged
        ):
            return None
        self._last_id = self._last_id % ((1 << 31) - 1) + 1
        while self._last_id in self._sessions:
            self._last_id = self._last_id % ((1 << 31) - 1) + 1
        session = FetchSession(
            self._last_id, request.replica_id, request.partitions, self._now_ms()
        )
        self._sessions[self._last_id] = session
        return session

    def _try_evict(self, size: int, *, is_privileged: bool) -> bool:
        """A session that nobody has used for EVICTION_MS makes room for any other. So does the
        least valuable one that has lived that long, or (for a follower's) that is a consumer's, if
        the new one is not less valuable still (tryEvict)."""
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
        """Whether the next request has to name every partition."""
        return self.epoch == INITIAL_EPOCH

    def fetch_of(self, partition: TopicPartition) -> FetchPartition | None:
        """What the last request fetched of a partition, named or not."""
        return self._partitions.get(partition)

    def build(
        self, fetches: dict[TopicPartition, FetchPartition]
    ) -> tuple[tuple[FetchPartition, ...], tuple[TopicPartition, ...]]:
        """(partitions to name, partitions to forget) of the next request; added ones before altered
        ones."""
        # A full request names all, in the fetcher's order; the places begin with it.
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
        """Partitions to name when nothing but these may differ from the last request."""
        altered = [new for new in moved if new != self._partitions[new.partition]]
        altered.sort(key=lambda new: self._places[new.partition])
        self._remember(altered)
        return tuple(altered)

    def _remember(self, requests: Iterable[FetchPartition]) -> None:
        for request in requests:
            if request.partition not in self._partitions:
                self._last_place += 1
                self._places[request.partition] = self._last_place
            self._partitions[request.partition] = request

    def handle_response(self, response: FetchResponse) -> bool:
        """Take over the session that the answer grants; False when it was refused: the next one is
        full."""
        if response.error is Errors.FETCH_SESSION_ID_NOT_FOUND:
            self.session_id, self.epoch = INVALID_SESSION_ID, INITIAL_EPOCH
            return False
        if response.error is not Errors.NONE:
            self.close_existing()
            return False
        # The leader grants none: it is older than 1.1, or its cache of sessions is full.
        if response.session_id == INVALID_SESSION_ID:
            self.epoch, self.session_id = INITIAL_EPOCH, INVALID_SESSION_ID
        else:
            self.session_id = response.session_id
            self.epoch = next_epoch(self.epoch)
        return True

    def close_existing(self) -> None:
        """The connection broke, or the epoch was refused: the next request names the session's id,
        which closes it, and asks for a new one (nextCloseExistingAttemptNew)."""
        self.epoch = INITIAL_EPOCH
