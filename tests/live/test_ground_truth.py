"""The brokers' writes in their trace, compared with the ZooKeeper server's own log.

The trace contains the requests at the tap and the brokers' results; the other side is the server's
own file. Both are read from the data set.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from emulator.analysis.dataset import pieces
from tests.command import Isr

SCENARIO = """\
cluster:
  first: 3
  # A follower whose first fetch is refused waits for a back-off, which the limit allows.
  config:
    replica.lag.time.max.ms: 1000
    replica.fetch.backoff.ms: 200
    zookeeper.session.timeout.ms: 4000
topics: {orders: {partitions: [[1, 2, 3], [2, 3, 1]]}}
workload: [{produce: orders, rate: 20, acks: 1, from: 1s, until: 12s}]
faults:
  - {at: 2s, pause: {broker: 2}, for: 3s}
  - {at: 4s, kill: {broker: 1}, for: 7s}
  - {at: 6s, cut_zookeeper_link: {broker: 3}, for: 1s}
run: 14s
"""
WRITES = ("create", "setData", "delete")
Row = dict[str, Any]
Write = tuple[int, str, str]
"""Broker, what it did, where."""


def write(broker: int, op: Row) -> Iterator[Write]:
    name = op["op"].removeprefix("multi/")
    if name in WRITES:
        yield broker, name, re.sub(r"\d{10}$", "", op["path"])  # the number is the server's


def parts(row: Row) -> list[Row]:
    """The operations of a multi; a file lacks columns that no row of it needs."""
    return row.get("zk_transaction_ops") or row.get("ops") or [row]


def logged(rows: Iterable[Row]) -> Counter[Write]:
    """The transactions that the server applied in brokers' sessions."""
    found = [row for row in rows if row["kind"] == "zk_logged" and row["broker"]]
    applied = [(row, parts(row)) for row in found]
    return Counter(
        one
        for row, ops in applied
        if not any(op["op"] == "error" or op.get("code") for op in ops)
        for op in ops
        for one in write(row["broker"], op)
    )


def answered(rows: Iterable[Row]) -> Counter[Write]:
    """The writes that brokers know to be done."""
    replies = [row for row in rows if row["kind"] == "zk_reply" and row["code"] == 0]
    return Counter(one for row in replies for one in write(row["broker"], row))


def sent(rows: Iterable[Row]) -> Counter[Write]:
    """The writes that brokers sent, as they passed on the wire."""
    requests = [row for row in rows if row["kind"] == "zk_request"]
    each = [(row["broker"], op) for row in requests for op in parts(row)]
    return Counter(one for broker, op in each for one in write(broker, op))


def apart(rows: list[Row]) -> tuple[Counter[Write], Counter[Write]]:
    """Writes that are in the trace alone, and those in the log alone."""
    return answered(rows) - logged(rows), logged(rows) - sent(rows)


NONE: tuple[Counter[Write], Counter[Write]] = Counter(), Counter()


def without(rows: list[Row], kind: str, what: Write) -> list[Row]:
    """One transaction, or one request, is missing."""

    def has(row: Row) -> bool:
        return row["kind"] == kind and any(what in write(row["broker"], op) for op in parts(row))

    first = next(number for number, row in enumerate(rows) if has(row))
    return [*rows[:first], *rows[first + 1 :]]


@pytest.mark.live
@pytest.mark.slow
def test_every_traced_write_is_in_the_servers_log_and_the_other_way_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One broker is paused, one is killed, one is cut off from the server for a while."""
    monkeypatch.chdir(tmp_path)
    Path("faults.yaml").write_text(SCENARIO)
    isr = Isr(capsys)
    code, _, err = isr("run", "faults.yaml", "--time-scale", "2", "--parquet", "data", "--quiet")
    assert code in (0, 2), err
    assert isr("zookeeper", "log", "latest", "--parquet", "data")[0] == 0
    files = pieces(Path("data/events"))
    rows = [row for file in files for row in pq.read_table(file, partitioning=None).to_pylist()]
    assert apart(rows) == NONE
    in_log, on_the_wire, done = logged(rows), sent(rows), answered(rows)
    one = next(w for w in in_log if in_log[w] == on_the_wire[w] == done[w])
    assert apart(without(rows, "zk_logged", one)) == (Counter([one]), Counter())
    assert apart(without(rows, "zk_request", one)) == (Counter(), Counter([one]))
