"""What several aggregations begin with, each derived once and kept; and how values are summed up.

Owns the sharing (`shared`, `sharing`), the names that all tables go by, and the kinds of rows that
are wanted as they are because they are rare (`rare`). What is frequent is counted (`counted`), what
happened to partitions is put in order (`history`). Spark's own expressions: no Python per row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from threading import Lock, RLock

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from emulator.analysis.tables import GROUP

KEY = (*GROUP, "run")
PARTITION = (*KEY, "topic", "partition")
STATE_PATH = r"^/brokers/topics/([^/]+)/partitions/(\d+)/state$"
PERCENTILES = (0.5, 0.95, 0.99)
SPREAD_DDL = "p50 double, p95 double, p99 double, max double"
"""Exact, with linear interpolation between the two nearest values."""
RARE = (
    "run_began", "run_ended", "zk_logged", "zk_transaction", "isr_update_started", "isr_updated",
    "isr_update_rejected", "alter_isr_failed", "becomes_leader", "becomes_follower",
    "controller_cache_updated", "metadata_cache_updated", "leader_and_isr", "broker_starting",
    "broker_exited", "broker_halted", "process_state_changed", "action_applied",
)  # fmt: skip
"""Kinds that tables need row by row; a tenth of a trace, or less."""
FEW = (
    "run_began", "run_ended", "action_applied", "broker_starting", "broker_exited", "broker_halted",
    "process_state_changed",
)  # fmt: skip
"""Of those the kinds of which a run has a handful."""
FEW_COLUMNS = (
    "kind", *KEY, "seq", "t", "broker", "state", "do", "arguments", "seed", "settings", "replay",
    "traced", "verdict", "figures", "violations",
)  # fmt: skip
RARE_COLUMNS = (
    "kind", *KEY, "seq", "t", "broker", "op", "path", "version", "code", "zxid", "data",
    "ephemeral", "zk_transaction_ops", "state", "do", "arguments", "topic", "partition", "change",
    "outcome", "zk_version", "isr", "leader", "leader_and_isr_state", "states",
    "metadata_cache_updated_removed", "seed", "settings", "replay", "traced", "verdict", "figures",
    "violations",
)  # fmt: skip


# -- what several tables begin with ----------------------------------------------------------------


class _Shared:
    """What was derived from one DataFrame, each once."""

    def __init__(self) -> None:
        self.lock, self.found = Lock(), dict[str, tuple[RLock, list[DataFrame]]]()


_SHARED: dict[int, _Shared] = {}
"""By the identity of the rows; those alone that `sharing` was asked for."""


@contextmanager
def sharing(events: DataFrame) -> Iterator[None]:
    """Meanwhile what several tables derive from these rows is made once, and kept."""
    mine = _SHARED[id(events)] = _Shared()
    try:
        yield
    finally:
        del _SHARED[id(events)]
        for _, found in mine.found.values():
            for one in found:
                one.unpersist()


def shared(derive: Callable[[DataFrame], DataFrame]) -> Callable[[DataFrame], DataFrame]:
    """A derivation that several tables begin with. Who comes first makes it, others wait."""

    @wraps(derive)
    def once(events: DataFrame) -> DataFrame:
        mine = _SHARED.get(id(events))
        if mine is None:
            return derive(events)
        with mine.lock:
            lock, found = mine.found.setdefault(derive.__name__, (RLock(), []))
        with lock:
            if not found:
                found.append(_made(derive(events)))
            return found[0]

    return once


def is_small(spark: SparkSession) -> bool:
    """Shuffles have one partition: `session.sized` found few rows."""
    return spark.conf.get("spark.sql.shuffle.partitions") == "1"


def _made(found: DataFrame) -> DataFrame:
    """Computed, and kept. What is small forgets how it came about: whoever begins with it would
    plan all of that again."""
    if is_small(found.sparkSession):
        return found.localCheckpoint(eager=True)
    found.cache().count()
    return found


@shared
def rare(events: DataFrame) -> DataFrame:
    """The rows of kinds that are rare, with the columns that tables read of them."""
    return of_kinds(events, *RARE).select(*RARE_COLUMNS)


@shared
def few(events: DataFrame) -> DataFrame:
    """The rows of kinds of which a run has a handful: what it was, what came of it, what was done
    to it, when its brokers began and ended."""
    return in_one(of_kinds(rare(events), *FEW).select(*FEW_COLUMNS))


def in_one(found: DataFrame) -> DataFrame:
    """Where shuffles have one partition, so has what comes out: nothing is shuffled after it."""
    return found.coalesce(1) if is_small(found.sparkSession) else found


def of_kinds(events: DataFrame, *kinds: str) -> DataFrame:
    """The rows of these kinds."""
    return events.where(F.col("kind").isin(*kinds))


def declared(found: DataFrame, ddl: str) -> DataFrame:
    """The columns of a declared schema, in its order and with its types."""
    parts = [part.strip().split(" ", 1) for part in ddl.split(",")]
    types = {field.name: field.dataType.simpleString() for field in found.schema}

    def column(name: str, of: str) -> Column:
        return F.col(name) if types[name] == of else F.col(name).cast(of).alias(name)

    return found.select(*(column(name, of) for name, of in parts))


def summed_up(
    rows: DataFrame, keys: Sequence[str], value: str, *more: Column, weight: str = ""
) -> DataFrame:
    """Per group: `count`, spread of a value, in how many runs, and the run with the greatest.
    `weight` is the column that says how many rows a row stands for."""
    wanted = F.array(*map(F.lit, PERCENTILES))
    some = F.col(value).isNotNull()
    count = F.sum(F.when(some, F.col(weight)).otherwise(0)) if weight else F.count(value)
    frequency = F.col(weight) if weight else F.lit(1)
    found = rows.groupBy(*keys).agg(
        count.alias("count"),
        F.percentile(value, wanted, frequency).alias("_p"),
        F.max(value).alias("max"),
        runs_among(F.col("run")).alias("runs"),
        F.max_by("run", F.struct(value, F.col("run"))).alias("worst_run"),
        *more,
    )
    places = {name: F.col("_p")[place] for place, name in enumerate(("p50", "p95", "p99"))}
    return found.withColumns(places)


def runs_among(run: Column) -> Column:
    """How many runs there are (null: none). A set, since a distinct count costs two more passes."""
    return F.size(F.collect_set(run))


def ms(us: Column) -> Column:
    """Microseconds as milliseconds."""
    return us / 1000.0
