"""Incremental fetch sessions: both ends remember the same partitions, nothing is lost (§3.2)."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from emulator.kafka.broker.fetch_session import (
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
        self.sessions = FetchSessions(slots)

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
    both.sessions = FetchSessions(10)
    assert both.fetch(want(0)) == ([], Errors.FETCH_SESSION_ID_NOT_FOUND)
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
        self.both.handler.reset()
        self.in_step = False

    @rule()
    def the_leader_restarts(self) -> None:
        self.both.sessions = FetchSessions(10)
        self.in_step = False

    @invariant()
    def both_ends_have_the_same_partitions(self) -> None:
        if self.in_step and self.both.handler.session_id:
            session = self.both.sessions._sessions[self.both.handler.session_id]
            cached = {p: it.request for p, it in session.partitions.items()}
            assert cached == self.both.handler._partitions
            assert session.epoch == self.both.handler.epoch


SessionsStayInStep.TestCase.settings = settings(
    derandomize=True, deadline=None, max_examples=60, stateful_step_count=30
)
TestSessionsStayInStep = SessionsStayInStep.TestCase
