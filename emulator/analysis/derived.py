"""Intermediate tables that several aggregations share, and functions that aggregate values.

Owns the cache of shared tables (`caching`, `cached_table`), the columns that identify a row, and
the rare kinds whose rows are kept (`rare_rows`). `event_counts` counts the frequent kinds;
`history` orders what happened to each partition. Uses Spark expressions only: no Python code per
row."""

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
"""By nearest rank, as `emulator.trace.percentiles`. Where a row stands for several events (`weight`
of `spread_of`), exact with linear interpolation between the two nearest values."""
RARE = (
    "run_began", "run_ended", "zk_logged", "zk_transaction", "isr_update_started", "isr_updated",
    "isr_update_rejected", "alter_isr_failed", "becomes_leader", "becomes_follower",
    "controller_cache_updated", "metadata_cache_updated", "leader_and_isr", "broker_starting",
    "broker_exited", "broker_halted", "process_state_changed", "action_applied",
)  # fmt: skip
"""Kinds that tables need row by row: at most a tenth of a trace."""
FEW = (
    "run_began", "run_ended", "action_applied", "broker_starting", "broker_exited", "broker_halted",
    "process_state_changed",
)  # fmt: skip
"""The kinds among them of which a run has only a handful."""
FEW_COLUMNS = (
    "kind", *KEY, "seq", "t", "broker", "state", "do", "arguments", "seed", "settings", "replay",
    "traced", "verdict", "figures", "violations",
)  # fmt: skip
RARE_COLUMNS = (
    "kind", *KEY, "seq", "t", "broker", "op", "path", "version", "code", "zxid", "data",
    "ephemeral", "zk_transaction_ops", "state", "do", "arguments", "topic", "partition", "change",
    "outcome", "zk_version", "isr", "leader", "leader_epoch", "leader_and_isr_state", "states",
    "metadata_cache_updated_removed", "seed", "settings", "replay", "traced", "verdict", "figures",
    "violations",
)  # fmt: skip


# -- tables that several aggregations share --------------------------------------------------------


class _Cache:
    """The tables derived from one DataFrame, by the name of the function that derives them."""

    def __init__(self) -> None:
        self.lock, self.results = Lock(), dict[str, tuple[RLock, list[DataFrame]]]()


_CACHES: dict[int, _Cache] = {}
"""By the identity of the DataFrame; only those inside a `caching` context."""


@contextmanager
def caching(events: DataFrame) -> Iterator[None]:
    """In this context each shared table of these rows is computed once and cached."""
    mine = _CACHES[id(events)] = _Cache()
    try:
        yield
    finally:
        del _CACHES[id(events)]
        for _, frames in mine.results.values():
            for frame in frames:
                frame.unpersist()


def cached_table(derive: Callable[[DataFrame], DataFrame]) -> Callable[[DataFrame], DataFrame]:
    """Decorates a derivation that several aggregations share. The first caller computes it; others
    wait for the result."""

    @wraps(derive)
    def once(events: DataFrame) -> DataFrame:
        mine = _CACHES.get(id(events))
        if mine is None:
            return derive(events)
        with mine.lock:
            lock, frames = mine.results.setdefault(derive.__name__, (RLock(), []))
        with lock:
            if not frames:
                frame = derive(events)
                if is_small(frame.sparkSession):
                    # Without its plan, which every later query would plan again.
                    frame = frame.localCheckpoint(eager=True)
                else:
                    frame.cache().count()
                frames.append(frame)
            return frames[0]

    return once


def is_small(spark: SparkSession) -> bool:
    """Whether shuffles have one partition, because the data set has few rows (`session.sized`)."""
    return spark.conf.get("spark.sql.shuffle.partitions") == "1"


@cached_table
def rare_rows(events: DataFrame) -> DataFrame:
    """The rows of rare kinds, with the columns that tables read."""
    return of_kinds(events, *RARE).select(*RARE_COLUMNS)


@cached_table
def infrequent_rows(events: DataFrame) -> DataFrame:
    """The rows of kinds of which a run has a handful: its start and outcome, its actions, and the
    starts and exits of its brokers."""
    return in_one_partition(of_kinds(rare_rows(events), *FEW).select(*FEW_COLUMNS))


def in_one_partition(frame: DataFrame) -> DataFrame:
    """In one partition where shuffles have one, so that later steps need no shuffle."""
    return frame.coalesce(1) if is_small(frame.sparkSession) else frame


def of_kinds(events: DataFrame, *kinds: str) -> DataFrame:
    """The rows of these kinds."""
    return events.where(F.col("kind").isin(*kinds))


def with_schema(table: DataFrame, ddl: str) -> DataFrame:
    """The columns of a schema, in its order and with its types."""
    parts = [part.strip().split(" ", 1) for part in ddl.split(",")]
    types = {field.name: field.dataType.simpleString() for field in table.schema}

    def column(name: str, of: str) -> Column:
        return F.col(name) if types[name] == of else F.col(name).cast(of).alias(name)

    return table.select(*(column(name, of) for name, of in parts))


def spread_of(
    rows: DataFrame, keys: Sequence[str], value: str, *more: Column, weight: str = ""
) -> DataFrame:
    """Per group: `count`, percentiles and maximum of a value, the number of runs, and the run with
    the greatest value. `weight` is a column with the number of events that a row represents."""
    is_known = F.col(value).isNotNull()
    count = F.sum(F.when(is_known, F.col(weight)).otherwise(0)) if weight else F.count(value)
    table = rows.groupBy(*keys).agg(
        count.alias("count"),
        percentiles_of(value, weight).alias("_p"),
        F.max(value).alias("max"),
        number_of_runs(F.col("run")).alias("runs"),
        F.max_by("run", F.struct(value, F.col("run"))).alias("worst_run"),
        *more,
    )
    places = {name: F.col("_p")[place] for place, name in enumerate(("p50", "p95", "p99"))}
    return table.withColumns(places)


def percentiles_of(value: str, weight: str = "") -> Column:
    """An aggregate: the array of PERCENTILES. `percentile_disc` is the nearest rank and takes no
    weights; `percentile` takes them, and interpolates."""
    if weight:
        return F.percentile(value, F.array(*map(F.lit, PERCENTILES)), F.col(weight))
    parts = ", ".join(f"{part}D" for part in PERCENTILES)
    return F.expr(f"percentile_disc(array({parts})) within group (order by {value})")


def number_of_runs(run: Column) -> Column:
    """The number of distinct non-null runs. Uses a set: a distinct count costs two more passes."""
    return F.size(F.collect_set(run))


def ms(us: Column) -> Column:
    """Microseconds to milliseconds."""
    return us / 1000.0
