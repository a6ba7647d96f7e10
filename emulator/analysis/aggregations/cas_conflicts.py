"""Conditional writes (also within a multi) that ZooKeeper answered with BadVersion (conflicts), and
ISR updates that the leader abandoned (rejected)."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from emulator.analysis.derived import KEY, with_schema
from emulator.analysis.event_counts import counts, number
from emulator.analysis.tables import GROUP

SCHEMA = (
    "scenario string, profile string, propagation string, setting string, "
    "conditional_writes bigint, conflicts bigint, conflict_rate double, isr_updates bigint, "
    "rejected bigint, rejection_rate double, runs bigint, runs_with_conflicts bigint, "
    "worst_run string"
)
BAD_VERSION = -103


def aggregate(events: DataFrame) -> DataFrame:
    kind = F.col("kind")
    conditional = (kind == "zk_sent") & F.col("name").endswith("setData") & (F.col("value") == 1)
    rows = counts(events, "zk_sent", "zk_reply", "isr_update_started", "isr_update_rejected")
    of_run = rows.groupBy(*KEY).agg(
        number(conditional).alias("conditional_writes"),
        number((kind == "zk_reply") & (F.col("value") == BAD_VERSION)).alias("conflicts"),
        number(kind == "isr_update_started").alias("isr_updates"),
        number(kind == "isr_update_rejected").alias("rejected"),
    )
    of_group = of_run.groupBy(*GROUP).agg(
        *(
            F.sum(name).alias(name)
            for name in ("conditional_writes", "conflicts", "isr_updates", "rejected")
        ),
        F.count("*").alias("runs"),
        F.count_if(F.col("conflicts") > 0).alias("runs_with_conflicts"),
        F.max_by("run", F.struct("conflicts", "run")).alias("worst_run"),
    )
    rates = of_group.withColumn("conflict_rate", _rate("conflicts", "conditional_writes"))
    return with_schema(rates.withColumn("rejection_rate", _rate("rejected", "isr_updates")), SCHEMA)


def _rate(part: str, whole: str) -> Column:
    return F.when(F.col(whole) > 0, F.col(part) / F.col(whole))
