"""Whatever was started is stopped in any case, and nothing is started unnecessarily."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from emulator.analysis.dataset import Dataset, RunKey, open_dataset
from emulator.analysis.errors import BadDataset, NoSpark
from emulator.analysis.pipeline import analyse_and_report
from emulator.analysis.writer import write_run
from tests.unit.analysis.test_dataset import piece_of, truncated
from tests.unit.analysis.test_writer import BEGAN, ENDED, story


class Session:
    """Replaces Spark's session: can only start and stop."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def start(self, chosen: dict[str, str]) -> Session:
        assert "spark.sql.shuffle.partitions" in chosen
        self.seen.append("started")
        return self

    def stop(self) -> None:
        self.seen.append("stopped")


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data set of one run; temporary folders lie beside it."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    write_run(tmp_path / "data", RunKey("s", "2.6", "zk", "a"), BEGAN, story(), ENDED)
    return tmp_path / "data"


def analysed(base: Path, spark: Session) -> None:
    analyse_and_report(
        base,
        base / "out",
        lambda: open_dataset(base),
        spark.start,  # type: ignore[arg-type]
        local=True,
        on_open=interrupted if base.name == "interrupted" else lambda _: None,
    )


def interrupted(_: Dataset) -> None:
    raise KeyboardInterrupt


def test_a_file_that_cannot_be_read_stops_spark_again(base: Path) -> None:
    truncated(piece_of(base, "a"))
    spark = Session()
    with pytest.raises(BadDataset, match="cannot be read as Parquet"):
        analysed(base, spark)
    assert spark.seen == ["started", "stopped"]


def test_so_does_somebody_who_interrupts_and_no_folder_stays_behind(base: Path) -> None:
    spark, there = Session(), base.rename(base.with_name("interrupted"))
    with pytest.raises(KeyboardInterrupt):
        analysed(there, spark)
    assert spark.seen == ["started", "stopped"]
    assert not list((base.parent / "temporary").iterdir())


def test_for_a_data_set_that_is_empty_nothing_is_started(tmp_path: Path) -> None:
    spark = Session()
    with pytest.raises(BadDataset, match="the data set is empty"):
        analysed(tmp_path, spark)
    assert spark.seen == []


def test_a_spark_that_does_not_start_is_told_as_such(base: Path) -> None:
    class Broken(Session):
        def start(self, chosen: dict[str, str]) -> Session:
            raise NoSpark("no Java")

    with pytest.raises(NoSpark, match="no Java"):
        analysed(base, Broken())
