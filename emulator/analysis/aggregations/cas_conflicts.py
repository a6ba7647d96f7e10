"""Conditional writes (also within a multi) and what became of them: those that ZooKeeper answered
with BadVersion (conflicts), and ISR updates that their leader gave up (rejected)."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from emulator.analysis.derived import KEY, declared, of_kinds
from emulator.analysis.tables import GROUP

SCHEMA = (
    "scenario string, profile string, propagation string, setting string, "
    "conditional_writes bigint, conflicts bigint, conflict_rate double, isr_updates bigint, "
    "rejected bigint, rejection_rate double, runs bigint, runs_with_conflicts bigint, "
    "worst_run string"
)
BAD_VERSION = -103


def aggregate(events: DataFrame) -> DataFrame:
    def counted(condition: Column) -> Column:
        return F.sum(F.when(condition, 1).otherwise(0))

    kind = F.col("kind")
    wanted = of_kinds(events, "zk_sent", "zk_reply", "isr_update_started", "isr_update_rejected")
    of_run = wanted.groupBy(*KEY).agg(
        counted(
            (kind == "zk_sent") & F.col("op").endswith("setData") & (F.col("version") >= 0)
        ).alias("conditional_writes"),
        counted((kind == "zk_reply") & (F.col("code") == BAD_VERSION)).alias("conflicts"),
        counted(kind == "isr_update_started").alias("isr_updates"),
        counted(kind == "isr_update_rejected").alias("rejected"),
    )
    found = of_run.groupBy(*GROUP).agg(
        *(
            F.sum(name).alias(name)
            for name in ("conditional_writes", "conflicts", "isr_updates", "rejected")
        ),
        F.count("*").alias("runs"),
        counted(F.col("conflicts") > 0).alias("runs_with_conflicts"),
        F.max_by("run", F.struct("conflicts", "run")).alias("worst_run"),
    )
    rates = found.withColumn("conflict_rate", _rate("conflicts", "conditional_writes"))
    return declared(rates.withColumn("rejection_rate", _rate("rejected", "isr_updates")), SCHEMA)


def _rate(part: str, whole: str) -> Column:
    return F.when(F.col(whole) > 0, F.col(part) / F.col(whole))
