"""`isr describe RUN --at TIME` as a user meets it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from emulator import cli
from tests.command import Isr

SCENARIO = """\
about: a follower stands still, then another dies
cluster:
  first: 3
  config: {replica.lag.time.max.ms: 1000, replica.fetch.backoff.ms: 200, num.replica.fetchers: 2}
topics:
  orders: {partitions: [[1, 2, 3], [1, 2, 3]], config: {min.insync.replicas: 2}}
workload: [{produce: orders, rate: 5, from: 1s}]
faults:
  - {at: 2s, pause: {broker: 2}, for: 3s}
  - {at: 10s, kill: {broker: 2}}
run: 13s
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("described")
    (folder / "tried.yaml").write_text(SCENARIO)
    options = ("--zookeeper", "simulated", "--seed", "5", "--quiet", "--out", str(folder / "runs"))
    assert cli.execute(["run", str(folder / "tried.yaml"), *options]) == 0
    return (folder / "runs" / "latest").resolve()


@pytest.fixture
def isr(isr: Isr, monkeypatch: pytest.MonkeyPatch) -> Isr:
    monkeypatch.setenv("COLUMNS", "100")
    return isr


def described(isr: Isr, run: Path, *options: str) -> dict[str, Any]:
    code, out, _ = isr("describe", run, *options, "--json")
    assert code == 0
    found: dict[str, Any] = json.loads(out)
    return found


def row(text: str, name: str) -> list[str]:
    """The words of the line that begins so."""
    return next(line.split() for line in text.splitlines() if line.strip().startswith(name))


def test_it_reads_like_kafka_topics_and_marks_who_has_it_otherwise(isr: Isr, run: Path) -> None:
    code, out, _ = isr("describe", run, "--at", "4.5s", "--partition", "orders-0")
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "4.500 s  brokers 1, 2 (paused), 3"
    assert lines[1] == "controller: broker 3 in ZooKeeper, epoch 1"
    assert lines[3] == (
        "Topic: orders  PartitionCount: 2  ReplicationFactor: 3  Configs: min.insync.replicas=2"
    )
    assert lines[4] == (
        "  Topic: orders  Partition: 0  Leader: 1  Replicas: 1,2,3  Isr: 1,3  Osr: 2  ≠"
    )
    assert row(out, "ZooKeeper") == ["ZooKeeper", "1", "0", "1", "1", "1,2,3", "1,3", "2"]
    assert row(out, "leader 1")[2:] == ["1", "0", "1", "1", "1,2,3", "1,3", "2"]
    for stale in ("controller 3", "metadata 1", "metadata 2", "metadata 3"):
        assert row(out, stale)[2:] == (["1", "0", "1", "0", "≠", "1,2,3", "1,2,3", "≠", "-", "≠"])
    assert row(out, "2    ")[1:6] == ["follows", "1,", "epoch", "0", "(paused)"]
    assert "Partition: 1" not in out


def test_json_has_every_view_and_what_differs(isr: Isr, run: Path) -> None:
    found = described(isr, run, "--at", "4500ms")
    assert (found["scenario"], found["seed"], found["at_ms"]) == ("tried", 5, 4500)
    assert (found["controller"], found["controller_epoch"]) == (3, 1)
    first, second = found["partitions"]
    assert (first["partition"], first["agrees"]) == ("orders-0", False)
    views = {(view["of"], view["broker"]): view for view in first["views"]}
    assert views["ZooKeeper", None]["isr"] == [1, 3]
    assert views["ZooKeeper", None]["differs"] == []
    assert views["metadata", 3]["differs"] == ["zk_version", "isr", "osr"]
    assert views["leader", 1]["differs"] == []
    replicas = {one["broker"]: one for one in first["replicas"]}
    assert replicas[2]["process"] == "paused"
    assert replicas[2]["leo"] < replicas[1]["leo"]
    assert replicas[2]["leader_sees_leo"] == replicas[2]["leo"]
    assert replicas[2]["differs"] == ["hw"]
    assert replicas[1]["leader_sees_leo"] is None
    assert second["partition"] == "orders-1"


def test_without_a_time_it_is_the_end_and_the_dead_are_named(isr: Isr, run: Path) -> None:
    found = described(isr, run)
    states = {one["broker"]: one for one in found["brokers"]}
    assert states[2]["process"] == "dead"
    assert states[2]["broker_epoch"] is not None
    assert found["at_ms"] == 13_000
    _, out, _ = isr("describe", run)
    assert "brokers 1, 2 (dead, still registered), 3" in out
    assert "(dead)" in " ".join(row(out, "2    "))
    assert not any(line.strip().startswith("metadata 2") for line in out.splitlines())


def test_before_anything_is_there_it_says_so(isr: Isr, run: Path) -> None:
    code, out, _ = isr("describe", run, "--at", "-0.1s")
    assert code == 0
    assert "brokers 1, 2 (starting), 3" in out
    assert "Topic:" not in out


def test_fetchers_shows_the_partitions_of_each_thread(isr: Isr, run: Path) -> None:
    _, out, _ = isr("describe", run, "--at", "1.9s", "--fetchers")
    threads = {
        (one["broker"], one["thread"]): [part["partition"] for part in one["partitions"]]
        for one in described(isr, run, "--at", "1.9s")["fetchers"]
    }
    assert sorted(broker for broker, _ in threads) == [2, 2, 3, 3]
    assert sorted(
        threads[2, "ReplicaFetcherThread-0-1"] + threads[2, "ReplicaFetcherThread-1-1"]
    ) == [
        "orders-0",
        "orders-1",
    ]
    assert "broker 1: 0 fetcher threads" in out
    assert "broker 2: 2 fetcher threads" in out
    assert "broker 3: 2 fetcher threads" in out
    assert "orders-0 from offset" in out
    assert "Topic:" not in out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--at", "soon"), "'soon' is not a time: write 12.5s"),
        (("--at", "100s"), "--at 100s: the run goes from -"),
        (("--partition", "orders-9"), "orders-9: no such partition in this run; it has orders-0"),
    ],
)
def test_a_mistake_is_one_line_and_64(
    isr: Isr, run: Path, options: tuple[str, ...], said: str
) -> None:
    code, out, err = isr("describe", run, *options)
    assert (code, out, err.count("\n")) == (64, "", 1)
    assert said in err


LARGE_IDS = """\
cluster: {brokers: [101, 102, 103]}
topics: {orders: {partitions: [[101, 102, 103]]}}
run: 1s
"""


def test_ids_of_three_digits_have_room_at_80_columns(
    isr: Isr, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Lanes keep their ids apart, and the table cuts nothing off."""
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "large.yaml").write_text(LARGE_IDS)
    options = ("--zookeeper", "simulated", "--seed", "5", "--out", tmp_path)
    code, lanes, _ = isr("run", tmp_path / "large.yaml", *options)
    assert code == 0
    assert any(" 101 102 103 " in line for line in lanes.splitlines()[:3])
    code, table, _ = isr("describe", tmp_path / "latest")
    assert code == 0
    assert "…" not in table
    assert max(map(len, table.splitlines())) <= 80
