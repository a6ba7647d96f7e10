"""From the decision to change an ISR to every broker's metadata, in milliseconds: each segment of
the path, and the time until the leader, the controller and each broker knew of the decision.

`decision to zookeeper`, `zookeeper to notification`, `notification to controller` and `controller
to broker` follow one version; a version that a later one supersedes does not arrive. Without a
notification to the controller (the RPC path) there is `zookeeper to controller`. `decision to
leader`, `decision to controller` and `decision to broker` end when that version or a later one is
known. Brokers that were paused or down in that time are not counted.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from emulator.analysis.derived import KEY, PARTITION, SPREAD_DDL, ms, spread_of, with_schema
from emulator.analysis.history import (
    CONTROLLER,
    ENTRY,
    UPDATED,
    VERSION,
    WRITTEN,
    entries,
    history,
    processes,
)
from emulator.analysis.tables import GROUP

SCHEMA = (
    "scenario string, profile string, propagation string, setting string, leg string, "
    f"count bigint, {SPREAD_DDL}, runs bigint, worst_run string"
)


def aggregate(events: DataFrame) -> DataFrame:
    written, notified = F.col("written_t"), F.col("notified_t")
    controller, decided = F.col("controller_t"), F.col("decided_t")
    of_change = _segments(
        ("decision to zookeeper", written - decided),
        ("zookeeper to notification", notified - written),
        ("notification to controller", controller - notified),
        ("zookeeper to controller", F.when(notified.isNull(), controller - written)),
    )
    of_brokers = F.transform(
        _arrivals(),
        lambda t: _segments(("controller to broker", t - controller)),
    )
    segments = F.concat(of_change, F.flatten(of_brokers))
    path = _changes(history(events)).select(*KEY, F.inline(segments))
    delays = (
        path.unionByName(known_after(events).select(*KEY, "leg", "us"))
        .where("us is not null")
        .withColumn("ms", ms(F.col("us")))
    )
    return with_schema(spread_of(delays, [*GROUP, "leg"], "ms"), SCHEMA)


def _segments(*segments: tuple[str, Column]) -> Column:
    return F.array(*(F.struct(F.lit(name).alias("leg"), us.alias("us")) for name, us in segments))


def _arrivals() -> Column:
    """The first time each broker's metadata had the version."""
    shown = F.col("shown")
    brokers = F.array_distinct(F.transform(shown, lambda one: one["broker"]))

    def first(broker: Column) -> Column:
        mine = F.filter(shown, lambda one: one["broker"] == broker)
        return F.array_min(F.transform(mine, lambda one: one["t"]))

    return F.transform(brokers, first)


def _changes(rows: DataFrame) -> DataFrame:
    """A leader's changes, with the time of each step. The notification is the first one after the
    change, unless the controller knew the version earlier."""

    def at(what: str) -> Column:
        return F.when(F.col("what") == what, F.col("t"))

    backwards = Window.partitionBy(*PARTITION).orderBy(F.desc("seq"))
    next_notified = F.last(at("notified"), ignorenulls=True).over(backwards)
    changes = (
        rows.withColumn("next_notified", next_notified)
        .groupBy(*VERSION)
        .agg(
            F.max(at("decided")).alias("decided_t"),
            F.min(at(WRITTEN)).alias("_written_t"),
            F.min(at(UPDATED)).alias("updated_t"),
            F.min(at(CONTROLLER)).alias("controller_t"),
            F.max(F.when(F.col("what") == UPDATED, F.col("next_notified"))).alias("_notified_t"),
            F.collect_list(F.when(F.col("what") == "shown", F.struct("broker", "t"))).alias(
                "shown"
            ),
        )
        .where("updated_t is not null")
    )
    is_notified = F.col("_notified_t") <= F.col("controller_t")
    return changes.withColumns(
        {
            "notified_t": F.when(is_notified, F.col("_notified_t")),
            "written_t": F.coalesce("_written_t", "updated_t"),
        }
    )


def known_after(events: DataFrame) -> DataFrame:
    """Microseconds from each successful decision until leader, controller and brokers knew it."""
    decisions = _decisions(events)
    controller = _first_after("controllers", lambda one: one["version"] >= F.col("version"))
    of_decision = decisions.select(
        *PARTITION,
        F.inline(
            _segments(
                ("decision to leader", F.col("outcome.t") - F.col("t")),
                ("decision to controller", controller["t"] - F.col("t")),
            )
        ),
    )
    before = F.try_element_at(F.filter("shown", lambda one: one["seq"] < F.col("seq")), F.lit(-1))
    lost = _first_after("shown", lambda one: ~one["goes_on"])
    known = _first_after("shown", lambda one: one["version"] >= F.col("version"))
    is_known = before["version"].isNotNull() & (lost["seq"].isNull() | (known["seq"] < lost["seq"]))
    of_brokers = (
        decisions.select(*PARTITION, "seq", "t", "version")
        .join(_caches(events), [*PARTITION])
        .withColumns({"known": F.when(is_known, known)})
        .where(F.col("known.t").isNotNull() & _is_undisturbed())
        .select(
            *PARTITION,
            F.lit("decision to broker").alias("leg"),
            (F.col("known.t") - F.col("t")).alias("us"),
        )
    )
    return of_decision.unionByName(of_brokers).where("us is not null")


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
        rows.where(F.col("what").isin("dropped", CONTROLLER))
        .groupBy(*PARTITION)
        .agg(
            every("dropped").alias("drops"), every(CONTROLLER, "t", "version").alias("controllers")
        )
    )
    dropped = _first_after("drops", lambda one: one["seq"] < F.col("outcome.seq"))
    return attempts.join(others, [*PARTITION], "left").where(dropped.isNull())


def _first_after(of: str, is_one: Callable[[Column], Column]) -> Column:
    """The first matching row after `seq`, in an array of rows."""
    return F.get(F.filter(of, lambda one: (one["seq"] > F.col("seq")) & is_one(one)), 0)


def _caches(events: DataFrame) -> DataFrame:
    """Per broker and partition: all cache entries (`shown`) and the process states (`lives`)."""
    in_order = Window.partitionBy(*KEY, "broker").orderBy("seq")
    lives = (
        processes(events)
        .withColumn("to_t", F.lead("t").over(in_order))
        .groupBy(*KEY, "broker")
        .agg(F.collect_list(F.struct("t", "to_t", "state")).alias("lives"))
    )
    shown = F.sort_array(F.collect_list(F.struct("seq", "t", "version", "goes_on")))
    caches = entries(events).groupBy(*ENTRY).agg(shown.alias("shown"))
    return caches.join(lives, [*KEY, "broker"], "left")


def _is_undisturbed() -> Column:
    """Whether the broker was running from the decision (`t`) until it knew."""
    since, until = F.col("t"), F.col("known.t")

    def disturbs(life: Column) -> Column:
        is_within = (life["t"] < until) & (life["to_t"].isNull() | (since < life["to_t"]))
        boots = (life["state"] == "starting") & (life["t"] < since)
        return is_within & (life["state"] != "up") & ~boots

    return ~F.exists(F.coalesce("lives", F.array()), disturbs)
