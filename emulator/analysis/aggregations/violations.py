"""Invariants that did not hold, by setting: how often, in how many of the runs, and what Kafka
itself gets wrong there, if that is known (`hazard`)."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from emulator.analysis.derived import KEY, declared, few, of_kinds, runs_among
from emulator.analysis.tables import GROUP

SCHEMA = (
    "scenario string, profile string, propagation string, setting string, invariant string, "
    "hazard string, count bigint, runs bigint, runs_in_all bigint, share_of_runs double, "
    "worst_run string"
)


def aggregate(events: DataFrame) -> DataFrame:
    ended = of_kinds(few(events), "run_ended")
    every = ended.groupBy(*GROUP).agg(F.count("*").alias("runs_in_all"))
    of_run = (
        ended.select(*KEY, F.explode("violations").alias("one"))
        .groupBy(*KEY, "one.invariant", "one.hazard")
        .agg(F.count("*").alias("n"))
    )
    found = of_run.groupBy(*GROUP, "invariant", "hazard").agg(
        F.sum("n").alias("count"),
        runs_among(F.col("run")).alias("runs"),
        F.max_by("run", F.struct("n", "run")).alias("worst_run"),
    )
    found = found.join(F.broadcast(every), [*GROUP])
    share = F.col("runs") / F.col("runs_in_all")
    return declared(found.withColumn("share_of_runs", share), SCHEMA)
