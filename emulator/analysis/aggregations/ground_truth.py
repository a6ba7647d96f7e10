"""Traced transactions beside those that the ZooKeeper server itself logged (`isr zookeeper log RUN
--parquet`): how many are in both, and in only one of the two; and ISR updates that a leader took
over beside the logged writes of state znodes (a controller's elections are in the log only)."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from emulator.analysis.derived import KEY, PARTITION, STATE_PATH, declared, of_kinds
from emulator.analysis.tables import GROUP

SCHEMA = (
    "scenario string, profile string, propagation string, setting string, what string, "
    "in_both bigint, only_traced bigint, only_logged bigint, runs bigint, worst_run string"
)


def aggregate(events: DataFrame) -> DataFrame:
    logged = of_kinds(events, "zk_logged").where("path is null or path not like '/zookeeper/%'")
    with_log = logged.select(*KEY).distinct()
    traced = of_kinds(events, "zk_transaction").join(F.broadcast(with_log), [*KEY], "left_semi")
    zxids = _beside(
        "transactions", traced.select(*KEY, "zxid"), logged.select(*KEY, "zxid"), "zxid"
    )
    updated = of_kinds(events, "isr_updated").join(F.broadcast(with_log), [*KEY], "left_semi")
    path = F.col("one.path")
    written = (
        logged.select(*KEY, F.explode(_operations()).alias("one"))
        .where(path.rlike(STATE_PATH) & (F.col("one.op") == "setData"))
        .select(
            *KEY,
            F.regexp_extract(path, STATE_PATH, 1).alias("topic"),
            F.regexp_extract(path, STATE_PATH, 2).cast("bigint").alias("partition"),
            F.col("one.version").alias("zk_version"),
        )
    )
    isr = _beside(
        "ISR updates",
        updated.select(*PARTITION, "zk_version"),
        written,
        "topic",
        "partition",
        "zk_version",
    )
    return declared(zxids.unionByName(isr), SCHEMA)


def _operations() -> Column:
    """A multi's, or the one that it is."""
    single = F.struct("op", "path", "data", "version", "ephemeral", "code")
    return F.when(F.size("zk_transaction_ops") > 0, F.col("zk_transaction_ops")).otherwise(
        F.array(single)
    )


def _beside(what: str, traced: DataFrame, logged: DataFrame, *by: str) -> DataFrame:
    one = traced.distinct().withColumn("traced", F.lit(1))
    other = logged.distinct().withColumn("logged", F.lit(1))
    both = one.join(other, [*KEY, *by], "full")
    missing = F.count_if(F.col("traced").isNull() | F.col("logged").isNull())
    of_run = both.groupBy(*KEY).agg(
        F.count_if(F.col("traced").isNotNull() & F.col("logged").isNotNull()).alias("in_both"),
        F.count_if(F.col("logged").isNull()).alias("only_traced"),
        F.count_if(F.col("traced").isNull()).alias("only_logged"),
        missing.alias("missing"),
    )
    found = of_run.groupBy(*GROUP).agg(
        *(F.sum(name).alias(name) for name in ("in_both", "only_traced", "only_logged")),
        F.count("*").alias("runs"),
        F.max_by("run", F.struct("missing", "run")).alias("worst_run"),
    )
    return found.withColumn("what", F.lit(what))
