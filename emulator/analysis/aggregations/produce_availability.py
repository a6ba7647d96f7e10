"""Results of produce requests, by acks: records acknowledged and refused, the acknowledged share,
and the time from `send` to a batch's acknowledgement, in milliseconds."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from emulator.analysis.derived import (
    KEY,
    SPREAD_DDL,
    ms,
    number_of_runs,
    of_kinds,
    spread_of,
    with_schema,
)
from emulator.analysis.event_counts import PRODUCED, event_counts_by_value
from emulator.analysis.tables import GROUP

SCHEMA = (
    "scenario string, profile string, propagation string, setting string, acks string, "
    f"acknowledged bigint, refused bigint, availability double, {SPREAD_DDL}, runs bigint, "
    "worst_run string, runs_with_refusals bigint"
)

OF_MANY = True


def aggregate(events: DataFrame) -> DataFrame:
    ok, records = F.col("other") == 1, F.col("amount")
    results = of_kinds(event_counts_by_value(events), PRODUCED).select(
        *KEY, F.col("name").alias("acks"), ms(F.col("value")).alias("ack_ms"), "n", "other", records
    )
    spread = spread_of(
        results,
        [*GROUP, "acks"],
        "ack_ms",
        F.sum(F.when(ok, records).otherwise(0)).alias("acknowledged"),
        F.sum(F.when(ok, 0).otherwise(records)).alias("refused"),
        number_of_runs(F.when(~ok, F.col("run"))).alias("runs_with_refusals"),
        weight="n",
    )
    share = F.try_divide(F.col("acknowledged"), F.col("acknowledged") + F.col("refused"))
    return with_schema(spread.withColumn("availability", share), SCHEMA)
