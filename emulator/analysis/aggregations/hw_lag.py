"""How far high watermarks were behind their logs, in records: `leo - hw` whenever a replica's high
watermark moved, by role."""

from __future__ import annotations

from pyspark.sql import DataFrame

from emulator.analysis.counted import counts
from emulator.analysis.derived import SPREAD_DDL, declared, summed_up
from emulator.analysis.tables import GROUP

SCHEMA = (
    "scenario string, profile string, propagation string, setting string, role string, "
    f"count bigint, {SPREAD_DDL}, runs bigint, worst_run string"
)


def aggregate(events: DataFrame) -> DataFrame:
    moved = counts(events, "hw_advanced").withColumnsRenamed({"name": "role", "value": "records"})
    return declared(summed_up(moved, [*GROUP, "role"], "records", weight="n"), SCHEMA)
