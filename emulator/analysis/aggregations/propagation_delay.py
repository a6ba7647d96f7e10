"""From the decision to change an ISR to every broker's metadata, leg by leg, in milliseconds.

`decision to zookeeper`, `zookeeper to notification`, `notification to controller`, `controller to
broker`, and `decision to broker` in all. A version that a later one overtook does not arrive. Where
no notification tells the controller (the RPC path) there is `zookeeper to controller`.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from emulator.analysis.derived import (
    KEY,
    PARTITION,
    SPREAD_DDL,
    applied_operations,
    declared,
    ms,
    of_kinds,
    shown,
    state_rows,
    summed_up,
)
from emulator.analysis.tables import GROUP

SCHEMA = (
    "scenario string, profile string, propagation string, setting string, leg string, "
    f"count bigint, {SPREAD_DDL}, runs bigint, worst_run string"
)
VERSION = (*PARTITION, "generation", "version")
_NAMED = "partitions array<struct<topic:string,partition:bigint>>"


def aggregate(events: DataFrame) -> DataFrame:
    rows = _rows(events)
    changes = _changes(rows).where("updated_t is not null")
    arrived = (
        rows.where("what = 'shown'")
        .groupBy(*VERSION, "broker")
        .agg(F.min("t").alias("arrived_t"))
        .join(changes, [*VERSION])
    )
    written, heard = F.col("written_t"), F.col("notified_t")
    of_change = changes.select(
        *KEY,
        _legs(
            ("decision to zookeeper", written - F.col("decided_t")),
            ("zookeeper to notification", heard - written),
            ("notification to controller", F.col("controller_t") - heard),
            ("zookeeper to controller", F.when(heard.isNull(), F.col("controller_t") - written)),
        ),
    )
    of_broker = arrived.select(
        *KEY,
        _legs(
            ("controller to broker", F.col("arrived_t") - F.col("controller_t")),
            ("decision to broker", F.col("arrived_t") - F.col("decided_t")),
        ),
    )
    timed = of_change.unionByName(of_broker).where("leg.us is not null")
    found = timed.select(*KEY, F.col("leg.name").alias("leg"), ms(F.col("leg.us")).alias("ms"))
    return declared(summed_up(found, [*GROUP, "leg"], "ms"), SCHEMA)


def _legs(*legs: tuple[str, Column]) -> Column:
    named = [F.struct(F.lit(name).alias("name"), us.alias("us")) for name, us in legs]
    return F.explode(F.array(*named)).alias("leg")


def _changes(rows: DataFrame) -> DataFrame:
    """A leader's changes: when each step was. The notification is the first after the change that
    the controller heard of no later than it knew the version."""

    def at(what: str) -> Column:
        return F.when(F.col("what") == what, F.col("t"))

    found = rows.groupBy(*VERSION).agg(
        F.max(at("decided")).alias("decided_t"),
        F.min(at("written")).alias("_written_t"),
        F.min(at("updated")).alias("updated_t"),
        F.min(at("controller")).alias("controller_t"),
        F.max(F.when(F.col("what") == "updated", F.col("next_notified"))).alias("_notified_t"),
    )
    heard = F.col("_notified_t") <= F.col("controller_t")
    return found.withColumn("notified_t", F.when(heard, F.col("_notified_t"))).withColumn(
        "written_t", F.coalesce("_written_t", "updated_t")
    )


def _rows(events: DataFrame) -> DataFrame:
    """All that happened to a version, with its generation and the next notification."""
    so_far = Window.partitionBy(*PARTITION).orderBy("seq")
    backwards = Window.partitionBy(*PARTITION).orderBy(F.desc("seq"))
    notified = F.when(F.col("what") == "notified", F.col("t"))
    rows = (
        _written(events)
        .unionByName(_of_leaders(events))
        .unionByName(_plain(shown(events), "shown"))
        .unionByName(_notified(events))
    )
    return rows.withColumn(
        "generation", F.sum(F.col("created").cast("int")).over(so_far)
    ).withColumn("next_notified", F.last(notified, ignorenulls=True).over(backwards))


def _plain(rows: DataFrame, what: str, version: str = "version") -> DataFrame:
    return rows.select(
        *PARTITION,
        "seq",
        "t",
        "broker",
        F.col(version).alias("version"),
        F.lit(what).alias("what"),
        F.lit(False).alias("created"),
    )


def _written(events: DataFrame) -> DataFrame:
    """Versions from transactions alone."""
    transactions = of_kinds(events, "zk_transaction")
    return state_rows(transactions).select(
        *PARTITION,
        "seq",
        "t",
        F.lit(0).cast("bigint").alias("broker"),
        "version",
        F.lit("written").alias("what"),
        "created",
    )


def _of_leaders(events: DataFrame) -> DataFrame:
    """The decision expects the version before."""
    decided = of_kinds(events, "isr_update_started").withColumn("next", F.col("zk_version") + 1)
    return (
        _plain(decided, "decided", "next")
        .unionByName(_plain(of_kinds(events, "isr_updated"), "updated", "zk_version"))
        .unionByName(
            _plain(of_kinds(events, "controller_cache_updated"), "controller", "zk_version")
        )
    )


def _notified(events: DataFrame) -> DataFrame:
    """Each notification node, for each partition that it names."""
    named = F.from_json("one.data", _NAMED)["partitions"]
    nodes = applied_operations(events).where(
        "one.op = 'create' and one.path like '/isr\\\\_change\\\\_notification/%'"
    )
    each = nodes.select(*KEY, "seq", "t", "broker", F.explode(named).alias("of"))
    return _plain(
        each.withColumn("topic", F.col("of.topic"))
        .withColumn("partition", F.col("of.partition"))
        .withColumn("version", F.lit(None).cast("bigint")),
        "notified",
    )
