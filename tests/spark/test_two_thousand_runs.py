"""Two thousand runs, killed half-way and gone on with: the same data set, the same tables."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Sequence
from filecmp import cmpfiles
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from emulator.analysis.aggregations import aggregations
from emulator.analysis.dataset import pieces
from tests.spark.test_standalone import ISR, ROOT

pytestmark = [pytest.mark.spark, pytest.mark.soak]

SCENARIO = """\
about: A follower stands still for two seconds while records come.
topics: {orders: {partitions: [[1, 2, 3]]}}
workload: [{produce: orders, rate: 5, acks: all, until: 4s}]
faults: [{at: 1s, pause: {broker: 2}, for: 2s}]
run: 5s
"""
SWEEP = (
    *("sweep", "pause.yaml", "--seeds", "500", "--profile", "2.6,2.7"),
    *("--set", "replica.lag.time.max.ms=1000,4000"),
)


def isr(words: Sequence[str], cwd: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([*ISR, *words], cwd=cwd, env=environment, check=True)


def files(base: Path) -> list[str]:
    """The files of a data set."""
    return sorted(str(file.relative_to(base)) for file in pieces(base))


def half_way(line: str) -> bool:
    """`1,020 of 2,000 runs, ...`."""
    told = re.match(r"([\d,]+) of ([\d,]+) runs", line)
    return told is not None and 2 * number(told[1]) >= number(told[2])


def number(text: str) -> int:
    return int(text.replace(",", ""))


def kill_half_way(words: Sequence[str], cwd: Path) -> None:
    """The driver's Python: no line of ours runs after that."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [*ISR, *words], cwd=cwd, env=environment, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    while not half_way(process.stderr.readline()):
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.stderr.read()  # until nobody has it open: its JVM has ended too
    process.stderr.close()
    assert process.wait() == -signal.SIGKILL


def test_killed_half_way_and_resumed_the_tables_are_the_same(tmp_path: Path) -> None:
    (tmp_path / "pause.yaml").write_text(SCENARIO)
    isr([*SWEEP, "--out", "whole"], tmp_path)
    kill_half_way([*SWEEP, "--out", "killed"], tmp_path)
    done = len(list((tmp_path / "killed" / "runs").glob("batch-*.parquet")))
    assert done < len(list((tmp_path / "whole" / "runs").glob("batch-*.parquet"))) <= 2 * done
    isr([*SWEEP, "--out", "killed", "--resume"], tmp_path)
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    names = files(whole)
    assert files(killed) == names
    # Byte for byte, a file at a time: all rows of both took 3.5 GB of this process, beside a JVM.
    equal, *others = cmpfiles(whole, killed, names, shallow=False)
    assert others == [[], []]
    assert len(equal) == len(names) > 2000
    for name in ("whole", "killed"):
        isr(["analyze", name, "--out", f"of-{name}"], tmp_path)
    rows = 0
    for name in aggregations():
        one, other = (
            pq.read_table(tmp_path / of / "tables" / f"{name}.parquet")
            for of in ("of-whole", "of-killed")
        )
        assert one.equals(other), name
        rows += one.num_rows
    assert rows > 100
