"""What happened to each partition, in order: one table that five others begin with.

Owns the derivation: every row that tells of a partition's state (transactions of its znode, leaders
and controllers that wrote or read it), of its news (notifications, metadata shown and dropped) and
of its replicas, with the partition's generation (a topic that was deleted and made anew begins
again at version 0) and the end of its run. Rows of a partition are together and sorted by `seq`, so
that windows over it move nothing. It must be what `trace.partitions` and the views derive.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from emulator.analysis.counted import run_ends
from emulator.analysis.derived import KEY, PARTITION, STATE_PATH, in_one, of_kinds, rare, shared

VERSION = (*PARTITION, "generation", "version")
WRITTEN, GONE = "written", "gone"
UPDATED, CONTROLLER = "updated", "controller"
STATES = (WRITTEN, GONE, UPDATED, CONTROLLER)
"""What tells a version of a state znode, or (`gone`, its `version` is null) that there is none."""
_ITEM = (
    "what string, topic string, partition bigint, version bigint, leader bigint, "
    "isr array<bigint>, created boolean, change string, replicas array<bigint>"
)
_DATA = "leader bigint, leader_epoch bigint, isr array<bigint>"
_NAMED = "partitions array<struct<topic:string,partition:bigint>>"
_KINDS = (
    "zk_transaction", "isr_update_started", "isr_updated", "controller_cache_updated",
    "metadata_cache_updated", "leader_and_isr",
)  # fmt: skip


@shared
def history(events: DataFrame) -> DataFrame:
    """`what` happened (STATES, `decided`, `notified`, `shown`, `dropped`, `assigned`), `seq`, `t`,
    `broker`; `version`, `leader`, `isr`, `change`, `replicas` where it tells them."""
    in_order = Window.partitionBy(*PARTITION).orderBy("seq")
    told = (
        of_kinds(rare(events), *_KINDS)
        .withColumn("one", F.explode(_operations()))
        .select(*KEY, "seq", "t", "broker", F.inline(_items()))
    )
    found = told.join(F.broadcast(run_ends(events)), [*KEY])
    generation = F.sum(F.col("created").cast("bigint")).over(in_order)
    return in_one(found.withColumn("generation", generation))


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
    assigned = item("assigned", state, replicas=state["replicas"])
    path, op = F.col("one.path"), F.col("one.op")
    notifies = (op == "create") & path.startswith("/isr_change_notification/")
    return (
        F.when(notifies, _notified())
        .when(is_state(path) & op.isin("create", "setData", "delete"), F.array(_written()))
        .when(kind == "isr_update_started", F.array(item("decided", version=version + 1)))
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
    values = {"what": F.lit(what), "created": F.lit(False), **place, **known}
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
        created=op == "create",
    )


def _notified() -> Column:
    """Each partition that a notification node names."""
    named = F.from_json("one.data", _NAMED)["partitions"]
    return F.transform(named, lambda one: _item("notified", one))


def _shown() -> Column:
    """Each entry that a metadata cache took, and each that it dropped."""
    taken = F.transform("states", lambda one: _item("shown", one, version=one["zk_version"]))
    removed = F.col("metadata_cache_updated_removed")
    return F.concat(
        F.coalesce(taken, F.array()),
        F.coalesce(F.transform(removed, lambda one: _item("dropped", one)), F.array()),
    )
