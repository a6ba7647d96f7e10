"""How long partitions were under-replicated, at or below `min.insync.replicas`, or without a
leader, by the definitions of Kafka's gauges: seconds summed over partitions, and the worst
partition's.

Replicas that a reassignment adds do not count as missing. The first three are gauges of leaders: a
partition without a leader counts in none of them. A topic that is being deleted is not offline.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from emulator.analysis.derived import (
    KEY,
    PARTITION,
    infrequent_rows,
    number_of_runs,
    of_kinds,
    rare_rows,
    with_schema,
)
from emulator.analysis.history import (
    history,
    last_known,
    operations,
    pieces,
    states,
)
from emulator.analysis.tables import GROUP

SCHEMA = (
    "scenario string, profile string, propagation string, setting string, condition string, "
    "partitions bigint, seconds double, share double, one_partition_s_max double, runs bigint, "
    "worst_run string"
)
_MIN_ISR = "min.insync.replicas"
_DELETIONS = "/admin/delete_topics/"


def aggregate(events: DataFrame) -> DataFrame:
    is_ever = F.col("us") > 0
    of_group = (
        of_partitions(events)
        .groupBy(*GROUP, "condition")
        .agg(
            F.count_if(is_ever).alias("partitions"),
            (F.sum("us") / 1e6).alias("seconds"),
            F.try_divide(F.sum("us"), F.sum("whole_us")).alias("share"),
            (F.max("us") / 1e6).alias("one_partition_s_max"),
            number_of_runs(F.when(is_ever, F.col("run"))).alias("runs"),
            F.max_by("run", F.struct("us", "run")).alias("worst_run"),
        )
    )
    return with_schema(of_group, SCHEMA)


def of_partitions(events: DataFrame) -> DataFrame:
    """Microseconds of each partition in each condition, and in total (`whole_us`)."""
    in_order = Window.partitionBy(*PARTITION).orderBy("seq", "order")

    def now(value: str | Column) -> Column:
        return last_known(F.col(value) if isinstance(value, str) else value, in_order)

    isr_size = now(F.size("isr"))
    expected = F.size(F.array_except(now("replicas"), F.coalesce(now("adding"), F.array())))
    has_leader, min_isr = now("leader") >= 0, F.coalesce(now("min_isr"), F.lit(1))
    conditions = {
        "under-replicated": has_leader & (isr_size < expected),
        "at min ISR": has_leader & (isr_size == min_isr),
        "under min ISR": has_leader & (isr_size < min_isr),
        "offline": (now("leader") < 0) & ~F.coalesce(now("is_deleting"), F.lit(False)),
    }
    holds = F.array(
        *(
            F.struct(F.lit(name).alias("condition"), is_true.alias("is_true"))
            for name, is_true in conditions.items()
        )
    )
    intervals = pieces(
        _timeline(events).withColumns({"is_present": now("is_present"), "holds": holds}), in_order
    ).where("is_present")
    us = F.col("to_t") - F.col("from_t")
    return (
        intervals.select(*PARTITION, us.alias("piece_us"), F.inline("holds"))
        .groupBy(*PARTITION, "condition")
        .agg(
            F.sum("piece_us").alias("whole_us"),
            F.sum(F.when(F.col("is_true"), F.col("piece_us")).otherwise(0)).alias("us"),
        )
    )


def _timeline(events: DataFrame) -> DataFrame:
    """All changes to a partition's condition, in order."""
    znodes = states(events).withColumn("is_present", F.col("version").isNotNull())
    # Where no LeaderAndIsr was logged (Kafka 1.0), metadata tells the replicas.
    earlier = (
        Window.partitionBy(*PARTITION).orderBy("seq").rowsBetween(Window.unboundedPreceding, -1)
    )
    known = F.when(F.size("replicas") > 0, True)
    assigned = (
        history(events)
        .where(F.col("what").isin("assigned", "shown"))
        .withColumn("is_known", F.last(known, ignorenulls=True).over(earlier))
        .where((F.col("what") == "assigned") | F.col("is_known").isNull())
    )
    columns = (*PARTITION, "seq", "t", "last_t")

    def concerns(change: Column) -> Column:
        """Of all topics, or of the partition's own."""
        return F.coalesce(change["of_topic"], F.col("topic")) == F.col("topic")

    of_topics = (
        znodes.groupBy(*PARTITION)
        .agg(F.max("last_t").alias("last_t"))
        .join(F.broadcast(_of_topics(events)), [*KEY])
        .select(*PARTITION, "last_t", F.inline(F.filter("changes", concerns)))
        .drop("of_topic")
        .withColumn("order", F.lit(0))
    )
    return (
        znodes.select(*columns, "is_present", "leader", "isr")
        .unionByName(assigned.select(*columns, "replicas", "adding"), allowMissingColumns=True)
        .withColumn("order", F.lit(1))
        .unionByName(of_topics, allowMissingColumns=True)
    )


def _of_topics(events: DataFrame) -> DataFrame:
    """Changes to all partitions of a topic, or of the run: `min.insync.replicas` (the cluster's
    from the start, a topic's when it is created or altered), and a topic's deletion."""
    kind = F.col("kind")
    began = kind == "run_began"
    of_topic = F.get_json_object("arguments", f"$.config['{_MIN_ISR}']")
    min_isr = F.when(began, F.map_from_entries("settings")[_MIN_ISR]).otherwise(of_topic)
    settings = (
        of_kinds(infrequent_rows(events), "run_began", "action_applied")
        .where(began | F.col("do").isin("create_topic", "topic_config"))
        .select(
            *KEY,
            F.when(~began, F.get_json_object("arguments", "$.topic")).alias("of_topic"),
            "seq",
            "t",
            min_isr.cast("bigint").alias("min_isr"),
            F.lit(None).cast("boolean").alias("is_deleting"),
        )
        .where("min_isr is not null")
    )
    deletions = (
        of_kinds(rare_rows(events), "zk_transaction")
        .select(*KEY, "seq", "t", F.inline(operations()))
        .where(F.col("path").startswith(_DELETIONS) & F.col("op").isin("create", "delete"))
        .where(F.coalesce("code", F.lit(0)) == 0)
        .select(
            *KEY,
            F.substring("path", len(_DELETIONS) + 1, 1 << 15).alias("of_topic"),
            "seq",
            "t",
            F.lit(None).cast("bigint").alias("min_isr"),
            (F.col("op") == "create").alias("is_deleting"),
        )
    )
    one = F.struct("of_topic", "seq", "t", "min_isr", "is_deleting")
    both = settings.unionByName(deletions)
    return both.groupBy(*KEY).agg(F.collect_list(one).alias("changes"))
