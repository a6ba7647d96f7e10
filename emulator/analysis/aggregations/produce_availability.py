"""What producers were told, by acks: records acknowledged and refused, the share acknowledged, and
the time from handing a batch over to its acknowledgement, in milliseconds."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from emulator.analysis.derived import SPREAD_DDL, declared, ms, of_kinds, summed_up
from emulator.analysis.tables import GROUP

SCHEMA = (
    "scenario string, profile string, propagation string, setting string, acks string, "
    f"acknowledged bigint, refused bigint, availability double, {SPREAD_DDL}, runs bigint, "
    "worst_run string, runs_with_refusals bigint"
)


def aggregate(events: DataFrame) -> DataFrame:
    ok = F.col("result") == "ok"
    told = of_kinds(events, "records_produced").withColumn(
        "ack_ms", F.when(ok, ms(F.col("t") - F.col("handed_over")))
    )
    records = F.col("count")
    found = summed_up(
        told.withColumn("records", records).drop("count"),
        [*GROUP, "acks"],
        "ack_ms",
        F.sum(F.when(ok, F.col("records")).otherwise(0)).alias("acknowledged"),
        F.sum(F.when(ok, 0).otherwise(F.col("records"))).alias("refused"),
        F.count_distinct(F.when(~ok, F.col("run"))).alias("runs_with_refusals"),
    )
    share = F.try_divide(F.col("acknowledged"), F.col("acknowledged") + F.col("refused"))
    return declared(found.withColumn("availability", share), SCHEMA)
