"""A sweep on a real standalone master with a worker, as processes of this machine; and Ctrl-C."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyspark
import pytest

from emulator.analysis.dataset import open_dataset
from emulator.analysis.sweep.batch import play_batch
from emulator.analysis.sweep.grid import Grid, batches, grid_of, points
from tests.spark.test_sweep import SCENARIO, contents

pytestmark = [pytest.mark.spark, pytest.mark.soak]

ROOT = Path(__file__).resolve().parents[2]
HOME = Path(pyspark.__file__).parent
ISR = [sys.executable, "-c", "from emulator.cli import main; main()"]


def spark_class(name: str, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [HOME / "bin" / "spark-class", f"org.apache.spark.deploy.{name}", *words],
        env={**os.environ, "SPARK_HOME": str(HOME), "PYSPARK_PYTHON": sys.executable},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )


def read_until(process: subprocess.Popen[str], said: str) -> str:
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.search(said, line):
            return found[0]
    raise AssertionError(f"it ended without saying {said}")


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """A master, and a worker of two cores that is registered with it."""
    with ExitStack() as ends, socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
        free.close()
        ui = ("--host", "127.0.0.1", "--webui-port", "0")
        started = spark_class("master.Master", *ui, "--port", str(port))
        ends.enter_context(started)
        ends.callback(started.kill)
        read_until(started, "I have been elected leader")
        url = f"spark://127.0.0.1:{port}"
        worker = spark_class("worker.Worker", *ui, "-c", "2", "-d", str(tmp_path / "w"), url)
        ends.enter_context(worker)
        ends.callback(worker.kill)
        read_until(worker, "Successfully registered with master")
        yield url


def expected(base: Path) -> Grid:
    grid = grid_of(Path("small.yaml"), SCENARIO, points([], (), (), ()), 1, 40)
    for batch in batches(grid):
        play_batch(grid, base, batch)
    return grid


def test_a_standalone_master_gives_the_same_rows(master: str, tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(SCENARIO)
    expected(tmp_path / "expected")
    conf = ["--spark-conf", "spark.driver.host=127.0.0.1", "--spark-conf", "spark.speculation=true"]
    words = ["sweep", "small.yaml", "--seeds", "40", "--out", "data", "--spark-master", master]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"}
    subprocess.run([*ISR, *words, *conf], cwd=tmp_path, check=True, env=environment, timeout=600)
    assert contents(tmp_path / "data") == contents(tmp_path / "expected")


def test_ctrl_c_keeps_what_is_complete_and_resume_plays_the_rest(tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(SCENARIO)
    expected(tmp_path / "expected")
    words = ["sweep", "small.yaml", "--seeds", "40", "--out", "data", "--spark-master", "local[1]"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [*ISR, *words], cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
    )
    read_until(process, r"[1-9]\d* of 40 runs")
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert "interrupted; continue with --resume" in process.stderr.read()
    process.stderr.close()
    assert process.wait() == 130
    assert 0 < len(open_dataset(tmp_path / "data", skip_bad=True).runs) < 4
    again = [*ISR, *words, "--resume"]
    subprocess.run(again, cwd=tmp_path, env=environment, check=True, timeout=600)
    assert contents(tmp_path / "data") == contents(tmp_path / "expected")
