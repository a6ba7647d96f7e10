"""How long brokers' metadata was older than ZooKeeper: intervals per broker and partition, joined
where one follows on the other, in milliseconds.

An entry is stale from the moment when ZooKeeper has a later version until the broker has that one
or a later one, drops the partition, its process ends or starts anew, the znode is deleted, or the
run is over.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from emulator.analysis.counted import counts
from emulator.analysis.derived import (
    KEY,
    PARTITION,
    SPREAD_DDL,
    declared,
    few,
    ms,
    of_kinds,
    runs_among,
    summed_up,
)
from emulator.analysis.history import STATES, VERSION, history
from emulator.analysis.tables import GROUP

SCHEMA = (
    "scenario string, profile string, propagation string, setting string, "
    f"count bigint, {SPREAD_DDL}, total_s double, total_s_per_run double, runs bigint, "
    "worst_run string"
)
ENTRY = (*PARTITION, "broker")
_DEATHS = ("kill", "crash")


def aggregate(events: DataFrame) -> DataFrame:
    spans = intervals(events).withColumn("ms", ms(F.col("to_t") - F.col("from_t")))
    total = F.sum("ms") / 1000
    found = summed_up(spans, GROUP, "ms", total.alias("total_s"))
    shows = counts(events, "metadata_cache_updated").groupBy(*GROUP)
    found = found.join(shows.agg(runs_among(F.col("run")).alias("_every")), [*GROUP])
    return declared(found.withColumn("total_s_per_run", F.col("total_s") / F.col("_every")), SCHEMA)


def intervals(events: DataFrame) -> DataFrame:
    """Per broker and partition: [from_t, to_t) in which its entry was stale, each as long as can
    be."""
    pieces = (
        _versions(_with_end_of_entries(events))
        .select(*PARTITION, "superseded_t", "gone_t", F.inline("entries"))
        .select(
            *ENTRY,
            F.greatest("t", "superseded_t").alias("from_t"),
            F.least("until_t", "gone_t").alias("to_t"),
        )
        .where("from_t < to_t")
    )
    in_order = Window.partitionBy(*ENTRY).orderBy("from_t")
    before = F.max("to_t").over(in_order.rowsBetween(Window.unboundedPreceding, -1))
    island = F.sum(F.when(F.col("from_t") > F.col("before_t"), 1).otherwise(0)).over(in_order)
    return (
        pieces.withColumn("before_t", before)
        .withColumn("island", island)
        .groupBy(*ENTRY, "island")
        .agg(F.min("from_t").alias("from_t"), F.max("to_t").alias("to_t"))
    )


def _versions(rows: DataFrame) -> DataFrame:
    """Each version that a later one superseded: when, who showed it from when until when
    (`entries`), when its znode went."""
    told = F.when(F.col("what").isin(*STATES), F.col("t"))
    entry = F.when(F.col("what") == "shown", F.struct("broker", "t", "until_t"))
    each = rows.groupBy(*VERSION).agg(
        F.min(told).alias("told_t"), F.collect_list(entry).alias("entries")
    )
    in_order = Window.partitionBy(*PARTITION, "generation").orderBy("version")
    whole = in_order.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    gone = F.when(F.col("version").isNull(), F.col("told_t"))
    return (
        each.where("told_t is not null")
        .withColumns(
            {"superseded_t": F.lead("told_t").over(in_order), "gone_t": F.min(gone).over(whole)}
        )
        .where("version is not null and superseded_t is not null")
    )


def _with_end_of_entries(events: DataFrame) -> DataFrame:
    """What a cache shows it shows until it has something else of the partition (or has dropped it),
    its process ends, or the run is over: `until_t`."""
    rows = history(events).where(F.col("what").isin(*STATES, "shown", "dropped"))
    told = F.col("what").isin("shown", "dropped")
    entry = Window.partitionBy(*PARTITION, "broker", told).orderBy("seq")
    after = F.filter("ends", lambda one: one["seq"] >= F.col("seq"))
    until = F.coalesce(F.least(F.lead("t").over(entry), F.get(after, 0)["t"]), F.col("end_t"))
    return rows.join(F.broadcast(_ends_of_processes(events)), [*KEY, "broker"], "left").withColumn(
        "until_t", until
    )


def _ends_of_processes(events: DataFrame) -> DataFrame:
    """A process that ends, or starts anew, has nothing in its cache: when each broker's did, in
    order (`ends`)."""
    struck = F.get_json_object("arguments", "$.broker").cast("bigint")
    lives = of_kinds(few(events), "broker_starting", "broker_exited", "broker_halted", "stimulus")
    return (
        lives.where((F.col("kind") != "stimulus") | F.col("do").isin(*_DEATHS))
        .groupBy(*KEY, F.coalesce(struck, "broker").alias("broker"))
        .agg(F.sort_array(F.collect_list(F.struct("seq", "t"))).alias("ends"))
    )
