"""docs/zk-vs-rpc.md: what its tables are made of, and that each has its place in it."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.conformance.recording import Recording
from tools.paths.__main__ import COMPARED, LIVE, PAGE, RECORDED
from tools.paths.measured import Delays
from tools.paths.tables import Both, delays, with_table


def fact(t: int, kind: str, broker: int, **own: Any) -> dict[str, Any]:
    return {"t": t, "kind": kind, "broker": broker, "topic": "orders", "partition": 0, **own}


def measured(*facts: dict[str, Any]) -> Delays:
    found = Delays()
    found.add(Recording({"kafka": "2.7.2"}, list(facts)))
    return found


def test_a_change_is_measured_from_its_decision_and_a_paused_broker_is_left_out() -> None:
    found = measured(
        fact(100, "stimulus", 2, do="pause"),
        fact(1000, "shrink", 1, from_isr=[1, 2], to_isr=[1]),
        fact(1003, "alter_isr_proposed", 1, isr=[1]),
        fact(1050, "update_metadata", 1, zk_version=1),
        fact(1060, "isr_updated", 1, isr=[1], zk_version=1),
        fact(2000, "stimulus", 2, do="resume"),
        fact(2001, "update_metadata", 2, zk_version=1),
    )
    assert (found.effective, found.metadata, found.never_shown) == ([60], [50], 0)


def test_an_expand_that_the_log_does_not_tell_begins_with_its_proposal() -> None:
    found = measured(
        fact(1003, "alter_isr_proposed", 1, isr=[1, 2]),
        fact(1060, "isr_updated", 1, isr=[1, 2], zk_version=2),
        fact(1090, "update_metadata", 3, zk_version=4),
    )
    assert (found.effective, found.metadata, found.never_shown) == ([57], [87], 1)


def test_a_line_has_least_median_and_greatest_and_counts_of_one_run() -> None:
    found = Delays(effective=[9, 1, 4], changes=6, never_shown=3)
    last = delays([Both("ours", found, 3)]).splitlines()[-1]
    assert last == "| ours | – | 1 / 4 / 9 | – | 1 of 2 |"


def test_every_table_has_its_place_and_only_that_is_replaced() -> None:
    text = PAGE.read_text(encoding="utf-8")
    names = [f"simulated {one}" for one in COMPARED] + [f"live {one}" for one in LIVE]
    for name in [*names, *(f"recorded {one}" for one in RECORDED)]:
        page = with_table(text, name, "| x |\n")
        assert f"<!-- begin {name} -->\n| x |\n<!-- end {name} -->" in page
        head = text.partition(f"<!-- begin {name} -->")[0]
        assert page.startswith(head)


def test_a_table_that_the_page_lacks_is_said() -> None:
    with pytest.raises(AssertionError, match="nothing: no such table"):
        with_table("a page", "nothing", "")
