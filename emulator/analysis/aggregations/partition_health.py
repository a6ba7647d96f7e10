"""How long partitions were under-replicated, below `min.insync.replicas`, and without a leader, in
seconds, by what ZooKeeper had; summed over partitions, and for the worst one."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from emulator.analysis.derived import KEY, PARTITION, declared, of_kinds, run_ends, state_rows
from emulator.analysis.tables import GROUP

SCHEMA = (
    "scenario string, profile string, propagation string, setting string, condition string, "
    "partitions bigint, seconds double, share double, one_partition_s_max double, runs bigint, "
    "worst_run string"
)
CONDITIONS = ("under-replicated", "under min ISR", "offline")
_MIN_ISR = "min.insync.replicas"


def aggregate(events: DataFrame) -> DataFrame:
    rows = _timeline(events)
    in_order = Window.partitionBy(*PARTITION).orderBy("seq", "order")
    so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)

    def now(name: str) -> Column:
        return F.last(name, ignorenulls=True).over(so_far)

    there = rows.select(
        *PARTITION,
        "t",
        F.lead("t").over(in_order).alias("next_t"),
        now("is_there").alias("is_there"),
        now("leader").alias("leader"),
        F.size(now("isr")).alias("in_sync"),
        F.size(F.coalesce(now("replicas"), F.array())).alias("replicas"),
        now("min_isr").alias("min_isr"),
    )
    spans = there.join(run_ends(events), [*KEY]).withColumn(
        "us", F.coalesce("next_t", "end_t") - F.col("t")
    )
    return declared(_of_groups(_of_partitions(spans.where("is_there"))), SCHEMA)


def _of_partitions(spans: DataFrame) -> DataFrame:
    truths = dict(
        zip(
            CONDITIONS,
            (
                F.col("in_sync") < F.col("replicas"),
                F.col("in_sync") < F.coalesce("min_isr", F.lit(1)),
                F.col("leader") < 0,
            ),
            strict=True,
        )
    )
    each = [
        F.struct(
            F.lit(name).alias("condition"),
            F.sum(F.when(true, F.col("us")).otherwise(0)).alias("us"),
        )
        for name, true in truths.items()
    ]
    found = spans.groupBy(*PARTITION).agg(
        F.sum("us").alias("whole_us"), F.array(*each).alias("all")
    )
    return found.select(*PARTITION, "whole_us", F.explode("all").alias("of")).select(
        *PARTITION, "whole_us", "of.condition", "of.us"
    )


def _of_groups(of_one: DataFrame) -> DataFrame:
    return of_one.groupBy(*GROUP, "condition").agg(
        F.count_if(F.col("us") > 0).alias("partitions"),
        (F.sum("us") / 1e6).alias("seconds"),
        F.try_divide(F.sum("us"), F.sum("whole_us")).alias("share"),
        (F.max("us") / 1e6).alias("one_partition_s_max"),
        F.count_distinct(F.when(F.col("us") > 0, F.col("run"))).alias("runs"),
        F.max_by("run", F.struct("us", "run")).alias("worst_run"),
    )


def _timeline(events: DataFrame) -> DataFrame:
    """All that changes a partition's condition, in order."""
    told = state_rows(events).select(
        *PARTITION, "seq", "t", "leader", "isr", F.col("version").isNotNull().alias("is_there")
    )
    state = F.col("leader_and_isr_state")
    assigned = of_kinds(events, "leader_and_isr").select(
        *KEY,
        state["topic"].alias("topic"),
        state["partition"].alias("partition"),
        "seq",
        "t",
        state["replicas"].alias("replicas"),
    )
    partitions = told.select(*PARTITION).distinct()
    settings = partitions.join(_of_topics(events), [*KEY, "topic"])
    default = partitions.join(_of_runs(events), [*KEY])
    rows = told.unionByName(assigned, allowMissingColumns=True)
    rows = rows.unionByName(settings, allowMissingColumns=True)
    rows = rows.unionByName(default, allowMissingColumns=True)
    return rows.withColumn("order", F.when(F.col("min_isr").isNotNull(), 0).otherwise(1))


def _of_topics(events: DataFrame) -> DataFrame:
    """`min.insync.replicas` of a topic, from its creation or alteration on."""
    given = F.get_json_object("arguments", f"$.config['{_MIN_ISR}']").cast("bigint")
    return (
        of_kinds(events, "stimulus")
        .where(F.col("do").isin("create_topic", "topic_config") & given.isNotNull())
        .select(
            *KEY,
            F.get_json_object("arguments", "$.topic").alias("topic"),
            "seq",
            "t",
            given.alias("min_isr"),
        )
    )


def _of_runs(events: DataFrame) -> DataFrame:
    """The cluster's, from the beginning on."""
    settings = F.map_from_entries("settings")
    return of_kinds(events, "run_began").select(
        *KEY, "seq", "t", settings[_MIN_ISR].cast("bigint").alias("min_isr")
    )
