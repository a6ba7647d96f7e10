"""How long brokers' metadata was older than ZooKeeper: intervals per broker and partition, joined
where one follows on the other, in milliseconds; `total_s` is summed over brokers and partitions.

A broker's entry is stale while its process is alive and ZooKeeper has a later version, or the topic
was created again. Nothing is stale of a dead broker or of a topic that ZooKeeper has no more.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from emulator.analysis.counted import counts
from emulator.analysis.derived import SPREAD_DDL, declared, ms, runs_among, summed_up
from emulator.analysis.history import ENTRY, staleness
from emulator.analysis.tables import GROUP

SCHEMA = (
    "scenario string, profile string, propagation string, setting string, "
    f"count bigint, {SPREAD_DDL}, total_s double, total_s_per_run double, runs bigint, "
    "worst_run string"
)


def aggregate(events: DataFrame) -> DataFrame:
    spans = episodes(events).withColumn("ms", ms(F.col("to_t") - F.col("from_t")))
    total = F.sum("ms") / 1000
    found = summed_up(spans, GROUP, "ms", total.alias("total_s"))
    shows = counts(events, "metadata_cache_updated").groupBy(*GROUP)
    found = found.join(shows.agg(runs_among(F.col("run")).alias("_every")), [*GROUP])
    return declared(found.withColumn("total_s_per_run", F.col("total_s") / F.col("_every")), SCHEMA)


def episodes(events: DataFrame) -> DataFrame:
    """Per broker and partition: [from_t, to_t) in which it was stale, each as long as can be."""
    in_order = Window.partitionBy(*ENTRY).orderBy("from_t")
    begins = F.coalesce(F.lag("to_t").over(in_order) < F.col("from_t"), F.lit(False))
    return (
        staleness(events)
        .withColumn("begins", begins.cast("int"))
        .withColumn("episode", F.sum("begins").over(in_order))
        .groupBy(*ENTRY, "episode")
        .agg(F.min("from_t").alias("from_t"), F.max("to_t").alias("to_t"))
    )
