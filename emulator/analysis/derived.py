"""What several aggregations need from the rows: versions of state znodes, metadata shown, spreads.

Owns the derivations that are the same everywhere, as expressions of Spark: the history of each
partition's state with its generations (a topic that was deleted and made anew begins again at
version 0), who showed which version, and how times are summed up. No Python runs per row. What is
derived here must be what `trace.partitions` and the views derive from one trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from threading import RLock

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from emulator.analysis.tables import GROUP

KEY = (*GROUP, "run")
PARTITION = (*KEY, "topic", "partition")
STATE_PATH = r"^/brokers/topics/([^/]+)/partitions/(\d+)/state$"
PERCENTILES = (0.5, 0.95, 0.99)
SPREAD_DDL = "p50 double, p95 double, p99 double, max double"
"""Exact, with linear interpolation between the two nearest values."""
_DATA = "leader bigint, leader_epoch bigint, isr array<bigint>"


# -- what several tables begin with ----------------------------------------------------------------


class _Shared:
    """What was derived from one DataFrame, each once."""

    def __init__(self) -> None:
        self.lock, self.found = RLock(), dict[str, DataFrame]()


_SHARED: dict[int, _Shared] = {}
"""By the identity of the rows; those alone that `sharing` was asked for."""


@contextmanager
def sharing(events: DataFrame) -> Iterator[None]:
    """Meanwhile what several tables derive from these rows is made once, and kept."""
    mine = _SHARED[id(events)] = _Shared()
    try:
        yield
    finally:
        del _SHARED[id(events)]
        for found in mine.found.values():
            found.unpersist()


def shared(derive: Callable[[DataFrame], DataFrame]) -> Callable[[DataFrame], DataFrame]:
    """A derivation that several tables begin with."""

    @wraps(derive)
    def once(events: DataFrame) -> DataFrame:
        mine = _SHARED.get(id(events))
        if mine is None:
            return derive(events)
        with mine.lock:
            if derive.__name__ not in mine.found:
                mine.found[derive.__name__] = derive(events).cache()
            return mine.found[derive.__name__]

    return once


def of_kinds(events: DataFrame, *kinds: str) -> DataFrame:
    """The rows of these kinds."""
    return events.where(F.col("kind").isin(*kinds))


def declared(found: DataFrame, ddl: str) -> DataFrame:
    """The columns of a declared schema, in its order and with its types."""
    parts = [part.strip().split(" ", 1) for part in ddl.split(",")]
    return found.select(*(F.col(name).cast(of).alias(name) for name, of in parts))


def summed_up(
    rows: DataFrame, keys: Sequence[str], value: str, *more: Column, worst: str = "worst_run"
) -> DataFrame:
    """Per group: `count`, spread of a value, in how many runs, and the run with the greatest."""
    wanted = F.array(*map(F.lit, PERCENTILES))
    found = rows.groupBy(*keys).agg(
        F.count(value).alias("count"),
        F.percentile(value, wanted).alias("_p"),
        F.max(value).alias("max"),
        F.count_distinct("run").alias("runs"),
        F.max_by("run", F.struct(value, F.col("run"))).alias(worst),
        *more,
    )
    for place, name in enumerate(("p50", "p95", "p99")):
        found = found.withColumn(name, F.col("_p")[place])
    return found


def ms(us: Column) -> Column:
    """Microseconds as milliseconds."""
    return us / 1000.0


# -- states of partitions --------------------------------------------------------------------------


@shared
def state_rows(events: DataFrame) -> DataFrame:
    """Everything that tells a version of a state znode, or that it is gone (`version` null), with
    the partition's generation."""
    told = _from_transactions(events).unionByName(_from_those_who_wrote(events))
    in_order = Window.partitionBy(*PARTITION).orderBy("seq")
    so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return told.withColumn("generation", F.sum(F.col("created").cast("int")).over(so_far))


def states(events: DataFrame) -> DataFrame:
    """One row per version: when it was first told (`t`), what it holds, when the next one came or
    the znode went (`superseded_t`, null: never), and what was before (`leader_before`,
    `isr_before`)."""
    rows = state_rows(events)
    keys = [*PARTITION, "generation", "version"]
    first = rows.groupBy(*keys).agg(
        F.min("t").alias("t"),
        F.min("seq").alias("seq"),
        F.min_by("leader", "seq").alias("leader"),
        F.min_by("isr", "seq").alias("isr"),
    )
    in_order = Window.partitionBy(*PARTITION).orderBy(
        "generation", F.col("version").asc_nulls_last()
    )
    return (
        first.withColumn("superseded_t", F.lead("t").over(in_order))
        .withColumn("leader_before", F.lag("leader").over(in_order))
        .withColumn("isr_before", F.lag("isr").over(in_order))
        .withColumn("generation_before", F.lag("generation").over(in_order))
    )


def applied_operations(events: DataFrame) -> DataFrame:
    """What each transaction changed: its operations (none of a multi that failed)."""
    single = F.struct("op", "path", "data", "version", "ephemeral", "code")
    many = F.size("zk_transaction_ops") > 0
    ops = F.when(many, F.col("zk_transaction_ops")).otherwise(F.array(single))
    failed = F.exists(
        ops, lambda one: (one["op"] == "error") | (F.coalesce(one["code"], F.lit(0)) != 0)
    )
    return (
        of_kinds(events, "zk_transaction")
        .where(~failed)
        .select(*KEY, "seq", "t", "broker", "zxid", F.explode(ops).alias("one"))
    )


def _from_transactions(events: DataFrame) -> DataFrame:
    path, op, data = F.col("one.path"), F.col("one.op"), F.from_json("one.data", _DATA)
    there = op.isin("create", "setData")
    version = F.when(op == "create", 0).when(op == "setData", F.col("one.version"))
    return (
        applied_operations(events)
        .where(path.rlike(STATE_PATH) & op.isin("create", "setData", "delete"))
        .select(
            *KEY,
            F.regexp_extract(path, STATE_PATH, 1).alias("topic"),
            F.regexp_extract(path, STATE_PATH, 2).cast("bigint").alias("partition"),
            "seq",
            "t",
            version.cast("bigint").alias("version"),
            F.when(there, data["leader"]).alias("leader"),
            F.when(there, data["isr"]).alias("isr"),
            (op == "create").alias("created"),
        )
    )


def _from_those_who_wrote(events: DataFrame) -> DataFrame:
    """Where a trace has no transactions, their writers tell of them."""
    leader = F.when(F.col("kind") == "isr_updated", F.col("broker")).otherwise(F.col("leader"))
    return of_kinds(events, "isr_updated", "controller_cache_updated").select(
        *PARTITION,
        "seq",
        "t",
        F.col("zk_version").alias("version"),
        leader.alias("leader"),
        "isr",
        F.lit(False).alias("created"),
    )


# -- metadata --------------------------------------------------------------------------------------


@shared
def shown(events: DataFrame) -> DataFrame:
    """One row per entry that a broker's metadata cache took: `version`, `t`."""
    state = F.col("state")
    return (
        of_kinds(events, "metadata_cache_updated")
        .select(*KEY, "seq", "t", "broker", F.explode("states").alias("state"))
        .select(
            *KEY,
            state["topic"].alias("topic"),
            state["partition"].alias("partition"),
            "seq",
            "t",
            "broker",
            state["zk_version"].alias("version"),
        )
    )


@shared
def run_ends(events: DataFrame) -> DataFrame:
    """When each run was over: its last event, or what its last row says."""
    return (
        events.where("kind != 'run_began' and kind != 'zk_logged'")
        .groupBy(*KEY)
        .agg(F.max("t").alias("end_t"))
    )
