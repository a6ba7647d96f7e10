"""Outcomes by setting: the number of runs per verdict, and a row per figure of their summaries with
its mean and percentiles over the runs."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from emulator.analysis.derived import (
    KEY,
    SPREAD_DDL,
    infrequent_rows,
    of_kinds,
    spread_of,
    with_schema,
)
from emulator.analysis.tables import GROUP

SCHEMA = (
    "scenario string, profile string, propagation string, setting string, figure string, "
    f"mean double, {SPREAD_DDL}, runs bigint, worst_run string"
)
VERDICT = "verdict: "


def aggregate(events: DataFrame) -> DataFrame:
    ended = of_kinds(infrequent_rows(events), "run_ended")
    figures = ended.select(*KEY, F.explode("figures").alias("one"))
    values = figures.select(
        *KEY, F.col("one.name").alias("figure"), F.col("one.value").alias("value")
    )
    verdicts = ended.select(
        *KEY,
        F.concat(F.lit(VERDICT), "verdict").alias("figure"),
        F.lit(1.0).alias("value"),
    )
    spread = spread_of(
        values.unionByName(verdicts), [*GROUP, "figure"], "value", F.mean("value").alias("mean")
    )
    return with_schema(spread, SCHEMA)
