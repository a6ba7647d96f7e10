"""Traced transactions beside those that the ZooKeeper server logged (`isr zookeeper log RUN
--parquet`): how many are in both, and how many in only one. Likewise ISR updates that a leader
adopted beside the logged writes of state znodes (a controller's elections are in the log only)."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from emulator.analysis.derived import KEY, of_kinds, rare_rows, with_schema
from emulator.analysis.history import is_state, operations, partition_of
from emulator.analysis.tables import GROUP

SCHEMA = (
    "scenario string, profile string, propagation string, setting string, what string, "
    "in_both bigint, only_traced bigint, only_logged bigint, runs bigint, worst_run string"
)


TRANSACTIONS, UPDATES = "transactions", "ISR updates"
_IDENTITY = ("what", "topic", "partition", "number")
_LOGGED = "zk_logged"


def aggregate(events: DataFrame) -> DataFrame:
    logged = F.col("kind") == _LOGGED
    with_log = F.broadcast(of_kinds(rare_rows(events), _LOGGED).select(*KEY).distinct())
    each = (
        of_kinds(rare_rows(events), _LOGGED, "zk_transaction", "isr_updated")
        .join(with_log, [*KEY], "left_semi")
        .where(~logged | F.col("path").isNull() | ~F.col("path").startswith("/zookeeper/"))
        .select(*KEY, logged.alias("logged"), F.inline(_facts()))
        .groupBy(*KEY, *_IDENTITY)
        .agg(F.max("logged").alias("logged"), F.max(~F.col("logged")).alias("traced"))
    )
    of_run = each.groupBy(*KEY).agg(
        F.array(*(_comparison(what) for what in (TRANSACTIONS, UPDATES))).alias("all"),
    )
    of_group = (
        of_run.select(*KEY, F.inline("all"))
        .where("in_both + only_traced + only_logged > 0")
        .groupBy(*GROUP, "what")
        .agg(
            *(F.sum(name).alias(name) for name in ("in_both", "only_traced", "only_logged")),
            F.count("*").alias("runs"),
            F.max_by("run", F.struct("missing", "run")).alias("worst_run"),
        )
    )
    return with_schema(of_group, SCHEMA)


def _comparison(what: str) -> Column:
    """How many facts of this type are in both sources, and how many in only one."""
    mine = F.col("what") == what
    one, other = F.col("traced"), F.col("logged")
    return F.struct(
        F.lit(what).alias("what"),
        F.count_if(mine & one & other).alias("in_both"),
        F.count_if(mine & ~other).alias("only_traced"),
        F.count_if(mine & ~one).alias("only_logged"),
        F.count_if(mine & ~(one & other)).alias("missing"),
    )


def _facts() -> Column:
    """The facts in a row: a transaction (its zxid), or a version of a partition's state."""
    transaction = _one(TRANSACTIONS, number=F.col("zxid"))
    update = _one(UPDATES, F.col("topic"), F.col("partition"), F.col("zk_version"))

    def written(one: Column) -> Column:
        return is_state(one["path"]) & (one["op"] == "setData")

    writes = F.transform(
        F.filter(operations(), written),
        lambda one: _one(UPDATES, *partition_of(one["path"]), one["version"]),
    )
    return (
        F.when(F.col("kind") == "isr_updated", F.array(update))
        .when(F.col("kind") == "zk_transaction", F.array(transaction))
        .otherwise(F.concat(F.array(transaction), writes))
    )


def _one(
    what: str,
    topic: Column | None = None,
    partition: Column | None = None,
    number: Column | None = None,
) -> Column:
    of = {"topic": topic, "partition": partition, "number": number}
    types = {"topic": "string", "partition": "bigint", "number": "bigint"}
    known = {name: F.lit(None) if value is None else value for name, value in of.items()}
    return F.struct(F.lit(what).alias("what"), *(known[n].cast(types[n]).alias(n) for n in types))
