"""Statistics of Spark's tasks: rows read, and CPU time.

They come from the driver's status store, which exists without the web page. For questions of
balance: does one task do the work of many?
"""

from __future__ import annotations

from typing import Any, NamedTuple

from pyspark.sql import SparkSession


class Stage(NamedTuple):
    """A stage that ran: of each task the rows that it read, from files, cache and shuffles, and
    its processor time."""

    number: int
    rows: list[int]
    cpu_s: list[float]


def stages(spark: SparkSession, after: int = -1) -> list[Stage]:
    """Those with a greater number that have ended, in order."""
    context: Any = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    store = context.statusStore()
    jvm, gateway = spark.sparkContext._jvm, spark.sparkContext._gateway
    assert jvm is not None and gateway is not None
    no_quantiles = gateway.new_array(jvm.double, 0)
    listed = store.stageList(None, False, False, no_quantiles, jvm.java.util.ArrayList())
    every = [listed.apply(place) for place in range(listed.size())]
    wanted = [one for one in every if one.stageId() > after and str(one.status()) == "COMPLETE"]
    return sorted(_stage(store, one) for one in wanted)


def _stage(store: Any, stage: Any) -> Stage:
    tasks = store.taskList(stage.stageId(), stage.attemptId(), 1_000_000)
    told = [tasks.apply(place).taskMetrics().get() for place in range(tasks.size())]
    rows = [m.inputMetrics().recordsRead() + m.shuffleReadMetrics().recordsRead() for m in told]
    return Stage(stage.stageId(), rows, [m.executorCpuTime() / 1e9 for m in told])
