"""Addresses of ZooKeeper services, as users write them."""

from __future__ import annotations

import pytest

from zk.real.server import Address, BadAddress, parse_address


@pytest.mark.parametrize(
    ("text", "servers", "chroot"),
    [
        ("localhost:2181", [("localhost", 2181)], ""),
        ("a:1,b:2,c:65535", [("a", 1), ("b", 2), ("c", 65_535)], ""),
        ("10.0.0.1:2181/kafka", [("10.0.0.1", 2181)], "/kafka"),
        ("a:1,b:2/one/two", [("a", 1), ("b", 2)], "/one/two"),
        ("a:1/", [("a", 1)], ""),
        ("a:1/kafka/", [("a", 1)], "/kafka"),
        ("[::1]:2181", [("::1", 2181)], ""),
        (" a:1 , b:2 ", [("a", 1), ("b", 2)], ""),
    ],
)
def test_what_is_understood(text: str, servers: list[tuple[str, int]], chroot: str) -> None:
    address = parse_address(text)
    assert address == Address(tuple(servers), chroot)
    assert parse_address(str(address)) == address


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "'' is not HOST:PORT"),
        ("localhost", "'localhost' is not HOST:PORT"),
        ("localhost:", "'localhost:' is not HOST:PORT"),
        (":2181", "':2181' is not HOST:PORT"),
        ("a:0", "'a:0' is not HOST:PORT"),
        ("a:65536", "'a:65536' is not HOST:PORT"),
        ("a:x", "'a:x' is not HOST:PORT"),
        ("a:1,,b:2", "'' is not HOST:PORT"),
        ("::1:2181", "'::1:2181' is not HOST:PORT"),
        ("a b:1", "'a b:1' is not HOST:PORT"),
        ("/kafka", "'' is not HOST:PORT"),
        ("a:1/x,b:2/x", "the chroot stands once, at the end"),
        ("a:1//x", "the chroot stands once, at the end"),
        ("a:1/../x", "the chroot stands once, at the end"),
        ("http://a:1", "'http:' is not HOST:PORT"),
    ],
)
def test_what_is_not(text: str, problem: str) -> None:
    with pytest.raises(BadAddress, match=problem) as raised:
        parse_address(text)
    assert repr(text) in str(raised.value)
    assert "\n" not in str(raised.value)
