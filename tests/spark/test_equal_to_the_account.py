"""Spark's tables say what `trace.state` says: the same partition, the same figure, to the
microsecond.

Every shipped scenario (virtual time, seed 1) and every recorded run of real Kafka, in one data set.
Definitions: `emulator.trace.state`. A scenario is a group of one run, so that a table's row is held
against one account, too.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from emulator.analysis import tables
from emulator.analysis.aggregations import aggregations
from emulator.analysis.aggregations.hw_lag import lags
from emulator.analysis.aggregations.metadata_arrivals import arrivals
from emulator.analysis.aggregations.partition_health import of_partitions
from emulator.analysis.aggregations.propagation_delay import legs
from emulator.analysis.aggregations.stale_metadata import episodes
from emulator.analysis.dataset import RunKey, open_dataset
from emulator.analysis.derived import caching
from emulator.analysis.writer import write_run
from emulator.runs import dataset_rows as rows
from emulator.runs.session import Request, RunListeners, play_in_memory
from emulator.runs.summary import quantiles
from emulator.scenario.load import loads
from emulator.trace.reader import with_process_states
from emulator.trace.state import TraceState
from tests.sim.shipped_runs import NAMES, scenario
from tests.spark.reference import legs_of
from tests.unit.view.recorded import every_recording, recorded

pytestmark = pytest.mark.spark

Row = dict[str, Any]
RECORDED = every_recording()
QUANTILES = ("count", "p50", "p95", "p99", "max")
QUANTILES_OF = attrgetter(*QUANTILES)


class Accounts(NamedTuple):
    """The data set, and the account of each of its runs."""

    events: DataFrame
    of: dict[str, TraceState]


@pytest.fixture(scope="module")
def accounts(spark: SparkSession, tmp_path_factory: Any) -> Iterator[Accounts]:
    base: Path = tmp_path_factory.mktemp("accounts")
    of: dict[str, TraceState] = {}
    for name in NAMES:
        states: list[TraceState] = []

        def attach(listeners: RunListeners, states: list[TraceState] = states) -> None:
            states.append(listeners.state)

        loaded = scenario(name)
        played = play_in_memory(Request(scenario=loaded, seed=1), attach=attach)
        of[name] = states[0]
        began = rows.began(loaded, 1)
        write_run(
            base,
            RunKey(name, "of", "its own", "1"),
            began,
            played.events,
            rows.ended(played.summary),
        )
    for recording, folder in RECORDED.items():
        name = f"{recording} of real Kafka"
        events = list(with_process_states(recorded(folder, traffic=False)))
        of[name] = TraceState()
        for event in events:
            of[name](event)
        began = rows.began(loads("run: 1s", name), 0)
        ended = rows.ended_with([], of[name].clock.now_us)
        write_run(base, RunKey(name, "of", "its own", "1"), began, events, ended)
    found = tables.events(spark, open_dataset(base))
    with caching(found):
        yield Accounts(found, of)


def by_partition(found: DataFrame, *more: str, value: str) -> dict[tuple[Any, ...], Any]:
    """The sum for each run, partition (and `more`), where it is not 0."""
    return sums_by_partition(found, *more, values=(value,))[value]


def sums_by_partition(
    found: DataFrame, *more: str, values: tuple[str, ...]
) -> dict[str, dict[tuple[Any, ...], Any]]:
    """The same of several values in one query."""
    keys = ("scenario", "topic", "partition", *more)
    sums = found.groupBy(*keys).agg(*(F.sum(value).alias(value) for value in values))
    collected = sums.toArrow().to_pylist()
    return {
        value: {tuple(row[key] for key in keys): row[value] for row in collected if row[value]}
        for value in values
    }


def table(name: str, accounts: Accounts) -> list[Row]:
    found: list[Row] = aggregations()[name].aggregate(accounts.events).toArrow().to_pylist()
    return found


def seconds(us: float) -> float:
    return pytest.approx(us / 1e6, rel=1e-9, abs=1e-9)


def test_stale_metadata_of_each_partition_and_broker(accounts: Accounts) -> None:
    found = episodes(accounts.events).withColumn("us", F.col("to_t") - F.col("from_t"))
    assert by_partition(found, "broker", value="us") == {
        (run, *name, broker): state.staleness.sum_us(name, broker)
        for run, state in accounts.of.items()
        for name in state.metadata.history
        for broker in state.staleness.brokers(name)
        if state.staleness.sum_us(name, broker)
    }


def test_stale_metadata_in_its_table(accounts: Accounts) -> None:
    found = {row["scenario"]: row for row in table("stale_metadata", accounts)}
    stale = {run: one.staleness for run, one in accounts.of.items()}
    assert {*found} == {run for run, one in stale.items() if one.sum_of_all_us}
    for run, row in found.items():
        assert row["total_s"] == seconds(stale[run].sum_of_all_us), run
        assert row["max"] == pytest.approx(stale[run].longest_of_all_us / 1000), run


def test_records_above_the_high_watermark_of_each_partition(accounts: Accounts) -> None:
    found = lags(accounts.events).withColumn("us", F.col("to_t") - F.col("from_t"))
    weighted = found.withColumn("weight", F.col("records") * F.col("us"))
    known: dict[str, Counter[Any]] = defaultdict(Counter)
    for run, state in accounts.of.items():
        for name in state.water_levels.leaderships:
            for lag in state.water_levels.hw_lags(name, state.clock.now_us):
                us = lag.to_us - lag.from_us
                known["us"][run, *name, lag.broker] += us
                known["weight"][run, *name, lag.broker] += us * lag.records
    values = ("us", "weight")
    assert sums_by_partition(weighted, "broker", values=values) == {
        value: {key: sum_ for key, sum_ in known[value].items() if sum_} for value in values
    }


def test_records_above_the_high_watermark_in_its_table(accounts: Accounts) -> None:
    found = {row["scenario"]: row for row in table("hw_lag", accounts)}
    for run, state in accounts.of.items():
        end_us, levels = state.clock.now_us, state.water_levels
        behind = sum(levels.behind_us(name, end_us) for name in levels.leaderships)
        every = [one for name in levels.leaderships for one in levels.hw_lags(name, end_us)]
        if every:
            assert found[run]["behind_s"] == seconds(behind), run
            assert found[run]["max"] == max(one.records for one in every), run


def test_under_replicated_time_of_each_partition(accounts: Accounts) -> None:
    found = of_partitions(accounts.events).where("condition = 'under-replicated'")
    assert by_partition(found, value="us") == {
        (run, *name): us
        for run, state in accounts.of.items()
        for name in state.partitions.all
        if (us := state.gauges.under_replicated_us(name, state.clock.now_us))
    }


def test_time_in_conditions_in_its_table(accounts: Accounts) -> None:
    found = {
        (row["scenario"], row["condition"]): row for row in table("partition_health", accounts)
    }
    for run, state in accounts.of.items():
        end_us = state.clock.now_us
        under = [state.gauges.under_replicated_us(name, end_us) for name in state.partitions.all]
        if (run, "offline") in found:
            assert found[run, "under-replicated"]["seconds"] == seconds(sum(under)), run
            below = state.gauges.under_min_isr_us(end_us)
            assert found[run, "under min ISR"]["seconds"] == seconds(below), run


def test_delays_from_the_decision(accounts: Accounts) -> None:
    """Each of them."""
    found = Counter(
        (row["scenario"], row["leg"], row["us"])
        for row in legs(accounts.events).toArrow().to_pylist()
    )
    assert found == Counter(
        (run, leg, us) for run, state in accounts.of.items() for leg, us in legs_of(state)
    )


def test_delays_in_their_table(accounts: Accounts) -> None:
    """With the percentiles of `isr compare`."""
    found = {(row["scenario"], row["leg"]): row for row in table("propagation_delay", accounts)}
    for run, state in accounts.of.items():
        if delays := state.propagation.metadata_us:
            row, told = found[run, "decision to broker"], quantiles(delays)
            assert tuple(row[name] for name in QUANTILES) == QUANTILES_OF(told), run


def test_delays_from_the_write(accounts: Accounts) -> None:
    """Each of them, and in their table, with the percentiles of `isr compare`."""
    found = Counter(
        (row["scenario"], row["us"], row["is_superseded"], row["is_awaited"])
        for row in arrivals(accounts.events).toArrow().to_pylist()
    )
    known: Counter[Any] = Counter()
    for run, state in accounts.of.items():
        written = state.propagation
        known.update((run, us, False, False) for us in written.written_us)
        known[run, None, True, False] += written.never_shown
        known[run, None, False, True] += written.not_yet_shown
    assert found == +known
    rows_ = {row["scenario"]: row for row in table("metadata_arrivals", accounts)}
    for run, row in rows_.items():
        written = accounts.of[run].propagation
        assert row["never_shown"] == written.never_shown, run
        assert row["not_yet_shown"] == written.not_yet_shown, run
        if written.written_us:
            assert tuple(row[name] for name in QUANTILES) == QUANTILES_OF(
                quantiles(written.written_us)
            ), run


def test_counts_in_their_tables(accounts: Accounts) -> None:
    """Of each run with a row in the table; others have nothing to count."""
    leaders, notes, cas = (
        {row["scenario"]: row for row in table(name, accounts)}
        for name in ("leader_changes", "notifications", "cas_conflicts")
    )
    records: dict[str, Counter[str]] = defaultdict(Counter)
    for row in table("produce_availability", accounts):
        records[row["scenario"]] += Counter(
            {name: row[name] for name in ("acknowledged", "refused")}
        )
    meters = {
        (row["scenario"], row["metric"].partition("name=")[2]): row["count"]
        for row in table("isr_rates", accounts)
    }
    for run, state in accounts.of.items():
        counts = state.counts
        assert meters[run, "IsrShrinksPerSec"] == counts.shrinks.total(), run
        assert meters[run, "IsrExpandsPerSec"] == counts.expands.total(), run
        assert meters[run, "FailedIsrUpdatesPerSec"] == counts.failed.total(), run
        changes = counts.leader_elections, counts.unclean_elections, counts.controller_elections
        columns = "leader_changes", "unclean", "controller_elections"
        assert tuple(leaders[run][name] for name in columns) == changes, run
        assert notes.get(run, {}).get("notifications", 0) == counts.notifications, run
        assert cas.get(run, {}).get("conflicts", 0) == counts.conflicts, run
        assert records[run]["acknowledged"] == state.records.acknowledged.total(), run
        assert records[run]["refused"] == state.records.refusals(), run
