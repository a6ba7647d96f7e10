"""The page: whole in one file, silent towards the network, and small whatever the trace."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from html.parser import HTMLParser
from typing import Any

import pytest

from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.values import Lagging, TopicPartition
from emulator.view.html import render_html, script_json
from tests.unit.view.recorded import recorded
from tests.unit.view.traces import HEADER, P0, Script

VOID = {"meta", "link", "br", "hr", "input", "img"}


class Strict(HTMLParser):
    """Every element that is opened is closed; collects what is in scripts, and all attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.data: dict[str, str] = {}
        self.attributes: list[tuple[str, str | None]] = []
        self._id = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += attrs
        self._id = dict(attrs).get("id") or ""
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script" and self._id:
            self.data[self._id] = data


def parsed(page: str) -> tuple[Strict, Any]:
    strict = Strict()
    strict.feed(page)
    strict.close()
    assert strict.open == []
    return strict, json.loads(strict.data["trace"])


def page_of(events: Iterable[AnyEvent]) -> str:
    return render_html([(HEADER, events)])


@pytest.fixture(scope="module")
def page() -> str:
    return page_of(recorded("shrink-expand"))


def test_it_needs_nothing_from_anywhere(page: str) -> None:
    strict, _ = parsed(page)
    assert "http" not in page.lower()
    assert "//" not in page
    assert "@import" not in page
    assert not re.search(r"url\((?!#)", page)
    linked = [value for name, value in strict.attributes if name in ("src", "href")]
    assert linked == ["data:,"]


def test_addresses_in_a_trace_are_no_references() -> None:
    script = Script().shrink_and_late_news()
    script.add(e.ZnodeMalformed, 3, "/brokers/ids/1", "endpoints", "PLAINTEXT://127.0.0.1:9 <b>")
    assert "//" not in page_of(script.events)


def test_a_trace_cannot_end_the_script() -> None:
    text = script_json({"a": "</script><script>alert(1)", "b": "x//y///z"})
    assert "</" not in text
    assert "//" not in text
    assert json.loads(text) == {"a": "</script><script>alert(1)", "b": "x//y///z"}


def test_it_has_the_events_with_their_numbers(page: str) -> None:
    _, data = parsed(page)
    (panel,) = data["panels"]
    heads = [mark[4] for mark in panel["marks"]]
    assert "shrinks [1,2,3] → [1,3]" in heads
    assert "v0→v1 ok [1,3]" in heads
    assert "+ isr_change_…0" in heads
    decision = panel["marks"][heads.index("shrinks [1,2,3] → [1,3]")]
    assert "2 at LEO 60 of 118, behind for 2.859 s" in decision
    assert "out of sync [[2,60,2859]]" in decision[11]


def test_it_has_bands_with_what_was_stale(page: str) -> None:
    _, data = parsed(page)
    (panel,) = data["panels"]
    (bands,) = panel["bands"]
    assert [band[2] for band in bands["zookeeper"]] == [0, 1, 2]
    assert [band[6] for band in bands["zookeeper"]] == [0, 1, 0]
    assert bands["1"][0][7] == [[7773, 17799, [1, 2]]]
    assert panel["faults"] == [["2", 4910, 10910, "paused"]]
    assert panel["changes"][0][1]["shown"] == [[17799, 2], [17800, 2], [17801, 2]]


def test_an_arrow_starts_at_the_event_that_was_the_cause() -> None:
    _, data = parsed(page_of(Script().shrink_and_late_news().events))
    marks = data["panels"][0]["marks"]
    kinds = [mark[9] for mark in marks]
    write, decision = kinds.index("zk_transaction", 2), kinds.index("isr_update_started")
    assert marks[write][7] == decision


def test_two_runs_share_one_axis() -> None:
    events = Script().shrink_and_late_news().events
    _, data = parsed(render_html([(HEADER, events), (HEADER, events)], "beside each other"))
    assert len(data["panels"]) == 2


def test_a_large_trace_stays_below_five_megabytes() -> None:
    script = Script()
    script.at(0).action("up")
    partitions = [TopicPartition("orders", i) for i in range(1500)]
    for partition in partitions:
        script.create((1, 2), partition)
    for partition in partitions:
        script.changes((1, 2), (1,), 1, Lagging(2, 1, 2600), partition=partition)
        for _ in range(60):
            script.add(e.RecordsAppended, 1, partition, "leader", 5, 6, 0, 100)
    page = page_of(script.events)
    _, data = parsed(page)
    assert len(page) < 5_000_000
    assert "200 of 1500 partitions" in data["panels"][0]["note"]


def test_names_are_escaped() -> None:
    script = Script()
    script.at(0).create((1, 2), TopicPartition("a<b>&", 0))
    page = render_html([(HEADER, script.events)], "<i>title</i>")
    assert "<i>title" not in page
    assert "a<b>" not in page


def test_an_empty_trace_has_a_page() -> None:
    parsed(page_of([]))
    assert P0.topic not in page_of([])
