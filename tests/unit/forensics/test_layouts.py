"""The same cluster gives the same run, however its logs are laid out."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from emulator.forensics.imported import import_folders
from emulator.forensics.layouts import ENVELOPES, Line, Settings, choose, layout_of
from emulator.forensics.layouts import LAYOUTS as KNOWN
from emulator.forensics.log_files import ReadOptions
from emulator.scenario.errors import UserError
from emulator.trace.events import AnyEvent
from tests.unit.forensics.relaid import (
    KAFKA,
    LAYOUTS,
    STRIMZI,
    Entry,
    as_containers,
    by_pattern,
    relay,
)
from tests.unit.forensics.strangers import STUCK, given

ROW = "{} INFO [Broker id=7] Handling LeaderAndIsr (state.change.logger)"
AT_MS = 1_795_316_400_001
ENTRY = Entry(
    dt.datetime(2026, 11, 22, 3, 0, 0, 1000, dt.UTC),
    "INFO",
    "[Broker id=7] Handling LeaderAndIsr",
    "state.change.logger",
    "",
)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> list[AnyEvent]:
    folder = tmp_path_factory.mktemp("original")
    return events_of(given(STUCK, folder / "logs"), folder)


def events_of(logs: Path, scratch: Path, options: ReadOptions | None = None) -> list[AnyEvent]:
    result = import_folders([logs], scratch / "runs", options)
    assert result.imported.unread == {}
    return list(result.performed.events)


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_recorded_cluster_in_another_layout_is_the_same_run(
    name: str, original: list[AnyEvent], tmp_path: Path
) -> None:
    logs = relay(given(STUCK, tmp_path / "logs"), LAYOUTS[name])
    assert events_of(logs, tmp_path) == original


@pytest.mark.parametrize("name", ["CRI", "docker", "JsonLayout"])
def test_one_output_of_a_container_is_the_same_run(
    name: str, original: list[AnyEvent], tmp_path: Path
) -> None:
    logs = as_containers(given(STUCK, tmp_path / "logs"), LAYOUTS[name])
    assert events_of(logs, tmp_path) == original


def test_a_layout_that_nobody_knows_is_given_as_its_pattern(
    original: list[AnyEvent], tmp_path: Path
) -> None:
    lay = by_pattern(
        "{c} at {d} says {p} = {m}", lambda it: f"{it.at:%d.%m.%Y %H:%M:%S}.{it.milli:03}"
    )
    logs = relay(given(STUCK, tmp_path / "logs"), lay)
    with pytest.raises(UserError, match=r"the first is '.* at 22\.11\.2026 .*--layout"):
        events_of(logs, tmp_path)
    pattern = layout_of("%c at %d{dd.MM.yyyy HH:mm:ss.SSS} says %p = %m%n")
    assert events_of(logs, tmp_path, ReadOptions(layout=pattern)) == original


def test_times_without_a_zone_are_of_the_zone_that_is_given(
    original: list[AnyEvent], tmp_path: Path
) -> None:
    zone = ZoneInfo("America/New_York")
    lay = by_pattern(
        "[{d}] {p} {m} ({c})",
        lambda it: f"{it.at.astimezone(zone):%Y-%m-%d %H:%M:%S},{it.milli:03}",
    )
    logs = relay(given(STUCK, tmp_path / "logs"), lay)
    assert events_of(logs, tmp_path, ReadOptions(zone)) == original


@pytest.mark.parametrize(
    "date",
    [
        "2026-11-22 03:00:00,001",
        "2026-11-22T03:00:00.001Z",
        "2026-11-22T05:00:00,001+02:00",
        "2026-11-22 05:00:00.001 +0200",
        "2026-11-21T22:00:00.001999-0500",
    ],
)
def test_dates(date: str) -> None:
    for form in (ROW.format(f"[{date}]"), ROW.format(date)):
        assert lines(form) == [Line(AT_MS, "INFO", "[Broker id=7] Handling LeaderAndIsr",
                                    "state.change.logger", 1)]  # fmt: skip


def lines(*rows: str, settings: Settings | None = None, pattern: str = "") -> list[Line]:
    chosen = choose(rows, settings or Settings(), layout_of(pattern) if pattern else None)
    assert chosen is not None
    return list(chosen.entries(iter(rows), {}))


@pytest.mark.parametrize(
    ("pattern", "row"),
    [
        ("%d{dd MMM yyyy HH:mm:ss,SSS} %p %m (%c)%n", ROW.format("22 Nov 2026 03:00:00,001")),
        ("%d{DATE} %p %m (%c)%n", ROW.format("22 Nov 2026 03:00:00,001")),
        ("%d{COMPACT} %-5p %m (%c)%n", ROW.format("20261122030000001").replace("INFO", "INFO ")),
        ("%d{yyyy/MM/dd HH:mm:ss.SSSXXX} %p %m (%c)", ROW.format("2026/11/22 04:00:00.001+01:00")),
        ("%highlight{%d %level} %msg (%logger)%ex%n", ROW.format("2026-11-22 03:00:00,001")),
        ("%d{ISO8601} %5p %X{id}|%m (%c:%L)%n", ROW.format("2026-11-22 03:00:00,001")
         .replace("INFO ", " INFO 17|").replace(")", ":12)")),
    ],
)  # fmt: skip
def test_patterns_of_log4j(pattern: str, row: str) -> None:
    (line,) = lines(row, pattern=pattern)
    assert line == Line(
        AT_MS, "INFO", "[Broker id=7] Handling LeaderAndIsr", "state.change.logger", 1
    )


@pytest.mark.parametrize(
    ("pattern", "complaint"),
    [
        ("%d %p (%c)%n", "%m is missing"),
        ("%d %p %m%n", "%c is missing"),
        ("%d %p %m (%c{1})%n", "%c{1} cuts the logger's name"),
        ("%d{GGG} %p %m (%c)%n", "GGG is not supported"),
        ("%d %d %p %m (%c)%n", "%d is twice in it"),
    ],
)
def test_a_pattern_that_cannot_be_used_is_refused(pattern: str, complaint: str) -> None:
    with pytest.raises(UserError) as refused:
        layout_of(pattern)
    assert complaint in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_date_without_a_year_has_the_files() -> None:
    row = "<14>Nov 22 03:00:00 host kafka[7]: INFO [Broker id=7] Handling (state.change.logger)"
    (line,) = lines(row, settings=Settings(year=2026))
    assert line.at_ms == AT_MS - 1


def test_a_long_row_that_kubernetes_cut_is_one() -> None:
    head, rest = KAFKA(ENTRY)[:40], KAFKA(ENTRY)[40:].rstrip("\n")
    time = "2026-11-22T03:00:00.5Z stdout"
    (line,) = lines(f"{time} P {head}", f"{time} F {rest}")
    assert (line.at_ms, line.text) == (AT_MS, ENTRY.text)


def test_colours_are_no_text() -> None:
    (line,) = lines(f"\x1b[32m{STRIMZI(ENTRY)[:23]}\x1b[0m{STRIMZI(ENTRY)[23:]}")
    assert line.text == ENTRY.text


def test_each_layout_and_each_envelope_has_a_name_of_its_own() -> None:
    names = [one.name for one in (*KNOWN, *ENVELOPES)]
    assert len(names) == len(set(names))
