"""One Spark session: how it is started, and what is said when it cannot be.

Owns Spark's settings (those that the work needs, quiet output, the interpreter that the executors
run) and the two ways in which there is no Spark: no Java, a master that does not answer. It must
not know what is computed.
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
"""Of few rows: compiling a query takes longer than it runs. What is common to expressions would be
kept in a cache that is made empty for every row: a third of an aggregation's time."""
_SMALL_STEPS = {
    "spark.buffer.pageSize": "1m",
    "spark.sql.parquet.columnarReaderBatchSize": "1024",
}
"""Every hash table and every sort begins with a page (Spark's own are of 64 MB), every file with
room for a batch of each column."""
_ONE_PARTITION = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "1"}
"""What tables begin with is small (`derived.shared`): it is shuffled once and never again."""
_STREAM_REQUEST, _NAME = 6, b"/files/isr"
_QUESTION = struct.pack(
    f">qbi{len(_NAME)}s", 8 + 1 + 4 + len(_NAME), _STREAM_REQUEST, len(_NAME), _NAME
)
"""For a file that no Spark master has: the cheapest of its messages that is answered."""
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
    "spark.sql.parquet.pushdown.inFilterThreshold": "50",
    "spark.python.worker.reuse": "true",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.dataFrameQueryContext.enabled": "false",
    "spark.sql.ui.explainMode": "simple",
}
"""A shuffle of little data is one task; many small files make few, one big file many. Rows that are
kept are by kind: a batch of them is of few kinds, who wants others passes it by."""


def check_master(master: str) -> None:
    """Said before anything is started. NoSpark."""
    if not _MASTER.fullmatch(master):
        raise NoSpark(
            f"--spark-master {master}: local[N], local[*], spark://HOST:PORT, yarn or k8s://..."
        )
    try:
        find_java()
    except JavaNotFound as error:
        raise NoSpark(f"Spark needs Java. {error}") from None
    if master.startswith("spark://"):
        _require_answer(master)


def _require_answer(master: str) -> None:
    """One of several masters is enough. Spark itself would try for a minute and more."""
    silence = ""
    for server in master.removeprefix("spark://").split(","):
        host, _, port = server.rpartition(":")
        silence = _silence(host, int(port))
        if not silence:
            return
    raise NoSpark(f"--spark-master {master}: the master does not answer: {silence}")


def _silence(host: str, port: int) -> str:
    """Why there is no answer; none if there is any at all, even a closed connection: a master that
    wants TLS does not understand the question, and Spark may have been told so."""
    try:
        with socket.create_connection((host, port), timeout=ANSWER_S) as peer:
            peer.sendall(_QUESTION)
            peer.recv(1)
    except TimeoutError:
        return f"nothing is heard of it for {ANSWER_S:.0f} s"
    except (ConnectionResetError, BrokenPipeError):
        return ""
    except OSError as error:
        return error.strerror or str(error)
    return ""


def start(
    master: str = LOCAL, settings: Mapping[str, str] | None = None, *, remember: bool = False
) -> SparkSession:
    """The session; `settings` are Spark's own and win. `remember`: what this JVM loads, for those
    that come later. NoSpark."""
    check_master(master)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if is_local(master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    wanted = {**_SETTINGS, **_driver(master), **(settings or {})}
    wanted[_JAVA] += " " + jvm_archive.options(_java(), write=remember)
    builder = SparkSession.builder.master(master).appName("isr")
    for key, value in wanted.items():
        builder = builder.config(key, value)
    logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL)
    try:
        return builder.getOrCreate()
    except PySparkException as error:
        raise NoSpark(f"--spark-master {master}: {why(error)}") from None
    except Exception as error:  # noqa: BLE001 (py4j's; whatever it is, there is no session)
        raise NoSpark(f"--spark-master {master}: Spark does not start: {_started(error)}") from None


def is_local(master: str) -> bool:
    """All of Spark runs here, and sees what lies here."""
    return master.startswith("local")


def _java() -> Path:
    """The one that Spark's script will run. Where JAVA_HOME is set it looks nowhere else."""
    java = Path(find_java())
    home = os.environ.get("JAVA_HOME")
    if home and java != Path(home, "bin", "java"):
        del os.environ["JAVA_HOME"]
    return java


def sized(rows: int) -> dict[str, str]:
    """Settings for so many rows: a JVM for little is not worth its best compiler."""
    if rows > SMALL_ROWS:
        return {"spark.sql.shuffle.partitions": str(max(8, min(200, rows // 500_000)))}
    options = f"{_quiet()} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:MetaspaceSize=256m"
    plain = _INTERPRETED if rows < TINY_ROWS else {}
    return {_JAVA: options, **_ONE_PARTITION, **_SMALL_STEPS, **plain}


@contextmanager
def interpreted(spark: SparkSession) -> Iterator[None]:
    """Meanwhile queries are not compiled: there are many, each of few rows."""
    before = {key: spark.conf.get(key) or "" for key in _INTERPRETED}
    for key, value in _INTERPRETED.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)


def cores(spark: SparkSession) -> int:
    """How many tasks may run at once."""
    return int(spark.sparkContext.defaultParallelism)


def _driver(master: str) -> dict[str, str]:
    """The driver's JVM: quiet, and with a quarter of the machine's memory."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    memory_mb = max(1024, min(total // 4 // 2**20, 16 * 1024))
    found = {_JAVA: _quiet(), "spark.driver.memory": f"{memory_mb}m"}
    if is_local(master):
        found["spark.sql.shuffle.partitions"] = str(4 * (os.cpu_count() or 1))
        found["spark.sql.sources.parallelPartitionDiscovery.threshold"] = "100000"
    return found


def _quiet() -> str:
    return f"-Dlog4j2.configurationFile={_QUIET.as_uri()}"


def _started(error: BaseException) -> str:
    """Spark gives up on its masters behind our back: all that we see is that it has stopped."""
    found = why(error)
    return "no master has taken it" if "stopped SparkContext" in found else found
