"""Settings against outcomes: runs by verdict, and each figure of their summaries (one row each):
mean, and its spread over the runs."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from emulator.analysis.derived import KEY, SPREAD_DDL, declared, few, of_kinds, summed_up
from emulator.analysis.tables import GROUP

SCHEMA = (
    "scenario string, profile string, propagation string, setting string, figure string, "
    f"mean double, {SPREAD_DDL}, runs bigint, worst_run string"
)
VERDICT = "verdict: "


def aggregate(events: DataFrame) -> DataFrame:
    ended = of_kinds(few(events), "run_ended")
    figures = ended.select(*KEY, F.explode("figures").alias("one"))
    said = figures.select(
        *KEY, F.col("one.name").alias("figure"), F.col("one.value").alias("value")
    )
    judged = ended.select(
        *KEY,
        F.concat(F.lit(VERDICT), "verdict").alias("figure"),
        F.lit(1.0).alias("value"),
    )
    found = summed_up(
        said.unionByName(judged), [*GROUP, "figure"], "value", F.mean("value").alias("mean")
    )
    return declared(found, SCHEMA)
