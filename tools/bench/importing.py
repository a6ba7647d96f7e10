"""A large log of a stranger's cluster, imported: processor time, and memory.

The log is made up in Kafka 2.6's own words: partitions leave and join ISRs over days, controllers
send metadata, and half of all lines are of loggers that tell nothing of replication, as in a real
server.log. Each import is a process of its own, so that its memory is its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.bench.figures import Figure

MB = 1_000_000
GROWTH = 4
"""How much longer the longer of two logs is."""
LEAST_MB_PER_S = 1000 / 180
"""1 GB in 3 minutes."""
BROKERS, PARTITIONS, STATES = 3, 200, 20
_BEGAN = datetime(2026, 11, 20, tzinfo=UTC)
_ROUND = timedelta(milliseconds=1700)


def write_logs(folder: Path, size: int) -> int:
    """Logs of three brokers, of this many bytes in all or a little more; returns how many."""
    files = {
        (broker, kind): (folder / f"broker-{broker}" / f"{kind}.log")
        for broker in range(1, BROKERS + 1)
        for kind in ("server", "state-change")
    }
    for path in files.values():
        path.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    streams = {key: path.open("w") for key, path in files.items()}
    try:
        for number in range(1 << 40):
            if written >= size:
                break
            for broker, kind, at, text in _round(number):
                line = f"[{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03}] {text}\n"
                written += streams[broker, kind].write(line)
    finally:
        for stream in streams.values():
            stream.close()
    return written


def _round(number: int) -> Iterator[tuple[int, str, datetime, str]]:
    """A follower leaves an ISR and joins again; everybody is sent metadata of some partitions."""
    at, partition = _BEGAN + number * _ROUND, number % PARTITIONS
    leader, out = 1 + partition % BROKERS, 1 + (partition + 1) % BROKERS
    stays = [one for one in range(1, BROKERS + 1) if one != out]
    version = 2 * (number // PARTITIONS)
    small, whole = (",".join(map(str, isr)) for isr in (stays, [*stays, out]))
    head = f"INFO [Partition t-{partition} broker={leader}]"
    decision = (
        f"Shrinking ISR from {whole} to {small}. Leader: (highWatermark: {number}, endOffset:"
        f" {number + 9}). Out of sync replicas: (brokerId: {out}, endOffset: {number})."
    )
    for text in (
        decision,
        f"ISR updated to [{small}] and zkVersion updated to [{version + 1}]",
        f"Expanding ISR from {small} to {whole}",
        f"ISR updated to [{whole}] and zkVersion updated to [{version + 2}]",
    ):
        at += timedelta(milliseconds=200)
        yield leader, "server", at, f"{head} {text} (kafka.cluster.Partition)"
    for broker in range(1, BROKERS + 1):
        for place in range(STATES):
            name = (partition - place) % PARTITIONS
            yield broker, "state-change", at, _cached(broker, name, number, place)
        end = (
            f"INFO [Broker id={broker}] Add {STATES} partitions and deleted 0 partitions from"
            f" metadata cache in response to UpdateMetadata request sent by controller 1 epoch 1"
            f" with correlation id {number} (state.change.logger)"
        )
        yield broker, "state-change", at, end
        for place in range(2 * STATES):
            other = (
                f"INFO [Log partition=t-{place}, dir=/var/lib/kafka] Rolled new log segment"
                f" at offset {number * 1000 + place} in {place} ms, after {place} others of it,"
                " of which the log cleaner has seen none since it began (kafka.log.Log)"
            )
            yield broker, "server", at, other


def _cached(broker: int, partition: int, number: int, place: int) -> str:
    version = max(0, 2 * ((number - place) // PARTITIONS) + 2)
    leader = 1 + partition % BROKERS
    return (
        f"TRACE [Broker id={broker}] Cached leader info UpdateMetadataPartitionState(topicName='t',"
        f" partitionIndex={partition}, controllerEpoch=1, leader={leader}, leaderEpoch=0,"
        f" isr=[1, 2, 3], zkVersion={version}, replicas=[1, 2, 3], offlineReplicas=[]) for"
        f" partition t-{partition} in response to UpdateMetadata request sent by controller 1 epoch"
        f" 1 with correlation id {number} (state.change.logger)"
    )


def import_figures(size: int = 100 * MB) -> list[Figure]:
    """Speed at one size; how memory grows with four times as long a log."""
    with TemporaryDirectory(prefix="isr-bench-") as scratch:
        short, long = (_import(Path(scratch) / str(n), n) for n in (size // GROWTH, size))
    written, cpu_s, memory = long
    return [
        Figure(
            what="isr import: processor time",
            value=written / MB / cpu_s,
            unit="MB/s",
            scope=f"{written / MB:,.0f} MB of {BROKERS} brokers, {PARTITIONS} partitions:"
            f" {cpu_s:.0f} s of one processor",
            reference="1 GB in 3 minutes",
            of=LEAST_MB_PER_S,
            least=1,
        ),
        Figure(
            what="isr import: memory",
            value=memory / MB,
            unit="MB",
            scope=f"the most that it had at once, {written / MB:,.0f} MB of logs",
            reference=f"MB with a {GROWTH}th of the logs",
            of=short[2] / MB,
        ),
    ]


def _import(folder: Path, size: int) -> tuple[int, float, int]:
    """Bytes of logs, seconds of processor time, bytes of memory."""
    written = write_logs(folder / "logs", size)
    command = [sys.executable, "-c", "from emulator.cli import main; main()", "import"]
    with subprocess.Popen(
        [*command, str(folder / "logs"), "--out", str(folder / "runs"), "--json"],
        stdout=subprocess.DEVNULL,
    ) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, f"isr import ended with {process.returncode}"
    return written, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024
