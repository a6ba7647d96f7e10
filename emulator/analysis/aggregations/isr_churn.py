"""How often ISRs changed: changes per partition and hour, and flaps (a shrink that the partition's
next change reverts) with the time that the follower was out of the ISR, in milliseconds."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from emulator.analysis.derived import PARTITION, ms, number_of_runs, percentiles_of, with_schema
from emulator.analysis.history import UPDATED, history
from emulator.analysis.tables import GROUP

SCHEMA = (
    "scenario string, profile string, propagation string, setting string, partitions bigint, "
    "changes bigint, shrinks bigint, expands bigint, changes_per_partition_hour double, "
    "changes_of_one_partition_max bigint, flaps bigint, out_p50 double, out_p95 double, "
    "out_max double, runs bigint, worst_run string"
)


def aggregate(events: DataFrame) -> DataFrame:
    in_order = Window.partitionBy(*PARTITION).orderBy("seq")
    back = (F.col("change") == "expand") & (F.lag("change").over(in_order) == "shrink")
    changed = (
        history(events)
        .where(F.col("what") == UPDATED)
        .withColumn("out_us", F.when(back, F.col("t") - F.lag("t").over(in_order)))
    )
    of_one = changed.groupBy(*PARTITION).agg(
        F.count("*").alias("changes"),
        F.count_if(F.col("change") == "shrink").alias("shrinks"),
        F.count_if(F.col("change") == "expand").alias("expands"),
        F.count("out_us").alias("flaps"),
        F.collect_list("out_us").alias("outs"),
        F.max("end_t").alias("end_t"),
    )
    return with_schema(_of_groups(of_one), SCHEMA)


def _of_groups(of_one: DataFrame) -> DataFrame:
    """Sums per group, and percentiles over all times that followers were out of the ISR."""
    first = F.col("place") == 0
    each = of_one.select("*", F.posexplode_outer("outs").alias("_at", "_us")).withColumns(
        {"place": F.coalesce("_at", F.lit(0)), "out": ms(F.col("_us"))}
    )

    def once(value: Column) -> Column:
        return F.when(first, value)

    sums = ("changes", "shrinks", "expands", "flaps")
    of_group = each.groupBy(*GROUP).agg(
        F.count(once(F.lit(1))).alias("partitions"),
        *(F.sum(once(F.col(name))).alias(name) for name in sums),
        F.sum(once(F.col("end_t"))).alias("_us"),
        F.max("changes").alias("changes_of_one_partition_max"),
        percentiles_of("out").alias("p"),
        F.max("out").alias("out_max"),
        number_of_runs(F.col("run")).alias("runs"),
        F.max_by("run", F.struct("changes", "run")).alias("worst_run"),
    )
    hourly = F.try_divide(F.col("changes") * 3.6e9, "_us")
    parts = {"out_p50": F.col("p")[0], "out_p95": F.col("p")[1]}
    return of_group.withColumns({**parts, "changes_per_partition_hour": hourly})
