"""How restless ISRs were: changes per partition and hour, and flaps (a shrink that the next change
of the partition takes back), with the time that a flapping follower was out, in milliseconds."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from emulator.analysis.derived import KEY, PARTITION, PERCENTILES, declared, ms, of_kinds, run_ends
from emulator.analysis.tables import GROUP

SCHEMA = (
    "scenario string, profile string, propagation string, setting string, partitions bigint, "
    "changes bigint, shrinks bigint, expands bigint, changes_per_partition_hour double, "
    "changes_of_one_partition_max bigint, flaps bigint, out_p50 double, out_p95 double, "
    "out_max double, runs bigint, worst_run string"
)


def aggregate(events: DataFrame) -> DataFrame:
    in_order = Window.partitionBy(*PARTITION).orderBy("seq")
    back = (F.col("change") == "expand") & (F.lag("change").over(in_order) == "shrink")
    changed = of_kinds(events, "isr_updated").withColumn(
        "out_us", F.when(back, F.col("t") - F.lag("t").over(in_order))
    )
    out = ms(F.col("out_us"))
    of_one = (
        changed.withColumn("out_ms", out)
        .groupBy(*PARTITION)
        .agg(
            F.count("*").alias("changes"),
            F.sum((F.col("change") == "shrink").cast("int")).alias("shrinks"),
            F.sum((F.col("change") == "expand").cast("int")).alias("expands"),
            F.count("out_ms").alias("flaps"),
            F.collect_list("out_ms").alias("outs"),
        )
    )
    return declared(_of_groups(of_one.join(run_ends(events), [*KEY])), SCHEMA)


def _of_groups(of_one: DataFrame) -> DataFrame:
    totals = of_one.groupBy(*GROUP).agg(
        F.count("*").alias("partitions"),
        *(F.sum(name).alias(name) for name in ("changes", "shrinks", "expands", "flaps")),
        F.try_divide(F.sum("changes") * 3.6e9, F.sum("end_t")).alias("changes_per_partition_hour"),
        F.max("changes").alias("changes_of_one_partition_max"),
        F.count_distinct("run").alias("runs"),
        F.max_by("run", F.struct("changes", "run")).alias("worst_run"),
    )
    wanted = F.array(*map(F.lit, PERCENTILES[:2]))
    outs = of_one.select(*GROUP, F.explode("outs").alias("out")).groupBy(*GROUP)
    spread = outs.agg(F.percentile("out", wanted).alias("p"), F.max("out").alias("out_max"))
    found = totals.join(spread, [*GROUP], "left")
    return found.withColumn("out_p50", F.col("p")[0]).withColumn("out_p95", F.col("p")[1])
