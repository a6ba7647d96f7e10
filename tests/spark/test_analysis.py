"""From files to tables and a page: as a whole, and while they come."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from emulator import cli
from emulator.analysis import session, tables
from emulator.analysis.aggregations import aggregations
from emulator.analysis.analyse import Analysis, analyse, analyse_readable, in_order, write
from emulator.analysis.dataset import Dataset, RunKey, open_dataset, pieces
from emulator.analysis.derived import caching, rare_rows
from emulator.analysis.errors import AnalysisError, BadDataset, NoSpark
from emulator.analysis.event_counts import event_counts
from emulator.analysis.follow import LiveAnalysis, known_files
from emulator.analysis.history import history
from emulator.analysis.report import write_report
from emulator.analysis.writer import RunWriter, write_run
from emulator.runs import dataset_rows as rows
from emulator.runs.broken import Broken
from emulator.scenario.load import loads
from emulator.trace.rows import Figure
from tests.unit.analysis.test_dataset import damage
from tests.unit.view.traces import Script

pytestmark = pytest.mark.spark

SCENARIO = loads("run: 9s", "by-hand")


def add(base: Path, seed: int, propagation: str = "zk") -> None:
    """A run in which metadata is stale for longer with every seed."""
    script = Script().shrink_and_late_news()
    began = rows.began(SCENARIO, seed, replay=f"isr run by-hand --seed {seed:#x}")
    figures = (Figure("stale_metadata_ms_max", 7000.0 + seed), Figure("isr_changes", 1.0))
    ended = rows.ended_with(
        [Broken("logs agree", "</script>", "", "orders-0", 1)], 20_000_000 + seed
    )
    ended = type(ended)(*(-1, ended.t, 0, "", -1), "held", False, figures, ended.violations)
    key = RunKey("by-hand", "2.6", propagation, f"{seed:#x}")
    write_run(base, key, began, script.events, ended)


def made_of(spark: SparkSession, base: Path) -> Analysis:
    return analyse(spark, open_dataset(base))


CODEGEN = "spark.sql.codegen.factoryMode"
MODES: dict[str, str | None] = {}
"""Whether Spark compiled queries while it made a table of the fixture below."""


@pytest.fixture(scope="module")
def both(spark: SparkSession, tmp_path_factory: Any) -> tuple[Path, Analysis]:
    """Three runs, two of them on one path and one on the other; in a session that compiles."""
    base = tmp_path_factory.mktemp("both")
    for seed, path in ((1, "zk"), (2, "zk"), (3, "rpc")):
        add(base, seed, path)

    def look(name: str, *_: int) -> None:
        MODES[name] = spark.conf.get(CODEGEN)

    spark.conf.set(CODEGEN, "FALLBACK")
    try:
        made = analyse(spark, open_dataset(base), look)
        MODES["afterwards"] = spark.conf.get(CODEGEN)
    finally:
        spark.conf.set(CODEGEN, "NO_CODEGEN")
    return base, made


def test_tables_are_files_and_csv(both: tuple[Path, Analysis], tmp_path: Path) -> None:
    _, made = both
    write(made, tmp_path, csv=True)
    for name in aggregations():
        assert pq.read_table(tmp_path / "tables" / f"{name}.parquet").equals(made.tables[name])
    text = (tmp_path / "csv" / "violations.csv").read_text().splitlines()
    assert text[0].startswith('"scenario","profile","propagation"') and len(text) == 3


def test_the_page_needs_no_network_and_leads_to_every_run(
    both: tuple[Path, Analysis], tmp_path: Path
) -> None:
    _, made = both
    page = write_report(made, tmp_path, "Analysis of <both>").read_text()
    assert len(page.encode()) < 5_000_000
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page)
    assert "Analysis of &lt;both&gt;" in page and "</script> " not in page
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page)
    assert data is not None
    listed = json.loads(data[1])
    assert listed["groups"] == ["by-hand, 2.6 (rpc)", "by-hand, 2.6 (zk)"]
    assert listed["commands"] == ["isr run by-hand --seed {seed}"] * 2
    assert [run[:5] for run in listed["runs"]] == [
        [0, "0x3", "0x3", "held", 1],
        [1, "0x1", "0x1", "held", 1],
        [1, "0x2", "0x2", "held", 1],
    ]
    ids = re.findall(r' id="([^"]+)"', re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL))
    assert len(ids) == len(set(ids)), "a link leads to one place"
    assert "<h2>ISR churn</h2>" in page and "<h2>CAS conflicts</h2>" in page
    linked = set(re.findall(r'data-group="(\d)" data-run="(\w+)"', page))
    assert linked == {("0", "0x3"), ("1", "0x2")}, "of each group the worst; the list has all"
    for picture in ("distributions", "propagation_delay", "stale_metadata"):
        assert (tmp_path / f"{picture}.png").read_bytes().startswith(b"\x89PNG")


def test_what_several_tables_begin_with_is_made_once_and_let_go_of(
    spark: SparkSession, both: tuple[Path, Analysis]
) -> None:
    every = tables.events(spark, open_dataset(both[0]))
    with caching(every):
        first = history(every)
        assert history(every) is first and event_counts(every) is event_counts(every)
        assert rare_rows(every) is not first
        assert history(every.limit(1)) is not first
        assert "FileScan" not in plan_of(first), "it forgets how it came about"
    assert history(every) is not history(every)
    assert "FileScan" in plan_of(history(every))


def plan_of(rows: DataFrame) -> str:
    plan: str = rows._jdf.queryExecution().executedPlan().toString()
    return plan


@pytest.mark.usefixtures("both")
def test_queries_of_few_rows_are_not_compiled_what_reads_many_is() -> None:
    """Spark's settings are put back."""
    compiled = {name for name, mode in MODES.items() if mode == "FALLBACK"}
    of_many = {"hw_lag", "produce_availability"}
    assert compiled == of_many | {"afterwards"}, "a row of nearly every batch of records"
    assert {MODES[name] for name in aggregations().keys() - compiled} == {"NO_CODEGEN"}


@pytest.mark.parametrize("name", ["leader_changes", "stale_metadata"])
def test_a_table_is_the_same_where_nothing_is_shared(
    name: str, spark: SparkSession, both: tuple[Path, Analysis]
) -> None:
    alone = aggregations()[name].aggregate(tables.events(spark, open_dataset(both[0])))
    assert in_order(alone.toArrow()).to_pylist() == both[1].tables[name].to_pylist()


@pytest.mark.soak
def test_a_stream_that_was_stopped_goes_on_without_loss_or_double_count(
    spark: SparkSession, tmp_path: Path
) -> None:
    base, out = tmp_path / "data", tmp_path / "out"
    told: list[int] = []

    def fails_once(_: Dataset, made: Analysis) -> None:
        told.append(len(made.runs))
        if len(told) == 1:
            raise OSError("the machine went away")

    def stream(*, skip_bad: bool = False) -> None:
        one = LiveAnalysis(base, out, fails_once, skip_bad=skip_bad)
        one.wait(one.start(spark, once=True))

    add(base, 1)
    with pytest.raises(AnalysisError, match="the machine went away"):
        stream()
    add(base, 2)
    live = RunWriter(base, RunKey("by-hand", "2.6", "zk", "0x3"), rows.began(SCENARIO, 3))
    for event in Script().shrink_and_late_news().events:
        live(event)
    live.flush()
    stream()
    bad = base / "runs" / "torn.parquet"
    bad.write_bytes(b"PAR1")
    with pytest.raises(BadDataset, match=r"torn\.parquet: cannot be read as Parquet"):
        stream()
    stream(skip_bad=True)
    assert told[-1] == 3, "the rest goes on"
    bad.unlink()
    live.finish(rows.ended_with([], 30_000_000))
    stream()
    assert told[0] == 1 and told[-1] == 3
    assert sorted(known_files(out)) == sorted(pieces(base.resolve()))
    whole = made_of(spark, base)
    for name, table in whole.tables.items():
        assert pq.read_table(out / "tables" / f"{name}.parquet").equals(table), name


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["analyze", "nowhere"], "nowhere: no such directory"),
        (["analyze", "."], ".: the data set is empty"),
        (["analyze", ".", "--spark-conf", "x"], "--spark-conf x: write spark.KEY=VALUE"),
        (
            ["sweep", "min-isr", "--out", "o", "--spark-master", "me"],
            "--spark-master me: unknown form",
        ),
        (
            ["sweep", "min-isr", "--out", "o", "--spark-master", "spark://127.0.0.1:1"],
            "the master does not answer: Connection refused",
        ),
        (["sweep", "min-isr", "--out", "o", "--traces", "some"], "--traces some: all, violations"),
        (["sweep", "min-isr", "--out", "o", "--resume"], "--resume: o has no sweep.json"),
    ],
)
def test_a_mistake_is_one_line(
    words: list[str], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.execute(words) == 64
    said = capsys.readouterr().err.splitlines()
    assert len([line for line in said if line.startswith("isr: ")]) == 1 and why in said[-1]


def test_no_java_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(NoSpark, match="Spark needs Java"):
        session.check_master("local[2]")


def test_what_cannot_be_read_is_left_out_and_listed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    base = tmp_path / "data"
    for seed in (1, 2, 3, 4):
        add(base, seed)
    truncated, damaged, endless, _ = sorted(pieces(base / "events"))
    truncated.write_bytes(truncated.read_bytes()[:-40])
    (base / "runs" / "by-hand~2.6~zk~0x3.parquet").unlink()
    monkeypatch.setattr(session, "start", lambda *_, **__: spark)
    monkeypatch.setattr(SparkSession, "stop", lambda _: None)
    assert cli.execute(["analyze", str(base)]) == 64
    assert f"{truncated}: cannot be read as Parquet" in capsys.readouterr().err
    damage(damaged)
    assert cli.execute(["analyze", str(base), "--skip-bad", "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    left_out = {str(truncated), str(damaged), str(endless.parent)}
    assert {one["path"] for one in found["left_out"]} == left_out
    page = (base / "analysis" / "report.html").read_text()
    assert all(f"left out: {path}: " in err and path in page for path in left_out)
    assert [row["changes"] for row in found["tables"]["isr_churn"]] == [1], "of the fourth"


def test_a_file_that_is_damaged_within_is_one_line(spark: SparkSession, tmp_path: Path) -> None:
    """Spark finds it out, in a page of Java; a thorough look says which file it is."""
    add(tmp_path, 1)
    look = partial(open_dataset, tmp_path)
    damage(next(pieces(tmp_path / "events")))
    with pytest.raises(BadDataset, match=r"part-00000.parquet: is damaged: .*--skip-bad"):
        analyse_readable(spark, look(), look)
