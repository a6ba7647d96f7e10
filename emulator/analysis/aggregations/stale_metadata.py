"""How long brokers' metadata was older than ZooKeeper: intervals per broker and partition, joined
where one follows on the other, in milliseconds.

An entry is stale from the moment when ZooKeeper has a later version until the broker has that one
or a later one, drops the partition, its process ends or starts anew, the znode is deleted, or the
run is over.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from emulator.analysis.derived import (
    KEY,
    PARTITION,
    SPREAD_DDL,
    declared,
    ms,
    of_kinds,
    run_ends,
    shown,
    state_rows,
    summed_up,
)
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
    every = run_ends(of_kinds(events, "metadata_cache_updated")).groupBy(*GROUP)
    runs = every.agg(F.count("*").alias("_every"))
    found = found.join(runs, [*GROUP])
    return declared(found.withColumn("total_s_per_run", F.col("total_s") / F.col("_every")), SCHEMA)


def intervals(events: DataFrame) -> DataFrame:
    """Per broker and partition: [from_t, to_t) in which its entry was stale, each as long as can
    be."""
    entries = _entries(events)
    later = _versions(events).select(*PARTITION, "generation", "version", "superseded_t", "gone_t")
    ended = entries.join(later, [*PARTITION, "generation", "version"]).join(
        run_ends(events), [*KEY]
    )
    pieces = ended.select(
        *ENTRY,
        F.greatest("t", "superseded_t").alias("from_t"),
        F.least(F.coalesce("next_t", "end_t"), F.coalesce("gone_t", "end_t")).alias("to_t"),
    ).where("superseded_t is not null and from_t < to_t")
    in_order = Window.partitionBy(*ENTRY).orderBy("from_t")
    before = F.max("to_t").over(in_order.rowsBetween(Window.unboundedPreceding, -1))
    island = F.sum(F.when(F.col("from_t") > F.col("before_t"), 1).otherwise(0)).over(in_order)
    return (
        pieces.withColumn("before_t", before)
        .withColumn("island", island)
        .groupBy(*ENTRY, "island")
        .agg(F.min("from_t").alias("from_t"), F.max("to_t").alias("to_t"))
    )


def _versions(events: DataFrame) -> DataFrame:
    """Each version: when a later one came, when its znode went."""
    rows = state_rows(events)
    deleted = F.min(F.when(F.col("version").isNull(), F.col("t"))).over(
        Window.partitionBy(*PARTITION, "generation")
    )
    first = (
        rows.withColumn("gone_t", deleted)
        .where("version is not null")
        .groupBy(*PARTITION, "generation", "version")
        .agg(F.min("t").alias("t"), F.min("gone_t").alias("gone_t"))
    )
    in_order = Window.partitionBy(*PARTITION, "generation").orderBy("version")
    return first.withColumn("superseded_t", F.lead("t").over(in_order))


def _entries(events: DataFrame) -> DataFrame:
    """What each cache showed, with the znode's generation then, and until when."""
    taken = shown(events).withColumn("taken", F.lit(True))
    dropped = (
        of_kinds(events, "metadata_cache_updated")
        .select(*KEY, "seq", "t", "broker", F.explode("metadata_cache_updated_removed").alias("of"))
        .select(*KEY, "of.topic", "of.partition", "seq", "t", "broker")
    )
    rows = taken.unionByName(dropped, allowMissingColumns=True)
    ends = _ends_of_processes(events)
    of_broker = Window.partitionBy(*KEY, "broker").orderBy(F.desc("seq"))
    ended = F.last(F.when(F.col("ends"), F.col("t")), ignorenulls=True).over(of_broker)
    rows = (
        rows.withColumn("ends", F.lit(False))
        .unionByName(ends, allowMissingColumns=True)
        .withColumn("process_end_t", ended)
        .where("not ends")
    )
    entry = Window.partitionBy(*ENTRY).orderBy("seq")
    rows = rows.withColumn(
        "next_t", F.least(F.lead("t").over(entry), F.col("process_end_t"))
    ).where("taken")
    created = state_rows(events).where("created").select(*PARTITION, "seq", "created")
    both = rows.unionByName(created, allowMissingColumns=True)
    so_far = Window.partitionBy(*PARTITION).orderBy("seq")
    generation = F.coalesce(F.sum(F.col("created").cast("int")).over(so_far), F.lit(0))
    return both.withColumn("generation", generation).where("taken").drop("created", "ends")


def _ends_of_processes(events: DataFrame) -> DataFrame:
    """A process that ends, or starts anew, has nothing in its cache."""
    struck = F.get_json_object("arguments", "$.broker").cast("bigint")
    lives = of_kinds(events, "broker_starting", "broker_exited", "broker_halted")
    killed = of_kinds(events, "stimulus").where(F.col("do").isin(*_DEATHS))
    rows = lives.select(*KEY, "seq", "t", "broker").unionByName(
        killed.select(*KEY, "seq", "t", F.coalesce(struck, "broker").alias("broker"))
    )
    return rows.withColumn("ends", F.lit(True))
