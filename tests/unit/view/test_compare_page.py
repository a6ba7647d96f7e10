"""The page of a comparison: whole, silent, both sides drawn on one axis, distributions true."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from emulator.view.compare_page import BOTTOM, TOP, Page, Table, _Scale, render_comparison
from emulator.view.stored import StoredRun
from tests.unit.view.test_html import parsed
from tests.unit.view.traces import HEADER, Script

PAGE = Page(
    title="tried: zk and rpc",
    about="2 plays of each",
    names=("zk", "rpc"),
    distributions={"decision → effective": {"zk": [1.0, 2.0, 4.0], "rpc": [40.0]}, "never": {}},
    times=Table(("milliseconds", "p50"), [("effective", "4.00")]),
    counts=Table(("", "zk", "rpc"), [("conflicts", "1", "0")]),
    troubles=["rpc: <orders-0> stuck"],
    repeat="isr compare tried --seed 0x7",
)


def stored(seed: int) -> StoredRun:
    script = Script()
    script.action("up")
    script.create((1, 2, 3))
    script.at(7000).write(1, 1, (1, 3))
    header = msgspec.structs.replace(HEADER, seed=seed)
    return StoredRun(Path(), header, script.events, {})


def page() -> str:
    return render_comparison(PAGE, {"zk": stored(7), "rpc": stored(7)})


def test_it_is_whole_and_asks_the_network_for_nothing() -> None:
    strict, _ = parsed(page())
    addresses = [value or "" for key, value in strict.attributes if key in ("src", "href")]
    assert addresses == ["data:,"]
    assert "http" not in page()


def test_both_sides_lanes_stand_on_one_axis_under_their_names() -> None:
    _, data = parsed(page())
    assert [panel["facts"][0] for panel in data["panels"]] == ["zk", "rpc"]
    assert [panel["to"] for panel in data["panels"]] == [7000.0, 7000.0]


def test_figures_troubles_and_the_command_are_there_and_nothing_is_taken_for_markup() -> None:
    text = page()
    assert "<td>conflicts</td>" in text
    assert "rpc: &lt;orders-0&gt; stuck" in text
    assert "<code>isr compare tried --seed 0x7</code>" in text


def test_a_distribution_without_samples_says_so() -> None:
    text = page()
    assert text.count("No samples.") == 1
    assert text.count('class="curve c0"') == text.count('class="curve c1"') == 1


@given(st.lists(st.floats(0, 100_000), min_size=1, max_size=60).map(sorted))
def test_a_curve_only_rises_and_ends_with_all_of_the_samples(times: list[float]) -> None:
    scale = _Scale(-1, 5)
    path = scale.path(times)
    heights = [float(y) for y in re.findall(r"V([\d.]+)", path)]
    assert heights == sorted(heights, reverse=True)
    assert heights[-1] == TOP
    assert all(TOP <= y <= BOTTOM for y in heights)
    across = [float(x) for x in re.findall(r"H([\d.]+)", path)]
    assert across == sorted(across)


def test_what_is_longer_is_further_right_by_powers_of_ten() -> None:
    scale = _Scale(0, 3)
    assert abs((scale.x(10) - scale.x(1)) - (scale.x(100) - scale.x(10))) < 0.2
    assert scale.dot([1, 5, 9], 50)["text"] == "p50: 5 ms"
