"""The lane table as it is printed: what a reader sees of a shrink and its late news."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Any

import pytest
from rich.console import Console

from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.values import Lagging, Offset, TopicPartition
from emulator.view.lanes import render_lanes
from tests.unit.view.recorded import recorded
from tests.unit.view.traces import P0, Script


def printed(events: Sequence[AnyEvent], width: int = 124, **choice: Any) -> str:
    """The table as text, without colours."""
    out = io.StringIO()
    Console(file=out, width=width, no_color=True).print(render_lanes(events, **choice))
    return out.getvalue()


def lines(events: Sequence[AnyEvent], width: int = 124, **choice: Any) -> list[str]:
    return [line.rstrip() for line in printed(events, width, **choice).splitlines()]


def without_retries(events: Sequence[AnyEvent], width: int) -> str:
    """The table with runs of blanks and of dashes as one: what it says, not how wide it is."""
    text = printed(events, width)
    return re.sub(r"─+", "─", re.sub(r" +", " ", text)).replace(" \n", "\n")


SHRINK = """\
 5.500 │ │ │ shrinks [1,2,3] → [1,3] ░ │
 │ │ │ 2 at LEO 60 of 118, behind ░ │
 │ │ │ for 2.5 s ░ │
 5.504 │ │ v0→v1 ok [1,3] ◀─┃ has [1,3] at v1 ░ ┃
 … 2.0 s │ │ ┃ ░ ┃
 7.500 │ │ ┃ controller not notified yet ░ ┃
 │ │ ┃ quiet for 2 s of 5 s ░ ┃
"""
NEWS = """\
 12.500 │ │ + isr_change_…0 ◀─┃ notifies the controller ░ ┃
 │ │ ┃ quiet for 7 s ░ ┃
 12.508 │ reads [1,3] v1 │ ┃ ░ ┃
 │ notification │ ┃ ░ ┃
 12.512 │ ─│─│▶metadata [1,3]─░─│▶metadata [1,3] +1ms
 │ │ │ v0→v1, 7 s late ░ │ v0→v1, 7 s late
"""


def test_a_shrink_is_a_decision_a_write_and_news_that_come_late() -> None:
    text = without_retries(Script().shrink_and_late_news().events, width=160)
    assert SHRINK in text
    assert NEWS in text
    assert "┃ shows an older ISR than ZooKeeper has" in text


def test_few_columns_get_thin_lanes_with_the_words_beside_them() -> None:
    text = "\n".join(lines(Script().shrink_and_late_news().events, width=80))
    assert (
        "    5.500 │  │  ●  ░  │   b1: shrinks [1,2,3] → [1,3]\n"
        "          │  │  │  ░  │     2 at LEO 60 of 118, behind for 2.5 s\n"
        "    5.504 │  ◀──○  ░  ┃   ZooKeeper: v0→v1 ok [1,3]\n"
        "          │  │  ┃  ░  ┃   b1: has [1,3] at v1\n"
    ) in text
    assert "b1, b3: metadata [1,3]\n          │  │  │  ░  │     v0→v1, 7 s late\n" in text


@pytest.mark.parametrize("width", [40, 60, 80, 100, 140, 220])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    assert max(map(len, lines(recorded("shrink-expand"), width))) <= width


def test_everyday_traffic_is_counted() -> None:
    text = printed(recorded("shrink-expand"), width=170)
    assert "60 records" in text
    assert "fetches from" not in text
    assert len(text.splitlines()) < 65


def test_a_narrow_choice_of_time_shows_the_traffic_one_by_one() -> None:
    text = printed(recorded("shrink-expand"), from_us=2_000_000, to_us=2_200_000, width=170)
    assert "fetches from 2" in text


def test_a_refused_write_says_what_zookeeper_has() -> None:
    script = Script().shrink_and_late_news()
    script.at(20000).decides((1, 2, 3), (1, 2), 0)
    path = "/brokers/topics/orders/partitions/0/state"
    script.add(e.ZkSent, 1, "setData", path, 0)
    script.add(e.ZkReply, 1, "setData", path, -103, -1, 900)
    script.add(e.IsrUpdateRejected, 1, P0, "shrink", 0)
    text = without_retries(script.events, width=170)
    assert "│ BADVERSION, have 1 ◀─│ shrink refused" in text
    assert "expected v0" in text
    assert "shrink refused" in text


def test_a_marked_row_says_why_below_it() -> None:
    events = Script().shrink_and_late_news().events
    write = next(x for x in events if isinstance(x, e.IsrUpdated))
    text = lines(events, marked={write.seq: "leader not in ISR"})
    marked = next(i for i, line in enumerate(text) if line.startswith("✗"))
    assert "v0→v1 ok" in text[marked]
    assert text[marked + 1] == " ✗ leader not in ISR"


def test_one_actor_is_shown_with_what_it_caused_elsewhere() -> None:
    text = printed(Script().shrink_and_late_news().events, actor="1")
    assert "v0→v1 ok [1,3] ◀" in text
    assert "reads [1,3] v1" not in text


def test_one_partition_is_shown_without_the_others_or_its_name() -> None:
    script = Script().shrink_and_late_news()
    other = TopicPartition("clicks", 3)
    script.at(13000).create((1, 2), other)
    script.at(14000).changes((1, 2), (1,), 1, Lagging(2, 1, 2600), partition=other)
    everything = printed(script.events, width=160)
    assert "clicks-3 v0→v1 ok [1]" in everything
    assert "orders-0 v0→v1 ok" in everything
    only = printed(script.events, width=160, partition=other)
    assert "v0→v1 ok [1]" in only
    assert "orders-0" not in only
    assert "clicks-3" not in only


def test_a_storm_is_one_row_of_each_kind() -> None:
    script = Script()
    script.at(0).action("up")
    many = [TopicPartition("orders", i) for i in range(600)]
    for partition in many:
        script.create((1, 2), partition)
    script.at(5000)
    for partition in many:
        script.changes((1, 2), (1,), 1, Lagging(2, 1, 2600), partition=partition)
    text = printed(script.events, width=160)
    assert len(text.splitlines()) < 30
    assert "and 599 more like it" in text


def test_other_kinds_are_left_out_on_request() -> None:
    events = Script().shrink_and_late_news().events
    text = printed(events, width=160, kinds={"isr_change_held"})
    assert text.count("not notified yet") == 2
    assert "shrinks" not in text


def test_clients_have_a_lane_when_they_are_refused() -> None:
    script = Script().shrink_and_late_news()
    assert "clients" not in printed(script.events)
    script.at(13000).add(
        e.RecordsProduced, 0, "p", P0, "all", "NOT_ENOUGH_REPLICAS", -1, 3, 12_000_000
    )
    assert "3 records NOT_ENOUGH_REPLICAS" in without_retries(script.events, width=220)


def test_fetches_of_a_quiet_cluster_are_folded_with_their_count() -> None:
    script = Script()
    script.at(0).action("up")
    script.create((1, 2, 3))
    for round_ in range(200):
        script.at(100 + round_ * 250).add(e.FetchSent, 2, 1, (), 5)
        script.add(e.FollowerStateUpdated, 1, P0, 2, round_, round_, 0)
    script.add(e.FetchSent, 2, 1, (Offset(P0, 1),), 5)
    assert "201 fetches" in printed(script.events)


def test_an_empty_trace_is_an_empty_table() -> None:
    assert printed([]).strip().startswith("time") or printed([]).strip() == ""


def test_a_broker_without_a_process_is_no_broker_that_stands_still() -> None:
    script = Script()
    script.action("up")
    script.create((1, 2, 3))
    script.at(5000).action("kill", broker=1)
    script.at(7000).action("pause", broker=2)
    script.at(9000).add(e.BrokerStarting, 1, "2.6")
    script.at(9500).add(e.BrokerStarted, 1)
    script.at(11_000).add(e.BrokerExited, 1)
    script.at(12_000).action("resume", broker=2)
    table = without_retries(script.events, 124)
    assert " 5.000 │ │ · killed │ │\n" in table
    assert " 7.000 │ │ · ░ paused │\n" in table
    assert " 9.000 │ │ │ starts ░ │\n" in table
    assert " 11.000 │ │ · has stopped ░ │\n" in table
    assert "· no process" in table
