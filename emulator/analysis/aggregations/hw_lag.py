"""Records above the leaders' high watermarks, weighted by time: the lag was at most `p50` for half
of the time in which a leader's log was known. Seconds are summed over partitions; `behind_s` is the
time with at least one such record, even while the high watermark did not move."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from emulator.analysis.derived import KEY, PARTITION, SPREAD_DDL, of_kinds, spread_of, with_schema
from emulator.analysis.event_counts import run_ends
from emulator.analysis.history import ENTRY, last_known, pieces, processes
from emulator.analysis.tables import GROUP

SCHEMA = (
    "scenario string, profile string, propagation string, setting string, partitions bigint, "
    f"seconds double, behind_s double, mean double, {SPREAD_DDL}, runs bigint, worst_run string"
)
OF_MANY = True
_LEVELS = (
    "records_appended",
    "hw_advanced",
    "log_truncated",
    "log_start_moved",
    "becomes_leader",
    "becomes_follower",
)
_ENDS = ("becomes_follower", "stop_replica", "process_state_changed")


def aggregate(events: DataFrame) -> DataFrame:
    us, records = F.col("us"), F.col("records")
    partition = F.struct("run", "topic", "partition")
    spread = spread_of(
        lags(events).withColumn("us", F.col("to_t") - F.col("from_t")),
        GROUP,
        "records",
        F.size(F.collect_set(partition)).alias("partitions"),
        (F.sum("us") / 1e6).alias("seconds"),
        (F.sum(F.when(records > 0, us).otherwise(0)) / 1e6).alias("behind_s"),
        (F.sum(records * us) / F.sum("us")).alias("mean"),
        weight="us",
    )
    return with_schema(spread, SCHEMA)


def lags(events: DataFrame) -> DataFrame:
    """Per partition: in [from_t, to_t) `broker` was leader, `records` above its high watermark."""
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
    """Rows that move a log end offset or high watermark, or begin or end a leadership."""
    kind = F.col("kind")
    rows = of_kinds(events, *_LEVELS, "stop_replica").select(
        *ENTRY,
        "seq",
        "t",
        (kind == "becomes_leader").alias("is_leader"),
        kind.isin(*_ENDS).alias("is_end"),
        # Real Kafka's logs have no log end offset (-1), and then no high watermark either.
        F.when(kind == "log_truncated", F.col("to_offset"))
        .when(F.col("leo") >= 0, F.col("leo"))
        .alias("leo"),
        F.when(F.col("leo") >= 0, F.col("hw")).alias("hw"),
    )
    leaders = rows.where("is_leader").select(*ENTRY).distinct()
    deaths = processes(events).where("state = 'dead'").join(leaders, [*KEY, "broker"])
    dead = deaths.select(
        *ENTRY, "seq", "t", F.lit(False).alias("is_leader"), F.lit(True).alias("is_end")
    )
    return rows.unionByName(dead, allowMissingColumns=True).join(
        F.broadcast(run_ends(events)), [*KEY]
    )
