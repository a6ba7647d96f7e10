"""From the decision to change an ISR to every broker's metadata, in milliseconds: each segment of
the path, and the time until the leader, the controller and each broker knew of the decision.

`decision to zookeeper`, `zookeeper to notification`, `notification to controller` and `controller
to broker` follow the version of a decision that took effect; one that a later version supersedes
does not arrive. Without a notification to the controller (the RPC path) there is `zookeeper to
controller`. `decision to leader`, `decision to controller` and `decision to broker` end when that
version or a later one is known. Brokers that were paused or down in that time are not counted.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from emulator.analysis.derived import KEY, PARTITION, SPREAD_DDL, ms, spread_of, with_schema
from emulator.analysis.history import (
    CONTROLLER,
    ENTRY,
    UPDATED,
    VERSION,
    caches,
    first_after,
    history,
    last_before,
    processes,
    states,
)
from emulator.analysis.tables import GROUP

SCHEMA = (
    "scenario string, profile string, propagation string, setting string, leg string, "
    f"count bigint, {SPREAD_DDL}, runs bigint, worst_run string"
)


def aggregate(events: DataFrame) -> DataFrame:
    spread = spread_of(legs(events).withColumn("ms", ms(F.col("us"))), [*GROUP, "leg"], "ms")
    return with_schema(spread, SCHEMA)


def legs(events: DataFrame) -> DataFrame:
    """Each `leg` of each decision that took effect, in microseconds."""
    written = states(events).select(*VERSION, F.col("t").alias("_written_t"))
    decisions = _decisions(events).join(written, [*VERSION], "left")
    decided, version = F.col("t"), F.col("version")
    later = first_after("controllers", lambda one: one["version"] >= version)["t"]
    arrived = first_after("controllers", lambda one: one["version"] == version)["t"]
    first = F.get(F.filter("notices", lambda one: one["seq"] >= F.col("outcome.seq")), 0)["t"]
    decisions = decisions.withColumns(
        {
            "written_t": F.coalesce("_written_t", "outcome.t"),
            "arrived_t": arrived,
            # One after the controller knew the version told it nothing.
            "notified_t": F.when(first <= arrived, first),
        }
    )
    zookeeper, notified = F.col("written_t"), F.col("notified_t")
    of_decision = decisions.select(
        *PARTITION,
        F.inline(
            _segments(
                ("decision to leader", F.col("outcome.t") - decided),
                ("decision to controller", later - decided),
                ("decision to zookeeper", zookeeper - decided),
                ("zookeeper to notification", notified - zookeeper),
                ("notification to controller", F.col("arrived_t") - notified),
                (
                    "zookeeper to controller",
                    F.when(notified.isNull(), F.col("arrived_t") - zookeeper),
                ),
            )
        ),
    )
    before = last_before("shown")
    lost = first_after("shown", lambda one: ~one["goes_on"])
    known = first_after("shown", lambda one: one["version"] >= version)
    is_known = before["version"].isNotNull() & (lost["seq"].isNull() | (known["seq"] < lost["seq"]))
    shown_t = first_after("shown", lambda one: one["version"] == version)["t"]
    of_brokers = (
        decisions.select(*PARTITION, "seq", "t", "version", "arrived_t")
        .join(_caches_and_lives(events), [*PARTITION])
        .withColumns({"known": F.when(is_known, known)})
        .select(
            *PARTITION,
            F.inline(
                _segments(
                    (
                        "decision to broker",
                        F.when(_is_undisturbed(), F.col("known.t") - decided),
                    ),
                    ("controller to broker", shown_t - F.col("arrived_t")),
                )
            ),
        )
    )
    return of_decision.unionByName(of_brokers).where("us is not null")


def _segments(*segments: tuple[str, Column]) -> Column:
    return F.array(*(F.struct(F.lit(name).alias("leg"), us.alias("us")) for name, us in segments))


def _decisions(events: DataFrame) -> DataFrame:
    """Successful decisions (`outcome`), with the versions that the controller knew. Attempts whose
    leadership or topic ended before the outcome was known are left out."""
    rows = history(events)
    of_broker = Window.partitionBy(*ENTRY).orderBy("seq")
    attempts = (
        rows.where(F.col("what").isin("decided", UPDATED, "rejected", "led"))
        .withColumn("outcome", F.lead(F.struct("what", "seq", "t")).over(of_broker))
        .where((F.col("what") == "decided") & (F.col("outcome.what") == UPDATED))
    )

    def every(what: str, *columns: str) -> Column:
        is_one = F.col("what") == what
        return F.sort_array(F.collect_list(F.when(is_one, F.struct("seq", *columns))))

    others = (
        rows.where(F.col("what").isin("dropped", CONTROLLER, "notified"))
        .groupBy(*PARTITION)
        .agg(
            every("dropped").alias("drops"),
            every(CONTROLLER, "t", "version").alias("controllers"),
            every("notified", "t").alias("notices"),
        )
    )
    dropped = first_after("drops", lambda one: one["seq"] < F.col("outcome.seq"))
    return attempts.join(others, [*PARTITION], "left").where(dropped.isNull())


def _caches_and_lives(events: DataFrame) -> DataFrame:
    """Per broker and partition: all cache entries (`shown`) and the process states (`lives`)."""
    in_order = Window.partitionBy(*KEY, "broker").orderBy("seq")
    lives = (
        processes(events)
        .withColumn("to_t", F.lead("t").over(in_order))
        .groupBy(*KEY, "broker")
        .agg(F.collect_list(F.struct("t", "to_t", "state")).alias("lives"))
    )
    return caches(events).join(lives, [*KEY, "broker"], "left")


def _is_undisturbed() -> Column:
    """Whether the broker was running from the decision (`t`) until it knew."""
    since, until = F.col("t"), F.col("known.t")

    def disturbs(life: Column) -> Column:
        is_within = (life["t"] < until) & (life["to_t"].isNull() | (since < life["to_t"]))
        boots = (life["state"] == "starting") & (life["t"] < since)
        return is_within & (life["state"] != "up") & ~boots

    return ~F.exists(F.coalesce("lives", F.array()), disturbs)
