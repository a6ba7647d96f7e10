"""The page of a report: whole, silent, what was found in the order in which it matters."""

from __future__ import annotations

from pathlib import Path

import msgspec

from emulator.view.report_page import Diagnosis, ReportPage, Section, render_report
from emulator.view.stored import StoredRun
from tests.unit.view.test_html import parsed
from tests.unit.view.traces import HEADER, Script

SICK = ReportPage(
    title="report on logs",
    facts=["broker 1: Kafka 2.6.3"],
    about=["imported from logs", "unknown: <broker 2>"],
    diagnoses=[Diagnosis("KAFKA-2729", "from 5 s to the end", "broker 1 rejected 6", "restart it")],
    sections=[
        Section("At the end", "All is well.", ("partition",), [("orders-0",)]),
        Section("Stale metadata", "None.", ("broker",), [], "3 are left out"),
    ],
)


def page(of: ReportPage = SICK) -> str:
    script = Script()
    script.action("up")
    script.create((1, 2, 3))
    script.at(7000).write(1, 1, (1, 3))
    return render_report(of, StoredRun(Path(), HEADER, script.events, {}))


def test_it_is_whole_and_asks_the_network_for_nothing() -> None:
    strict, data = parsed(page())
    addresses = [value or "" for key, value in strict.attributes if key in ("src", "href")]
    assert addresses == ["data:,"]
    assert "http" not in page()
    assert [panel["facts"] for panel in data["panels"]] == [["broker 1: Kafka 2.6.3"]]


def test_the_diagnosis_comes_first_then_what_is_stuck_then_the_lanes() -> None:
    text = page()
    order = [text.index(it) for it in ("KAFKA-2729", "restart it", "At the end", "<h2>Lanes")]
    assert order == sorted(order)
    assert "<td>orders-0</td>" in text
    assert '<p class="hint">None.</p>' in text
    assert "3 are left out" in text
    assert "unknown: &lt;broker 2&gt;" in text


def test_a_healthy_cluster_is_said_to_be_healthy_with_the_runs_own_facts() -> None:
    text = page(msgspec.structs.replace(SICK, diagnoses=[], facts=[]))
    assert "No known hazard matched." in text.replace("&#39;", "'")
    assert f"seed {HEADER.seed}" in text
