"""Requests through kazoo to a real server, their replies, and the chroot they stay inside of."""

from __future__ import annotations

from collections import Counter
from contextlib import closing

import msgspec
import pytest

from tests.live.zk.owner import QUICK, Owner, another_session, connect
from zk.errors import Code
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
    SetData,
    Sync,
)
from zk.real.kazoo_service import KazooService
from zk.real.server import Address, EmbeddedServer

pytestmark = pytest.mark.live

CHILDREN = EventType.NODE_CHILDREN_CHANGED


def test_each_request_gets_its_reply(service: KazooService, owner: Owner) -> None:
    session = connect(service, owner)
    created, exists, data, children, changed, again, synced, deleted = owner.ask(
        session,
        Create("/a", b"x"),
        Exists("/a"),
        GetData("/a"),
        GetChildren("/"),
        SetData("/a", None, 0),
        SetData("/a", b"", 0),
        Sync("/a"),
        Delete("/a", 1),
    )
    assert (created.code, created.path) == (Code.OK, "/a")
    assert exists.stat == data.stat
    assert data.stat is not None
    assert data.data == b"x"
    assert data.stat.data_length == 1
    assert children.children == ("a",)
    assert children.stat is not None
    assert changed.stat is not None
    assert changed.stat.version == 1
    assert again == Reply(Code.BAD_VERSION, again.zxid)
    assert synced.path == "/a"
    assert deleted == Reply(Code.OK, deleted.zxid)
    assert created.zxid < changed.zxid < again.zxid < deleted.zxid


def test_null_and_empty_data_differ(service: KazooService, owner: Owner) -> None:
    session = connect(service, owner)
    replies = owner.ask(
        session, Create("/n", None), Create("/e", b""), GetData("/n"), GetData("/e")
    )
    assert [reply.data for reply in replies[2:]] == [None, b""]


def test_modes_of_create(service: KazooService, owner: Owner) -> None:
    session = connect(service, owner)
    replies = owner.ask(
        session,
        *[Create("/s-", b"", CreateMode.PERSISTENT_SEQUENTIAL) for _ in range(2)],
        Create("/e-", b"", CreateMode.EPHEMERAL_SEQUENTIAL),
        Exists("/e-0000000002"),
    )
    paths = [reply.path for reply in replies[:3]]
    assert paths == ["/s-0000000000", "/s-0000000001", "/e-0000000002"]
    assert replies[3].stat is not None
    assert replies[3].stat.ephemeral_owner == session.session_id


def test_a_multi_and_one_that_is_rolled_back(service: KazooService, owner: Owner) -> None:
    session = connect(service, owner)
    done, failed, empty = owner.ask(
        session,
        Multi((Create("/a", b""), SetData("/a", b"1", 0), Check("/a", 1))),
        Multi((Check("/a", 1), SetData("/a", b"2"), Check("/a", 1), Delete("/a"))),
        Multi(()),
    )
    assert [result.code for result in done.results] == [Code.OK] * 3
    assert done.results[0].path == "/a"
    assert done.results[1].stat is not None
    assert done.results[1].stat.version == 1
    assert failed.code is Code.BAD_VERSION
    codes = [Code.OK, Code.OK, Code.BAD_VERSION, Code.RUNTIME_INCONSISTENCY]
    assert failed.results == tuple(OpResult(code) for code in codes)
    assert empty.code is Code.OK
    assert empty.results == ()
    assert owner.ask_one(session, GetData("/a")).data == b"1"


def test_paths_are_inside_the_chroot(
    service: KazooService, owner: Owner, server: EmbeddedServer, address: Address
) -> None:
    session = connect(service, owner)
    owner.ask(session, GetChildren("/", watch=True), Exists("/a", watch=True))
    multi = owner.ask_one(session, Multi((Create("/a", b""),)))
    assert multi.results[0].path == "/a"
    assert {(event.type, event.path) for event in owner.events} == {
        (EventType.NODE_CREATED, "/a"),
        (CHILDREN, "/"),
    }
    with closing(KazooService(server.address, QUICK)) as outside:
        other, another = another_session(outside)
        assert another.ask_one(other, Exists(f"{address.chroot}/a")).code is Code.OK


def test_a_thousand_requests_in_flight_are_answered_in_order(
    service: KazooService, owner: Owner
) -> None:
    session = connect(service, owner)
    owner.ask_one(session, Create("/a", b""))
    replies = owner.ask(session, *[SetData("/a", b"%d" % n, n) for n in range(1000)])
    versions = [reply.stat.version for reply in replies if reply.stat]
    assert versions == list(range(1, 1001))


def test_a_large_payload_passes_in_pieces(service: KazooService, owner: Owner) -> None:
    session = connect(service, owner)
    large = bytes(range(256)) * 3500
    replies = owner.ask(session, Create("/a", large), *[GetData("/a")] * 5)
    assert all(reply.data == large for reply in replies[1:])


def test_of_n_conditional_updates_at_one_version_exactly_one_succeeds(
    service: KazooService, owner: Owner
) -> None:
    sessions = [connect(service, owner, f"broker-{n}") for n in range(8)]
    owner.ask_one(sessions[0], Create("/a", b""))
    for version in range(60):
        replies: list[Reply] = []
        for session in sessions:
            session.submit(SetData("/a", b"x", version), replies.append)
        owner.until(lambda replies=replies: len(replies) == len(sessions))  # type: ignore[misc]
        assert Counter(reply.code for reply in replies) == {Code.OK: 1, Code.BAD_VERSION: 7}


def test_a_chroot_that_is_missing_answers_no_node(server: EmbeddedServer, owner: Owner) -> None:
    nowhere = msgspec.structs.replace(server.address, chroot="/nowhere")
    with closing(KazooService(nowhere, QUICK)) as service:
        session = connect(service, owner)
        assert owner.ask_one(session, Create("/a", b"")).code is Code.NO_NODE
