"""Event counts: no table needs single rows of the frequent kinds, only their number.

Owns one pass over all rows. The result has a row per run, kind and grouping columns, with the
number of events, the sum of their amounts and the time of the last one. `_meanings` defines what
the columns mean for each kind.
"""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from emulator.analysis.derived import KEY, cached_table, in_one_partition, of_kinds

CONNECT = "connect"
PRODUCED = "records_produced"
COLUMNS = (
    "kind", *KEY, "seq", "t", "broker", "thread", "op", "path", "version", "detail", "code",
    "change", "topic", "partition", "partitions", "offsets", "leader", "leo", "hw", "to_offset",
    "acks", "result", "outcome", "handed_over", "count",
)  # fmt: skip
"""All columns read from frequent kinds, here and for water levels."""
_GROUPED_BY = (*KEY, "kind", "broker", "name", "value", "actor", "other")


class _Meaning(NamedTuple):
    """The columns that group a kind's rows, and the amount that is summed."""

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
    `records_produced`: acks, microseconds until it was acknowledged, records, whether it was
    acknowledged. The most frequent kinds come first, because Spark compares a row with each in
    turn."""
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


@cached_table
def event_counts_by_value(events: DataFrame) -> DataFrame:
    """`kind` (null: no table uses it), `broker`, `name`, `value`, `actor`, `other`; `n`, `amount`,
    `amount_max`, `last_t`; `traced_t`: the last time, ignoring the row `run_ended`."""
    meanings = _meanings()
    amount = _column(meanings, "amount")
    return _grouped(
        events.where("kind != 'run_began' and kind != 'zk_logged'").select(
            *KEY,
            F.lit(1).alias("n"),
            F.col("t").alias("last_t"),
            F.when(F.col("kind") != "run_ended", F.col("t")).alias("traced_t"),
            F.when(F.col("kind").isin(*meanings), F.col("kind")).alias("kind"),
            amount.alias("amount_max"),
            *(_column(meanings, name) for name in _Meaning._fields),
        )
    )


@cached_table
def event_counts(events: DataFrame) -> DataFrame:
    """The same counts without the time to acknowledge a batch: it differs for nearly every batch,
    and few tables need it."""
    rough = F.when(F.col("kind") != PRODUCED, F.col("value"))
    return _grouped(event_counts_by_value(events).withColumn("value", rough))


def _grouped(rows: DataFrame) -> DataFrame:
    """Rows with a number of events each, added up."""
    return in_one_partition(
        rows.groupBy(*_GROUPED_BY).agg(
            F.sum("n").alias("n"),
            F.sum("amount").alias("amount"),
            F.max("amount_max").alias("amount_max"),
            F.max("last_t").alias("last_t"),
            F.max("traced_t").alias("traced_t"),
        )
    )


def _column(meanings: dict[str, _Meaning], name: str) -> Column:
    """A column with a different meaning for each kind; null for all other kinds."""
    of = {kind: getattr(one, name) for kind, one in meanings.items()}
    (kind, first), *others = [(kind, one) for kind, one in of.items() if one is not None]
    cases = F.when(F.col("kind") == kind, first)
    for kind, one in others:
        cases = cases.when(F.col("kind") == kind, one)
    return cases.alias(name)


def counts(events: DataFrame, *kinds: str) -> DataFrame:
    """The counts of these kinds."""
    return of_kinds(event_counts(events), *kinds)


def run_ends(events: DataFrame) -> DataFrame:
    """The end of each run (`end_t`: its last event, or the time in `run_ended`) and of its trace
    (`last_t`: its last event)."""
    ends = F.max("last_t").alias("end_t"), F.max("traced_t").alias("last_t")
    return event_counts(events).groupBy(*KEY).agg(*ends)


def number(condition: Column) -> Column:
    """The number of events that match the condition."""
    return F.sum(F.when(condition, F.col("n")).otherwise(0))
