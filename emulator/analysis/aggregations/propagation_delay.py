"""From the decision to change an ISR to every broker's metadata, leg by leg, in milliseconds.

`decision to zookeeper`, `zookeeper to notification`, `notification to controller`, `controller to
broker`, and `decision to broker` in all. A version that a later one overtook does not arrive. Where
no notification tells the controller (the RPC path) there is `zookeeper to controller`.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from emulator.analysis.derived import KEY, PARTITION, SPREAD_DDL, declared, ms, summed_up
from emulator.analysis.history import CONTROLLER, UPDATED, VERSION, WRITTEN, history
from emulator.analysis.tables import GROUP

SCHEMA = (
    "scenario string, profile string, propagation string, setting string, leg string, "
    f"count bigint, {SPREAD_DDL}, runs bigint, worst_run string"
)


def aggregate(events: DataFrame) -> DataFrame:
    written, heard = F.col("written_t"), F.col("notified_t")
    controller, decided = F.col("controller_t"), F.col("decided_t")
    of_change = _legs(
        ("decision to zookeeper", written - decided),
        ("zookeeper to notification", heard - written),
        ("notification to controller", controller - heard),
        ("zookeeper to controller", F.when(heard.isNull(), controller - written)),
    )
    of_brokers = F.transform(
        _arrivals(),
        lambda t: _legs(
            ("controller to broker", t - controller), ("decision to broker", t - decided)
        ),
    )
    legs = F.concat(of_change, F.flatten(of_brokers))
    found = (
        _changes(history(events))
        .select(*KEY, F.inline(legs))
        .where("us is not null")
        .withColumn("ms", ms(F.col("us")))
    )
    return declared(summed_up(found, [*GROUP, "leg"], "ms"), SCHEMA)


def _legs(*legs: tuple[str, Column]) -> Column:
    return F.array(*(F.struct(F.lit(name).alias("leg"), us.alias("us")) for name, us in legs))


def _arrivals() -> Column:
    """When each broker showed it first."""
    shown = F.col("shown")
    brokers = F.array_distinct(F.transform(shown, lambda one: one["broker"]))

    def first(broker: Column) -> Column:
        mine = F.filter(shown, lambda one: one["broker"] == broker)
        return F.array_min(F.transform(mine, lambda one: one["t"]))

    return F.transform(brokers, first)


def _changes(rows: DataFrame) -> DataFrame:
    """A leader's changes: when each step was. The notification is the first after the change that
    the controller heard of no later than it knew the version."""

    def at(what: str) -> Column:
        return F.when(F.col("what") == what, F.col("t"))

    backwards = Window.partitionBy(*PARTITION).orderBy(F.desc("seq"))
    next_notified = F.last(at("notified"), ignorenulls=True).over(backwards)
    found = (
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
    heard = F.col("_notified_t") <= F.col("controller_t")
    return found.withColumns(
        {
            "notified_t": F.when(heard, F.col("_notified_t")),
            "written_t": F.coalesce("_written_t", "updated_t"),
        }
    )
