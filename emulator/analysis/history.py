"""The history of each partition, in order; most tables are derived from it.

A row is about the partition's state (transactions of its znode, leaders and controllers that wrote
or read it), its propagation (notifications, metadata cached and dropped) or its replicas. It has
the partition's generation (a topic that is deleted and created again restarts at version 0) and the
end of its run and trace. Rows of a partition are together and sorted by `seq`, so that windows over
a partition shuffle nothing. Derived from it: versions (`states`), entries of metadata caches
(`entries`) and the times in which these were stale (`staleness`). `processes` has the states of
broker processes. A test compares all of it with `emulator.trace.state`, which has the definitions.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from emulator.analysis.derived import (
    KEY,
    PARTITION,
    STATE_PATH,
    cached_table,
    in_one_partition,
    infrequent_rows,
    of_kinds,
    rare_rows,
)
from emulator.analysis.event_counts import run_ends
from emulator.trace.events import ROLLED_BACK

VERSION = (*PARTITION, "generation", "version")
WRITTEN, GONE = "written", "gone"
UPDATED, CONTROLLER = "updated", "controller"
STATES = (WRITTEN, GONE, UPDATED, CONTROLLER)
"""Rows that report a version of a state znode. `gone`: the znode was deleted; `version` is null."""
_ITEM = (
    "what string, topic string, partition bigint, version bigint, leader bigint, "
    "leader_epoch bigint, isr array<bigint>, change string, replicas array<bigint>, "
    "adding array<bigint>, by_leader boolean"
)
_DATA = "leader bigint, leader_epoch bigint, isr array<bigint>"
_NAMED = "partitions array<struct<topic:string,partition:bigint>>"
_KINDS = (
    "zk_transaction", "isr_update_started", "isr_updated", "controller_cache_updated",
    "metadata_cache_updated", "leader_and_isr", "isr_update_rejected", "alter_isr_failed",
    "becomes_leader", "becomes_follower",
)  # fmt: skip


@cached_table
def history(events: DataFrame) -> DataFrame:
    """`what` happened (STATES, `decided`, `rejected`, `led`, `notified`, `shown`, `dropped`,
    `assigned`), `seq`, `t`, `broker`; `version`, `leader`, `leader_epoch`, `isr`, `change`,
    `replicas`, `adding` where the row has them; `by_leader`: a leader wrote the state itself;
    `generation`, `end_t` of the run, `last_t` of its trace."""
    in_order = Window.partitionBy(*PARTITION).orderBy("seq")
    rows = (
        of_kinds(rare_rows(events), *_KINDS)
        .withColumn("one", F.explode(_operations()))
        .select(*KEY, "seq", "t", "broker", F.inline(_items()))
        .join(F.broadcast(run_ends(events)), [*KEY])
    )
    is_state = F.col("what").isin(*STATES)
    state = F.when(is_state, F.struct("version", "t"))
    before = F.last(state, ignorenulls=True).over(in_order.rowsBetween(*_BEFORE))
    # A trace without transactions shows no creation: version 0 after a later version starts a new
    # generation.
    is_recreated = before["version"].isNull() | (
        (before["version"] > 0) & (before["t"] < F.col("t"))
    )
    begins = is_state & (F.col("version") == 0) & is_recreated
    generation = F.sum(F.col("begins").cast("bigint")).over(in_order)
    flagged = rows.withColumn("begins", F.coalesce(begins, F.lit(False)))
    return in_one_partition(flagged.withColumn("generation", generation))


_BEFORE = Window.unboundedPreceding, -1
_SO_FAR = Window.unboundedPreceding, Window.currentRow


@cached_table
def states(events: DataFrame) -> DataFrame:
    """The first row that reports each version of a state znode, and its deletion (`version` is
    null). Rows that arrive after a later version or the deletion are dropped. `created_t` is when
    the topic was created; `before` has leader, leader_epoch and ISR of the last readable version
    before it; `isr_change`: a leader decided it, or the leadership goes on."""
    mine = Window.partitionBy(*PARTITION, "generation")
    earlier = mine.orderBy("seq").rowsBetween(*_BEFORE)
    is_gone = F.col("version").isNull()
    was_gone = F.coalesce(F.max(is_gone).over(earlier), F.lit(False))
    newest = F.max("version").over(earlier)
    is_new = is_gone | newest.isNull() | (F.col("version") > newest)
    created = F.min(F.when(F.col("begins"), F.col("t"))).over(mine)
    by_leader = F.max("by_leader").over(Window.partitionBy(*VERSION))
    leadership = F.struct("leader", "leader_epoch", "isr")
    readable = F.when(F.col("leader").isNotNull(), leadership)
    goes_on = (F.col("version") > 0) & (
        F.struct("leader", "leader_epoch")
        == F.struct(F.col("before.leader"), F.col("before.leader_epoch"))
    )
    is_change = F.col("leader").isNotNull() & (F.col("by_leader") | goes_on)
    return (
        history(events)
        .where(F.col("what").isin(*STATES))
        .withColumns(
            {
                "is_new": is_new & ~was_gone,
                "created_t": F.coalesce(created, F.lit(0)),
                "by_leader": F.coalesce(by_leader, F.lit(False)),
            }
        )
        .where("is_new")
        .withColumn("before", F.last(readable, ignorenulls=True).over(earlier))
        .withColumn("isr_change", F.coalesce(is_change, F.lit(False)))
        .drop("is_new", "begins", "by_leader")
    )


@cached_table
def processes(events: DataFrame) -> DataFrame:
    """From `t` on, the process of `broker` is in this `state`."""
    traced = of_kinds(infrequent_rows(events), "process_state_changed").select(*PROCESS)
    known = F.broadcast(traced.select(*KEY).distinct())
    return traced.unionByName(_processes_of_old_traces(events).join(known, [*KEY], "left_anti"))


PROCESS = (*KEY, "broker", "seq", "t", "state")
_OLDER_STATES = {
    "kill": "dead", "crash": "dead", "exited": "dead", "broker_exited": "dead",
    "broker_halted": "dead", "broker_starting": "starting", "registered": "up",
    "terminate": "stopping", "pause": "paused", "resume": "up",
}  # fmt: skip


def _processes_of_old_traces(events: DataFrame) -> DataFrame:
    """Process states from actions and boots, for data sets without `process_state_changed`. As in
    the reader of old traces, an action on a dead process changes nothing."""
    boots_and_actions = of_kinds(
        infrequent_rows(events),
        "broker_starting",
        "broker_exited",
        "broker_halted",
        "action_applied",
    )
    state_of = F.create_map(*(F.lit(word) for pair in _OLDER_STATES.items() for word in pair))
    what = F.when(F.col("kind") == "action_applied", F.col("do")).otherwise(F.col("kind"))
    earlier = Window.partitionBy(*KEY, "broker").orderBy("seq").rowsBetween(*_BEFORE)
    begins_or_ends = F.col("state").isin("starting", "dead") | (F.col("what") == "registered")
    life = F.last(F.when(begins_or_ends, F.col("state")), ignorenulls=True).over(earlier)
    is_idle = (F.col("kind") == "action_applied") & (F.col("what") != "registered")
    return (
        boots_and_actions.drop("state")
        .withColumns({"what": what, "state": F.try_element_at(state_of, what)})
        .where("state is not null and broker > 0")
        .withColumn("life", life)
        .where(~is_idle | F.col("life").isNull() | (F.col("life") != "dead"))
        .select(*PROCESS)
    )


ENTRY = (*PARTITION, "broker")


@cached_table
def entries(events: DataFrame) -> DataFrame:
    """Entries of metadata caches. `version` is null where the entry was dropped, or lost with its
    process. `goes_on`: it replaced an earlier entry. Unchanged entries are dropped."""
    changes = history(events).where(F.col("what").isin("shown", "dropped"))
    moment = (*ENTRY, "seq", "t", "last_t")
    caches = changes.groupBy(*ENTRY).agg(F.max("last_t").alias("last_t"))
    losses = (
        processes(events)
        .where(F.col("state").isin("dead", "starting"))
        .join(caches, [*KEY, "broker"])
    )
    shown = changes.select(*moment, "version", "leader", "leader_epoch", "isr")
    rows = shown.unionByName(losses.select(*moment), allowMissingColumns=True)
    in_order = Window.partitionBy(*ENTRY).orderBy("seq", F.col("version").isNotNull())
    facts = F.struct("version", "leader", "leader_epoch", "isr")
    return (
        rows.withColumns({"facts": facts, "before": F.lag(facts).over(in_order)})
        .where("before is null or facts != before")
        .withColumn("goes_on", F.lag("version").over(in_order).isNotNull())
        .withColumn("goes_on", F.col("goes_on") & F.col("version").isNotNull())
        .drop("facts", "before")
    )


def caches(events: DataFrame) -> DataFrame:
    """Per broker and partition: all entries of its metadata cache in order, as `shown`."""
    shown = F.sort_array(F.collect_list(F.struct("seq", "t", "version", "goes_on")))
    return entries(events).groupBy(*ENTRY).agg(shown.alias("shown"))


def first_after(of: str, is_one: Callable[[Column], Column]) -> Column:
    """The first matching row after `seq`, in an array of rows."""
    return F.get(F.filter(of, lambda one: (one["seq"] > F.col("seq")) & is_one(one)), 0)


def last_before(of: str) -> Column:
    """The last row before `seq`, in an array of rows."""
    return F.try_element_at(F.filter(of, lambda one: one["seq"] < F.col("seq")), F.lit(-1))


@cached_table
def staleness(events: DataFrame) -> DataFrame:
    """Per broker and partition: intervals [from_t, to_t) in which the broker's entry was older than
    ZooKeeper's version. Adjacent intervals are not merged."""
    known = entries(events)
    caches = known.select(*ENTRY).distinct()
    written = states(events).drop("broker").join(caches, [*PARTITION])
    columns = (*ENTRY, "seq", "t", "last_t", "version")
    rows = written.select(*columns, "created_t", F.lit(True).alias("is_state")).unionByName(
        known.select(
            *columns, F.lit(None).cast("bigint").alias("created_t"), F.lit(False).alias("is_state")
        )
    )
    in_order = Window.partitionBy(*ENTRY).orderBy("seq", "is_state")
    is_state = F.col("is_state")
    state = F.when(is_state, F.struct("version", "created_t"))
    entry = F.when(~is_state, F.struct("version", "t"))
    now, shown = (last_known(one, in_order) for one in (state, entry))
    older = (shown["version"] < now["version"]) | (shown["t"] < now["created_t"])
    is_stale = shown["version"].isNotNull() & now["version"].isNotNull() & older
    return (
        pieces(rows.withColumn("is_stale", is_stale), in_order)
        .where("is_stale and from_t < to_t")
        .select(*ENTRY, "from_t", "to_t")
    )


def last_known(value: Column, in_order: WindowSpec) -> Column:
    """The last non-null value up to this row."""
    return F.last(value, ignorenulls=True).over(in_order.rowsBetween(*_SO_FAR))


def pieces(rows: DataFrame, in_order: WindowSpec) -> DataFrame:
    """The time [from_t, to_t) of each row: until the next row, or the end of the trace."""
    until = F.coalesce(F.lead("t").over(in_order), "last_t")
    return rows.withColumns({"from_t": F.col("t"), "to_t": until})


def operations() -> Column:
    """The operations of a transaction (traced or logged by a server): one, or those of a multi."""
    single = F.struct("op", "path", "data", "version", "ephemeral", "code")
    many = F.size("zk_transaction_ops") > 0
    return F.when(many, F.col("zk_transaction_ops")).otherwise(F.array(single))


def is_state(path: Column) -> Column:
    """Whether it is the path of a state znode. The prefix is cheap and excludes most other
    paths."""
    return path.startswith("/brokers/topics/") & path.rlike(STATE_PATH)


def partition_of(path: Column) -> tuple[Column, Column]:
    """Topic and partition of a state znode's path."""
    number = F.regexp_extract(path, STATE_PATH, 2).cast("bigint")
    return F.regexp_extract(path, STATE_PATH, 1), number


def _operations() -> Column:
    """The changes of a transaction (none if a multi failed); an array with null for other kinds."""
    ops = operations()
    failed = F.exists(
        ops, lambda one: (one["op"] == "error") | (F.coalesce(one["code"], F.lit(0)) != 0)
    )
    applied = F.when(~failed, ops)
    return F.when(F.col("kind") == "zk_transaction", applied).otherwise(F.array(F.lit(None)))


def _items() -> Column:
    """The items of a row: an array, since a row may be about several partitions."""
    item, kind = _item, F.col("kind")
    whole = {name: F.col(name) for name in ("leader", "leader_epoch", "isr", "change")}
    version = F.col("zk_version")
    state = F.col("leader_and_isr_state")
    assigned = item("assigned", state, replicas=state["replicas"], adding=state["adding_replicas"])
    path, op = F.col("one.path"), F.col("one.op")
    named = F.from_json("one.data", _NAMED)["partitions"]
    notifies = (op == "create") & path.startswith("/isr_change_notification/")
    return (
        F.when(notifies, F.transform(named, lambda one: item("notified", one)))
        .when(is_state(path) & op.isin("create", "setData", "delete"), F.array(_written()))
        .when(kind == "isr_update_started", F.array(item("decided", version=version + 1)))
        .when(
            (kind == "isr_update_rejected") | (F.col("outcome") == ROLLED_BACK),
            F.array(item("rejected")),
        )
        .when(kind.isin("becomes_leader", "becomes_follower"), F.array(item("led")))
        .when(
            kind == "isr_updated",
            F.array(
                item(
                    UPDATED,
                    version=version,
                    **whole | {"leader": F.col("broker"), "by_leader": F.lit(True)},
                )
            ),
        )
        .when(
            kind == "controller_cache_updated", F.array(item(CONTROLLER, version=version, **whole))
        )
        .when(kind == "metadata_cache_updated", _shown())
        .when(kind == "leader_and_isr", F.array(assigned))
    )


def _item(what: str | Column, of: Column | None = None, **known: Column) -> Column:
    """An item. Topic and partition come from `of`, or from the row itself."""
    place = {name: F.col(name) if of is None else of[name] for name in ("topic", "partition")}
    values = {"what": F.lit(what), **place, **known}
    parts = []
    for part in _ITEM.split(", "):
        name, kind = part.split(" ")
        parts.append(values.get(name, F.lit(None)).cast(kind).alias(name))
    return F.struct(*parts)


def _written() -> Column:
    """A state znode was created, changed or deleted."""
    op, data = F.col("one.op"), F.from_json("one.data", _DATA)
    topic, partition = partition_of(F.col("one.path"))
    exists = op != "delete"
    return _item(
        F.when(exists, WRITTEN).otherwise(GONE),
        topic=topic,
        partition=partition,
        version=F.when(op == "create", 0).when(exists, F.col("one.version")),
        leader=F.when(exists, data["leader"]),
        leader_epoch=F.when(exists, data["leader_epoch"]),
        by_leader=(op == "setData") & (F.size("zk_transaction_ops") == 0),
        isr=F.when(exists, data["isr"]),
    )


def _shown() -> Column:
    """Each entry that a metadata cache added, and each that it dropped."""
    facts = "leader", "leader_epoch", "isr", "replicas"
    added = F.transform(
        "states",
        lambda one: _item(
            "shown", one, version=one["zk_version"], **{name: one[name] for name in facts}
        ),
    )
    removed = F.col("metadata_cache_updated_removed")
    return F.concat(
        F.coalesce(added, F.array()),
        F.coalesce(F.transform(removed, lambda one: _item("dropped", one)), F.array()),
    )
