"""Leader changes of partitions, how many of them were unclean (the new leader was not in the ISR),
and controller elections (including the first of a run)."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from emulator.analysis.derived import KEY, with_schema
from emulator.analysis.event_counts import event_counts, number
from emulator.analysis.history import states
from emulator.analysis.tables import GROUP

SCHEMA = (
    "scenario string, profile string, propagation string, setting string, leader_changes bigint, "
    "unclean bigint, partitions_offline bigint, controller_elections bigint, runs bigint, "
    "leader_changes_per_run double, worst_run string"
)


def aggregate(events: DataFrame) -> DataFrame:
    now, before = F.col("leader"), F.col("before.leader")
    moved = (now >= 0) & (now != before)
    in_isr = F.array_contains("before.isr", now)
    changed = (
        states(events)
        .groupBy(*KEY)
        .agg(
            F.count_if(moved).alias("leader_changes"),
            F.count_if(moved & ~in_isr).alias("unclean"),
            F.count_if((now < 0) & (before >= 0)).alias("partitions_offline"),
        )
    )
    of_run = (
        event_counts(events)
        .groupBy(*KEY)
        .agg(number(F.col("kind") == "controller_elected").alias("controller_elections"))
        .join(changed, [*KEY], "left")
        .fillna(0)
    )
    sums = ("leader_changes", "unclean", "partitions_offline", "controller_elections")
    of_group = of_run.groupBy(*GROUP).agg(
        *(F.sum(name).alias(name) for name in sums),
        F.count("*").alias("runs"),
        F.max_by("run", F.struct("leader_changes", "run")).alias("worst_run"),
    )
    each = F.col("leader_changes") / F.col("runs")
    return with_schema(of_group.withColumn("leader_changes_per_run", each), SCHEMA)
