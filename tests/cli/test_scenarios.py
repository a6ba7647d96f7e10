"""`isr scenarios`, and what `--help` says."""

from __future__ import annotations

import json
from typing import Any

import yaml

from emulator import cli
from emulator.scenario import shipped


def said(capsys: Any, *arguments: str) -> str:
    assert cli.execute(arguments) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return str(out)


def test_all_shipped_scenarios_are_listed_with_what_they_are_about(capsys: Any) -> None:
    out = said(capsys, "scenarios")
    assert all(name in out for name in shipped.shipped())
    listed = json.loads(said(capsys, "scenarios", "--json"))["scenarios"]
    assert [one["name"] for one in listed] == list(shipped.shipped())
    assert all(one["about"] for one in listed)


def test_one_is_printed_as_it_is_written(capsys: Any) -> None:
    path = shipped.shipped()["min-isr"]
    assert said(capsys, "scenarios", "min-isr") == path.read_text()


def test_the_sentences_of_expect_are_listed(capsys: Any) -> None:
    assert "isr of TOPIC-N becomes [1, 2]" in said(capsys, "scenarios", "--expectations")
    shown = json.loads(said(capsys, "scenarios", "--expectations", "--json"))
    assert shown["expectations"]["isr_history"]


def test_without_words_it_shows_its_help(capsys: Any) -> None:
    assert said(capsys) == said(capsys, "--help")


def test_the_help_of_run_shows_one_scenario_in_full(capsys: Any) -> None:
    out = said(capsys, "run", "--help")
    start = out.index("A scenario in full (") + len("A scenario in full (")
    name = out[start : out.index(")", start)]
    text = out[out.index("\n", start) :]
    lines = [line.removeprefix("    ") for line in text.splitlines()]
    path = shipped.shipped()[name.removesuffix(".yaml")]
    assert yaml.safe_load("\n".join(lines)) == yaml.safe_load(path.read_text())
