"""Notifications of ISR changes: how many nodes for how many changes, how many partitions each names
(coalescing), and how often a leader had changes to tell and held them back."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from emulator.analysis.derived import KEY, declared, of_kinds
from emulator.analysis.tables import GROUP

SCHEMA = (
    "scenario string, profile string, propagation string, setting string, changes bigint, "
    "notifications bigint, partitions_named bigint, notifications_per_change double, "
    "partitions_per_notification double, partitions_in_one_max bigint, held bigint, runs bigint, "
    "worst_run string"
)


def aggregate(events: DataFrame) -> DataFrame:
    def of(kind: str, value: Column) -> Column:
        return F.when(F.col("kind") == kind, value)

    one, named = F.lit(1), F.size("partitions")
    wanted = of_kinds(events, "isr_updated", "isr_change_notified", "isr_change_held")
    of_run = wanted.groupBy(*KEY).agg(
        F.count(of("isr_updated", one)).alias("changes"),
        F.count(of("isr_change_notified", one)).alias("notifications"),
        F.coalesce(F.sum(of("isr_change_notified", named)), F.lit(0)).alias("partitions_named"),
        F.max(of("isr_change_notified", named)).alias("partitions_in_one_max"),
        F.count(of("isr_change_held", one)).alias("held"),
    )
    sums = ("changes", "notifications", "partitions_named", "held")
    found = of_run.groupBy(*GROUP).agg(
        *(F.sum(name).alias(name) for name in sums),
        F.max("partitions_in_one_max").alias("partitions_in_one_max"),
        F.count("*").alias("runs"),
        F.max_by("run", F.struct("notifications", "run")).alias("worst_run"),
    )
    each = F.when(F.col("changes") > 0, F.col("notifications") / F.col("changes"))
    coalesced = F.when(
        F.col("notifications") > 0, F.col("partitions_named") / F.col("notifications")
    )
    return declared(
        found.withColumn("notifications_per_change", each).withColumn(
            "partitions_per_notification", coalesced
        ),
        SCHEMA,
    )
