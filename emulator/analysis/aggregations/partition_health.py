"""How long partitions were under-replicated, below `min.insync.replicas`, and without a leader, in
seconds, by what ZooKeeper had; summed over partitions, and for the worst one."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from emulator.analysis.derived import KEY, PARTITION, declared, few, of_kinds, runs_among
from emulator.analysis.history import STATES, history
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
        "end_t",
        F.lead("t").over(in_order).alias("next_t"),
        now("is_there").alias("is_there"),
        now("leader").alias("leader"),
        F.size(now("isr")).alias("in_sync"),
        F.size(F.coalesce(now("replicas"), F.array())).alias("replicas"),
        now("min_isr").alias("min_isr"),
    )
    spans = there.withColumn("us", F.coalesce("next_t", "end_t") - F.col("t"))
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
        runs_among(F.when(F.col("us") > 0, F.col("run"))).alias("runs"),
        F.max_by("run", F.struct("us", "run")).alias("worst_run"),
    )


def _timeline(events: DataFrame) -> DataFrame:
    """All that changes a partition's condition, in order."""
    states = F.col("what").isin(*STATES)
    told = (
        history(events)
        .where(states | (F.col("what") == "assigned"))
        .withColumn("is_there", F.when(states, F.col("version").isNotNull()))
        .select(*PARTITION, "seq", "t", "end_t", "is_there", "leader", "isr", "replicas")
    )
    partitions = told.where("is_there is not null").groupBy(*PARTITION)
    settings = (
        partitions.agg(F.max("end_t").alias("end_t"))
        .join(F.broadcast(_settings(events)), [*KEY])
        .select(*PARTITION, "end_t", F.inline(_of_topic("settings")))
        .drop("of_topic")
    )
    rows = told.unionByName(settings, allowMissingColumns=True)
    return rows.withColumn("order", F.when(F.col("min_isr").isNotNull(), 0).otherwise(1))


def _of_topic(settings: str) -> Column:
    """Those of all topics, and of the partition's own."""
    topic = F.col("topic")
    return F.filter(settings, lambda one: F.coalesce(one["of_topic"], topic) == topic)


def _settings(events: DataFrame) -> DataFrame:
    """`min.insync.replicas` of each run: the cluster's from the beginning on, a topic's from its
    creation or alteration on."""
    began = F.col("kind") == "run_began"
    given = F.get_json_object("arguments", f"$.config['{_MIN_ISR}']")
    min_isr = F.when(began, F.map_from_entries("settings")[_MIN_ISR]).otherwise(given)
    one = F.struct(
        F.when(~began, F.get_json_object("arguments", "$.topic")).alias("of_topic"),
        "seq",
        "t",
        min_isr.cast("bigint").alias("min_isr"),
    )
    told = of_kinds(few(events), "run_began", "stimulus").where(
        began | F.col("do").isin("create_topic", "topic_config")
    )
    return told.where(min_isr.isNotNull()).groupBy(*KEY).agg(F.collect_list(one).alias("settings"))
