"""`analysis.history` with data sets older than `process_state_changed`."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from emulator.analysis import tables
from emulator.analysis.arrow import VERSION_KEY
from emulator.analysis.dataset import RunKey, open_dataset, pieces
from emulator.analysis.history import processes
from emulator.analysis.writer import write_run
from emulator.runs import dataset_rows as rows
from emulator.scenario.load import loads
from emulator.trace import events as e
from emulator.trace.reader import with_process_states
from emulator.trace.values import Parameters
from tests.unit.view.traces import Script

pytestmark = pytest.mark.spark


def test_process_life_of_an_older_data_set_is_what_the_reader_of_old_traces_says(
    spark: SparkSession, tmp_path: Path
) -> None:
    script = Script()
    for ms, broker, what in (
        (0, 1, "starting"), (0, 2, "starting"), (500, 1, "registered"),
        (1000, 1, "pause"), (2000, 1, "resume"),
        (3000, 1, "kill"), (3500, 1, "pause"), (3600, 1, "resume"), (4000, 1, "starting"),
        (5000, 2, "terminate"), (6000, 2, "exited"), (7000, 3, "registered"), (8000, 3, "crash"),
    ):  # fmt: skip
        script.at(ms)
        if what == "starting":
            script.add(e.BrokerStarting, broker, "2.6")
        else:
            script.add(e.ActionApplied, broker, what, Parameters())
    older = [one for one in script.events if not isinstance(one, e.ProcessStateChanged)]
    wanted = [
        (one.broker, one.t, one.state)
        for one in with_process_states(older)
        if isinstance(one, e.ProcessStateChanged)
    ]
    ended = rows.ended_with([], 9_000_000)
    key = RunKey("older", "2.6", "zk", "one")
    write_run(tmp_path, key, rows.began(loads("run: 9s", "older"), 7), older, ended)
    found = processes(tables.events(spark, open_dataset(tmp_path))).orderBy("seq").toArrow()
    states = [(row["broker"], row["t"], row["state"]) for row in found.to_pylist()]
    assert states == wanted


def test_a_data_set_of_version_1_is_read_under_todays_kinds(
    spark: SparkSession, tmp_path: Path
) -> None:
    script = Script().at(1000)
    script.add(e.ActionApplied, 1, "pause", Parameters())
    key = RunKey("older", "2.6", "zk", "one")
    began = rows.began(loads("run: 9s", "older"), 7)
    write_run(tmp_path, key, began, script.events, rows.ended_with([], 9_000_000))
    for file in list(pieces(tmp_path)):
        table = pq.read_table(file, partitioning=None)
        kinds = pc.replace_substring_regex(table["kind"], "^action_applied$", "stimulus")
        place = table.schema.get_field_index("kind")
        older = table.set_column(place, "kind", kinds.cast(pa.string()))
        pq.write_table(older.replace_schema_metadata({VERSION_KEY: "1"}), file)
    dataset = open_dataset(tmp_path)
    assert dataset.version == 1
    read = tables.events(spark, dataset).where("do = 'pause'").toArrow().to_pylist()
    assert [row["kind"] for row in read] == ["action_applied"]
