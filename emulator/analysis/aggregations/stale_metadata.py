"""How long brokers' metadata was older than ZooKeeper's state: intervals per broker and partition
in milliseconds, adjacent ones merged; `total_s` is summed over brokers and partitions.

A broker's entry is stale while its process is alive and ZooKeeper has a later version, or the topic
was created again. Dead brokers and deleted topics have no stale entries.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from emulator.analysis.derived import SPREAD_DDL, ms, number_of_runs, spread_of, with_schema
from emulator.analysis.event_counts import counts
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
    spread = spread_of(spans, GROUP, "ms", total.alias("total_s"))
    shows = counts(events, "metadata_cache_updated").groupBy(*GROUP)
    spread = spread.join(shows.agg(number_of_runs(F.col("run")).alias("_every")), [*GROUP])
    return with_schema(
        spread.withColumn("total_s_per_run", F.col("total_s") / F.col("_every")), SCHEMA
    )


def episodes(events: DataFrame) -> DataFrame:
    """Per broker and partition: maximal intervals [from_t, to_t) of staleness."""
    in_order = Window.partitionBy(*ENTRY).orderBy("from_t")
    begins = F.coalesce(F.lag("to_t").over(in_order) < F.col("from_t"), F.lit(False))
    return (
        staleness(events)
        .withColumn("begins", begins.cast("int"))
        .withColumn("episode", F.sum("begins").over(in_order))
        .groupBy(*ENTRY, "episode")
        .agg(F.min("from_t").alias("from_t"), F.max("to_t").alias("to_t"))
    )
