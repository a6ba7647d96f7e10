"""`isr hazards`: the list, one reproduced hazard, and errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from emulator import cli
from emulator.hazards.entry import catalogue, find, read_entry
from emulator.scenario.errors import UserError

FIRST = next(iter(catalogue()))


def test_all_are_listed_with_what_they_are_about(capsys: Any) -> None:
    assert cli.execute(["hazards"]) == 0
    out, _ = capsys.readouterr()
    assert all(name in out for name in catalogue())
    assert cli.execute(["hazards", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["hazards"]
    assert [one["name"] for one in listed] == list(catalogue())
    assert all(one["title"] and one["cure"] and one["steps"] for one in listed)


@pytest.mark.parametrize("columns", [80, 100, 140])
def test_only_what_goes_wrong_is_broken_into_lines(capsys: Any, columns: int) -> None:
    assert cli.execute(["hazards", "--width", str(columns)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= columns for line in lines)
    state = lines[0].index("what goes wrong")
    began = [line for line in lines[1:] if line[:state].strip()][: len(catalogue())]
    assert [line.split()[0] for line in began] == list(catalogue())
    assert all(len(line[:state].split()) >= 4 for line in began)


def test_one_is_reproduced_and_gone_with_its_cure(capsys: Any, tmp_path: Path) -> None:
    assert cli.execute(["hazards", FIRST.lower(), "--out", str(tmp_path)]) == 0
    out, _ = capsys.readouterr()
    assert out.startswith(FIRST)
    assert "BROKEN" in out and "✗" in out and "no invariant is violated" in out
    assert out.splitlines()[-1] == f"repeat it      isr hazards {FIRST}"
    assert "verdict        held" in out


def test_as_json(capsys: Any, tmp_path: Path) -> None:
    assert cli.execute(["hazards", FIRST, "--quiet", "--json", "--out", str(tmp_path)]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["verdict"] == "held"
    broken = {one["invariant"] for one in said["broken"]["violations"]}
    assert broken >= set(said["violates"])
    assert not said["cured"]["violations"]
    assert Path(said["broken"]["run_directory"], "summary.json").exists()


def test_another_ticket_of_it_finds_it_too() -> None:
    entry = next(one for one in catalogue().values() if one.also)
    assert find(entry.also[0].lower()) is entry


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["hazards", "KAFKA-1"], "there is no hazard KAFKA-1"),
        (["hazards", "--live"], "needs a name"),
    ],
)
def test_a_mistake_is_one_line(capsys: Any, words: list[str], said: str) -> None:
    assert cli.execute(words) == 64
    out, err = capsys.readouterr()
    assert out == "" and said in err and err.count("\n") == 1


def test_one_that_needs_control_over_messages_is_not_played_live(capsys: Any) -> None:
    name = next(one.name for one in catalogue().values() if not one.live)
    assert cli.execute(["hazards", name, "--live"]) == 64
    assert "runs only in virtual time" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("hazard", "said"),
    [
        ("", "hazard is missing"),
        ("hazard: {title: x, versions: all}", "hazard: cure is missing"),
        ("hazard: {title: x, versions: all, cure: {guards: {}}}", "violates is missing"),
        (
            "hazard: {title: x, versions: all, violates: leader, cure: {config: {a: 1}}}",
            "hazard.violates: there is no invariant leader",
        ),
        (
            "hazard: {title: x, versions: all, violates: leader in isr, cure: {guards: {}}}",
            "hazard.cure: guards, config, profile or propagation",
        ),
    ],
)
def test_a_file_that_is_no_hazard(tmp_path: Path, hazard: str, said: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(f"about: nothing\nrun: 1s\n{hazard}\n")
    with pytest.raises(UserError) as caught:
        read_entry(path)
    assert said in str(caught.value)
