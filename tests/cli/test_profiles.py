"""`isr profiles`: what there is, and what differs between two versions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from emulator import cli
from emulator.kafka.profiles.base import profiles
from emulator.kafka.profiles.guards.base import guards


def said(capsys: Any, *arguments: str) -> str:
    assert cli.execute(arguments) == 0
    return str(capsys.readouterr().out)


@pytest.mark.parametrize("columns", [80, 140])
def test_profiles_and_guards_are_listed(
    columns: int, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    out = said(capsys, "profiles")
    assert all(profile.release in out for profile in profiles().values())
    assert all(name in out for name in guards())
    listed = json.loads(said(capsys, "profiles", "--json"))
    assert [one["name"] for one in listed["profiles"]] == list(profiles())
    assert [one["name"] for one in listed["guards"]] == list(guards())


def test_what_differs_between_two_is_told(capsys: Any) -> None:
    out = said(capsys, "profiles", "diff", "2.4", "2.6")
    assert "replica.lag.time.max.ms" in out and "30000" in out
    found = json.loads(said(capsys, "profiles", "diff", "2.4", "2.6", "--json"))
    by_name = {one["name"]: one for one in found["differences"]}
    assert (found["a"], found["b"]) == ("2.4", "2.6")
    session = by_name["zookeeper.session.timeout.ms"]
    assert (session["kind"], session["a"], session["b"]) == ("setting", "6000", "18000")
    assert by_name["isr-check-under-read-lock"]["kind"] == "guard"


def test_a_version_that_there_is_not_is_refused(capsys: Any) -> None:
    assert cli.execute(["profiles", "diff", "2.4", "2.66"]) == 64
    assert "there is no profile 2.66" in capsys.readouterr().err


def test_a_run_of_another_version_says_so_and_is_repeated_so(
    capsys: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tried.yaml").write_text("about: tried\ncluster: {brokers: 1}\nrun: 1s\n")
    options = ("--profile", "2.4", "--guard", "stay-at-log-end=off")
    where = ("--zookeeper", "simulated", "--seed", "1", "--json")
    assert cli.execute(["run", "tried.yaml", *where, *options]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["profile"] == "2.4"
    assert err.splitlines()[-1].endswith(" ".join(options))
    about = json.loads((Path(json.loads(out)["run_directory"]) / "run.json").read_text())
    assert (about["profile"], about["guards"]) == ("2.4", {"stay-at-log-end": "off"})
    assert cli.execute(["replay", "latest", "--json"]) == 0
