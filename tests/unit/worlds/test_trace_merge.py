"""Traces of several processes become one: in causal order, whatever their clocks say."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.trace.events import (
    ActionApplied,
    ActionReturned,
    BrokerStarting,
    ZkRequest,
    ZkTransaction,
)
from emulator.trace.reader import Header
from emulator.trace.values import Parameters
from emulator.worlds.network.cause_links import Span, cause_of
from emulator.worlds.processes.trace_files import merged_run
from emulator.worlds.processes.trace_merge import CircularCauses, Logged, Part, merged
from emulator.worlds.processes.wire_requests import WireRequest, notes_of

SESSION = 7


class Process:
    """One process's share, as it happens; `skew` is how wrong its clock is."""

    def __init__(self, name: str, skew: int = 0) -> None:
        self.name, self.skew = name, skew
        self.events: list[Any] = []
        self.notes: list[Span] = []

    def happens(self, what: str, t: int, cause: int = -1) -> int:
        seq = len(self.events)
        self.events.append(BrokerStarting(seq, t + self.skew, 0, "", cause, what))
        return seq

    def notes_(
        self,
        kind: str,
        who: str = "",
        number: int = -1,
        cause: int = -1,
        zxid: int = 0,
        xid: int = 0,
    ) -> int:
        session = SESSION if xid else 0
        self.notes.append(Span(kind, len(self.events), who, number, cause, zxid, session, xid))
        return len(self.notes) - 1

    @property
    def part(self) -> Part:
        return Part(self.events, self.notes)


def told(processes: list[Process], logged: list[Logged] | None = None) -> list[str]:
    """`what <- what led to it`, in order."""
    events = merged({p.name: p.part for p in processes}, logged or [])
    assert [e.seq for e in events] == list(range(len(events)))
    assert [e.t for e in events] == sorted(e.t for e in events)
    names = [getattr(e, "profile", "") or getattr(e, "do", "") or f"zxid {e.zxid}" for e in events]
    return [
        f"{name} <- {names[e.cause]}" if e.cause >= 0 else name
        for name, e in zip(names, events, strict=True)
    ]


def test_a_request_and_its_answer_although_a_clock_is_late() -> None:
    asks, serves = Process("broker-1"), Process("broker-2", skew=-50)
    fetch = asks.happens("fetch sent", 100)
    number = asks.notes_("sent", "broker-1-fetcher-0", cause=fetch)
    asks.happens("meanwhile", 101)
    note = serves.notes_("received", "broker-1-fetcher-0", number)
    found = serves.happens("found", 102, cause_of(note))
    serves.notes_("answered", "broker-1-fetcher-0", number, cause=found)
    got = asks.notes_("got", "broker-1-fetcher-0", number)
    asks.happens("appended", 120, cause_of(got))
    assert told([asks, serves]) == [
        "fetch sent",
        "found <- fetch sent",
        "meanwhile",
        "appended <- found",
    ]


def test_an_event_whose_note_a_kill_kept_from_the_disk_has_no_known_cause() -> None:
    killed = Process("broker-1")
    killed.happens("found", 102, cause_of(0))
    assert told([killed]) == ["found"]


def wire_request(t: int, name: str, xid: int = 0) -> WireRequest:
    op, _, path = name.partition(" ")
    return WireRequest(ZkRequest(0, t, 1, "", -1, op, path), name, SESSION, xid)


def test_a_request_on_the_wire_is_between_who_asked_and_what_was_applied() -> None:
    """Its thread is that of who asked; a read, which is in no log, leads to its answer."""
    asks = Process("broker-1")
    sent = asks.happens("wants to write", 100)
    write = asks.notes_("asked", "setData /a", cause=sent)
    read = asks.notes_("asked", "getData /b", cause=sent)
    told = asks.notes_("told", "setData /a", write, zxid=100, xid=1)
    asks.happens("written", 100, cause_of(told))
    told = asks.notes_("told", "getData /b", read, zxid=100, xid=2)
    asks.happens("read", 100, cause_of(told))
    wire = {"broker-1": [wire_request(300, "setData /a", 1), wire_request(310, "getData /b", 2)]}
    logged = [transaction(0, "broker-1", "setData /a")]
    events = merged({"broker-1": asks.part}, logged, wire)
    assert [(type(e).__name__, e.cause) for e in events] == [
        ("BrokerStarting", -1),
        ("ZkRequest", 0),
        ("ZkTransaction", 1),
        ("BrokerStarting", 2),
        ("ZkRequest", 0),
        ("BrokerStarting", 4),
    ]
    assert [e.t for e in events] == sorted(e.t for e in events)


def test_a_session_is_there_when_the_server_has_made_it_and_over_when_it_has_ended_it() -> None:
    asks = Process("broker-1")
    for op in ("SyncConnected", "Disconnected", "Expired"):
        asks.notes.append(Span("session", len(asks.events), op, zxid=7))
        asks.happens(op, 5 + len(asks.events), cause_of(len(asks.notes) - 1))
    logged = [
        Logged(ZkTransaction(n, 7 * n, 1, "SyncThread", -1, n + 1, op), n + 1, "x", (), (), 7)
        for n, op in enumerate(("createSession", "closeSession"))
    ]
    assert told([asks], logged) == [
        "zxid 1",
        "SyncConnected <- zxid 1",
        "Disconnected",
        "zxid 2",
        "Expired <- zxid 2",
    ]


def test_a_session_that_was_refused_before_its_end_was_in_the_log_is_not_ended_by_that() -> None:
    """The server knew already; the next session is in the log before the end of this one."""
    asks = Process("broker-1")
    asks.notes.append(Span("session", 0, "Expired", zxid=SESSION))
    asks.happens("Expired", 10, cause_of(0))
    asks.notes_("asked", "connect", cause=0)
    logged = [
        Logged(ZkTransaction(n, t, 1, "SyncThread", -1, n + 1, op), n + 1, who, (asked,), (), s)
        for n, (t, op, who, asked, s) in enumerate(
            [
                (12, "createSession", "broker-1", "connect", 8),
                (15, "closeSession", "x", "closeSession", SESSION),
            ]
        )
    ]
    assert told([asks], logged) == ["Expired", "zxid 1 <- Expired", "zxid 2"]
    late = [entry._replace(event=msgspec.structs.replace(entry.event, t=5)) for entry in logged]
    assert told([asks], late) == ["zxid 1", "zxid 2", "Expired"], "clocks that are wrong go round"


def test_what_passed_before_anybody_asked_was_asked_by_nobody() -> None:
    asks = Process("broker-1")
    asks.happens("begins", 100)
    asks.notes_("asked", "connect")
    wire = {"broker-1": [wire_request(50, "connect"), wire_request(150, "connect")]}
    notes, events = asks.part.notes, asks.part.events
    assert notes_of(wire["broker-1"], notes, events) == {1: 0}


def test_of_two_that_look_alike_session_and_number_say_which_was_on_the_wire() -> None:
    """Even if its response was lost: then the connection was lost, and the sender knows that."""
    asks = Process("broker-1")
    asks.notes_("asked", "setData /a")  # while there was no connection
    asks.notes_("told", "setData /a", 0)
    again = asks.notes_("asked", "setData /a")
    asks.notes_("told", "setData /a", again, xid=7)
    assert notes_of([wire_request(1, "setData /a", 7)], asks.notes, asks.events) == {0: again}


def test_what_nobody_was_told_of_stands_between_what_is_known_around_it() -> None:
    """A process died with a request in flight, restarted and sent the same request: the first one
    precedes what passed after it."""
    asks = Process("broker-1")
    asks.notes_("asked", "getData /a")
    known = asks.notes_("asked", "getData /b")
    asks.notes_("told", "getData /b", known, xid=2)
    later = asks.notes_("asked", "getData /a")
    lost, found = wire_request(1, "getData /a", 1), wire_request(2, "getData /b", 2)
    again = wire_request(3, "getData /a", 3)
    assert notes_of([lost, found, again], asks.notes, asks.events) == {0: 0, 1: known, 2: later}
    assert notes_of([found, again], asks.notes, asks.events) == {0: known, 1: later}
    assert notes_of([again, again, found], asks.notes, asks.events) == {0: 0, 2: known}


def test_an_answer_without_an_event_of_its_own_is_led_to_by_the_request() -> None:
    asks, serves = Process("broker-1"), Process("broker-2")
    sent = asks.happens("sent", 1)
    number = asks.notes_("sent", "c", cause=sent)
    note = serves.notes_("received", "c", number)
    serves.notes_("answered", "c", number, cause=cause_of(note))
    asks.happens("done", 2, cause_of(asks.notes_("got", "c", number)))
    assert told([asks, serves]) == ["sent", "done <- sent"]


def transaction(n: int, who: str, asked: str, *changes: str, t: int = 0) -> Logged:
    event = ZkTransaction(n, t, 0, "SyncThread", -1, 100 + n, "setData")
    return Logged(event, 100 + n, who, (asked,), changes)


def test_a_write_a_watch_and_who_hears_of_it() -> None:
    """The log has no clock that counts: the transaction stands between its request and its reply,
    and the watch that it fires comes after it."""
    writes, hears = Process("broker-1"), Process("broker-2", skew=-1000)
    sent = writes.happens("write sent", 10)
    asked = writes.notes_("asked", "setData /a", cause=sent)
    fired = hears.notes_("fired", "changed /a", zxid=99)
    hears.happens("heard", 12, cause_of(fired))
    reply = writes.notes_("told", "setData /a", asked, zxid=100)
    writes.happens("written", 20, cause_of(reply))
    log = [transaction(0, "broker-1", "setData /a", "changed /a")]
    assert told([writes, hears], log) == [
        "write sent",
        "zxid 100 <- write sent",
        "heard <- zxid 100",
        "written <- zxid 100",
    ]


def test_a_write_whose_answer_was_lost_is_still_its_askers() -> None:
    writes = Process("broker-1")
    sent = writes.happens("write sent", 10)
    writes.notes_("asked", "setData /a", cause=sent)
    log = [transaction(0, "broker-1", "setData /a")]
    assert told([writes], log) == ["write sent", "zxid 100 <- write sent"]


def test_a_transaction_is_its_sessions_request_of_that_number_whatever_looks_alike() -> None:
    """Two equal writes, neither with an answer: the log has the second alone."""
    writes = Process("broker-1")
    for n in range(2):
        writes.notes_("asked", "create /a-", cause=writes.happens(f"write {n}", n))
        writes.notes_("told", "create /a-", 2 * n, xid=n + 1)
    wire = {"broker-1": [wire_request(n, "create /a-", n + 1) for n in range(2)]}
    log = [transaction(0, "broker-1", "create /a-0001")]
    log = [entry._replace(session=SESSION, xid=2) for entry in log]
    events = merged({"broker-1": writes.part}, log, wire)
    (created,) = (e for e in events if isinstance(e, ZkTransaction))
    request = events[created.cause]
    assert created.cause >= 0
    assert isinstance(request, ZkRequest)
    assert getattr(events[request.cause], "profile", "") == "write 1"


def test_a_session_ended_in_its_name_by_somebody_else_is_not_its_first_request() -> None:
    asks = Process("broker-1")
    asks.notes_("asked", "getData /a", cause=asks.happens("reads", 0))
    wire = {"broker-1": [wire_request(1, "getData /a", 1)]}
    ended = transaction(0, "broker-1", "closeSession")._replace(session=SESSION, xid=1)
    events = merged({"broker-1": asks.part}, [ended], wire)
    assert [e.cause for e in events if isinstance(e, ZkTransaction)] == [-1]


def test_a_watch_is_fired_by_the_first_change_after_it_was_set() -> None:
    hears = Process("broker-1")
    hears.happens("heard", 5, cause_of(hears.notes_("fired", "changed /a", zxid=100)))
    log = [transaction(n, "other", "setData /a", "changed /a") for n in range(3)]
    assert "heard <- zxid 101" in told([hears], log)


def test_a_reader_comes_after_what_he_read_and_is_not_led_by_it() -> None:
    reads = Process("broker-1", skew=-100)
    asked = reads.notes_("asked", "getData /a")
    reads.happens("read", 1, cause_of(reads.notes_("told", "getData /a", asked, zxid=100)))
    assert told([reads], [transaction(0, "other", "setData /a", t=50)]) == ["zxid 100", "read"]


def test_a_read_after_ones_own_write_is_led_to_by_who_reads() -> None:
    """Its answer has the zxid of the write; it did not make it."""
    one = Process("broker-1")
    wrote = one.notes_("asked", "create /a", cause=one.happens("writes", 1))
    one.happens("written", 2, cause_of(one.notes_("told", "create /a", wrote, zxid=100)))
    asked = one.notes_("asked", "getData /b", cause=one.happens("reads", 3))
    one.happens("read", 4, cause_of(one.notes_("told", "getData /b", asked, zxid=100)))
    assert told([one], [transaction(0, "broker-1", "create /a")]) == [
        "writes",
        "zxid 100 <- writes",
        "written <- zxid 100",
        "reads",
        "read <- reads",
    ]


def test_what_a_client_was_asked_for_points_at_its_new_number() -> None:
    first, run = Process("broker-1"), Process("run")
    first.happens("before", 0)
    run.events.append(ActionApplied(0, 5, 0, "", -1, "create_topic", Parameters()))
    run.events.append(ActionReturned(1, 6, 0, "", 0, 0, "NONE"))
    events = merged({"broker-1": first.part, "run": run.part})
    assert (events[2].of, events[2].cause) == (1, 1)


def test_notes_that_contradict_each_other_are_noticed() -> None:
    one, other = Process("a"), Process("b")
    for process, client, theirs in ((one, "x", "y"), (other, "y", "x")):
        process.notes_("received", theirs, 1)
        process.happens("never", 1)
        process.notes_("sent", client)
    with pytest.raises(CircularCauses, match="of 2 events only 0"):
        merged({"a": one.part, "b": other.part})


ACTS = st.lists(
    st.tuples(
        st.sampled_from(["happens", "asks", "serves", "hears"]),
        st.integers(0, 2),
        st.integers(0, 2),
    ),
    max_size=60,
)


@given(ACTS, st.lists(st.integers(-1000, 1000), min_size=3, max_size=3))
def test_no_effect_comes_before_its_cause(
    acts: list[tuple[str, int, int]], skews: list[int]
) -> None:
    """Messages at random among three processes whose clocks are wrong at random."""
    processes = [Process(f"broker-{n}", skew) for n, skew in enumerate(skews)]
    before: list[list[str]] = [[], [], []]
    wires: list[tuple[int, int, int, list[str]]] = []
    answers: list[tuple[int, int, int, list[str]]] = []
    happened: dict[str, list[str]] = {}
    for t, (act, me, other) in enumerate(acts):
        process, name = processes[me], f"e{t}"
        cause = -1
        if act == "asks":
            seq = len(process.events) - 1
            wires.append((me, other, process.notes_("sent", f"c{me}", cause=seq), before[me][:]))
        if act == "serves" and (mine := next((w for w in wires if w[1] == me), None)):
            wires.remove(mine)
            cause = cause_of(process.notes_("received", f"c{mine[0]}", mine[2]))
            before[me] += mine[3]
        if act == "hears" and (mine := next((a for a in answers if a[0] == me), None)):
            answers.remove(mine)
            cause = cause_of(process.notes_("got", f"c{me}", mine[2]))
            before[me] += mine[3]
        happened[name] = before[me][:]
        process.happens(name, t, cause)
        before[me].append(name)
        if act == "serves" and cause != -1:
            assert mine is not None
            process.notes_("answered", f"c{mine[0]}", mine[2], cause=len(process.events) - 1)
            answers.append((mine[0], me, mine[2], before[me][:]))
    order = {line.split(" ")[0]: n for n, line in enumerate(told(processes))}
    assert len(order) == len(acts)
    for name, earlier in happened.items():
        assert all(order[one] < order[name] for one in earlier)


def test_a_broker_that_was_killed_before_its_header_was_written_left_no_event(
    tmp_path: Path,
) -> None:
    header = msgspec.json.encode(
        Header(trace=3, scenario="s", seed=1, profile="2.6", zookeeper="embedded")
    )
    for length in range(len(header) + 1):
        (tmp_path / "broker-1.ndjson").write_bytes(header[:length])
        assert merged_run(tmp_path, [1, 2], [], [], 0.0, []) == []
