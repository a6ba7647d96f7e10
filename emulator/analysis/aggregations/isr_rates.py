"""Shrinks, expands and failed updates of the ISR under the names of Kafka's meters: counts, and
mean rates per second of the runs."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from emulator.analysis.derived import KEY, with_schema
from emulator.analysis.event_counts import event_counts, number
from emulator.analysis.tables import GROUP
from emulator.trace.events import IGNORED

SCHEMA = (
    "scenario string, profile string, propagation string, setting string, metric string, "
    "count bigint, seconds double, mean_rate double, runs bigint, worst_run string"
)
_SERVER = "kafka.server:type=ReplicaManager,name="
METRICS = ("IsrShrinksPerSec", "IsrExpandsPerSec", "FailedIsrUpdatesPerSec")


def aggregate(events: DataFrame) -> DataFrame:
    kind = F.col("kind")
    change = outcome = F.col("name")
    conditions = (
        ((kind == "isr_updated") & (change == "shrink")) | (kind == "controller_shrink_counted"),
        (kind == "isr_updated") & (change != "shrink"),
        # A response to an update that is no longer pending marks no meter.
        (kind == "isr_update_rejected") | ((kind == "alter_isr_failed") & (outcome != IGNORED)),
    )
    of_run = (
        event_counts(events)
        .groupBy(*KEY)
        .agg(
            F.max("last_t").alias("end_t"),
            F.array(
                *(
                    F.struct(F.lit(_SERVER + metric).alias("metric"), number(one).alias("n"))
                    for metric, one in zip(METRICS, conditions, strict=True)
                )
            ).alias("all"),
        )
    )
    of_group = (
        of_run.select(*KEY, "end_t", F.inline("all"))
        .groupBy(*GROUP, "metric")
        .agg(
            F.sum("n").alias("count"),
            (F.sum("end_t") / 1e6).alias("seconds"),
            F.count("*").alias("runs"),
            F.max_by("run", F.struct("n", "run")).alias("worst_run"),
        )
    )
    return with_schema(of_group.withColumn("mean_rate", F.try_divide("count", "seconds")), SCHEMA)
