"""Run directories as they are found: whole, cut off, or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.trace.reader import TraceWriter
from emulator.view.stored import NoRun, open_run
from tests.unit.view.traces import HEADER, Script


@pytest.fixture
def run(tmp_path: Path) -> Path:
    with TraceWriter(tmp_path / "trace.ndjson", HEADER) as write:
        for event in Script().shrink_and_late_news().events:
            write(event)
    return tmp_path


def test_a_run_is_its_header_its_events_and_its_summary(run: Path) -> None:
    (run / "summary.json").write_text('{"verdict": "held"}')
    stored = open_run(run)
    assert stored.header == HEADER
    assert stored.events == Script().shrink_and_late_news().events
    assert stored.summary == {"verdict": "held"}
    assert open_run(run / "trace.ndjson").directory == stored.directory


def test_a_link_to_the_latest_run_is_followed(run: Path, tmp_path_factory: object) -> None:
    latest = run / "latest"
    latest.symlink_to(run)
    assert open_run(latest).directory == run.resolve()


def test_a_run_that_was_killed_is_what_it_wrote(run: Path) -> None:
    trace = run / "trace.ndjson"
    trace.write_bytes(trace.read_bytes()[:-20])
    stored = open_run(run)
    assert len(stored.events) == len(Script().shrink_and_late_news().events) - 1
    assert stored.summary == {}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "not a run directory: it has no trace.ndjson"),
        (b"", "line 1 is not a trace header"),
        (b"not json\n", "line 1 is not a trace header"),
    ],
)
def test_what_is_no_run_is_said_in_one_line(
    tmp_path: Path, content: bytes | None, says: str
) -> None:
    if content is not None:
        (tmp_path / "trace.ndjson").write_bytes(content)
    with pytest.raises(NoRun, match=says) as caught:
        open_run(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_path_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(NoRun, match="no such run"):
        open_run(tmp_path / "nowhere")
