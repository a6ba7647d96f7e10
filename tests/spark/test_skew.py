"""One giant run among many small ones: its rows are the work of several tasks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from emulator.analysis import writer
from emulator.analysis.analyse import cached_rows
from emulator.analysis.dataset import RunKey, open_dataset
from emulator.analysis.history import history
from emulator.runs import dataset_rows as rows
from emulator.runs.session import Request, play_in_memory
from emulator.scenario.load import loads
from tests.spark.stages import stages

pytestmark = pytest.mark.spark

SCENARIO = loads(
    """\
topics: {orders: {partitions: 12, replication: 3}}
cluster: {config: {replica.lag.time.max.ms: 1000}}
faults: [{at: 1s, pause: {broker: 2}, for: 2s}]
run: 5s
""",
    "giant",
)
SMALL_RUNS = 20
PIECES = 8
SMALLER = {
    "spark.sql.files.openCostInBytes": "1k",
    "spark.sql.files.maxPartitionBytes": "64k",
    "spark.sql.shuffle.partitions": "6",
}
"""As in a session with millions of rows, scaled to these."""
WORTH_SHARING = 100


def test_no_task_reads_most_of_what_a_stage_reads(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    giant = one_giant_run(tmp_path, monkeypatch)
    before = max((stage.number for stage in stages(spark)), default=-1)
    with (
        settings(spark, SMALLER),
        cached_rows(spark, open_dataset(tmp_path)) as every,
    ):
        history(every)
    ran = [s for s in stages(spark, before) if sum(s.rows) >= WORTH_SHARING]
    scans = [stage for stage in ran if sum(stage.rows) > giant]
    assert len(scans) == 2 and len(ran) > len(scans), "two scans, and shuffles after them"
    for stage in ran:
        assert max(stage.rows) <= 0.5 * sum(stage.rows), stage


def one_giant_run(base: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Most events are one run's; how many it has."""
    request = Request(scenario=SCENARIO, seed=1, zookeeper="simulated")
    played = play_in_memory(request)
    summary, trace = played.summary, played.events
    began, ended = rows.began(SCENARIO, 1), rows.ended(summary)
    monkeypatch.setattr(writer, "PIECE_EVENTS", len(trace) // PIECES)
    events = {f"{number:04}": trace[:20] for number in range(SMALL_RUNS)} | {"giant": trace}
    keys = {run: RunKey(SCENARIO.name, "2.6", "zk", run) for run in events}
    for run, of_run in events.items():
        writer.write_events(base, keys[run], "", of_run)
    writer.write_runs(base, "batch-000000", dict.fromkeys(keys.values(), (began, ended)))
    return len(trace)


@contextmanager
def settings(spark: SparkSession, wanted: dict[str, str]) -> Iterator[None]:
    """Meanwhile the session has these."""
    before = {key: spark.conf.get(key) or "" for key in wanted}
    for key, value in wanted.items():
        spark.conf.set(key, value)
    yield
    for key, value in before.items():
        spark.conf.set(key, value)
