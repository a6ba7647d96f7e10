"""`--parquet DIR`: what the trace has is in a data set too, from every command that plays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from emulator import cli
from emulator.analysis.dataset import key_of, open_dataset, pieces
from emulator.trace.reader import read_events

SCENARIO = "topics: {orders: {partitions: [[1, 2, 3]]}}\nrun: 3s\n"


def rows(base: Path, part: str = "events") -> list[dict[str, Any]]:
    tables = [pq.read_table(piece, partitioning=None) for piece in pieces(base / part)]
    return [row for table in tables for row in table.to_pylist()]


def test_a_run_is_in_its_directory_and_in_the_data_set(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("small.yaml").write_text(SCENARIO)
    words = ["run", "small.yaml", "--zookeeper", "simulated", "--seed", "7", "--quiet"]
    assert cli.execute([*words, "--set", "num.io.threads=2", "--parquet", "data"]) == 0
    (directory,) = Path("runs/small").iterdir()
    traced = [(event.seq, event.kind) for event in read_events(directory / "trace.ndjson")]
    assert sorted((row["seq"], row["kind"]) for row in rows(Path("data"))) == traced
    key = key_of(Path("data"), open_dataset(Path("data")).events[0])
    assert key == ("small", "2.6", "zk", directory.name)
    began = next(row for row in rows(Path("data"), "runs") if row["kind"] == "run_began")
    assert began["setting"] == "num.io.threads=2"
    assert began["replay"] == (
        "isr run small.yaml --seed 0x7 --zookeeper simulated --set num.io.threads=2"
    )


def test_two_runs_that_are_compared_are_not_kept_as_one(capsys: Any) -> None:
    assert cli.execute(["run", "min-isr", "--check", "--parquet", "data"]) == 64
    assert "leave out --parquet" in capsys.readouterr().err


def test_random_worlds_are_kept_by_their_seed(tmp_path: Path) -> None:
    words = ["fuzz", "--seed", "0x12", "--runs", "2", "--jobs", "2", "--parquet", str(tmp_path)]
    assert cli.execute(words) == 0
    found = open_dataset(tmp_path)
    assert {key_of(tmp_path, piece).run for piece in found.events} == {"0x12", "0x13"}
    ended = [row for row in rows(tmp_path, "runs") if row["kind"] == "run_ended"]
    assert {row["verdict"] for row in ended} == {"held"}


def test_every_play_of_a_comparison_is_kept_by_its_side_and_seed(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("small.yaml").write_text(SCENARIO)
    words = ["compare", "small.yaml", "--seed", "0x12", "--seeds", "2", "--quiet"]
    assert cli.execute([*words, "--parquet", "data"]) == 0
    base = Path("data")
    assert {key_of(base, piece) for piece in open_dataset(base).events} == {
        ("small", "2.7", path, f"{path}-{seed}")
        for path in ("zk", "rpc")
        for seed in ("0x12", "0x13")
    }
    replays = {row["run"]: row["replay"] for row in rows(base, "runs") if row["replay"]}
    assert replays["rpc-0x13"] == (
        "isr run small.yaml --seed 0x13 --zookeeper simulated --profile 2.7 --propagation rpc"
    )
    (first,) = Path("runs/small-compare-rpc").iterdir()
    traced = [(event.seq, event.kind) for event in read_events(first / "trace.ndjson")]
    of_first = [p for p in open_dataset(base).events if key_of(base, p).run == "rpc-0x12"]
    found = [row for p in of_first for row in pq.read_table(p, partitioning=None).to_pylist()]
    assert sorted((row["seq"], row["kind"]) for row in found) == traced
