"""Incremental fetch sessions: both ends remember the same partitions, nothing is lost (§3.2)."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from emulator.kafka.broker.fetch_session import (
    EVICTION_MS,
    FINAL_EPOCH,
    FetchContext,
    FetchSessionHandler,
    FetchSessions,
    next_epoch,
)
from emulator.kafka.broker.replica import Replica
from emulator.kafka.model.errors import Errors
from emulator.kafka.model.offset_log import Batch
from emulator.kafka.protocol.messages import (
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    FetchResponse,
)
from emulator.trace.values import TopicPartition

PARTITIONS = [TopicPartition("t", n) for n in range(4)]


def want(partition: int, offset: int = 0) -> FetchPartition:
    return FetchPartition(PARTITIONS[partition], 4, offset, 0, 1000)


def answer(
    partition: int, *, hw: int = 0, error: Errors = Errors.NONE, records: int = 0
) -> FetchedPartition:
    batches = (Batch(0, records, 100, 4),) if records else ()
    return FetchedPartition(PARTITIONS[partition], error, hw, 0, batches)


class Both:
    """A follower's and a leader's end, without a network between them."""

    def __init__(self, slots: int = 10) -> None:
        self.handler = FetchSessionHandler()
        self.now_ms = 1_000_000
        self.sessions = FetchSessions(slots, lambda: self.now_ms)

    def restart_leader(self) -> None:
        """Its next process knows no session."""
        self.now_ms += 1000
        self.sessions = FetchSessions(10, lambda: self.now_ms)

    def request(self, *wanted: FetchPartition) -> FetchRequest:
        named, forgotten = self.handler.build({w.partition: w for w in wanted})
        handler = self.handler
        return FetchRequest(2, 500, 1, 1000, handler.session_id, handler.epoch, named, forgotten)

    def fetch(self, *wanted: FetchPartition) -> tuple[list[int], Errors]:
        """Partitions that the leader reads for this request, in order, and the error."""
        request = self.request(*wanted)
        context = self.sessions.context_of(request)
        if isinstance(context, Errors):
            self.handler.handle_response(FetchResponse(context, 0, ()))
            return [], context
        read = list(context.in_turn())
        response, _ = context.respond(tuple(answer(w.partition.partition) for w in read))
        self.handler.handle_response(response)
        return [w.partition.partition for w in read], Errors.NONE

    def opened(self, request: FetchRequest) -> FetchContext:
        """The leader takes a request that it has no reason to refuse."""
        context = self.sessions.context_of(request)
        assert not isinstance(context, Errors)
        return context


def test_the_first_request_is_full_and_the_next_ones_name_what_changed() -> None:
    both = Both()
    assert [w.partition.partition for w in both.request(want(0), want(1)).partitions] == [0, 1]
    both.fetch(want(0), want(1))
    request = both.request(want(0, 5), want(1), want(2))
    assert [w.partition.partition for w in request.partitions] == [2, 0]
    assert request.session_epoch == 1


def test_the_leader_reads_every_partition_of_the_session_named_or_not() -> None:
    """So an idle partition refreshes its follower's caught-up time with every fetch."""
    both = Both()
    both.fetch(want(0), want(1))
    assert both.fetch(want(0), want(1)) == ([0, 1], Errors.NONE)


def test_what_is_not_wanted_any_more_is_forgotten_at_both_ends() -> None:
    both = Both()
    both.fetch(want(0), want(1))
    request = both.request(want(1))
    assert request.forgotten == (PARTITIONS[0],)
    assert [w.partition for w in both.opened(request).in_turn()] == [PARTITIONS[1]]


def test_what_is_woken_while_a_reader_waits_has_its_turn_if_that_is_still_to_come() -> None:
    both = Both()
    session = both.opened(both.request(want(0), want(1), want(2))).session
    assert session is not None
    first, second, third = session.partitions.values()
    for cached in (first, third):
        session.idle(cached, Replica(2))
    turns = session.in_turn()
    assert next(turns).partition == second.partition
    session.wake(first)
    session.wake(third)
    assert [w.partition for w in turns] == [third.partition]


def test_what_was_answered_moves_to_the_end_so_that_a_limit_starves_nobody() -> None:
    both = Both()
    both.fetch(want(0), want(1), want(2))
    second = both.opened(both.request(want(0), want(1), want(2)))
    response, _ = second.respond((answer(0, records=3), answer(1), answer(2)))
    assert [p.partition.partition for p in response.partitions] == [0]
    both.handler.handle_response(response)
    assert both.fetch(want(0), want(1), want(2)) == ([1, 2, 0], Errors.NONE)


def test_an_answer_names_records_errors_and_offsets_that_moved_and_nothing_else() -> None:
    both = Both()
    session = both.opened(both.request(want(0))).session
    assert session is not None
    said = [
        bool(session.select([one])[0])
        for one in (
            answer(0, hw=3),
            answer(0, hw=3),
            answer(0, hw=4),
            answer(0, hw=4, records=1),
            answer(0, hw=4),
            answer(0, hw=4, error=Errors.FENCED_LEADER_EPOCH),
            answer(0, hw=4),
            answer(0, hw=4),
        )
    ]
    assert said == [True, False, True, True, False, True, True, False]


def test_a_session_that_the_leader_does_not_know_is_refused_and_begun_anew() -> None:
    both = Both()
    both.fetch(want(0))
    both.restart_leader()
    assert both.fetch(want(0)) == ([], Errors.FETCH_SESSION_ID_NOT_FOUND)
    assert (both.handler.session_id, both.handler.epoch) == (0, 0)
    assert both.fetch(want(0)) == ([0], Errors.NONE)


def test_an_epoch_that_is_not_the_next_one_is_refused() -> None:
    both = Both()
    both.fetch(want(0))
    request = both.request(want(0))
    both.sessions.context_of(request)
    assert both.sessions.context_of(request) is Errors.INVALID_FETCH_SESSION_EPOCH


def test_without_a_free_slot_there_is_no_session_and_every_request_is_full() -> None:
    both = Both(slots=0)
    for _ in range(2):
        assert both.fetch(want(0), want(1)) == ([0, 1], Errors.NONE)
        assert both.handler.epoch == 0


def test_a_new_full_request_frees_the_slot_of_the_session_before() -> None:
    both = Both(slots=1)
    both.fetch(want(0))
    session_id = both.handler.session_id
    context = both.opened(FetchRequest(2, 500, 1, 1000, session_id, 0, (want(1),)))
    assert (len(list(context.in_turn())), len(both.sessions)) == (1, 1)


def test_a_final_request_ends_the_session() -> None:
    both = Both()
    both.fetch(want(0))
    last = FetchRequest(2, 500, 1, 1000, both.handler.session_id, FINAL_EPOCH, (want(0),))
    context = both.opened(last)
    assert (context.session, len(list(context.in_turn())), len(both.sessions)) == (None, 1, 0)


def test_a_broken_connection_closes_the_session_and_asks_for_another() -> None:
    """FetchSessionHandlerTest.testDoubleBuild and handleError: the same id, epoch 0."""
    both = Both(slots=1)
    both.fetch(want(0))
    before = both.handler.session_id
    both.handler.close_existing()
    assert (both.handler.session_id, both.handler.epoch) == (before, 0)
    assert both.fetch(want(0)) == ([0], Errors.NONE)
    assert (len(both.sessions), both.handler.epoch) == (1, 1)
    assert both.handler.session_id not in (before, 0)


def test_a_refused_epoch_closes_the_session_too() -> None:
    both = Both(slots=1)
    both.fetch(want(0))
    both.sessions.context_of(both.request(want(0)))
    assert both.fetch(want(0)) == ([], Errors.INVALID_FETCH_SESSION_EPOCH)
    assert both.fetch(want(0)) == ([0], Errors.NONE)
    assert (len(both.sessions), both.handler.epoch) == (1, 1)


def test_the_next_process_gives_no_id_that_the_last_one_gave() -> None:
    both, other = Both(), Both()
    both.fetch(want(0))
    both.handler.close_existing()
    both.restart_leader()
    other.sessions = both.sessions
    other.fetch(want(0))
    both.fetch(want(0))
    assert len(both.sessions) == 2


def test_a_session_without_partitions_ends() -> None:
    """FetchSessionTest.testZeroSizeFetchSession."""
    both = Both()
    both.fetch(want(0))
    context = both.opened(both.request())
    response, _ = context.respond(())
    assert (response.session_id, len(both.sessions)) == (0, 0)
    assert both.handler.handle_response(response)
    assert both.handler.is_full


class Cache:
    """A cache of three sessions, as in FetchSessionTest.testSessionCache, with 100 ms for Kafka's
    120 s. Times are in those."""

    def __init__(self, slots: int = 3) -> None:
        self.now = 0
        self.sessions = FetchSessions(slots, lambda: self.now * EVICTION_MS // 100)

    def create(self, now: int, partitions: int, replica: int = -1) -> int:
        """The id of a new session, 0 without one."""
        self.now = now
        fetches = tuple(
            FetchPartition(TopicPartition("orders", n), 0, 0, 0, 1) for n in range(partitions)
        )
        context = self.sessions.context_of(FetchRequest(replica, 500, 1, 1000, 0, 0, fetches))
        assert isinstance(context, FetchContext)
        return 0 if context.session is None else context.session.session_id

    def touch(self, now: int, session: int) -> None:
        self.now = now
        epoch = self.sessions._sessions[session].epoch
        context = self.sessions.context_of(FetchRequest(-1, 500, 1, 1000, session, epoch, ()))
        assert isinstance(context, FetchContext)

    @property
    def ids(self) -> set[int]:
        return set(self.sessions._sessions)


def test_session_cache() -> None:
    """FetchSessionTest.testSessionCache@2.6.3."""
    cache = Cache()
    id1, id2, id3 = cache.create(0, 10), cache.create(10, 20), cache.create(20, 30)
    assert (cache.create(30, 40), cache.create(40, 5)) == (0, 0), "all are new"
    assert cache.ids == {id1, id2, id3}
    cache.touch(200, id1)
    id4 = cache.create(210, 11)
    assert cache.ids == {id1, id3, id4}, "nobody has used 2"
    for now, session in ((400, id1), (390, id3), (400, id4)):
        cache.touch(now, session)
    id5 = cache.create(410, 50)
    assert cache.ids == {id3, id4, id5}, "1 is the smallest"
    assert cache.create(410, 5) == 0, "it is smaller than all"
    id6 = cache.create(410, 5, replica=2)
    assert cache.ids == {id3, id5, id6}, "a follower's goes before any consumer's"


def test_privileged_session_handling() -> None:
    """FetchSessionTest.testPrivilegedSession@2.6.3: a new follower's session yields to nobody."""
    cache = Cache(slots=2)
    follower, consumer = cache.create(0, 1, replica=2), cache.create(0, 50)
    assert cache.create(50, 80) == 0, "consumers do not displace each other so soon"
    other = cache.create(50, 1, replica=3)
    assert cache.ids == {follower, other}
    assert cache.create(60, 80) == cache.create(60, 80, replica=4) == 0
    for session in (follower, other):
        cache.touch(110, session)
    assert cache.create(120, 80) == 0, (
        "a consumer's is worth less than a follower's, whatever its age"
    )
    assert cache.create(120, 2, replica=4) and follower not in cache.ids
    assert consumer not in cache.ids


@pytest.mark.parametrize(("idle", "kept"), [(100, True), (101, False)])
def test_a_session_is_stale_after_more_than_120_s_without_a_fetch(idle: int, kept: bool) -> None:
    cache = Cache(slots=1)
    follower = cache.create(0, 10, replica=2)
    assert (cache.create(idle, 1) == 0) is kept
    assert (follower in cache.ids) is kept


def test_epochs_wrap_without_touching_0_and_minus_1() -> None:
    assert (next_epoch(0), next_epoch(1), next_epoch(2**31 - 1)) == (1, 2, 1)


class SessionsStayInStep(RuleBasedStateMachine):
    """A follower adds, moves and drops partitions; connections break; the leader forgets."""

    def __init__(self) -> None:
        super().__init__()
        self.both = Both()
        self.wanted: dict[TopicPartition, FetchPartition] = {}
        self.in_step = False

    @rule(partition=st.integers(0, 3), offset=st.integers(0, 3))
    def add_or_move(self, partition: int, offset: int) -> None:
        self.wanted[PARTITIONS[partition]] = want(partition, offset)

    @rule(partition=st.integers(0, 3))
    def drop(self, partition: int) -> None:
        self.wanted.pop(PARTITIONS[partition], None)

    @precondition(lambda self: self.wanted)
    @rule(talking=st.sets(st.integers(0, 3)))
    def fetch(self, talking: set[int]) -> None:
        both = self.both
        request = both.request(*self.wanted.values())
        context = both.sessions.context_of(request)
        self.in_step = not isinstance(context, Errors)
        if isinstance(context, Errors):
            both.handler.handle_response(FetchResponse(context, 0, ()))
            return
        read = list(context.in_turn())
        assert {w.partition: w for w in read} == self.wanted, "the leader reads what is wanted"
        answers = tuple(
            answer(w.partition.partition, records=w.partition.partition in talking) for w in read
        )
        response, _ = context.respond(answers)
        with_records = {a.partition for a in answers if a.batches}
        assert with_records <= {p.partition for p in response.partitions}, "records are told"
        both.handler.handle_response(response)

    @rule()
    def the_connection_breaks(self) -> None:
        self.both.handler.close_existing()
        self.in_step = False

    @rule()
    def the_leader_restarts(self) -> None:
        self.both.restart_leader()
        self.in_step = False

    @invariant()
    def both_ends_have_the_same_partitions(self) -> None:
        if self.in_step and self.both.handler.session_id:
            session = self.both.sessions._sessions[self.both.handler.session_id]
            cached = {p: it.request for p, it in session.partitions.items()}
            assert cached == self.both.handler._partitions
            assert session.epoch == self.both.handler.epoch

    @invariant()
    def one_follower_has_one_slot(self) -> None:
        assert len(self.both.sessions) <= 1


SessionsStayInStep.TestCase.settings = settings(
    derandomize=True, deadline=None, max_examples=60, stateful_step_count=30
)
TestSessionsStayInStep = SessionsStayInStep.TestCase
