"""How many records leaders had above their high watermarks, weighted by time: `p50` was not
exceeded in half of the time in which a leader's log was known. Seconds are summed over partitions;
`behind_s` are those with any such record, however long the mark did not move."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from emulator.analysis.counted import run_ends
from emulator.analysis.derived import KEY, PARTITION, SPREAD_DDL, declared, of_kinds, summed_up
from emulator.analysis.history import ENTRY, last_known, pieces, processes
from emulator.analysis.tables import GROUP

SCHEMA = (
    "scenario string, profile string, propagation string, setting string, partitions bigint, "
    f"seconds double, behind_s double, mean double, {SPREAD_DDL}, runs bigint, worst_run string"
)
OF_MANY = True
_LEVELS = ("records_appended", "hw_advanced", "log_truncated", "becomes_leader", "becomes_follower")
_ENDS = ("becomes_follower", "stop_replica", "process_state_changed")


def aggregate(events: DataFrame) -> DataFrame:
    us, records = F.col("us"), F.col("records")
    partition = F.struct("run", "topic", "partition")
    found = summed_up(
        lags(events).withColumn("us", F.col("to_t") - F.col("from_t")),
        GROUP,
        "records",
        F.size(F.collect_set(partition)).alias("partitions"),
        (F.sum("us") / 1e6).alias("seconds"),
        (F.sum(F.when(records > 0, us).otherwise(0)) / 1e6).alias("behind_s"),
        (F.sum(records * us) / F.sum("us")).alias("mean"),
        weight="us",
    )
    return declared(found, SCHEMA)


def lags(events: DataFrame) -> DataFrame:
    """Per partition: `broker` led during [from_t, to_t) with `records` above its high watermark."""
    in_order = Window.partitionBy(*PARTITION).orderBy("seq")
    of_replica = Window.partitionBy(*ENTRY).orderBy("seq")
    rows = _rows(events).withColumns(
        {
            "leo": last_known(F.col("leo"), of_replica),
            "hw": F.coalesce(last_known(F.col("hw"), of_replica), F.lit(0)),
            "leads": last_known(F.when(F.col("is_leader"), F.col("broker")), in_order),
        }
    )
    ends = F.col("is_end") & (F.col("broker") == F.col("leads"))
    leads = F.when(F.col("is_leader"), F.col("broker")).when(ends, 0)
    of_leaders = rows.withColumns({"ends": ends, "leader": last_known(leads, in_order)})
    mine = of_leaders.where((F.col("leader") == F.col("broker")) | F.col("ends"))
    return (
        pieces(mine, in_order)
        .where("leader = broker and leo is not null and from_t < to_t")
        .select(*ENTRY, "from_t", "to_t", (F.col("leo") - F.col("hw")).alias("records"))
    )


def _rows(events: DataFrame) -> DataFrame:
    """What moves a replica's log end or high watermark, or begins or ends a leadership."""
    kind = F.col("kind")
    rows = of_kinds(events, *_LEVELS, "stop_replica").select(
        *ENTRY,
        "seq",
        "t",
        (kind == "becomes_leader").alias("is_leader"),
        kind.isin(*_ENDS).alias("is_end"),
        # A replica whose log end is not told (-1: of real Kafka) says nothing of its mark either.
        F.when(kind == "log_truncated", F.col("to_offset"))
        .when(F.col("leo") >= 0, F.col("leo"))
        .alias("leo"),
        F.when(F.col("leo") >= 0, F.col("hw")).alias("hw"),
    )
    led = rows.where("is_leader").select(*ENTRY).distinct()
    deaths = processes(events).where("state = 'dead'").join(led, [*KEY, "broker"])
    dead = deaths.select(
        *ENTRY, "seq", "t", F.lit(False).alias("is_leader"), F.lit(True).alias("is_end")
    )
    return rows.unionByName(dead, allowMissingColumns=True).join(
        F.broadcast(run_ends(events)), [*KEY]
    )
