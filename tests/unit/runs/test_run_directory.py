"""A run directory exists from the first event on, and a write error is reported once."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from emulator.runs import run_directory
from emulator.runs.run_directory import RunDirectory, RunDirectoryError, find_run
from emulator.scenario.errors import UserError
from emulator.trace.reader import Header, read_events
from tests.unit.scenario.story import Story

NOON = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
HEADER = Header(trace=1, scenario="tried", seed=1, profile="2.6", zookeeper="simulated")


def created(base: Path, scenario: str = "tried", seed: int = 255) -> RunDirectory:
    return RunDirectory.create(base, scenario, seed, NOON)


def test_its_name_has_scenario_time_and_seed(tmp_path: Path) -> None:
    assert created(tmp_path).path == tmp_path / "tried" / "20261121T120000-0xff"


def test_latest_points_at_the_newest_and_moves_with_the_folder(tmp_path: Path) -> None:
    created(tmp_path / "runs")
    second = created(tmp_path / "runs", "other")
    moved = (tmp_path / "runs").rename(tmp_path / "kept")
    assert (moved / "latest").resolve() == moved / second.path.relative_to(tmp_path / "runs")


def test_events_are_written_as_they_happen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_directory, "FLUSH_EVERY_S", -1.0)
    run = created(tmp_path)
    run.open_trace(HEADER)
    events = Story().created().events
    for event in events:
        run(event)
    assert list(read_events(run.path / "trace.ndjson")) == events
    run.close()


def test_a_full_disk_stops_the_writing_and_is_told_when_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_directory, "FLUSH_EVERY_S", -1.0)
    run = created(tmp_path)
    run.open_trace(HEADER)
    run.close()
    monkeypatch.setattr(run_directory, "TRACE", "/dev/full")
    with pytest.raises(RunDirectoryError, match="No space left on device"):
        run.open_trace(HEADER)
    run(Story().created().events[0])
    with pytest.raises(RunDirectoryError, match="No space left on device"):
        run.flush()
    run.close()


def test_a_place_that_cannot_be_written_is_the_users_mistake(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="file"):
        created(tmp_path / "file")


def test_a_run_is_found_by_directory_latest_or_scenario(tmp_path: Path) -> None:
    for seed in (1, 2):
        run = created(tmp_path, seed=seed)
        run.open_trace(HEADER)
        run.close()
    assert find_run(str(run.path)) == run.path
    assert find_run("latest", tmp_path).resolve() == run.path
    assert find_run("tried", tmp_path) == run.path
    assert find_run(str(run.path / "trace.ndjson")) == run.path
    with pytest.raises(UserError, match="there is no run tired; did you mean tried"):
        find_run("tired", tmp_path)


def test_a_latest_that_points_nowhere_is_told_with_the_newest_run_left(tmp_path: Path) -> None:
    first, second = created(tmp_path, seed=1), created(tmp_path, "other", seed=2)
    first.open_trace(HEADER)
    first.close()
    gone = f"latest points to other/{second.path.name}, which is gone; "
    second.path.rmdir()
    with pytest.raises(UserError, match=f"{gone}the newest run left is {first.path}"):
        find_run("latest", tmp_path)
    (first.path / "trace.ndjson").unlink()
    with pytest.raises(UserError, match=f"{gone}isr run SCENARIO makes a new one"):
        find_run("latest", tmp_path)
    created(tmp_path, "other", seed=3)
    assert (tmp_path / "latest").exists()


def test_a_directory_named_latest_is_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "latest").mkdir()
    with pytest.raises(UserError, match="a directory where a link to the newest run belongs"):
        created(tmp_path)
