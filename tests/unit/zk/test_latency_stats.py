"""Patterns of paths, and what is counted by them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.trace.percentiles import nearest_rank
from zk.errors import Code
from zk.ops import Check, Create, GetData, Multi, SetData
from zk.patterns import pattern_of
from zk.real.latency_stats import TapStatistics, Times, kind_of

CHANGES = "/isr_change_notification"
STATE = "/brokers/topics/<topic>/partitions/<n>/state"


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        ("/brokers/topics/orders/partitions/3/state", STATE),
        ("/brokers/topics/7/partitions/12/state", STATE),
        ("/brokers/topics", "/brokers/topics"),
        ("/brokers/ids/1001", "/brokers/ids/<broker>"),
        ("/isr_change_notification/isr_change_0000000042", f"{CHANGES}/isr_change_<seq>"),
        ("/config/changes/config_change_0000000001", "/config/changes/config_change_<seq>"),
        ("/config/topics/orders", "/config/topics/<topic>"),
        ("/controller_epoch", "/controller_epoch"),
        ("/mine/7/there2", "/mine/<n>/there2"),
        ("/", "/"),
    ],
)  # fmt: skip
def test_a_pattern_leaves_open_what_varies(path: str, pattern: str) -> None:
    assert pattern_of(path) == pattern


@given(st.lists(st.text("ab1-/_", min_size=1).map(lambda t: t.replace("/", "x")), max_size=8))
def test_a_pattern_is_as_deep_as_its_path_and_its_own_pattern(words: list[str]) -> None:
    pattern = pattern_of("/" + "/".join(words))
    assert pattern.count("/") == max(1, len(words))
    assert pattern_of(pattern) == pattern


def test_a_multi_is_counted_by_what_is_in_it() -> None:
    ops = (Check("/controller_epoch", 3), *(SetData(f"{TOPIC}/{n}/state", b"") for n in (1, 2)))
    assert kind_of(Multi(ops)) == ("multi", f"check /controller_epoch, setData {STATE}")


TOPIC = "/brokers/topics/orders/partitions"


def test_requests_are_counted_with_their_errors_and_their_times() -> None:
    statistics = TapStatistics()
    for n, code in enumerate((Code.OK, Code.OK, Code.BAD_VERSION)):
        statistics.on_request(f"127.0.0.1:{n % 2}")
        statistics.on_reply(SetData(f"{TOPIC}/{n}/state", b"", 1), code, 1000 * (n + 1))
    statistics.on_request("127.0.0.1:0")
    statistics.on_reply("connect", Code.OK, 7)
    statistics.on_request("127.0.0.1:0")
    found = statistics.summary()
    assert (found.requests, found.unanswered, found.clients) == (5, 1, 2)
    state, connect = found.rows
    assert (state.op, state.pattern, state.count) == ("setData", STATE, 3)
    assert state.errors == {"BAD_VERSION": 1}
    assert (state.median_us, state.p99_us, state.max_us) == (2000, 3000, 3000)
    assert (connect.op, connect.pattern, connect.errors) == ("connect", "", {})


def test_what_is_as_frequent_is_in_the_order_of_names() -> None:
    statistics = TapStatistics()
    for request in (GetData("/b"), GetData("/a"), Create("/a", b"")):
        statistics.on_reply(request, Code.OK, 1)
    assert [(row.op, row.pattern) for row in statistics.summary().rows] == [
        ("create", "/a"), ("getData", "/a"), ("getData", "/b"),
    ]  # fmt: skip


@given(st.lists(st.integers(0, 10**8), min_size=1, max_size=60), st.integers(1, 100))
def test_percentiles_are_exact_to_two_digits(times: list[int], percent: int) -> None:
    counted = Times()
    for us in times:
        counted.add(us)
    ordered = sorted(times)
    exact = nearest_rank(ordered, percent)
    found = counted.percentile_us(percent)
    assert found <= exact <= found + max(found, 10) / 10
    assert counted.max_us == ordered[-1]
