"""A session of the modelled service, as the owner sees it: order, watches, pings, expiry."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.unit.zk.world import Client, World
from zk.errors import Code
from zk.ops import (
    Create,
    CreateMode,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Multi,
    Reply,
    SetData,
    Sync,
)

EPHEMERAL = CreateMode.EPHEMERAL


@pytest.fixture
def world() -> World:
    return World()


def test_the_first_connection_opens_a_session_and_is_logged(world: World) -> None:
    a = world.client("a", timeout_ms=6000)
    assert a.session.session_id == 1
    assert world.wire == ["a connect"]
    assert [(it.op, it.timeout_ms, it.zxid) for it in world.log] == [("createSession", 6000, 1)]


@pytest.mark.parametrize(("asked_ms", "granted_ms"), [(10, 1000), (6000, 6000), (99_000, 60_000)])
def test_the_server_bounds_the_time_out(world: World, asked_ms: int, granted_ms: int) -> None:
    world.client("a", timeout_ms=asked_ms)
    assert world.log[0].timeout_ms == granted_ms


def test_requests_before_the_connection_wait_for_it_in_order(world: World) -> None:
    a = Client(world, "a", 6000)
    a.submit(Create("/a", b""))
    a.submit(Delete("/a"))
    assert a.session.session_id == 0
    world.run_ms(10)
    assert a.take() == ["SyncConnected", "create /a OK", "delete /a OK"]


def test_replies_come_in_the_order_of_the_requests_whatever_the_latencies(world: World) -> None:
    a = world.client("a")
    for latency_us in (5000, 10, 3000, 20):
        world.latencies["zk_request"] = latency_us
        a.submit(Create(f"/after-{latency_us}", b""))
    world.latencies["zk_request"] = 10
    world.run_ms(10)
    assert a.take() == [f"create /after-{us} OK" for us in (5000, 10, 3000, 20)]
    assert [it.zxid for it in world.log] == [1, 2, 3, 4, 5]


def test_replies_never_overtake_each_other(world: World) -> None:
    a = world.client("a")
    a.submit(Exists("/slow"))
    world.latencies["zk_reply"] = 50_000
    world.run_ms(1)
    world.latencies["zk_reply"] = 10
    a.submit(Exists("/quick"))
    world.run_ms(20)
    assert a.take() == []
    world.run_ms(60)
    assert a.take() == ["exists /slow NO_NODE", "exists /quick NO_NODE"]


def test_a_client_sees_the_watch_event_before_it_can_read_the_new_data(world: World) -> None:
    a, b = world.client("a"), world.client("b")
    a.ask(Create("/x", b"old"))
    b.ask(GetData("/x", watch=True))
    world.latencies["zk_watch"] = 30_000
    a.ask(SetData("/x", b"new"))
    b.submit(GetData("/x"))
    world.run_ms(100)
    assert b.take() == ["NodeDataChanged /x", "getData /x OK"]
    assert b.replies[-1].data == b"new"


def test_the_writer_s_own_watch_comes_before_its_reply(world: World) -> None:
    a = world.client("a")
    a.ask(Exists("/x", watch=True))
    a.ask(GetChildren("/", watch=True))
    a.submit(Create("/x", b""))
    world.run_ms(5)
    assert a.take() == ["NodeCreated /x", "NodeChildrenChanged /", "create /x OK"]


def test_every_reply_carries_the_server_s_zxid_and_stats_its_wall_clock(world: World) -> None:
    a = world.client("a")
    assert a.ask(Create("/x", b"")).zxid == 2
    reply = a.ask(Exists("/x"))
    assert reply.zxid == 2
    assert reply.stat is not None
    assert 1_600_000_000_000 <= reply.stat.ctime < 1_600_000_000_100


def test_what_passes_on_the_wire_and_the_log_are_observed(world: World) -> None:
    a = world.client("a")
    a.ask(Create("/x", b""))
    a.ask(Sync("/x"))
    a.ask(Multi((SetData("/x", b"1", 7),)))
    world.run_ms(30_000)
    a.session.close()
    world.run_ms(10)
    assert world.wire == ["a connect", "a create /x", "a sync /x", "a multi", "a closeSession"]
    assert [it.op for it in world.log] == ["createSession", "create", "multi", "closeSession"]


class TestEnds:
    def test_close_removes_the_ephemerals_and_tells_the_owner(self, world: World) -> None:
        a, b = world.client("a"), world.client("b")
        a.ask(Create("/e", b"", EPHEMERAL))
        b.ask(Exists("/e", watch=True))
        a.submit(Create("/before", b""))
        a.session.close()
        a.submit(Create("/after", b""))
        world.run_ms(10)
        assert a.take() == ["create /after CONNECTION_LOSS", "create /before OK", "Closed"]
        assert b.take() == ["NodeDeleted /e"]
        assert world.logged("closeSession")[0].removed == ("/e",)
        a.submit(Create("/too-late", b""))
        world.run_ms(10)
        assert a.take() == ["create /too-late SESSION_EXPIRED"]

    def test_close_before_the_connection_is_sent_when_connected(self, world: World) -> None:
        a = Client(world, "a", 6000)
        world.run_ms(1)
        a.session.close()
        world.run_ms(10)
        assert a.take() == ["SyncConnected", "Closed"]
        assert [it.op for it in world.log] == ["createSession", "closeSession"]

    def test_a_process_that_dies_hears_nothing_and_its_session_lives_until_it_expires(
        self, world: World
    ) -> None:
        a, b = world.client("a", timeout_ms=6000), world.client("b")
        a.ask(Create("/e", b"", EPHEMERAL))
        b.ask(Exists("/e", watch=True))
        a.submit(Exists("/e"))
        a.session.abandon()
        died_ms = world.clock.now_us // 1000
        world.run_ms(10_000)
        assert a.take() == []
        assert b.take() == ["NodeDeleted /e"]
        closed_ms = world.logged_ms("closeSession")[0]
        assert closed_ms % 500 == 0
        assert died_ms + 6000 - 1 <= closed_ms <= died_ms + 6000 + 500

    def test_a_crash_that_closes_no_socket_ends_the_same_way(self, world: World) -> None:
        a = world.client("a", timeout_ms=6000)
        a.ask(Create("/e", b"", EPHEMERAL))
        a.lane.crash()
        world.run_ms(7000)
        assert world.logged("closeSession")[0].removed == ("/e",)
        assert a.take() == []


class TestPings:
    def test_an_idle_client_pings_every_third_of_the_time_out_and_keeps_its_session(
        self, world: World
    ) -> None:
        a = world.client("a", timeout_ms=18_000)
        before = world.clock.callbacks
        world.run_ms(600_000)
        assert a.take() == []
        assert world.clock.callbacks - before <= 100 * 3 + 40

    def test_every_request_counts_as_a_ping(self, world: World) -> None:
        a = world.client("a", timeout_ms=6000)
        for _ in range(20):
            a.ask(Exists("/x"))
            world.run_ms(1500)
        assert world.service.tree.zxid == 1
        assert a.take() == []

    def test_a_loop_that_wakes_for_another_reason_pings_a_second_early(self, world: World) -> None:
        """T = 18 s: a watch event 5.2 s after the last request makes the client ping at once, so
        that after its death the session ends 18 s after the event, not after the request."""
        a, b = world.client("a", timeout_ms=18_000), world.client("b")
        a.ask(Exists("/x", watch=True))
        world.run_ms(5200)
        b.ask(Create("/x", b""))
        world.run_ms(5)
        assert a.take() == ["NodeCreated /x"]
        event_ms = world.clock.now_us // 1000
        a.lane.crash()
        world.run_ms(20_000)
        closed_ms = world.logged_ms("closeSession")[0]
        assert event_ms + 18_000 - 10 <= closed_ms <= event_ms + 18_500

    def test_but_not_when_it_was_idle_for_less(self, world: World) -> None:
        a, b = world.client("a", timeout_ms=18_000), world.client("b")
        a.ask(Exists("/x", watch=True))
        asked_ms = world.clock.now_us // 1000
        world.run_ms(4900)
        b.ask(Create("/x", b""))
        world.run_ms(5)
        a.lane.crash()
        world.run_ms(20_000)
        assert world.logged_ms("closeSession")[0] <= asked_ms + 18_500


class TestPauses:
    def test_a_client_paused_beyond_its_time_out_learns_of_the_expiry_1_to_2_s_after_waking(
        self, world: World
    ) -> None:
        a, b = world.client("a", timeout_ms=6000), world.client("b", timeout_ms=6000)
        a.ask(Create("/e", b"", EPHEMERAL))
        b.ask(Exists("/e", watch=True))
        last_ms = world.clock.now_us // 1000
        a.lane.pause()
        world.run_ms(8000)
        assert b.take() == ["NodeDeleted /e"]
        closed_ms = world.logged_ms("closeSession")[0]
        assert closed_ms % 500 == 0
        assert last_ms + 6000 - 2 <= closed_ms <= last_ms + 6500
        a.lane.resume()
        woke_ms = world.clock.now_us // 1000
        a.submit(Create("/on-waking", b""))
        world.run_ms(500)
        a.submit(Create("/while-away", b""))
        world.run_ms(3000)
        assert a.take() == [
            "create /on-waking CONNECTION_LOSS",
            "Disconnected",
            "Expired",
            "create /while-away SESSION_EXPIRED",
        ]
        assert a.when_ms["Disconnected"] == woke_ms + 100
        assert 1100 <= a.when_ms["Expired"] - woke_ms <= 2100
        assert a.when_ms["create /while-away SESSION_EXPIRED"] == a.when_ms["Expired"] + 100

    def test_what_is_held_at_a_cut_passes_the_gate_when_its_session_is_long_over(
        self, world: World
    ) -> None:
        """random-7: a request of before the cut is seen at 28.6 s, when the link is healed; the
        server closed the session at 24.9 s. It has no effect."""
        a, b = world.client("a", timeout_ms=6000), world.client("b", timeout_ms=6000)
        b.ask(Create("/x", b""))
        world.service.cut("a")
        a.submit(SetData("/x", b"held", 0))
        world.run_ms(9000)
        assert world.logged_ms("closeSession")
        world.wire.clear()
        world.service.heal("a")
        world.run_ms(10)
        assert world.wire[0] == "a setData /x"
        assert b.ask(GetData("/x")).data == b""

    def test_until_it_tries_again_a_client_says_that_it_is_connected(self, world: World) -> None:
        """ZooKeeper.getState; what it is given then waits for the next connection, or its end."""
        a = world.client("a", timeout_ms=6000)
        a.lane.pause()
        world.run_ms(4100)
        a.lane.resume()
        world.run_ms(300)
        assert a.take() == ["Disconnected"]
        assert a.session.linked
        a.submit(Exists("/x"))
        world.run_ms(1299)
        assert a.session.linked
        assert a.take() == []
        world.run_ms(2)
        assert not a.session.linked
        world.run_ms(100)
        assert a.take() == ["SyncConnected", "exists /x NO_NODE"]

    def test_a_pause_below_the_read_time_out_is_not_noticed(self, world: World) -> None:
        a = world.client("a", timeout_ms=6000)
        a.lane.pause()
        world.run_ms(3900)
        a.lane.resume()
        world.run_ms(10_000)
        assert a.take() == []
        assert world.service.tree.zxid == 1

    def test_a_pause_shorter_than_two_thirds_can_cost_the_session(self, world: World) -> None:
        """The last ping went out shortly before 2T/3 of silence were over: on waking the client
        drops its connection, sleeps more than a second, and the server's deadline passes."""
        world.latencies["zk_reconnect"] = 999_000
        a = world.client("a", timeout_ms=3000)
        world.run_ms(3950 - world.clock.now_us // 1000)
        a.lane.pause()
        world.run_ms(1990)
        a.lane.resume()
        world.run_ms(5000)
        assert a.take() == ["Disconnected", "Expired"]

    def test_what_arrived_while_it_slept_too_long_is_not_read_any_more(self, world: World) -> None:
        """Recorded (a controller paused for 11 s of T = 18 s): the watch event in its socket was
        lost with the connection, and fired again through setWatches."""
        a, b = world.client("a", timeout_ms=6000), world.client("b")
        a.ask(Exists("/x", watch=True))
        a.lane.pause()
        world.run_ms(4500)
        b.ask(Create("/x", b""))
        world.run_ms(10)
        a.lane.resume()
        world.run_ms(3000)
        assert a.take() == ["Disconnected", "SyncConnected", "NodeCreated /x"]

    def test_a_server_that_stood_still_beyond_the_time_out_expires_its_sessions_first_of_all(
        self, world: World
    ) -> None:
        a, b = world.client("a", timeout_ms=6000), world.client("b", timeout_ms=6000)
        world.server.pause()
        b.submit(Create("/sent-meanwhile", b""))
        world.run_ms(8000)
        assert a.take() == ["Disconnected"]
        assert b.take() == ["create /sent-meanwhile CONNECTION_LOSS", "Disconnected"]
        world.server.resume()
        world.run_ms(10)
        assert [it.op for it in world.log[2:]] == ["closeSession", "closeSession"]
        world.run_ms(5000)
        assert (a.take(), b.take()) == (["Expired"], ["Expired"])

    @pytest.mark.parametrize(
        ("first", "hears"),
        [
            pytest.param("server", ["SyncConnected"], id="before_its_session_is_taken_out"),
            pytest.param(
                "tracker",
                ["SyncConnected", "Disconnected", "Expired"],
                id="before_its_session_is_closed",
            ),
        ],
    )
    def test_after_a_stall_a_client_reconnects(self, first: str, hears: list[str]) -> None:
        """Recorded (2.6.3, a server paused for 7.3 s of T = 4.4 s): of four sessions that were
        closed at once three clients had the expiry in 8 ms, and one 1.7 s later."""
        world = World(has_tracker=True)
        a = world.client("a", timeout_ms=6000)
        lanes = {"server": world.server, "tracker": world.tracker}
        for lane in lanes.values():
            lane.pause()
        world.run_ms(8000)
        assert a.take() == ["Disconnected"]
        lanes.pop(first).resume()
        lanes.popitem()[1].resume()
        world.run_ms(10_000)
        assert a.take() == hears
        if "Expired" in hears:
            assert 1000 <= a.when_ms["Expired"] - 8000 <= 2100

    def test_a_server_that_stood_still_for_less_keeps_them(self, world: World) -> None:
        a = world.client("a", timeout_ms=6000)
        world.server.pause()
        a.submit(Create("/sent-meanwhile", b""))
        world.run_ms(3900)
        world.server.resume()
        world.run_ms(10_000)
        assert a.take() == ["create /sent-meanwhile OK"]

    def test_an_attempt_that_nobody_answers_is_given_up_after_the_time_out(
        self, world: World
    ) -> None:
        a = world.client("a", timeout_ms=6000)
        world.server.pause()
        attempts_s = []
        for second in range(40):
            before = len(world.wire)
            world.run_ms(1000)
            attempts_s += [second] * (len(world.wire) - before)
        assert a.take() == ["Disconnected"]
        gaps = {after - before for before, after in pairwise(attempts_s)}
        assert len(attempts_s) >= 4
        assert gaps <= {7, 8}


def test_a_request_costs_two_scheduled_calls(world: World) -> None:
    a = world.client("a")
    a.ask(Create("/x", b""))
    before = world.clock.callbacks
    replies: list[Reply] = []
    for _ in range(100):
        a.session.submit(SetData("/x", b""), replies.append)
    world.run_ms(10)
    assert [it.code for it in replies] == [Code.OK] * 100
    assert world.clock.callbacks - before == 200


def test_sessions_of_one_tick_expire_together(world: World) -> None:
    clients = [world.client(name, timeout_ms=6000) for name in "abc"]
    for client in clients:
        client.lane.crash()
    world.run_ms(8000)
    assert len(set(world.logged_ms("closeSession"))) == 1
    assert [it.session_id for it in world.logged("closeSession")] == [1, 2, 3]
