"""Each table against plain Python, on runs by chance and on real ones; and against rows by hand.

The tables share what they begin with, as in a report (`caching`); `test_analysis` shows that
they are the same without that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from emulator.analysis import tables
from emulator.analysis.aggregations import aggregations
from emulator.analysis.dataset import RunKey, open_dataset
from emulator.analysis.derived import caching
from emulator.analysis.writer import write_run
from emulator.runs import dataset_rows as rows
from emulator.runs.broken import Broken
from emulator.runs.session import Request, play_in_memory
from emulator.scenario import shipped
from emulator.scenario.load import load
from emulator.search.fuzz.trial import PlayedTrial, try_seed
from emulator.trace import events as e
from tests.spark.reading import Row, Run
from tests.spark.reference import TABLES
from tests.spark.stories import runs
from tests.unit.view.traces import Script

pytestmark = pytest.mark.spark


def written(spark: SparkSession, base: Path, found: Sequence[Run]) -> DataFrame:
    for run in found:
        write_run(base, run.key, run.began, run.events, run.ended)
    return tables.events(spark, open_dataset(base))


def made(name: str, events: DataFrame) -> list[Row]:
    found: list[Row] = aggregations()[name].aggregate(events).toArrow().to_pylist()
    return ordered(found)


def ordered(found: Sequence[Row]) -> list[Row]:
    """Floats as far as two ways to add them agree."""
    plain = [{k: _rounded(v) for k, v in sorted(row.items())} for row in found]
    return sorted(plain, key=lambda row: repr([(k, v) for k, v in row.items()]))


def _rounded(value: Any) -> Any:
    return float(f"{value:.9g}") if isinstance(value, float | int) else value


def test_each_table_has_a_reference_and_a_sentence() -> None:
    assert sorted(TABLES) == sorted(aggregations())
    assert all(len(one.about) > 40 for one in aggregations().values())


@pytest.fixture(scope="module")
def real(spark: SparkSession, tmp_path_factory: Any) -> Iterator[tuple[DataFrame, list[Run]]]:
    """Random worlds in which much fails, and a scenario."""
    found: list[Run] = []

    def keep(played: PlayedTrial) -> None:
        assert played.scenario is not None
        key = RunKey("random", "2.6", "zk", f"{played.trial.seed:#x}")
        last = rows.ended_with([], played.trial.virtual_us)
        found.append(Run(key, rows.began(played.scenario, played.trial.seed), played.events, last))

    for seed in (0x10, 0x12):
        try_seed(seed, keep=keep)
    scenario = load(shipped.find("min-isr"))
    played = play_in_memory(Request(scenario=scenario, seed=3))
    summary, events = played.summary, played.events
    key = RunKey(scenario.name, "2.6", "zk", "0x3")
    found.append(Run(key, rows.began(scenario, 3), events, rows.ended(summary)))
    events = written(spark, tmp_path_factory.mktemp("real"), found)
    with caching(events):
        yield events, found


@pytest.mark.parametrize("name", sorted(TABLES))
def test_a_table_of_real_runs_is_what_plain_python_says(
    real: tuple[DataFrame, list[Run]], name: str
) -> None:
    events, found = real
    aggregate = aggregations()[name].aggregate(events)
    declared = [part.strip().split(" ", 1) for part in aggregations()[name].schema.split(",")]
    assert [[field.name, field.dataType.simpleString()] for field in aggregate.schema] == declared
    got: list[Row] = aggregate.toArrow().to_pylist()
    assert ordered(got) == ordered(list(TABLES[name](found)))


BY_CHANCE = st.tuples(*(runs(f"run-{number:02}") for number in range(12)))
OFTEN = settings(
    max_examples=10,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@given(BY_CHANCE)
@settings(OFTEN, max_examples=1)
def test_every_table_of_runs_by_chance_is_what_plain_python_says(
    spark: SparkSession, found: tuple[Run, ...]
) -> None:
    compare(spark, found)


@pytest.mark.soak
@given(BY_CHANCE)
@OFTEN
def test_every_table_of_many_runs_by_chance_is_what_plain_python_says(
    spark: SparkSession, found: tuple[Run, ...]
) -> None:
    compare(spark, found)


def compare(spark: SparkSession, found: Sequence[Run]) -> None:
    with TemporaryDirectory() as folder:
        events = written(spark, Path(folder), found)
        with caching(events):
            got = {name: made(name, events) for name in TABLES}
    assert got == {name: ordered(list(reference(found))) for name, reference in TABLES.items()}


# -- by hand ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def by_hand(spark: SparkSession, tmp_path_factory: Any) -> Iterator[DataFrame]:
    """Broker 1 shrinks at 5.504 s and tells it at 12.5 s; brokers 1 and 3 show it at 12.512 and
    12.513 s, broker 2 never; the trace ends at 20 s."""
    script = Script().shrink_and_late_news()
    script.at(20_000).add(e.ThreadFailed, 3, "a task", "an error")
    run = Run(
        RunKey("by-hand", "2.6", "zk", "one"),
        rows.began(load(shipped.find("min-isr")), 7),
        script.events,
        rows.ended_with([Broken("logs agree", "no", "", "orders-0", 1)], 20_000_000),
    )
    events = written(spark, tmp_path_factory.mktemp("by-hand"), [run])
    with caching(events):
        yield events


def picked(name: str, events: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[column] for column in columns) for row in made(name, events))


def test_the_legs_of_one_change(by_hand: DataFrame) -> None:
    assert picked("propagation_delay", by_hand, "leg", "count", "p50", "max") == [
        ("controller to broker", 2, 4.0, 5.0),
        ("decision to broker", 2, 7012.0, 7013.0),
        ("decision to controller", 1, 7008.0, 7008.0),
        ("decision to leader", 1, 6.0, 6.0),
        ("decision to zookeeper", 1, 4.0, 4.0),
        ("notification to controller", 1, 8.0, 8.0),
        ("zookeeper to notification", 1, 6996.0, 6996.0),
    ]


def test_metadata_is_stale_until_it_is_told_or_the_run_is_over(by_hand: DataFrame) -> None:
    ((count, p50, longest, total),) = picked(
        "stale_metadata", by_hand, "count", "p50", "max", "total_s"
    )
    assert (count, p50, longest) == (3, 7009.0, 14496.0)
    assert total == pytest.approx(7.008 + 7.009 + 14.496)


def test_an_isr_without_a_replica_counts_until_the_end(by_hand: DataFrame) -> None:
    assert picked("isr_churn", by_hand, "partitions", "changes", "flaps") == [(1, 1, 0)]
    assert picked("notifications", by_hand, "changes", "notifications", "held") == [(1, 1, 2)]
    assert picked("violations", by_hand, "invariant", "runs", "share_of_runs") == [
        ("logs agree", 1, 1.0)
    ]


def test_two_brokers_show_the_version_that_was_written_and_one_does_not_yet(
    by_hand: DataFrame,
) -> None:
    columns = ("count", "p50", "max", "never_shown", "not_yet_shown")
    assert picked("metadata_arrivals", by_hand, *columns) == [(2, 7008.0, 7009.0, 0, 1)]
