"""Requests to ZooKeeper by thread (without its numbers) and operation: their number, the bytes of
their paths and payloads, and both per ISR change."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from emulator.analysis.derived import KEY, with_schema
from emulator.analysis.event_counts import counts
from emulator.analysis.tables import GROUP

SCHEMA = (
    "scenario string, profile string, propagation string, setting string, actor string, op string, "
    "requests bigint, bytes bigint, requests_per_change double, bytes_per_change double, "
    "runs bigint, worst_run string"
)


def aggregate(events: DataFrame) -> DataFrame:
    of_run = (
        counts(events, "zk_sent")
        .groupBy(*KEY, "actor", F.col("name").alias("op"))
        .agg(F.sum("n").alias("requests"), F.sum("amount").alias("bytes"))
    )
    of_group = of_run.groupBy(*GROUP, "actor", "op").agg(
        F.sum("requests").alias("requests"),
        F.sum("bytes").alias("bytes"),
        F.count("*").alias("runs"),
        F.max_by("run", F.struct("requests", "run")).alias("worst_run"),
    )
    changes = counts(events, "isr_updated").groupBy(*GROUP).agg(F.sum("n").alias("changes"))
    both = of_group.join(F.broadcast(changes), [*GROUP], "left")
    return with_schema(
        both.withColumn("requests_per_change", F.col("requests") / F.col("changes")).withColumn(
            "bytes_per_change", F.col("bytes") / F.col("changes")
        ),
        SCHEMA,
    )
