"""The effects of requests on znodes, as on the real server 3.5-3.9 (each case was tried on one)."""

from __future__ import annotations

import copy

import pytest

from zk.errors import Code
from zk.model.tree import Tree
from zk.ops import (
    Check,
    Create,
    CreateMode,
    Delete,
    EventType,
    Exists,
    GetChildren,
    GetData,
    Multi,
    OpResult,
    Reply,
    Request,
    SetData,
    Stat,
    Sync,
    WatchedEvent,
)

ALICE, BOB = 1, 2
EPHEMERAL, SEQUENTIAL = CreateMode.EPHEMERAL, CreateMode.PERSISTENT_SEQUENTIAL


class Server:
    """A tree with two sessions, and the watches that fired since they were last looked at."""

    def __init__(self) -> None:
        self.tree = Tree()
        self.tree.create_session(ALICE, 6000)
        self.tree.create_session(BOB, 6000)
        self.fired: list[str] = []

    def ask(self, request: Request, session: int = ALICE) -> Reply:
        reply, self.logged, fired = self.tree.apply(request, session, 1000 + self.tree.zxid)
        self.note(fired)
        return reply

    def note(self, fired: list[tuple[int, WatchedEvent]]) -> None:
        self.fired += [f"{session} {event.type.value} {event.path}" for session, event in fired]

    def create(self, *paths: str, mode: CreateMode = CreateMode.PERSISTENT) -> None:
        for path in paths:
            assert self.ask(Create(path, b"", mode)).code is Code.OK

    def stat(self, path: str) -> Stat:
        stat = self.ask(Exists(path)).stat
        assert stat is not None
        return stat

    def take_fired(self) -> list[str]:
        fired, self.fired = self.fired, []
        return fired


@pytest.fixture
def server() -> Server:
    return Server()


def test_a_fresh_server_has_its_own_znodes_and_counts_the_root_s_children_as_zookeeper_does(
    server: Server,
) -> None:
    assert server.ask(GetChildren("/")).children == ("zookeeper",)
    assert server.stat("/").cversion == -1
    assert server.ask(GetChildren("/zookeeper")).children == ("config", "quota")
    assert server.stat("/zookeeper").cversion == -2


def test_a_created_znode_carries_the_zxid_and_the_time_of_its_creation(server: Server) -> None:
    reply = server.ask(Create("/a", b"one"))
    assert reply == Reply(Code.OK, zxid=3, path="/a")
    assert server.stat("/a") == Stat(
        czxid=3,
        mzxid=3,
        ctime=1002,
        mtime=1002,
        version=0,
        cversion=0,
        aversion=0,
        ephemeral_owner=0,
        data_length=3,
        num_children=0,
        pzxid=3,
    )


def test_null_and_empty_data_are_not_the_same(server: Server) -> None:
    server.ask(Create("/null", None))
    server.ask(Create("/empty", b""))
    assert server.ask(GetData("/null")).data is None
    assert server.ask(GetData("/empty")).data == b""


def test_a_write_raises_the_version_and_needs_the_one_it_names(server: Server) -> None:
    server.create("/a")
    assert server.ask(SetData("/a", b"1", 0)).stat == server.stat("/a")
    assert server.stat("/a").version == 1
    assert server.ask(SetData("/a", b"2", 0)).code is Code.BAD_VERSION
    assert server.ask(SetData("/a", b"2", -1)).code is Code.OK
    assert server.stat("/a").version == 2
    assert server.ask(GetData("/a")).data == b"2"


def test_a_sequential_name_comes_from_how_many_children_were_ever_created(server: Server) -> None:
    server.create("/p", "/p/x")
    assert server.ask(Create("/p/n_", None, SEQUENTIAL)).path == "/p/n_0000000001"
    server.ask(Delete("/p/n_0000000001"))
    server.ask(Delete("/p/x"))
    assert server.ask(Create("/p/n_", None, SEQUENTIAL)).path == "/p/n_0000000002"
    assert server.ask(Create("/p/", None, SEQUENTIAL)).path == "/p/0000000003"
    assert server.stat("/p").cversion == 2 * 4 - 2


def test_children_are_listed_in_the_order_of_java_s_hash_set(server: Server) -> None:
    server.create("/p", *(f"/p/{name}" for name in ("topic", "orders", "b", "a", "10", "2")))
    assert server.ask(GetChildren("/p")).children == ("topic", "a", "orders", "b", "2", "10")


REFUSED = {
    "the parent is missing": (Create("/a/b", b""), Code.NO_NODE),
    "it exists": (Create("/p", b""), Code.NODE_EXISTS),
    "it exists, and so does the root": (Create("/", b""), Code.NODE_EXISTS),
    "below an ephemeral": (Create("/e/x", b""), Code.NO_CHILDREN_FOR_EPHEMERALS),
    "below an ephemeral, but there it is missing": (Delete("/e/x"), Code.NO_NODE),
    "it has children": (Delete("/p"), Code.NOT_EMPTY),
    "it has children, and the version is wrong": (Delete("/p", 7), Code.BAD_VERSION),
    "the root stays": (Delete("/"), Code.BAD_ARGUMENTS),
    "the server's own stay": (Delete("/zookeeper/quota"), Code.BAD_ARGUMENTS),
    "nobody writes the configuration": (SetData("/zookeeper/config", b""), Code.NO_AUTH),
    "nor below it": (Create("/zookeeper/config/x", b""), Code.NO_AUTH),
    "a slash at the end": (Create("/p/", b""), Code.BAD_ARGUMENTS),
    "an empty name": (Create("/p//x", b""), Code.NO_NODE),
    "no slash at all": (Create("p", b""), Code.BAD_ARGUMENTS),
    "a relative name": (Create("/p/..", b""), Code.BAD_ARGUMENTS),
    "a control character": (Create("/p/\x01", b""), Code.BAD_ARGUMENTS),
    "a zero character": (Create("/p/\x00", b""), Code.BAD_ARGUMENTS),
    "an invalid path to write": (SetData("/p/", b""), Code.BAD_ARGUMENTS),
    "nothing to write": (SetData("/x", b""), Code.NO_NODE),
    "nothing to delete": (Delete("/x", 3), Code.NO_NODE),
}


@pytest.mark.parametrize("why", REFUSED)
def test_refused_because(server: Server, why: str) -> None:
    request, code = REFUSED[why]
    server.create("/p", "/p/c")
    server.create("/e", mode=EPHEMERAL)
    before = server.tree.zxid
    assert server.ask(request) == Reply(code, before + 1)
    assert server.logged is not None
    assert (server.logged.op, server.logged.code) == ("error", code)


def test_two_dots_inside_a_name_are_a_name(server: Server) -> None:
    assert server.ask(Create("/..a", b"")).code is Code.OK
    assert server.ask(Create("/.a", b"")).code is Code.OK


def test_reads_of_nothing_take_no_zxid_and_are_not_logged(server: Server) -> None:
    for request in (Exists("/x"), GetData("/x"), GetChildren("/x")):
        assert server.ask(request) == Reply(Code.NO_NODE, 2)
        assert server.logged is None
    assert server.ask(Sync("/x")) == Reply(Code.OK, 2, "/x")


def test_a_session_that_is_not_known_gets_session_expired_and_its_write_is_logged(
    server: Server,
) -> None:
    assert server.ask(Exists("/"), 99).code is Code.SESSION_EXPIRED
    assert server.ask(Create("/a", b""), 99) == Reply(Code.SESSION_EXPIRED, 3)
    assert server.ask(Multi((Create("/a", b""),)), 99).code is Code.SESSION_EXPIRED
    assert server.ask(Exists("/a")).code is Code.NO_NODE


def test_a_multi_applies_all_and_reports_each(server: Server) -> None:
    server.create("/a", "/d")
    reply = server.ask(
        Multi((Check("/a", 0), SetData("/a", b"1", 0), Create("/a/b", b""), Delete("/d")))
    )
    assert reply.code is Code.OK
    check, written, created, deleted = reply.results
    assert (check, created, deleted) == (
        OpResult(Code.OK),
        OpResult(Code.OK, "/a/b"),
        OpResult(Code.OK),
    )
    assert written.stat is not None
    assert (written.stat.version, written.stat.num_children) == (1, 0)
    assert server.logged is not None
    assert [(it.op, it.path, it.version) for it in server.logged.ops] == [
        ("check", "/a", 1),
        ("setData", "/a", 1),
        ("create", "/a/b", None),
        ("delete", "/d", None),
    ]
    assert server.stat("/a/b").czxid == server.stat("/a").mzxid == reply.zxid


def test_a_multi_that_fails_changes_nothing_but_takes_a_zxid(server: Server) -> None:
    server.create("/a")
    server.create("/e", mode=EPHEMERAL)
    server.ask(GetData("/a", watch=True))
    before = server.tree.copy()
    reply = server.ask(
        Multi((SetData("/a", b"1"), Delete("/e"), Check("/a", 0), Create("/f", b""), Delete("/a")))
    )
    assert reply.code is Code.BAD_VERSION
    assert [it.code for it in reply.results] == [
        Code.OK,
        Code.OK,
        Code.BAD_VERSION,
        Code.RUNTIME_INCONSISTENCY,
        Code.RUNTIME_INCONSISTENCY,
    ]
    assert server.logged is not None
    assert [it.op for it in server.logged.ops] == ["setData", "delete", "error", "error", "error"]
    assert server.tree.zxid == before.zxid + 1
    assert server.stat("/a").version == 0
    assert server.ask(Exists("/f")).code is Code.NO_NODE
    assert server.fired == []
    server.note(server.tree.close_session(ALICE)[2])
    assert server.ask(Exists("/e"), BOB).code is Code.NO_NODE


def test_the_log_of_a_failed_fenced_delete_is_the_one_that_real_kafka_left(server: Server) -> None:
    """kafka-2.6.3/shrink-expand, zxid 29: check passed, NONODE of
    /admin/preferred_replica_election."""
    server.create("/controller_epoch", "/admin")
    server.ask(SetData("/controller_epoch", b"1"))
    server.ask(Multi((Check("/controller_epoch", 1), Delete("/admin/preferred_replica_election"))))
    assert server.logged is not None
    check, error = server.logged.ops
    assert (check.op, check.path, check.version) == ("check", "/controller_epoch", 2)
    assert (error.op, error.code) == ("error", -101)


def test_closing_a_session_removes_its_ephemerals_in_one_transaction(server: Server) -> None:
    server.create("/brokers", "/brokers/ids")
    server.create("/brokers/ids/3", "/controller", mode=EPHEMERAL)
    server.ask(Create("/other", b"", EPHEMERAL), BOB)
    server.ask(Exists("/controller", watch=True), BOB)
    server.ask(GetChildren("/brokers/ids", watch=True), BOB)
    _, transaction, fired = server.tree.close_session(ALICE)
    server.note(fired)
    assert (transaction.op, transaction.removed) == (
        "closeSession",
        ("/controller", "/brokers/ids/3"),
    )
    assert server.take_fired() == [
        "2 NodeDeleted /controller",
        "2 NodeChildrenChanged /brokers/ids",
    ]
    assert server.ask(Exists("/other"), BOB).code is Code.OK
    stat = server.ask(Exists("/brokers/ids"), BOB).stat
    assert stat is not None
    assert stat.pzxid == transaction.zxid


def test_many_ephemerals_vanish_in_the_order_of_java_s_hash_set(server: Server) -> None:
    """The order in which a real 3.9.3 server notified a watcher of fifteen deletions."""
    names = "anna bert carl dora emil fred gina hugo ines jack kate lena mona nora otto"
    server.create(*(f"/eph-{name}" for name in names.split()), mode=EPHEMERAL)
    _, transaction, _ = server.tree.close_session(ALICE)
    told = "kate bert emil fred nora lena hugo mona carl ines gina otto jack dora anna"
    assert transaction.removed == tuple(f"/eph-{name}" for name in told.split())


def test_an_ephemeral_names_its_owner(server: Server) -> None:
    server.create("/e", mode=EPHEMERAL)
    assert server.stat("/e").ephemeral_owner == ALICE


class TestWatches:
    def test_an_exists_watch_fires_once_for_creation_change_or_deletion(
        self, server: Server
    ) -> None:
        server.ask(Exists("/a", watch=True), BOB)
        server.create("/a")
        server.ask(SetData("/a", b"1"))
        assert server.take_fired() == ["2 NodeCreated /a"]
        server.ask(Exists("/a", watch=True), BOB)
        server.ask(SetData("/a", b"2"))
        server.ask(Exists("/a", watch=True), BOB)
        server.ask(Delete("/a"))
        assert server.take_fired() == ["2 NodeDataChanged /a", "2 NodeDeleted /a"]

    def test_get_data_of_nothing_sets_no_watch(self, server: Server) -> None:
        server.ask(GetData("/a", watch=True), BOB)
        server.create("/a")
        assert server.take_fired() == []

    def test_a_child_watch_fires_for_creation_and_deletion_but_not_for_data(
        self, server: Server
    ) -> None:
        server.create("/p", "/p/c")
        server.ask(GetChildren("/p", watch=True), BOB)
        server.ask(SetData("/p/c", b"1"))
        server.ask(SetData("/p", b"1"))
        assert server.take_fired() == []
        server.ask(Delete("/p/c"))
        server.create("/p/d")
        assert server.take_fired() == ["2 NodeChildrenChanged /p"]

    def test_who_watches_data_and_children_hears_of_the_deletion_once(self, server: Server) -> None:
        server.create("/p")
        server.ask(GetData("/p", watch=True), BOB)
        server.ask(GetChildren("/p", watch=True), BOB)
        server.ask(Delete("/p"))
        assert server.take_fired() == ["2 NodeDeleted /p"]

    def test_sessions_hear_in_the_order_in_which_they_began_to_watch(self, server: Server) -> None:
        server.create("/p")
        server.ask(GetData("/p", watch=True), BOB)
        server.ask(GetData("/p", watch=True), ALICE)
        server.ask(SetData("/p", b""))
        assert server.take_fired() == ["2 NodeDataChanged /p", "1 NodeDataChanged /p"]

    def test_a_multi_s_watches_fire_in_the_order_of_its_operations(self, server: Server) -> None:
        server.create("/p")
        server.ask(GetChildren("/p", watch=True), BOB)
        server.ask(GetData("/p", watch=True), BOB)
        server.ask(Multi((Create("/p/a", b""), Create("/p/b", b""), SetData("/p", b"1"))))
        assert server.take_fired() == ["2 NodeChildrenChanged /p", "2 NodeDataChanged /p"]

    def test_set_watches_fires_what_was_missed_and_arms_the_rest(self, server: Server) -> None:
        server.create("/same", "/changed", "/gone", "/parent", "/quiet")
        seen = server.tree.zxid
        server.ask(SetData("/changed", b"1"))
        server.ask(Delete("/gone"))
        server.create("/parent/c", "/born")
        fired = server.tree.set_watches(
            BOB,
            seen,
            ("/same", "/changed", "/gone"),
            ("/born", "/unborn"),
            ("/parent", "/quiet", "/gone"),
        )
        server.note(fired)
        assert server.take_fired() == [
            "2 NodeDataChanged /changed",
            "2 NodeDeleted /gone",
            "2 NodeCreated /born",
            "2 NodeChildrenChanged /parent",
            "2 NodeDeleted /gone",
        ]
        server.create("/unborn", "/quiet/c")
        server.ask(SetData("/same", b"1"))
        assert server.take_fired() == [
            "2 NodeCreated /unborn",
            "2 NodeChildrenChanged /quiet",
            "2 NodeDataChanged /same",
        ]


def test_a_copy_shares_nothing(server: Server) -> None:
    server.create("/a", "/a/b")
    server.ask(GetData("/a", watch=True), BOB)
    twin = copy.deepcopy(server.tree)
    server.ask(SetData("/a", b"1"))
    server.ask(Delete("/a/b"))
    server.create("/c", mode=EPHEMERAL)
    reply, _, fired = twin.apply(SetData("/a", b"2", 0), ALICE, 0)
    assert reply.code is Code.OK
    assert fired == [(BOB, WatchedEvent(EventType.NODE_DATA_CHANGED, "/a"))]
    assert "/a/b" in twin.paths()
    assert "/c" not in twin.paths()
    assert twin.ephemerals == {}
