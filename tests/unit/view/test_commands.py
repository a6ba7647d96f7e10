"""`isr show` and `isr why` as a user calls them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from emulator.cli import execute as isr_main
from emulator.trace.reader import TraceWriter
from tests.unit.view.traces import HEADER, Script

Isr = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path) -> str:
    with TraceWriter(tmp_path / "trace.ndjson", HEADER) as write:
        for event in Script().shrink_and_late_news().events:
            write(event)
    return str(tmp_path)


@pytest.fixture
def isr(capsys: pytest.CaptureFixture[str]) -> Isr:
    """A command line that succeeds: what it prints."""

    def call(*arguments: str) -> str:
        assert isr_main(arguments) == 0
        return capsys.readouterr().out

    return call


def test_show_prints_the_lanes(isr: Isr, run: str) -> None:
    assert "v0→v1 ok [1,3]" in isr("show", run)


def test_show_takes_a_part_of_the_run(isr: Isr, run: str) -> None:
    text = isr("show", run, "--from", "7s", "--to", "8000ms", "--actor", "broker-1")
    assert "not notified yet" in text
    assert "shrinks" not in text


def test_show_writes_a_page(isr: Isr, run: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert "open it in a browser" in isr("show", run, "--html", str(page))
    assert page.read_text().startswith("<!doctype html>")


def test_show_as_json_has_rows(isr: Isr, run: str) -> None:
    shown = json.loads(isr("show", run, "--json", "--partition", "orders-0"))
    write = next(row for row in shown["rows"] if row["kind"] == "zk_transaction" and row["at_ms"])
    assert write["at_ms"] == 5504
    assert write["cells"]["zookeeper"]["headline"] == "v0→v1 ok [1,3]"
    assert (write["source"], write["targets"]) == ("1", ["zookeeper"])


def test_why_tells_the_story(isr: Isr, run: str) -> None:
    text = isr("why", run, "orders-0@v1")
    assert "ISR shrinks [1,2,3] → [1,3]" in text
    assert json.loads(isr("why", run, "orders-0@1", "--json"))["change"] == "shrink"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("show", "nowhere"), "there is no run nowhere; runs/ has no runs"),
        (("why", "nowhere", "orders-0@v1"), "there is no run nowhere; runs/ has no runs"),
        (("show", "RUN", "--partition", "orders-7"), "orders-7: no such partition in this run;"),
        (("show", "RUN", "--partition", "orders"), "'orders' is not a partition: write it as"),
        (("show", "RUN", "--actor", "9"), "unknown actor '9': use controller, zookeeper, clients"),
        (("show", "RUN", "--from", "soon"), "'soon' is not a time: write 12.5s"),
        (("show", "RUN", "--from", "5s", "--to", "3s"), "--from 5s --to 3s: ends before it begins"),
        (("show", "RUN", "--kind", "miracle"), "miracle: no such event in this run; it has"),
        (("show", "RUN", "--html", "RUN/no/x.html"), "x.html: cannot be written: No such file"),
        (("why", "RUN", "orders-0"), "'orders-0' is not an ISR change: write it as"),
        (("why", "RUN", "orders-0@v5"), "orders-0@v5: no such version; the run has v0 to"),
        (("why", "RUN", "clicks-0@v0"), "clicks-0: no such partition in this run; it has orders-0"),
    ],
)
def test_a_mistake_is_one_line_that_says_what_there_is(
    run: str,
    arguments: tuple[str, ...],
    says: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(run)
    assert isr_main([argument.replace("RUN", run) for argument in arguments]) == 64
    printed = capsys.readouterr()
    assert says in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""
