"""Starts a Spark session, or explains why it cannot.

Owns Spark's settings (for the workload, quiet output, the executors' interpreter) and the checks
before it starts: Java is installed, and the master answers. It knows nothing about the queries.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import struct
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from emulator.analysis import jvm_archive
from emulator.analysis.errors import NoSpark, why
from zk.real.server import JavaNotFound, find_java

LOCAL = "local[*]"
ANSWER_S = 5.0
SMALL_ROWS = 3_000_000
TINY_ROWS = 200_000
_JAVA = "spark.driver.extraJavaOptions"
_INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.subexpressionElimination.enabled": "false",
}
"""For few rows, compiling a query takes longer than running it. The cache for common subexpressions
would be reset for every row, which took a third of an aggregation's time."""
_SMALL_STEPS = {
    "spark.buffer.pageSize": "1m",
    "spark.sql.parquet.columnarReaderBatchSize": "1024",
}
"""Every hash table and every sort allocates a page first (64 MB by default), and every file a batch
for each column."""
_ONE_PARTITION = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "1"}
"""The shared tables are small (`derived.cached_table`): they are shuffled once and never again."""
_STREAM_REQUEST, _NAME = 6, b"/files/isr"
_PROBE = struct.pack(
    f">qbi{len(_NAME)}s", 8 + 1 + 4 + len(_NAME), _STREAM_REQUEST, len(_NAME), _NAME
)
"""A request for a nonexistent file: the cheapest message that a Spark master answers."""
_MASTER = re.compile(r"local(\[(\d+|\*)(,\d+)?\])?|yarn|k8s://.+|spark://[^:,]+:\d+(,[^:,]+:\d+)*")
_QUIET = Path(__file__).with_name("log4j2.properties")

_SETTINGS: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.inMemoryColumnarStorage.batchSize": "1000",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "16m",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "16",
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
    "spark.sql.files.maxPartitionBytes": "16m",
    "spark.sql.files.openCostInBytes": "64k",
    "spark.sql.parquet.mergeSchema": "false",
    "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
    "spark.sql.parquet.pushdown.inFilterThreshold": "50",
    "spark.python.worker.reuse": "true",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.dataFrameQueryContext.enabled": "false",
    "spark.sql.ui.explainMode": "simple",
}
"""A small shuffle is one task; many small files make few tasks, one large file makes many. Cached
rows are ordered by kind: a batch holds few kinds, and queries for others skip it."""


def check_master(master: str) -> None:
    """Check the master before anything starts. NoSpark."""
    if not _MASTER.fullmatch(master):
        raise NoSpark(
            f"--spark-master {master}: unknown form; use local[N], local[*], spark://HOST:PORT, "
            "yarn or k8s://..."
        )
    try:
        find_java()
    except JavaNotFound as error:
        raise NoSpark(f"Spark needs Java. {error}") from None
    if master.startswith("spark://"):
        _require_answer(master)


def _require_answer(master: str) -> None:
    """One of several masters is enough. Spark itself would keep trying for over a minute."""
    silence = ""
    for server in master.removeprefix("spark://").split(","):
        host, _, port = server.rpartition(":")
        silence = _failure_to_answer(host, int(port))
        if not silence:
            return
    raise NoSpark(f"--spark-master {master}: the master does not answer: {silence}")


def _failure_to_answer(host: str, port: int) -> str:
    """Why the master does not answer, or "" if it does. A closed connection is an answer, too: a
    master that requires TLS cannot parse the probe, and Spark may be configured for TLS."""
    try:
        with socket.create_connection((host, port), timeout=ANSWER_S) as peer:
            peer.sendall(_PROBE)
            peer.recv(1)
    except TimeoutError:
        return f"no answer within {ANSWER_S:.0f} s"
    except (ConnectionResetError, BrokenPipeError):
        return ""
    except OSError as error:
        return error.strerror or str(error)
    return ""


def start(
    master: str = LOCAL, settings: Mapping[str, str] | None = None, *, remember: bool = False
) -> SparkSession:
    """Start the session. `settings` override Spark's. `remember`: archive the classes that this JVM
    loads, for later starts. NoSpark."""
    check_master(master)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if is_local(master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    options = {**_SETTINGS, **_driver(master), **(settings or {})}
    options[_JAVA] += " " + jvm_archive.options(_java(), write=remember)
    builder = SparkSession.builder.master(master).appName("isr")
    for key, value in options.items():
        builder = builder.config(key, value)
    logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL)
    try:
        return builder.getOrCreate()
    except PySparkException as error:
        raise NoSpark(f"--spark-master {master}: {why(error)}") from None
    except Exception as error:  # noqa: BLE001 (an error of py4j: there is no session)
        cause = why(error)
        if "stopped SparkContext" in cause:  # that is all that Spark says when no master takes it
            cause = "no master accepted the application"
        raise NoSpark(f"--spark-master {master}: Spark does not start: {cause}") from None


def is_local(master: str) -> bool:
    """Whether Spark runs on this machine and sees its files."""
    return master.startswith("local")


def _java() -> Path:
    """The Java that Spark's script will run. If JAVA_HOME is set, the script looks nowhere else."""
    java = Path(find_java())
    home = os.environ.get("JAVA_HOME")
    if home and java != Path(home, "bin", "java"):
        del os.environ["JAVA_HOME"]
    return java


def sized(rows: int) -> dict[str, str]:
    """Settings for this number of rows. A short-lived JVM does not repay its optimizing
    compiler."""
    if rows > SMALL_ROWS:
        return {"spark.sql.shuffle.partitions": str(max(8, min(200, rows // 500_000)))}
    options = f"{_quiet()} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:MetaspaceSize=256m"
    plain = _INTERPRETED if rows < TINY_ROWS else {}
    return {_JAVA: options, **_ONE_PARTITION, **_SMALL_STEPS, **plain}


@contextmanager
def interpreted(spark: SparkSession) -> Iterator[None]:
    """In this context Spark interprets queries: there are many, each over few rows."""
    before = {key: spark.conf.get(key) or "" for key in _INTERPRETED}
    for key, value in _INTERPRETED.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)


def cores(spark: SparkSession) -> int:
    """The number of tasks that can run at the same time."""
    return int(spark.sparkContext.defaultParallelism)


def _driver(master: str) -> dict[str, str]:
    """Settings of the driver's JVM: no logging, and a quarter of the machine's memory."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    memory_mb = max(1024, min(total // 4 // 2**20, 16 * 1024))
    options = {_JAVA: _quiet(), "spark.driver.memory": f"{memory_mb}m"}
    if is_local(master):
        options["spark.sql.shuffle.partitions"] = str(4 * (os.cpu_count() or 1))
        options["spark.sql.sources.parallelPartitionDiscovery.threshold"] = "100000"
    return options


def _quiet() -> str:
    return f"-Dlog4j2.configurationFile={_QUIET.as_uri()}"
