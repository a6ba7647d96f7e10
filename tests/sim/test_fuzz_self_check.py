"""Canaries: `isr fuzz` finds them each time, and says so when it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from emulator.cli import execute
from emulator.invariants.base import invariants
from emulator.invariants.committed_records_survive import CommittedRecordsSurvive
from emulator.search.fuzz.self_check import run_self_checks, self_checks


def test_each_is_noticed_with_all_that_it_breaks() -> None:
    assert [(one.name, one.missed) for one in run_self_checks()] == [
        (entry.name, ()) for entry in self_checks()
    ]


def test_one_breaks_what_holds_all_the_time_and_one_what_has_to_come_about() -> None:
    kinds = {invariants()[name].liveness for entry in self_checks() for name in entry.violates}
    assert kinds == {False, True}


def missed() -> set[str]:
    return {name for one in run_self_checks() for name in one.missed}


def test_an_invariant_that_sees_nothing_any_more_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CommittedRecordsSurvive, "_hold", lambda *_: None)
    assert missed() == {"committed records survive"}


def test_a_hazard_that_explains_everything_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emulator.runs.broken.recognise", lambda *_: "bad luck")
    assert missed() == {name for entry in self_checks() for name in entry.violates}


def test_fuzz_says_what_was_noticed(tmp_path: Path, capsysbinary: Any) -> None:
    words = ["fuzz", "--seed", "1", "--runs", "1", "--out", str(tmp_path)]
    assert execute(words) == 0
    lines = capsysbinary.readouterr().out.decode().splitlines()
    assert lines[: len(self_checks())] == [
        f"self-check {one.name} passed: {', '.join(one.violates)} violated" for one in self_checks()
    ]
    assert execute([*words, "--json"]) == 0
    said = msgspec.json.decode(capsysbinary.readouterr().out)["self_checks"]
    assert [(one["name"], one["missed"]) for one in said] == [(e.name, []) for e in self_checks()]


def test_fuzz_fails_where_one_is_not_noticed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CommittedRecordsSurvive, "_hold", lambda *_: None)
    assert execute(["fuzz", "--seed", "1", "--runs", "1", "--out", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "FAILED: committed records survive held" in out and "no failure" in out
