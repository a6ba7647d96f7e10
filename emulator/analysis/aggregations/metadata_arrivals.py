"""From the write of an ISR change to each broker's metadata that shows that very version, in
milliseconds. `never_shown`: brokers that knew a later version first; `not_yet_shown`: brokers that
know neither at the end. Brokers whose process or topic ended first are not counted."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from emulator.analysis.derived import PARTITION, SPREAD_DDL, ms, spread_of, with_schema
from emulator.analysis.history import caches, first_after, last_before, states
from emulator.analysis.tables import GROUP

SCHEMA = (
    "scenario string, profile string, propagation string, setting string, "
    f"count bigint, {SPREAD_DDL}, never_shown bigint, not_yet_shown bigint, runs bigint, "
    "worst_run string"
)


def aggregate(events: DataFrame) -> DataFrame:
    spread = spread_of(
        arrivals(events).withColumn("ms", ms(F.col("us"))),
        GROUP,
        "ms",
        F.count_if("is_superseded").alias("never_shown"),
        F.count_if("is_awaited").alias("not_yet_shown"),
    )
    return with_schema(spread, SCHEMA)


def arrivals(events: DataFrame) -> DataFrame:
    """Per ISR change and broker that had an older version: microseconds until it showed this one
    (`us`), or a later one (`is_superseded`), or neither yet (`is_awaited`)."""
    version = F.col("version")

    def is_older(entry: Column) -> Column:
        return (entry["version"] < version) | (entry["t"] < F.col("created_t"))

    lost = first_after("shown", lambda one: ~one["goes_on"])
    known = first_after("shown", lambda one: one["goes_on"] & ~is_older(one))
    had = last_before("shown")
    is_known = F.coalesce(known["seq"] < lost["seq"], known["goes_on"], F.lit(False))
    is_this = known["version"] == version
    arrival = F.struct(
        F.when(is_known & is_this, known["t"] - F.col("t")).alias("us"),
        (is_known & ~is_this).alias("is_superseded"),
        known["seq"].isNull().alias("is_awaited"),
    )
    counts = had["version"].isNotNull() & is_older(had) & (is_known | lost["seq"].isNull())
    return (
        states(events)
        .where("isr_change")
        .select(*PARTITION, "seq", "t", "version", "created_t")
        .join(caches(events), [*PARTITION])
        # One row or none. As a filter after the join, Spark (4.3) would push a part of the
        # condition below it and then miss `seq`.
        .select(*PARTITION, F.inline(F.when(counts, F.array(arrival))))
    )
