"""Violated invariants by setting: how often, in how many runs, and the known hazard of Kafka that
explains them, if any."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from emulator.analysis.derived import KEY, infrequent_rows, number_of_runs, of_kinds, with_schema
from emulator.analysis.tables import GROUP

SCHEMA = (
    "scenario string, profile string, propagation string, setting string, invariant string, "
    "hazard string, count bigint, runs bigint, runs_in_all bigint, share_of_runs double, "
    "worst_run string"
)


def aggregate(events: DataFrame) -> DataFrame:
    ended = of_kinds(infrequent_rows(events), "run_ended")
    every = ended.groupBy(*GROUP).agg(F.count("*").alias("runs_in_all"))
    of_run = (
        ended.select(*KEY, F.explode("violations").alias("one"))
        .groupBy(*KEY, "one.invariant", "one.hazard")
        .agg(F.count("*").alias("n"))
    )
    of_group = of_run.groupBy(*GROUP, "invariant", "hazard").agg(
        F.sum("n").alias("count"),
        number_of_runs(F.col("run")).alias("runs"),
        F.max_by("run", F.struct("n", "run")).alias("worst_run"),
    )
    of_group = of_group.join(F.broadcast(every), [*GROUP])
    share = F.col("runs") / F.col("runs_in_all")
    return with_schema(of_group.withColumn("share_of_runs", share), SCHEMA)
