"""The wire format: what we write we read, in any pieces; what strangers write cannot hurt."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zk.errors import Code
from zk.ops import (
    Check,
    Create,
    CreateMode,
    Delete,
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
)
from zk.real import jute

paths = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20).map(lambda name: "/" + name)
data = st.none() | st.binary(max_size=40)
versions = st.integers(-(2**31), 2**31 - 1)
ops = st.one_of(
    st.builds(Create, paths, data, st.sampled_from(CreateMode)),
    st.builds(Delete, paths, versions),
    st.builds(SetData, paths, data, versions),
    st.builds(Check, paths, versions),
)
requests: st.SearchStrategy[Request] = st.one_of(
    st.builds(Create, paths, data, st.sampled_from(CreateMode)),
    st.builds(Delete, paths, versions),
    st.builds(SetData, paths, data, versions),
    st.builds(Exists, paths, st.booleans()),
    st.builds(GetData, paths, st.booleans()),
    st.builds(GetChildren, paths, st.booleans()),
    st.builds(Sync, paths),
    st.lists(ops, max_size=5).map(lambda parts: Multi(tuple(parts))),
)

SET_DATA = bytes.fromhex("0000000700000005000000022f61000000017800000003")
STAT = b"".join(
    number.to_bytes(size, "big")
    for number, size in enumerate((8,) * 4 + (4,) * 3 + (8, 4, 4, 8), 1)
)
HEADER = bytes.fromhex("00000007000000000000006300000000")


def test_a_request_byte_by_byte() -> None:
    assert jute.encode_request(7, SetData("/a", b"x", 3)) == SET_DATA
    create = jute.encode_request(1, Create("/a", None, CreateMode.EPHEMERAL))
    everyone = bytes.fromhex("000000010000001f") + b"\0\0\0\5world\0\0\0\6anyone"
    assert create == bytes.fromhex("0000000100000001000000022f61ffffffff") + everyone + b"\0\0\0\1"


def test_a_reply_byte_by_byte() -> None:
    stat = Stat(*range(1, 12))
    assert jute.decode_reply(SetData("/a", b"x"), HEADER + STAT) == Reply(Code.OK, 99, stat=stat)
    got = jute.decode_reply(GetData("/a"), HEADER + b"\xff\xff\xff\xff" + STAT)
    assert got == Reply(Code.OK, 99, data=None, stat=stat)


def test_results_of_a_multi() -> None:
    def part(kind: int, body: bytes = b"") -> bytes:
        return kind.to_bytes(4, "big", signed=True) + b"\0\0\0\0\0" + body

    end = b"\xff\xff\xff\xff\1\xff\xff\xff\xff"
    done = HEADER + part(1, b"\0\0\0\4/k/a") + part(5, STAT) + part(2) + part(13) + end
    reply = jute.decode_reply(Multi(()), done, chroot="/k")
    stat = Stat(*range(1, 12))
    ok = Code.OK
    assert reply.code is ok
    assert reply.results == (
        OpResult(ok, "/a"),
        OpResult(ok, stat=stat),
        OpResult(ok),
        OpResult(ok),
    )
    failed = HEADER + b"".join(part(-1, n.to_bytes(4, "big", signed=True)) for n in (0, -103, -2))
    assert jute.decode_reply(Multi(()), failed + end).code is Code.BAD_VERSION
    with pytest.raises(jute.Malformed, match="result of operation 77 in a multi"):
        jute.decode_reply(Multi(()), HEADER + part(77) + end)


def test_a_code_that_kafka_does_not_know() -> None:
    odd = bytes.fromhex("000000070000000000000063ffffff81")
    assert jute.decode_reply(Delete("/a"), odd) == Reply(Code.RUNTIME_INCONSISTENCY, 99)


@given(st.integers(1, 2**31 - 1), requests)
def test_a_request_comes_back(xid: int, request: Request) -> None:
    assert jute.decode_request(jute.encode_request(xid, request)) == (xid, request)


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (11, "ping"),
        (-11, "closeSession"),
        (100, "auth"),
        (101, "setWatches"),
        (105, "setWatches"),
        (106, "op 106"),
        (13, "op 13"),
        (14_000, "op 14000"),
    ],
)
def test_what_is_no_request_of_ours_has_a_name(code: int, name: str) -> None:
    message = (5).to_bytes(4, "big") + code.to_bytes(4, "big", signed=True) + b"whatever"
    assert jute.decode_request(message) == (5, name)


def test_a_container_is_told_by_its_flags() -> None:
    message = bytearray(jute.encode_request(5, Create("/a", b"")))
    message[-1] = 4
    assert jute.decode_request(bytes(message)) == (5, "create with flags 4")


@given(st.lists(st.binary(max_size=30), max_size=6), st.data())
def test_messages_come_whole_however_the_stream_is_cut(
    messages: list[bytes], data: st.DataObject
) -> None:
    wire = b"".join(jute.frame(message) for message in messages)
    stream, taken, at = bytearray(), [], 0
    while at < len(wire):
        size = data.draw(st.integers(1, len(wire) - at))
        stream += wire[at : at + size]
        at += size
        taken += list(jute.take_frames(stream))
    assert taken == messages
    assert stream == b""


@pytest.mark.parametrize("start", [b"\xff\xff\xff\xff", b"ruok"])
def test_a_stream_with_lengths_that_cannot_be(start: bytes) -> None:
    with pytest.raises(jute.Malformed, match="a message of"):
        list(jute.take_frames(bytearray(start)))


DECODERS: tuple[Callable[[bytes], Any], ...] = (
    jute.decode_request,
    jute.decode_connect,
    jute.decode_connected,
    jute.decode_reply_header,
    jute.decode_watch_event,
    *(
        lambda message, request=request: jute.decode_reply(request, message)
        for request in (Create("/a", b""), GetData("/a"), GetChildren("/a"), Multi(()), Exists("/"))
    ),
)


@given(st.sampled_from(DECODERS), st.binary(max_size=80))
def test_hostile_bytes_are_malformed_or_something(
    decode: Callable[[bytes], Any], message: bytes
) -> None:
    with suppress(jute.Malformed):
        decode(message)


@given(requests, st.data())
def test_a_request_with_one_byte_wrong_is_malformed_or_something(
    request: Request, data: st.DataObject
) -> None:
    message = bytearray(jute.encode_request(1, request))
    message[data.draw(st.integers(4, len(message) - 1))] = data.draw(st.integers(0, 255))
    del message[data.draw(st.integers(8, len(message))) :]
    with suppress(jute.Malformed):
        jute.decode_request(bytes(message))


@given(st.sampled_from(("", "/k", "/k/l")), paths)
def test_a_chroot_goes_before_and_comes_off(chroot: str, path: str) -> None:
    assert jute.inside(chroot, jute.outside(chroot, path)) == path
    assert jute.inside(chroot, jute.outside(chroot, "/")) == "/"
    assert jute.inside("/k", "/kk") == "/kk"


def test_connect_comes_back() -> None:
    request = jute.ConnectRequest(17, 6000, -5, b"p" * 16)
    assert jute.decode_connect(jute.encode_connect(request)) == request


MULTI_HEADER = (14).to_bytes(4, "big") + b"\0" + b"\xff" * 4


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("0000000000000004 00000001 61 02", "a truth value of 2"),
        ("0000000000000001 00000001 61 ffffffff fffffffe", "-2 elements announced"),
        (
            "0000000000000001 00000001 61 ffffffff 7fffffff",
            "2147483647 elements announced, 0 bytes",
        ),
        ("0000000000000004 fffffffe", "-2 bytes announced"),
    ],
)
def test_lengths_and_truth_values_of_requests_are_checked(body: str, why: str) -> None:
    with pytest.raises(jute.Malformed, match=why):
        jute.decode_request(bytes.fromhex(body.replace(" ", "")))


def test_a_multi_in_a_multi_is_refused_however_deep_it_goes() -> None:
    """Not read level by level: there may be more levels than calls."""
    request = b"\0\0\0\1\0\0\0\x0e" + MULTI_HEADER * 100_000
    with pytest.raises(jute.Malformed, match="a multi in a multi"):
        jute.decode_request(request)
