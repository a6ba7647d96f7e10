"""Traces become files that say the same, are there as a whole or not at all, and stay readable."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from emulator.analysis import writer
from emulator.analysis.dataset import RunKey, ended_runs, key_of, open_dataset, pieces
from emulator.analysis.errors import AnalysisError, BadDataset
from emulator.analysis.writer import RunWriter, write_piece, write_run
from emulator.runs import dataset_rows as rows
from emulator.runs.broken import Broken
from emulator.scenario.load import loads
from emulator.trace.columns import DATASET_VERSION, schema
from tests.unit.analysis.random_events import EVENTS, row
from tests.unit.view.traces import Script

KEY = RunKey("slow disk", "2.6", "zookeeper", "0x1f a=b/c")
SCENARIO = loads("run: 9s", "slow disk")
BEGAN = rows.began(SCENARIO, 31, sets=["num.io.threads=4"], replay="isr run")
ENDED = rows.ended_with([Broken("hw within isr", "no", "", "a-b-3", 2)], 9_000_000)


def story() -> list[Any]:
    return Script().shrink_and_late_news().events


def read(file: Path) -> list[dict[str, Any]]:
    """Rows without what they lack."""
    plain = pq.read_table(file, partitioning=None).to_pylist()
    return [{k: v for k, v in one.items() if v is not None} for one in plain]


@given(EVENTS)
@settings(max_examples=60, deadline=None)
def test_a_row_says_what_its_event_says(events: list[Any]) -> None:
    with TemporaryDirectory() as folder:
        write_piece(Path(folder) / "part.parquet", events, "x=1")
        found = read(Path(folder) / "part.parquet")
    by_kind = sorted(range(len(events)), key=lambda i: (events[i].kind, i))
    assert found == [{**row(events[i]), "setting": "x=1"} for i in by_kind]


def test_a_run_in_pieces_has_its_events_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "PIECE_EVENTS", 5)
    monkeypatch.setattr(writer, "GROUP_ROWS", 2)
    recorder = RunWriter(tmp_path, KEY, BEGAN)
    for event in story():
        recorder(event)
    recorder.finish(ENDED)
    found = [one for piece in sorted(pieces(tmp_path / "events")) for one in read(piece)]
    assert len(list(pieces(tmp_path / "events"))) == -(-len(story()) // 5)
    assert sorted(one["seq"] for one in found) == [event.seq for event in story()]
    assert ended_runs(pieces(tmp_path / "runs")) == {KEY}


def test_what_was_run_and_what_came_of_it_are_rows(tmp_path: Path) -> None:
    write_run(tmp_path, KEY, BEGAN, story(), ENDED)
    began, ended = read(next(pieces(tmp_path / "runs")))
    assert (began["scenario"], began["run"]) == ("slow disk", "0x1f a=b/c")
    assert began["seed"] == "0x1f" and began["setting"] == "num.io.threads=4" == ended["setting"]
    assert {"name": "min.insync.replicas", "value": "1"} in began["settings"]
    (broken,) = ended["violations"]
    assert (broken["topic"], broken["partition"], broken["on_broker"]) == ("a-b", 3, 2)
    assert ended["verdict"] == "not held" and ended["t"] == 9_000_000


def test_a_run_that_was_killed_leaves_readable_data_and_is_known_by_its_missing_end(
    tmp_path: Path,
) -> None:
    recorder = RunWriter(tmp_path, KEY, BEGAN)
    assert open_dataset(tmp_path, unfinished=True).rows == 1
    with pytest.raises(BadDataset, match="has no end: the run was killed"):
        open_dataset(tmp_path)
    for event in story():
        recorder(event)
    recorder.flush()
    assert open_dataset(tmp_path, unfinished=True).rows == len(story()) + 1
    write_run(tmp_path, KEY._replace(run="another"), BEGAN, story(), ENDED)
    with pytest.raises(BadDataset, match="has no end: the run was killed"):
        open_dataset(tmp_path)
    found = open_dataset(tmp_path, skip_bad=True)
    assert [problem.path for problem in found.problems] == [tmp_path / "events" / KEY.directory]
    assert {key_of(tmp_path, piece).run for piece in found.events} == {"another"}
    assert len(found.runs) == 1


def test_a_piece_that_cannot_be_finished_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device", "part")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    with pytest.raises(AnalysisError, match="part: No space left on device"):
        write_run(tmp_path, KEY, BEGAN, story(), ENDED)
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []


def test_a_run_that_is_written_twice_is_there_once(tmp_path: Path) -> None:
    write_run(tmp_path, KEY, BEGAN, story(), ENDED)
    before = {file: file.read_bytes() for file in pieces(tmp_path)}
    write_run(tmp_path, KEY, BEGAN, story(), ENDED)
    assert {file: file.read_bytes() for file in pieces(tmp_path)} == before


def test_a_full_disk_while_a_run_goes_on_is_told_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = RunWriter(tmp_path, KEY, BEGAN)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device", "part")

    monkeypatch.setattr(writer, "write_piece", full)
    for event in story():
        recorder(event)
    recorder.flush()
    with pytest.raises(AnalysisError, match="No space left"):
        recorder.finish(ENDED)
    assert ended_runs(pieces(tmp_path / "runs")) == set()


# -- versions --------------------------------------------------------------------------------------

KEPT = Path(__file__).parent / "versions"


def columns_of_version(version: int) -> dict[str, str]:
    lines = (KEPT / f"{version}.txt").read_text().splitlines()
    return dict(line.split(" ", 1) for line in lines)


def test_no_column_of_this_version_is_renamed_retyped_or_gone() -> None:
    """New columns are added beside it; this file never changes."""
    from emulator.trace.columns import ddl

    now = {name: ddl(of) for name, of in schema().items()}
    kept = columns_of_version(DATASET_VERSION)
    changed = {name: (of, now.get(name)) for name, of in kept.items() if not _grew(of, now, name)}
    assert changed == {}, "a new DATASET_VERSION is needed"


def _grew(of: str, now: dict[str, str], name: str) -> bool:
    """A record may have got more parts, at its end or between."""
    parts = set(of.replace("<", ",").replace(">", ",").split(","))
    return parts <= set(now.get(name, "").replace("<", ",").replace(">", ",").split(","))


def test_a_file_of_before_a_column_was_there_is_readable(tmp_path: Path) -> None:
    write_run(tmp_path, KEY, BEGAN, story(), ENDED)
    piece = next(pieces(tmp_path / "events"))
    table = pq.read_table(piece, partitioning=None)
    pq.write_table(table.drop_columns(["out_of_sync", "zk_version"]), piece)
    assert open_dataset(tmp_path).rows == len(story()) + 2
