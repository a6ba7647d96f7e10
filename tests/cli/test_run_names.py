"""RUN on a command line, as a user knows it: `latest`, a scenario, SCENARIO/RUN, a directory."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from emulator import cli
from emulator.runs.run_directory import RUNS, RunDirectory
from emulator.trace.reader import Header
from tests.unit.view.traces import Script

COMMANDS = {"show": (), "why": ("orders-0@v1",)}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def stored(scenario: str, seed: int, second: int) -> Path:
    """A run that is over, begun at that second."""
    begun = datetime(2026, 11, 21, 12, 0, second, tzinfo=UTC)
    run = RunDirectory.create(RUNS, scenario, seed, begun)
    run.describe("run: 5s\n", {"seed": seed})
    run.open_trace(Header(1, scenario, seed, "2.6", "simulated", {}))
    for event in Script().shrink_and_late_news().events:
        run(event)
    run.close()
    return run.path


def seed_shown(capsys: pytest.CaptureFixture[str], run: str) -> str:
    assert cli.execute(["show", run, "--json"]) == 0
    return capsys.readouterr().out.partition('"seed":')[2].partition(",")[0]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_knows_a_run_by_each_of_its_names(command: str, capsys: Any) -> None:
    path = stored("tried", 7, 0)
    told = set()
    for name in ("latest", "tried", f"tried/{path.name}", str(path), f"{path}/trace.ndjson"):
        assert cli.execute([command, name, *COMMANDS[command]]) == 0
        told.add(capsys.readouterr().out)
    assert len(told) == 1
    assert "[1,3]" in told.pop()


def test_a_scenario_means_its_newest_run_and_latest_the_newest_of_all(capsys: Any) -> None:
    stored("tried", 0xFF, 1)
    stored("tried", 0xFE, 2)
    stored("tried", 0x10, 2)
    stored("other", 3, 3)
    assert seed_shown(capsys, "tried") == "16"
    assert seed_shown(capsys, "latest") == "3"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tired", "there is no run tired; did you mean tried?"),
        ("tried/nothing", "there is no run tried/nothing"),
        ("empty", "empty: not a run directory: it has no trace.ndjson"),
    ],
)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_name_that_no_run_has_is_one_line(
    command: str, name: str, said: str, capsys: Any
) -> None:
    stored("tried", 7, 0)
    Path("empty").mkdir()
    assert cli.execute([command, name, *COMMANDS[command]]) == 64
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)
    assert said in told.err
