"""What happened to each partition, in order, and what follows from it: what tables begin with.

Owns the derivation: every row about a partition's state (transactions of its znode, leaders and
controllers that wrote or read it), its news (notifications, metadata shown and dropped) and its
replicas, with the partition's generation (a topic that was deleted and created again begins at
version 0) and the end of its run and trace. Rows of a partition are together and sorted by `seq`,
so that windows over it move nothing. From it come versions (`states`), entries of metadata caches
(`entries`) and when these were stale (`staleness`); from actions and boots, process life
(`processes`). A test holds all of it equal to `emulator.trace.state`, where the definitions are.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from emulator.analysis.counted import run_ends
from emulator.analysis.derived import (
    KEY,
    PARTITION,
    STATE_PATH,
    few,
    in_one,
    of_kinds,
    rare,
    shared,
)
from emulator.trace.events import ROLLED_BACK

VERSION = (*PARTITION, "generation", "version")
WRITTEN, GONE = "written", "gone"
UPDATED, CONTROLLER = "updated", "controller"
STATES = (WRITTEN, GONE, UPDATED, CONTROLLER)
"""What tells a version of a state znode, or (`gone`, its `version` is null) that there is none."""
_ITEM = (
    "what string, topic string, partition bigint, version bigint, leader bigint, "
    "leader_epoch bigint, isr array<bigint>, change string, replicas array<bigint>, "
    "adding array<bigint>"
)
_DATA = "leader bigint, leader_epoch bigint, isr array<bigint>"
_NAMED = "partitions array<struct<topic:string,partition:bigint>>"
_KINDS = (
    "zk_transaction", "isr_update_started", "isr_updated", "controller_cache_updated",
    "metadata_cache_updated", "leader_and_isr", "isr_update_rejected", "alter_isr_failed",
    "becomes_leader", "becomes_follower",
)  # fmt: skip


@shared
def history(events: DataFrame) -> DataFrame:
    """`what` happened (STATES, `decided`, `rejected`, `led`, `notified`, `shown`, `dropped`,
    `assigned`), `seq`, `t`, `broker`; `version`, `leader`, `leader_epoch`, `isr`, `change`,
    `replicas`, `adding` where it says them; `generation`, `end_t` of the run, `last_t` of its
    trace."""
    in_order = Window.partitionBy(*PARTITION).orderBy("seq")
    rows = (
        of_kinds(rare(events), *_KINDS)
        .withColumn("one", F.explode(_operations()))
        .select(*KEY, "seq", "t", "broker", F.inline(_items()))
        .join(F.broadcast(run_ends(events)), [*KEY])
    )
    is_state = F.col("what").isin(*STATES)
    state = F.when(is_state, F.struct("version", "t"))
    before = F.last(state, ignorenulls=True).over(in_order.rowsBetween(*_BEFORE))
    # A trace without transactions has no creation: there version 0 begins again after a later one.
    is_again = before["version"].isNull() | ((before["version"] > 0) & (before["t"] < F.col("t")))
    begins = is_state & (F.col("version") == 0) & is_again
    generation = F.sum(F.col("begins").cast("bigint")).over(in_order)
    found = rows.withColumn("begins", F.coalesce(begins, F.lit(False)))
    return in_one(found.withColumn("generation", generation))


_BEFORE = Window.unboundedPreceding, -1
_SO_FAR = Window.unboundedPreceding, Window.currentRow


@shared
def states(events: DataFrame) -> DataFrame:
    """Each version of a state znode from the first row that says it, and its end (`version` is
    null). What is said late, after a later version or the deletion, is left out. `created_t`: of
    the topic."""
    mine = Window.partitionBy(*PARTITION, "generation")
    earlier = mine.orderBy("seq").rowsBetween(*_BEFORE)
    is_gone = F.col("version").isNull()
    was_gone = F.coalesce(F.max(is_gone).over(earlier), F.lit(False))
    newest = F.max("version").over(earlier)
    is_new = is_gone | newest.isNull() | (F.col("version") > newest)
    created = F.min(F.when(F.col("begins"), F.col("t"))).over(mine)
    return (
        history(events)
        .where(F.col("what").isin(*STATES))
        .withColumns({"is_new": is_new & ~was_gone, "created_t": F.coalesce(created, F.lit(0))})
        .where("is_new")
        .drop("is_new", "begins")
    )


@shared
def processes(events: DataFrame) -> DataFrame:
    """`broker`'s process is in this `state` from `t` on."""
    found = of_kinds(few(events), "process_state_changed").select(*PROCESS)
    known = F.broadcast(found.select(*KEY).distinct())
    return found.unionByName(_older_processes(events).join(known, [*KEY], "left_anti"))


PROCESS = (*KEY, "broker", "seq", "t", "state")
_OLDER_STATES = {
    "kill": "dead", "crash": "dead", "exited": "dead", "broker_exited": "dead",
    "broker_halted": "dead", "broker_starting": "starting", "registered": "up",
    "terminate": "stopping", "pause": "paused", "resume": "up",
}  # fmt: skip


def _older_processes(events: DataFrame) -> DataFrame:
    """What actions and boots say in data sets without `process_state_changed`, as the reader of
    old traces has it: nothing that is done to a dead process changes it."""
    lives = of_kinds(
        few(events), "broker_starting", "broker_exited", "broker_halted", "action_applied"
    )
    of = F.create_map(*(F.lit(word) for pair in _OLDER_STATES.items() for word in pair))
    what = F.when(F.col("kind") == "action_applied", F.col("do")).otherwise(F.col("kind"))
    earlier = Window.partitionBy(*KEY, "broker").orderBy("seq").rowsBetween(*_BEFORE)
    begins_or_ends = F.col("state").isin("starting", "dead") | (F.col("what") == "registered")
    life = F.last(F.when(begins_or_ends, F.col("state")), ignorenulls=True).over(earlier)
    is_idle = (F.col("kind") == "action_applied") & (F.col("what") != "registered")
    return (
        lives.drop("state")
        .withColumns({"what": what, "state": F.try_element_at(of, what)})
        .where("state is not null and broker > 0")
        .withColumn("life", life)
        .where(~is_idle | F.col("life").isNull() | (F.col("life") != "dead"))
        .select(*PROCESS)
    )


ENTRY = (*PARTITION, "broker")


@shared
def entries(events: DataFrame) -> DataFrame:
    """Entries of metadata caches: `version` is null where one was dropped or its process lost it.
    `goes_on`: it replaced the one before. An entry that says what was known is left out."""
    told = history(events).where(F.col("what").isin("shown", "dropped"))
    moment = (*ENTRY, "seq", "t", "last_t")
    caches = told.groupBy(*ENTRY).agg(F.max("last_t").alias("last_t"))
    losses = (
        processes(events)
        .where(F.col("state").isin("dead", "starting"))
        .join(caches, [*KEY, "broker"])
    )
    shown = told.select(*moment, "version", "leader", "leader_epoch", "isr")
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


@shared
def staleness(events: DataFrame) -> DataFrame:
    """Per broker and partition: [from_t, to_t) in which the broker's entry was older than
    ZooKeeper's version, piece by piece."""
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
    """What the rows so far said last."""
    return F.last(value, ignorenulls=True).over(in_order.rowsBetween(*_SO_FAR))


def pieces(rows: DataFrame, in_order: WindowSpec) -> DataFrame:
    """Each row holds during [from_t, to_t): until the next one, or the trace ends."""
    until = F.coalesce(F.lead("t").over(in_order), "last_t")
    return rows.withColumns({"from_t": F.col("t"), "to_t": until})


def operations() -> Column:
    """Of a transaction, or of one that a server logged: a multi's, or the one that it is."""
    single = F.struct("op", "path", "data", "version", "ephemeral", "code")
    many = F.size("zk_transaction_ops") > 0
    return F.when(many, F.col("zk_transaction_ops")).otherwise(F.array(single))


def is_state(path: Column) -> Column:
    """The path of a partition's state znode; most others are known by their beginning."""
    return path.startswith("/brokers/topics/") & path.rlike(STATE_PATH)


def place_of(path: Column) -> tuple[Column, Column]:
    """Topic and partition of such a path."""
    number = F.regexp_extract(path, STATE_PATH, 2).cast("bigint")
    return F.regexp_extract(path, STATE_PATH, 1), number


def _operations() -> Column:
    """What a transaction changed (nothing, if it is a multi that failed); of others nothing."""
    ops = operations()
    failed = F.exists(
        ops, lambda one: (one["op"] == "error") | (F.coalesce(one["code"], F.lit(0)) != 0)
    )
    applied = F.when(~failed, ops)
    return F.when(F.col("kind") == "zk_transaction", applied).otherwise(F.array(F.lit(None)))


def _items() -> Column:
    """What a row says of partitions, as an array of items."""
    item, kind = _item, F.col("kind")
    whole = {"leader": F.col("leader"), "isr": F.col("isr"), "change": F.col("change")}
    version = F.col("zk_version")
    state = F.col("leader_and_isr_state")
    assigned = item("assigned", state, replicas=state["replicas"], adding=state["adding_replicas"])
    path, op = F.col("one.path"), F.col("one.op")
    notifies = (op == "create") & path.startswith("/isr_change_notification/")
    return (
        F.when(notifies, _notified())
        .when(is_state(path) & op.isin("create", "setData", "delete"), F.array(_written()))
        .when(kind == "isr_update_started", F.array(item("decided", version=version + 1)))
        .when(
            (kind == "isr_update_rejected") | (F.col("outcome") == ROLLED_BACK),
            F.array(item("rejected")),
        )
        .when(kind.isin("becomes_leader", "becomes_follower"), F.array(item("led")))
        .when(
            kind == "isr_updated",
            F.array(item(UPDATED, version=version, **whole | {"leader": F.col("broker")})),
        )
        .when(
            kind == "controller_cache_updated", F.array(item(CONTROLLER, version=version, **whole))
        )
        .when(kind == "metadata_cache_updated", _shown())
        .when(kind == "leader_and_isr", F.array(assigned))
    )


def _item(what: str | Column, of: Column | None = None, **known: Column) -> Column:
    """`of` has the topic and the partition; the row itself else."""
    place = {name: F.col(name) if of is None else of[name] for name in ("topic", "partition")}
    values = {"what": F.lit(what), **place, **known}
    parts = []
    for part in _ITEM.split(", "):
        name, kind = part.split(" ")
        parts.append(values.get(name, F.lit(None)).cast(kind).alias(name))
    return F.struct(*parts)


def _written() -> Column:
    """A state znode that was made, changed or deleted."""
    op, data = F.col("one.op"), F.from_json("one.data", _DATA)
    topic, partition = place_of(F.col("one.path"))
    there = op != "delete"
    return _item(
        F.when(there, WRITTEN).otherwise(GONE),
        topic=topic,
        partition=partition,
        version=F.when(op == "create", 0).when(there, F.col("one.version")),
        leader=F.when(there, data["leader"]),
        isr=F.when(there, data["isr"]),
    )


def _notified() -> Column:
    """Each partition that a notification node names."""
    named = F.from_json("one.data", _NAMED)["partitions"]
    return F.transform(named, lambda one: _item("notified", one))


def _shown() -> Column:
    """Each entry that a metadata cache took, and each that it dropped."""
    facts = "leader", "leader_epoch", "isr", "replicas"
    taken = F.transform(
        "states",
        lambda one: _item(
            "shown", one, version=one["zk_version"], **{name: one[name] for name in facts}
        ),
    )
    removed = F.col("metadata_cache_updated_removed")
    return F.concat(
        F.coalesce(taken, F.array()),
        F.coalesce(F.transform(removed, lambda one: _item("dropped", one)), F.array()),
    )
