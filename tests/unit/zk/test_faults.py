"""Faults between a client and the modelled service, one at a time."""

from __future__ import annotations

import pytest

from tests.unit.zk.world import Client, World
from zk.errors import Code
from zk.ops import Create, CreateMode, Delete, Exists, GetChildren, GetData, SetData, Sync
from zk.wire import Direction

EPHEMERAL = CreateMode.EPHEMERAL


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def a(world: World) -> Client:
    return world.client("a", timeout_ms=6000)


@pytest.fixture
def b(world: World) -> Client:
    return world.client("b", timeout_ms=6000)


class TestCut:
    def test_a_short_cut_delays_requests_and_keeps_their_order(
        self, world: World, a: Client
    ) -> None:
        world.service.cut("a")
        a.submit(Create("/x", b""))
        a.submit(Create("/x/y", b""))
        world.run_ms(1000)
        assert a.take() == []
        assert world.wire == ["a connect"]
        world.service.heal("a")
        world.run_ms(10)
        assert a.take() == ["create /x OK", "create /x/y OK"]
        assert world.wire == ["a connect", "a create /x", "a create /x/y"]

    def test_what_is_in_flight_is_held_both_ways(self, world: World, a: Client, b: Client) -> None:
        a.ask(Exists("/x", watch=True))
        b.submit(Create("/x", b""))
        a.submit(Exists("/y"))
        world.clock.run_until(world.clock.now_us + 700)
        world.service.cut("a")
        a.submit(Create("/z", b""))
        world.run_ms(100)
        assert a.take() == []
        world.service.heal("a")
        world.run_ms(10)
        assert a.take() == ["NodeCreated /x", "exists /y NO_NODE", "create /z OK"]
        assert world.wire[-3:] == ["b create /x", "a exists /y", "a create /z"]

    def test_a_cut_beyond_the_read_time_out_loses_the_connection_and_is_healed_within_the_session(
        self, world: World, a: Client, b: Client
    ) -> None:
        b.ask(Create("/data", b""))
        b.ask(Create("/parent", b""))
        a.ask(GetData("/data", watch=True))
        a.ask(GetChildren("/parent", watch=True))
        a.ask(Exists("/unborn", watch=True))
        a.ask(Create("/e", b"", EPHEMERAL))
        world.service.cut("a")
        a.submit(SetData("/data", b"held"))
        b.ask(Create("/parent/child", b""))
        world.run_ms(4100)
        assert a.take() == ["setData /data CONNECTION_LOSS", "Disconnected"]
        a.submit(Exists("/e"))
        world.run_ms(200)
        world.service.heal("a")
        world.run_ms(3000)
        assert a.take() == [
            "SyncConnected",
            "NodeDataChanged /data",
            "NodeChildrenChanged /parent",
            "exists /e OK",
        ]
        assert world.wire[-4:] == ["a setData /data", "a connect", "a setWatches", "a exists /e"]
        b.ask(Create("/unborn", b""))
        world.run_ms(10)
        assert a.take() == ["NodeCreated /unborn"]

    def test_a_cut_beyond_the_time_out_costs_the_session_which_is_learnt_soon_after_healing(
        self, world: World, a: Client, b: Client
    ) -> None:
        a.ask(Create("/e", b"", EPHEMERAL))
        b.ask(Exists("/e", watch=True))
        world.service.cut("a")
        world.run_ms(9000)
        assert a.take() == ["Disconnected"]
        assert b.take() == ["NodeDeleted /e"]
        a.submit(Create("/e", b"", EPHEMERAL))
        world.service.heal("a")
        healed_ms = world.clock.now_us // 1000
        world.run_ms(1000)
        assert a.take() == ["Expired", "create /e SESSION_EXPIRED"]
        assert a.when_ms["Expired"] - healed_ms <= 130

    def test_bytes_that_a_sleeping_receiver_already_had_are_not_taken_back(
        self, world: World, a: Client, b: Client
    ) -> None:
        a.ask(Exists("/x", watch=True))
        a.lane.pause()
        b.ask(Create("/x", b""))
        world.run_ms(5)
        world.service.cut("a")
        a.lane.resume()
        world.run_ms(1)
        assert a.take() == ["NodeCreated /x"]

    def test_attempts_made_during_a_long_cut_do_no_harm_when_they_arrive_late(
        self, world: World, a: Client
    ) -> None:
        world.service.cut("a")
        world.run_ms(60_000)
        world.service.heal("a")
        world.run_ms(10_000)
        assert a.take() == ["Disconnected", "Expired"]
        a.open()
        world.run_ms(10_000)
        assert a.take() == ["SyncConnected"]

    def test_cutting_twice_and_healing_what_is_whole_change_nothing(
        self, world: World, a: Client
    ) -> None:
        world.service.heal("a")
        world.service.cut("a")
        world.service.cut("a")
        a.submit(Exists("/x"))
        world.service.heal("a")
        world.service.heal("a")
        world.run_ms(10)
        assert a.take() == ["exists /x NO_NODE"]

    def test_a_cut_of_the_way_there_holds_requests_only(
        self, world: World, a: Client, b: Client
    ) -> None:
        a.ask(Exists("/x", watch=True))
        world.service.cut("a", Direction.TO_SERVER)
        a.submit(Exists("/y"))
        b.ask(Create("/x", b""))
        world.run_ms(100)
        assert a.take() == ["NodeCreated /x"]
        world.service.heal("a")
        world.run_ms(10)
        assert a.take() == ["exists /y NO_NODE"]

    def test_a_cut_of_the_way_back_holds_answers_only_and_no_connection_is_made(
        self, world: World, a: Client
    ) -> None:
        """The server hears pings of the old connection until the client gives it up; of new ones
        nothing, since a handshake needs both ways: so the session runs out."""
        world.service.cut("a", Direction.TO_CLIENT)
        a.submit(Create("/x", b""))
        world.run_ms(3900)
        assert a.take() == []
        assert [it.op for it in world.log] == ["createSession", "create"]
        world.run_ms(10_000)
        assert a.take() == ["create /x CONNECTION_LOSS", "Disconnected"]
        assert world.wire == ["a connect", "a create /x"]
        assert [it.op for it in world.log][2:] == ["closeSession"]
        world.service.heal("a")
        world.run_ms(3000)
        assert a.take() == ["Expired"]


def test_a_delay_is_added_each_way_and_ended(world: World, a: Client) -> None:
    world.service.delay("a", 100_000)
    start_us = world.clock.now_us
    a.ask(Exists("/x"))
    assert world.clock.now_us - start_us == 201_000
    world.service.delay("a", 0)
    start_us = world.clock.now_us
    a.ask(Exists("/x"))
    assert world.clock.now_us - start_us == 1000


def test_the_server_may_expire_a_session_by_itself(world: World, a: Client, b: Client) -> None:
    a.ask(Create("/e", b"", EPHEMERAL))
    b.ask(Exists("/e", watch=True))
    world.service.expire("a")
    world.run_ms(150)
    assert b.take() == ["NodeDeleted /e"]
    assert a.take() == ["Disconnected"]
    world.run_ms(2000)
    assert a.take() == ["Expired"]


def test_a_server_that_is_down_expires_nobody(world: World, a: Client) -> None:
    world.service.stop()
    world.service.expire("a")
    world.run_ms(100)
    world.service.start()
    world.run_ms(3000)
    assert a.take() == ["Disconnected", "SyncConnected"]


class TestDroppedConnections:
    def test_before_the_operation_was_applied(self, world: World, a: Client) -> None:
        a.ask(Create("/x", b""))
        world.service.drop_connection("a", "before", "setData")
        a.submit(Exists("/x"))
        a.submit(SetData("/x", b"1", 0))
        a.submit(Exists("/x"))
        world.run_ms(150)
        assert a.take() == [
            "exists /x OK",
            "setData /x CONNECTION_LOSS",
            "exists /x CONNECTION_LOSS",
            "Disconnected",
        ]
        world.run_ms(3000)
        assert a.take() == ["SyncConnected"]
        assert a.ask(SetData("/x", b"1", 0)).code is Code.OK

    def test_after_it_was_applied_so_that_the_reply_is_lost(self, world: World, a: Client) -> None:
        a.ask(Create("/x", b""))
        world.service.drop_connection("a", "after", "setData")
        a.submit(SetData("/x", b"1", 0))
        world.run_ms(3000)
        assert a.take() == ["setData /x CONNECTION_LOSS", "Disconnected", "SyncConnected"]
        assert a.ask(SetData("/x", b"1", 0)).code is Code.BAD_VERSION
        assert [it.op for it in world.log] == ["createSession", "create", "setData", "error"]

    def test_a_watch_whose_confirmation_was_lost_is_none(
        self, world: World, a: Client, b: Client
    ) -> None:
        a.ask(Create("/x", b""))
        world.service.drop_connection("a", "after", "getData")
        a.submit(GetData("/x", watch=True))
        world.run_ms(3000)
        assert a.take() == ["getData /x CONNECTION_LOSS", "Disconnected", "SyncConnected"]
        b.ask(SetData("/x", b"1"))
        world.run_ms(10)
        assert a.take() == []

    def test_watches_that_missed_nothing_stay_armed(
        self, world: World, a: Client, b: Client
    ) -> None:
        a.ask(Create("/x", b""))
        a.ask(GetData("/x", watch=True))
        a.ask(GetChildren("/x", watch=True))
        world.service.drop_connection("a", "before", "exists")
        a.submit(Exists("/y"))
        world.run_ms(3000)
        assert a.take() == ["exists /y CONNECTION_LOSS", "Disconnected", "SyncConnected"]
        b.ask(SetData("/x", b"1"))
        b.ask(Create("/x/c", b""))
        world.run_ms(10)
        assert a.take() == ["NodeDataChanged /x", "NodeChildrenChanged /x"]

    def test_a_deletion_that_was_missed_is_told_once_to_who_watched_data_and_children(
        self, world: World, a: Client, b: Client
    ) -> None:
        a.ask(Create("/x", b""))
        a.ask(GetData("/x", watch=True))
        a.ask(GetChildren("/x", watch=True))
        world.service.drop_connection("a", "before", "exists")
        a.submit(Exists("/y"))
        world.run_ms(10)
        b.ask(Delete("/x"))
        world.run_ms(3000)
        assert a.take()[2:] == ["SyncConnected", "NodeDeleted /x"]

    def test_a_reconnect_is_a_sign_of_life(self, world: World, a: Client) -> None:
        world.service.drop_connection("a", "before", "exists")
        world.run_ms(1900)
        a.submit(Exists("/y"))
        world.run_ms(10)
        while "SyncConnected" not in a.heard:
            world.run_ms(1)
        a.lane.crash()
        back_ms = a.when_ms["SyncConnected"]
        world.run_ms(10_000)
        assert back_ms + 5990 <= world.logged_ms("closeSession")[0] <= back_ms + 6500

    def test_any_kind_and_only_once(self, world: World, a: Client) -> None:
        world.service.drop_connection("a", "before")
        a.submit(Exists("/x"))
        world.run_ms(3000)
        assert a.take() == ["exists /x CONNECTION_LOSS", "Disconnected", "SyncConnected"]
        assert a.ask(Exists("/x")).code is Code.NO_NODE

    def test_several_times_until_it_is_called_off(self, world: World, a: Client) -> None:
        world.service.drop_connection("a", "before", "exists", 5)
        for _ in range(2):
            a.submit(Exists("/x"))
            world.run_ms(3000)
            assert a.take() == ["exists /x CONNECTION_LOSS", "Disconnected", "SyncConnected"]
        world.service.drop_connection("a", "before", "exists", 0)
        assert a.ask(Exists("/x")).code is Code.NO_NODE


class TestServerStops:
    def test_its_data_and_sessions_are_kept(self, world: World, a: Client) -> None:
        a.ask(Create("/e", b"", EPHEMERAL))
        world.service.stop()
        a.submit(Exists("/e"))
        world.run_ms(20_000)
        assert a.take() == ["exists /e CONNECTION_LOSS", "Disconnected"]
        assert world.logged("closeSession") == []
        world.service.start()
        world.run_ms(3000)
        assert a.take() == ["SyncConnected"]
        assert a.ask(Exists("/e")).code is Code.OK
        assert a.session.session_id == 1

    def test_a_session_that_nobody_takes_up_again_expires_after_a_full_time_out(
        self, world: World, a: Client
    ) -> None:
        a.ask(Create("/e", b"", EPHEMERAL))
        world.service.stop()
        a.session.abandon()
        world.run_ms(60_000)
        world.service.start()
        started_ms = world.clock.now_us // 1000
        world.run_ms(10_000)
        assert started_ms + 6000 <= world.logged_ms("closeSession")[0] <= started_ms + 6500

    def test_requests_while_no_server_listens_fail_at_each_attempt(
        self, world: World, a: Client
    ) -> None:
        world.service.stop()
        world.run_ms(150)
        a.take()
        a.submit(Exists("/x"))
        world.run_ms(1600)
        assert a.take() == ["exists /x CONNECTION_LOSS"]

    def test_a_client_that_comes_while_it_reads_its_data_is_disconnected_and_tries_again(
        self, world: World, a: Client
    ) -> None:
        world.service.stop()
        world.run_ms(100)
        world.service.listen()
        world.service.load()
        world.run_ms(1600)
        world.service.start()
        world.run_ms(2500)
        assert a.take() == ["Disconnected", "SyncConnected"]
        assert world.logged("closeSession") == []

    def test_a_client_that_comes_before_it_has_a_database_gets_no_answer(
        self, world: World, a: Client
    ) -> None:
        """Until the client gives up, a session timeout later, which costs the session."""
        world.service.stop()
        world.run_ms(100)
        world.service.listen()
        world.run_ms(1600)
        world.service.load()
        world.service.start()
        started_ms = world.clock.now_us // 1000
        world.run_ms(5000)
        assert a.take() == ["Disconnected"]
        world.run_ms(5000)
        assert a.take() == ["Expired"]
        assert started_ms + 6000 <= world.logged_ms("closeSession")[0] <= started_ms + 6500

    def test_a_client_may_come_before_its_server(self, world: World) -> None:
        world.service.stop()
        c = Client(world, "c", 6000)
        world.run_ms(2500)
        world.service.start()
        world.run_ms(1000)
        assert c.take() == ["SyncConnected"]


class TestLag:
    def test_reads_lag_until_a_sync(self, world: World, a: Client) -> None:
        world.service.lag("slow", 50_000)
        slow = world.client("slow")
        a.ask(Create("/x", b""))
        assert slow.ask(Exists("/x")).code is Code.NO_NODE
        assert slow.ask(Sync("/")).code is Code.OK
        assert slow.ask(Exists("/x")).code is Code.OK

    def test_a_watch_fires_when_the_lagging_server_applies_the_change(
        self, world: World, a: Client
    ) -> None:
        world.service.lag("slow", 50_000)
        slow = world.client("slow")
        slow.ask(Exists("/x", watch=True))
        a.ask(Create("/x", b""))
        world.run_ms(40)
        assert slow.take() == []
        world.run_ms(20)
        assert slow.take() == ["NodeCreated /x"]

    def test_a_client_always_reads_its_own_writes(self, world: World) -> None:
        world.service.lag("slow", 50_000)
        slow = world.client("slow")
        slow.submit(Create("/mine", b"", EPHEMERAL))
        slow.submit(Exists("/mine"))
        world.run_ms(200)
        assert slow.take() == ["create /mine OK", "exists /mine OK"]

    def test_it_may_begin_and_end_while_the_session_lives(self, world: World, a: Client) -> None:
        slow = world.client("slow")
        slow.ask(Exists("/x", watch=True))
        world.service.lag("slow", 50_000)
        a.ask(Create("/x", b""))
        assert slow.ask(Exists("/x", watch=True)).code is Code.NO_NODE
        world.run_ms(100)
        assert slow.take() == ["NodeCreated /x"]
        world.service.lag("slow", 0)
        slow.ask(Exists("/x", watch=True))
        a.ask(SetData("/x", b"1"))
        world.run_ms(1)
        assert slow.take() == ["NodeDataChanged /x"]

    def test_it_expires_like_any_other(self, world: World, a: Client) -> None:
        world.service.lag("slow", 50_000)
        slow = world.client("slow")
        slow.ask(Create("/mine", b"", EPHEMERAL))
        world.service.expire("slow")
        world.run_ms(3000)
        assert slow.take() == ["Disconnected", "Expired"]
        assert a.ask(Exists("/mine")).code is Code.NO_NODE


def test_two_runs_of_one_story_are_equal() -> None:
    def story() -> tuple[list[str], list[str]]:
        world = World()
        clients = [world.client(f"c{i}", 4000) for i in range(4)]
        for i, client in enumerate(clients):
            client.submit(Create(f"/e{i}", b"", EPHEMERAL))
            client.submit(GetChildren("/", watch=True))
        world.service.cut("c1")
        clients[2].lane.pause()
        world.run_ms(7000)
        world.service.heal("c1")
        clients[2].lane.resume()
        world.run_ms(7000)
        return [line for client in clients for line in client.heard], world.wire

    assert story() == story()


class TestForgottenSessions:
    def test_the_client_hears_that_it_is_over_and_what_it_held_stays(
        self, world: World, a: Client, b: Client
    ) -> None:
        a.ask(Create("/e", b"", EPHEMERAL))
        world.service.forget("a")
        world.run_ms(3000)
        assert a.take() == ["Disconnected", "Expired"]
        assert b.ask(Exists("/e", watch=True)).code is Code.OK
        world.run_ms(20_000)
        assert b.take() == []
        world.service.end_forgotten("a")
        world.run_ms(10)
        assert b.take() == ["NodeDeleted /e"]

    def test_to_end_what_was_not_forgotten_does_nothing(self, world: World, a: Client) -> None:
        a.ask(Create("/e", b"", EPHEMERAL))
        world.service.end_forgotten("a")
        world.run_ms(3000)
        assert a.ask(Exists("/e")).code is Code.OK
