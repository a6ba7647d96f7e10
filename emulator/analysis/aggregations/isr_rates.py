"""Shrinks, expands and failed updates of the ISR under the names of Kafka's meters: counts, and the
mean rate per second of the runs."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from emulator.analysis.derived import KEY, declared, of_kinds, run_ends
from emulator.analysis.tables import GROUP

SCHEMA = (
    "scenario string, profile string, propagation string, setting string, metric string, "
    "count bigint, seconds double, mean_rate double, runs bigint, worst_run string"
)
_SERVER = "kafka.server:type=ReplicaManager,name="
METRICS = ("IsrShrinksPerSec", "IsrExpandsPerSec", "FailedIsrUpdatesPerSec")


def aggregate(events: DataFrame) -> DataFrame:
    shrinks, expands, failed = METRICS
    metric = (
        F.when(F.col("kind") == "isr_update_rejected", failed)
        .when(F.col("change") == "shrink", shrinks)
        .otherwise(expands)
    )
    of_run = (
        of_kinds(events, "isr_updated", "isr_update_rejected")
        .withColumn("metric", metric)
        .groupBy(*KEY)
        .pivot("metric", list(METRICS))
        .count()
    )
    counts = F.explode(
        F.array(*(F.struct(F.lit(m).alias("metric"), F.col(m).alias("count")) for m in METRICS))
    )
    every = run_ends(events).join(of_run, [*KEY], "left").select(*KEY, "end_t", counts.alias("of"))
    count = F.coalesce("of.count", F.lit(0))
    found = (
        every.select(
            *KEY, "end_t", F.concat(F.lit(_SERVER), "of.metric").alias("metric"), count.alias("n")
        )
        .groupBy(*GROUP, "metric")
        .agg(
            F.sum("n").alias("count"),
            (F.sum("end_t") / 1e6).alias("seconds"),
            F.count("*").alias("runs"),
            F.max_by("run", F.struct("n", "run")).alias("worst_run"),
        )
    )
    return declared(found.withColumn("mean_rate", F.try_divide("count", "seconds")), SCHEMA)
