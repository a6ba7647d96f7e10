"""A real session at the pace of a JVM: later, never earlier, and always in order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from emulator.conformance.jvm_client import JvmListener, JvmSession
from tests.unit.zk.virtual_lane import VirtualClock, VirtualLane
from zk.errors import Code
from zk.ops import (
    Check,
    EventType,
    GetData,
    Multi,
    Reply,
    Request,
    SessionState,
    WatchedEvent,
)
from zk.wire import OnReply

CHANGED = WatchedEvent(EventType.NODE_DATA_CHANGED, "/a")


class Wire:
    """A session that is asked, and answers when the test says so; and its owner's notes."""

    def __init__(self, **drawn_us: int) -> None:
        self.clock = VirtualClock()
        self.lane = VirtualLane(self.clock)
        self.drawn_us, self.session_id, self.linked = drawn_us, 7, True
        self.asked: list[tuple[int, str]] = []
        self.told: list[tuple[int, str]] = []
        self.unanswered: list[OnReply] = []
        self.listener = JvmListener(self, self.lane, self.latency, "broker-1")
        self.session = JvmSession(self, self.listener, self.lane, self.latency, "broker-1")

    def latency(self, purpose: str, actor: str) -> int:
        assert actor == "broker-1"
        return self.drawn_us.get(purpose, 0)

    # the session inside

    def submit(self, request: Request, on_reply: OnReply) -> None:
        self.asked.append((self.clock.now_us, getattr(request, "path", "multi")))
        self.unanswered.append(on_reply)

    def close(self) -> None:
        self.asked.append((self.clock.now_us, "close"))

    def abandon(self) -> None:
        self.asked.append((self.clock.now_us, "abandon"))

    # the owner

    def on_watch(self, event: WatchedEvent) -> None:
        self.told.append((self.clock.now_us, f"watch {event.path}"))

    def on_state(self, state: SessionState) -> None:
        self.told.append((self.clock.now_us, state.name))

    def ask(self, path: str) -> None:
        def note(_: Reply) -> None:
            self.told.append((self.clock.now_us, path))

        self.session.submit(GetData(path), note)

    def answer(self) -> None:
        self.unanswered.pop(0)(Reply(Code.OK))


def test_a_request_goes_out_after_what_the_model_takes_to_apply_it() -> None:
    wire = Wire(zk_request=3000, zk_process=200)
    wire.ask("/a")
    assert wire.asked == []
    wire.clock.run_ms(10)
    assert wire.asked == [(3200, "/a")]


def test_several_operations_in_one_request_have_a_time_of_their_own() -> None:
    wire = Wire(zk_request=3000, zk_multi=5000)
    wire.session.submit(Multi((Check("/a", 1),)), lambda _: None)
    wire.clock.run_ms(10)
    assert wire.asked == [(5000, "multi")]


def test_an_answer_that_came_sooner_is_told_when_it_is_due() -> None:
    wire = Wire(zk_reply=4000)
    wire.ask("/a")
    wire.clock.run_ms(1)
    wire.answer()
    assert wire.told == []
    wire.clock.run_ms(10)
    assert wire.told == [(4000, "/a")]


def test_an_answer_that_took_longer_is_told_at_once() -> None:
    wire = Wire(zk_reply=4000)
    wire.ask("/a")
    wire.clock.run_ms(9)
    wire.answer()
    assert wire.told == [(9000, "/a")]


def test_a_watch_does_not_overtake_an_answer_nor_a_state_a_watch() -> None:
    wire = Wire(zk_reply=4000, zk_watch=1000)
    wire.ask("/a")
    wire.answer()
    wire.listener.on_watch(CHANGED)
    wire.listener.on_state(SessionState.DISCONNECTED)
    wire.clock.run_ms(10)
    assert wire.told == [(4000, "/a"), (4000, "watch /a"), (4000, "DISCONNECTED")]


def test_what_was_asked_for_goes_out_before_the_session_is_closed() -> None:
    wire = Wire(zk_request=3000)
    wire.ask("/a")
    wire.session.close()
    wire.clock.run_ms(10)
    assert wire.asked == [(3000, "/a"), (3000, "close")]


def test_a_process_that_died_sends_nothing_more() -> None:
    wire = Wire(zk_request=3000)
    wire.ask("/a")
    wire.session.abandon()
    wire.clock.run_ms(10)
    assert wire.asked == [(0, "abandon")]


def test_it_is_the_session_inside() -> None:
    wire = Wire()
    assert (wire.session.session_id, wire.session.linked) == (7, True)


@given(st.lists(st.tuples(st.integers(0, 9000), st.integers(0, 9000)), min_size=1, max_size=12))
def test_requests_and_answers_keep_their_order_whatever_is_drawn(
    drawn: list[tuple[int, int]],
) -> None:
    wire = Wire()
    for number, (out_us, back_us) in enumerate(drawn):
        wire.drawn_us = {"zk_request": out_us, "zk_reply": back_us}
        wire.ask(f"/{number}")
        wire.clock.run_ms(1)
        while wire.unanswered:
            wire.answer()
    wire.clock.run_ms(200)
    while wire.unanswered:
        wire.answer()
    wire.clock.run_ms(200)
    order = [f"/{number}" for number in range(len(drawn))]
    assert [path for _, path in wire.asked] == order
    assert [path for _, path in wire.told] == order
