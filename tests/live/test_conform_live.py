"""Recordings of real brokers matched live: a real ZooKeeper server, requests taken on the wire."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from emulator import cli

pytestmark = pytest.mark.live

RECORDINGS = Path(__file__).resolve().parents[1] / "recordings"
PLAYS = 5
"""At most; what is matched is not played again. A play takes as long as the recording did."""


def matched(recording: str, written: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The verdict of `isr conform`."""
    options = ("--zookeeper", "embedded", "--seeds", str(PLAYS), "--write", str(written), "--json")
    code = cli.execute(["conform", str(RECORDINGS / recording), *options])
    told = capsys.readouterr()
    assert code == 0, told.out + told.err
    verdict: dict[str, Any] = json.loads(told.out)
    assert verdict["matched"]
    return verdict


@pytest.mark.slow
def test_one_follower_paused_and_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    verdict = matched("kafka-2.6.3/shrink-expand", tmp_path, capsys)
    assert verdict["points"] == dict.fromkeys("1234567", True)
    facts = next(tmp_path.glob("*/*/recording.jsonl")).read_text().splitlines()
    requests = [one for one in map(json.loads, facts) if one["kind"] == "zookeeper_request"]
    assert {"connect", "multi", "setData", "getChildren2"} <= {one["op"] for one in requests}


OTHERS = [
    "kafka-2.6.3/shrink-expand-many",
    "kafka-2.6.3/high-watermark",
    "kafka-2.6.3/leader-crash",
    "kafka-2.6.3/controlled-shutdown",
    "kafka-2.6.3/controller-shutdown",
    "kafka-2.7.2/shrink-expand",
    "kafka-2.7.2/leader-crash",
    "kafka-2.7.2/controller-paused",
]


@pytest.mark.soak
@pytest.mark.parametrize("recording", OTHERS)
def test_the_others(recording: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    matched(recording, tmp_path, capsys)
