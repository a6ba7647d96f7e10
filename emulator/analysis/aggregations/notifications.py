"""Notifications of ISR changes: znodes per change, partitions per znode (coalescing), and how often
a leader had pending changes but delayed the notification (held)."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from emulator.analysis.derived import KEY, with_schema
from emulator.analysis.event_counts import counts, number
from emulator.analysis.tables import GROUP

SCHEMA = (
    "scenario string, profile string, propagation string, setting string, changes bigint, "
    "notifications bigint, partitions_named bigint, notifications_per_change double, "
    "partitions_per_notification double, partitions_in_one_max bigint, held bigint, runs bigint, "
    "worst_run string"
)


def aggregate(events: DataFrame) -> DataFrame:
    notified = F.col("kind") == "isr_change_notified"
    named = F.when(notified, F.col("amount"))
    rows = counts(events, "isr_updated", "isr_change_notified", "isr_change_held")
    of_run = rows.groupBy(*KEY).agg(
        number(F.col("kind") == "isr_updated").alias("changes"),
        number(notified).alias("notifications"),
        F.coalesce(F.sum(named), F.lit(0)).alias("partitions_named"),
        F.max(F.when(notified, F.col("amount_max"))).alias("partitions_in_one_max"),
        number(F.col("kind") == "isr_change_held").alias("held"),
    )
    sums = ("changes", "notifications", "partitions_named", "held")
    of_group = of_run.groupBy(*GROUP).agg(
        *(F.sum(name).alias(name) for name in sums),
        F.max("partitions_in_one_max").alias("partitions_in_one_max"),
        F.count("*").alias("runs"),
        F.max_by("run", F.struct("notifications", "run")).alias("worst_run"),
    )
    each = F.when(F.col("changes") > 0, F.col("notifications") / F.col("changes"))
    coalesced = F.when(
        F.col("notifications") > 0, F.col("partitions_named") / F.col("notifications")
    )
    return with_schema(
        of_group.withColumn("notifications_per_change", each).withColumn(
            "partitions_per_notification", coalesced
        ),
        SCHEMA,
    )
