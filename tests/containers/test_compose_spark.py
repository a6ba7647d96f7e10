"""The profile `spark` of docker-compose.yml: a sweep in the lab, played by a worker's executor."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.containers.conftest import OF_PROJECT, PORTS, Compose, eventually, left_by

pytestmark = pytest.mark.containers

MASTER = "spark://spark-master:7077"
SEEDS = 3


@pytest.fixture(scope="module")
def spark() -> Iterator[Compose]:
    """The master and one of the two workers, which are alike; no brokers: a sweep needs none."""
    compose = Compose("--profile", "spark", "--profile", "lab")
    try:
        compose("up", "-d", "--no-build", "spark-worker-1")
        yield compose
    finally:
        compose("down", "--volumes", "--remove-orphans", "--timeout", "2")
        compose.engine.close()
    assert left_by(OF_PROJECT) == []


def _registered() -> list[dict[str, Any]]:
    """The master's workers, as its page has them. OSError when it does not answer."""
    with urllib.request.urlopen(f"http://127.0.0.1:{PORTS['SPARK_PORT']}/json/", timeout=5) as page:
        workers: list[dict[str, Any]] = json.load(page)["workers"]
    return [one for one in workers if one["state"] == "ALIVE"]


def test_a_sweep_in_the_lab_is_played_on_the_worker(spark: Compose) -> None:
    eventually(lambda: len(_registered()) == 1)
    words = ("isr", "sweep", "shrink-and-expand", "--seeds", str(SEEDS), "--out", "/runs/data")
    told = spark("run", "--rm", "-T", "spark-lab", *words, "--spark-master", MASTER, "--json")
    assert json.loads(told)["runs"] == SEEDS
    ran = spark.container("spark-worker-1").exec_run("find /tmp/spark -name stderr")
    assert b"/app-" in ran.output, ran
