"""What producers were told, by acks: records acknowledged and refused, the share acknowledged, and
the time from handing a batch over to its acknowledgement, in milliseconds."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from emulator.analysis.counted import PRODUCED, counted_finely
from emulator.analysis.derived import (
    KEY,
    SPREAD_DDL,
    declared,
    ms,
    of_kinds,
    runs_among,
    summed_up,
)
from emulator.analysis.tables import GROUP

SCHEMA = (
    "scenario string, profile string, propagation string, setting string, acks string, "
    f"acknowledged bigint, refused bigint, availability double, {SPREAD_DDL}, runs bigint, "
    "worst_run string, runs_with_refusals bigint"
)

OF_MANY = True


def aggregate(events: DataFrame) -> DataFrame:
    ok, records = F.col("other") == 1, F.col("amount")
    told = of_kinds(counted_finely(events), PRODUCED).select(
        *KEY, F.col("name").alias("acks"), ms(F.col("value")).alias("ack_ms"), "n", "other", records
    )
    found = summed_up(
        told,
        [*GROUP, "acks"],
        "ack_ms",
        F.sum(F.when(ok, records).otherwise(0)).alias("acknowledged"),
        F.sum(F.when(ok, 0).otherwise(records)).alias("refused"),
        runs_among(F.when(~ok, F.col("run"))).alias("runs_with_refusals"),
        weight="n",
    )
    share = F.try_divide(F.col("acknowledged"), F.col("acknowledged") + F.col("refused"))
    return declared(found.withColumn("availability", share), SCHEMA)
