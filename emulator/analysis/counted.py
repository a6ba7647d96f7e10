"""Events counted: of the frequent kinds no table needs a single row, only how many there were.

Owns one pass over all rows: a row for each run, kind and whatever tells its events apart for some
table, with how many they were, what they amount to and when the last of them was. What the columns
mean for each kind is said once, in `_meanings`.
"""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from emulator.analysis.derived import KEY, in_one, of_kinds, shared

CONNECT = "connect"
PRODUCED = "records_produced"
COLUMNS = (
    "kind", *KEY, "seq", "t", "broker", "thread", "op", "path", "version", "detail", "code",
    "change", "topic", "partition", "partitions", "offsets", "leader", "leo", "hw", "to_offset",
    "acks", "result", "outcome", "handed_over", "count",
)  # fmt: skip
"""All that is read of frequent kinds: here, and for water levels."""
_TOLD_APART = (*KEY, "kind", "broker", "name", "value", "actor", "other")


class _Meaning(NamedTuple):
    """What a kind's rows are told apart by, and what they amount to."""

    name: Column | None = None
    value: Column | None = None
    amount: Column | None = None
    actor: Column | None = None
    other: Column | None = None
    broker: Column | None = None


def _meanings() -> dict[str, _Meaning]:
    """`zk_sent`: operation, whether a version is expected, bytes, thread without its numbers.
    `zk_reply`: its code. `isr_updated`: shrink or expand. `alter_isr_failed`: its outcome.
    `isr_change_notified`: partitions named. `fetch_sent`: partitions named, leader.
    `records_produced`: acks, microseconds to its acknowledgement, records, whether it was
    acknowledged. The most frequent kinds come first: a row is compared with one after the other."""
    ok = F.col("result") == "ok"
    return {
        "fetch_sent": _Meaning(
            amount=F.size("offsets"), other=F.col("leader"), broker=F.col("broker")
        ),
        PRODUCED: _Meaning(
            name=F.col("acks"),
            value=F.when(ok, F.col("t") - F.col("handed_over")),
            amount=F.col("count"),
            other=ok.cast("bigint"),
        ),
        "zk_sent": _Meaning(
            name=F.col("op"),
            value=(F.col("version") >= 0).cast("bigint"),
            amount=F.octet_length("path") + F.octet_length(F.coalesce("detail", F.lit(""))),
            actor=F.regexp_replace("thread", r"\d+", "N"),
        ),
        "zk_reply": _Meaning(value=F.col("code")),
        "zk_request": _Meaning(
            name=F.when(F.col("op") == CONNECT, CONNECT), broker=F.col("broker")
        ),
        "isr_update_started": _Meaning(),
        "isr_updated": _Meaning(name=F.col("change")),
        "isr_update_rejected": _Meaning(),
        "alter_isr_failed": _Meaning(name=F.col("outcome")),
        "controller_shrink_counted": _Meaning(),
        "isr_change_notified": _Meaning(amount=F.size("partitions")),
        "isr_change_held": _Meaning(),
        "metadata_cache_updated": _Meaning(),
        "controller_elected": _Meaning(),
        "fetcher_started": _Meaning(broker=F.col("broker")),
        "control_request_sent": _Meaning(broker=F.col("broker")),
    }


@shared
def counted_finely(events: DataFrame) -> DataFrame:
    """`kind` (null: of no table's interest), `broker`, `name`, `value`, `actor`, `other`; `n`,
    `amount`, `amount_max`, `last_t`; `traced_t`: without the run's last row."""
    meant = _meanings()
    return in_one(
        events.where("kind != 'run_began' and kind != 'zk_logged'")
        .select(
            *KEY,
            "t",
            F.when(F.col("kind") != "run_ended", F.col("t")).alias("traced_t"),
            F.when(F.col("kind").isin(*meant), F.col("kind")).alias("kind"),
            *(_column(meant, name) for name in _Meaning._fields),
        )
        .groupBy(*_TOLD_APART)
        .agg(
            F.count("*").alias("n"),
            F.sum("amount").alias("amount"),
            F.max("amount").alias("amount_max"),
            F.max("t").alias("last_t"),
            F.max("traced_t").alias("traced_t"),
        )
    )


@shared
def counted(events: DataFrame) -> DataFrame:
    """The same without what few ask for: times to acknowledge (nearly every batch of records has
    one of its own) are all one `value`."""
    rough = F.when(F.col("kind") != PRODUCED, F.col("value"))
    return in_one(
        counted_finely(events)
        .withColumn("value", rough)
        .groupBy(*_TOLD_APART)
        .agg(
            F.sum("n").alias("n"),
            F.sum("amount").alias("amount"),
            F.max("amount_max").alias("amount_max"),
            F.max("last_t").alias("last_t"),
            F.max("traced_t").alias("traced_t"),
        )
    )


def _column(meant: dict[str, _Meaning], name: str) -> Column:
    """A column that means something else for each kind, and nothing for the rest."""
    of = {kind: getattr(one, name) for kind, one in meant.items()}
    (kind, first), *others = [(kind, one) for kind, one in of.items() if one is not None]
    found = F.when(F.col("kind") == kind, first)
    for kind, one in others:
        found = found.when(F.col("kind") == kind, one)
    return found.alias(name)


def counts(events: DataFrame, *kinds: str) -> DataFrame:
    """What was counted of these kinds."""
    return of_kinds(counted(events), *kinds)


def run_ends(events: DataFrame) -> DataFrame:
    """When each run was over (`end_t`: its last event, or what its last row says), and when its
    trace was (`last_t`: its last event)."""
    ends = F.max("last_t").alias("end_t"), F.max("traced_t").alias("last_t")
    return counted(events).groupBy(*KEY).agg(*ends)


def number(condition: Column) -> Column:
    """How many events there were for which this holds."""
    return F.sum(F.when(condition, F.col("n")).otherwise(0))
