"""Leader changes of partitions, how many of them were unclean (the new leader was not in the ISR),
and controller elections (including the first of a run)."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from emulator.analysis.derived import KEY, PARTITION, with_schema
from emulator.analysis.event_counts import event_counts, number
from emulator.analysis.history import STATES, VERSION, history
from emulator.analysis.tables import GROUP

SCHEMA = (
    "scenario string, profile string, propagation string, setting string, leader_changes bigint, "
    "unclean bigint, partitions_offline bigint, controller_elections bigint, runs bigint, "
    "leader_changes_per_run double, worst_run string"
)


def aggregate(events: DataFrame) -> DataFrame:
    same_znode = F.col("generation") == F.col("generation_before")
    moved = same_znode & (F.col("leader") >= 0) & (F.col("leader") != F.col("leader_before"))
    in_isr = F.array_contains("isr_before", F.col("leader"))
    lost = same_znode & (F.col("leader") < 0) & (F.col("leader_before") >= 0)
    changed = (
        _states(history(events))
        .groupBy(*KEY)
        .agg(
            F.count_if(moved).alias("leader_changes"),
            F.count_if(moved & ~in_isr).alias("unclean"),
            F.count_if(lost).alias("partitions_offline"),
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


def _states(rows: DataFrame) -> DataFrame:
    """A row per version: its state when it was first reported, and the previous version's state."""
    first = (
        rows.where(F.col("what").isin(*STATES))
        .groupBy(*VERSION)
        .agg(F.min_by(F.struct("leader", "isr"), "seq").alias("held"))
        .select(*VERSION, "held.leader", "held.isr")
    )
    in_order = Window.partitionBy(*PARTITION).orderBy(
        "generation", F.col("version").asc_nulls_last()
    )
    before = F.lag(F.struct("leader", "isr", "generation")).over(in_order)
    return first.withColumn("before", before).select(
        "*",
        F.col("before.leader").alias("leader_before"),
        F.col("before.isr").alias("isr_before"),
        F.col("before.generation").alias("generation_before"),
    )
