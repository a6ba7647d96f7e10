"""Each broker's load: connections that it opened (to ZooKeeper, and as a fetcher), fetches that it
sent and served, control requests that it sent as controller; rates are per second of the runs."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from emulator.analysis.derived import KEY, with_schema
from emulator.analysis.event_counts import CONNECT, counts, number, run_ends
from emulator.analysis.tables import GROUP

SCHEMA = (
    "scenario string, profile string, propagation string, setting string, broker bigint, "
    "zookeeper_connections bigint, fetcher_connections bigint, fetches_sent bigint, "
    "fetches_served bigint, fetches_sent_per_s double, fetches_served_per_s double, "
    "partitions_per_fetch double, control_requests bigint, runs bigint, worst_run string"
)


def aggregate(events: DataFrame) -> DataFrame:
    kind = F.col("kind")
    fetch = kind == "fetch_sent"
    of_kind = {
        "zookeeper_connections": (kind == "zk_request") & (F.col("name") == CONNECT),
        "fetcher_connections": kind == "fetcher_started",
        "fetches_sent": fetch,
        "control_requests": kind == "control_request_sent",
    }
    rows = counts(events, "fetch_sent", "fetcher_started", "control_request_sent", "zk_request")
    work = (
        rows.where((kind != "zk_request") | (F.col("name") == CONNECT))
        .groupBy(*KEY, "broker")
        .agg(
            *(number(is_one).alias(name) for name, is_one in of_kind.items()),
            F.sum(F.when(fetch, F.col("amount"))).alias("named"),
        )
    )
    served = (
        counts(events, "fetch_sent")
        .groupBy(*KEY, F.col("other").alias("broker"))
        .agg(F.sum("n").alias("fetches_served"))
    )
    of_run = work.join(served, [*KEY, "broker"], "full").join(run_ends(events), [*KEY]).fillna(0)
    sums = (*of_kind, "fetches_served", "named")
    of_group = of_run.groupBy(*GROUP, "broker").agg(
        *(F.sum(name).alias(name) for name in sums),
        (F.sum("end_t") / 1e6).alias("_seconds"),
        F.count("*").alias("runs"),
        F.max_by("run", F.struct("fetches_served", "run")).alias("worst_run"),
    )
    sent = F.col("fetches_sent")
    rates = {
        "fetches_sent_per_s": F.try_divide("fetches_sent", "_seconds"),
        "fetches_served_per_s": F.try_divide("fetches_served", "_seconds"),
        "partitions_per_fetch": F.when(sent > 0, F.col("named") / sent),
    }
    return with_schema(of_group.withColumns(rates), SCHEMA)
