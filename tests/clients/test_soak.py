"""`isr soak`: what holds holds, and a bug in a broker is seen from outside, within ten minutes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.clients import plants

pytestmark = [pytest.mark.live, pytest.mark.soak]
COMMAND = [sys.executable, "-c", "from emulator.cli import main; main()", "soak"]
TEN_MINUTES_S = 600
GONE = {"lost", "read, later gone", "gap"}


def soak(
    folder: Path, *words: str, environment: Mapping[str, str] | None = None
) -> tuple[int, dict]:
    """Its exit code, and what it prints as JSON."""
    done = subprocess.run(
        [*COMMAND, *words, "--json", "--quiet", "--out", str(folder / "runs")],
        env=environment,
        cwd=plants.ROOT,
        capture_output=True,
        timeout=TEN_MINUTES_S,
        check=False,
    )
    assert done.stdout, done.stderr.decode()
    return done.returncode, json.loads(done.stdout)


@pytest.mark.parametrize("words", [["--profile", "2.6"], ["--profile", "2.6", "--upgrade", "2.7"]])
def test_nothing_acknowledged_is_lost_and_nothing_is_there_twice(
    words: list[str], tmp_path: Path
) -> None:
    code, result = soak(tmp_path, "--minutes", "4", "--seed", "1", *words)
    assert result["history"]["findings"] == []
    assert (result["problems"], code in (0, 2)) == ([], True)
    assert result["history"]["acknowledged"] > 1000


def kinds_found(result: dict, capsys: pytest.CaptureFixture[str]) -> set[str]:
    """The kinds of contradictions in the clients' history; prints how long the first one took."""
    findings = result["history"]["findings"]
    if findings:
        seen_s = min(finding["to_us"] for finding in findings) / 1e6
        with capsys.disabled():
            print(f"\nafter {seen_s:.0f} s: {dict(Counter(one['kind'] for one in findings))}")
    return {finding["kind"] for finding in findings}


@pytest.mark.parametrize(
    ("bug", "contradictions"),
    [
        (plants.idempotence_off, {"duplicated"}),
        (plants.reads_of_the_uncommitted, GONE),
        (plants.acknowledgements_at_once, GONE),
    ],
)
def test_a_planted_bug_is_seen_by_the_history_alone(
    bug: Callable[[], None],
    contradictions: set[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    environment = plants.planted(bug, tmp_path / "site")
    code, result = soak(tmp_path, "--minutes", "6", "--seed", "7", environment=environment)
    kinds = kinds_found(result, capsys)
    assert contradictions & kinds, (code, kinds, result["problems"])


@pytest.mark.parametrize("planted", [True, False])
@pytest.mark.parametrize(
    ("bug", "minutes", "faults"),
    [
        (plants.short_writes, 4, ["disk"]),
        (plants.isr_fence_off, 5, ["cut_link", "cut_zookeeper_link", "kill"]),
        (plants.leader_epoch_fence_off, 6, ["cut_zookeeper_link", "delay_link", "pause", "kill"]),
    ],
)
def test_a_bug_that_takes_several_faults_is_seen_by_the_history_alone(
    bug: Callable[[], None],
    minutes: int,
    faults: list[str],
    planted: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """And the same minutes without the bug show nothing."""
    environment = plants.planted(bug, tmp_path / "site") if planted else None
    words = ["--minutes", str(minutes), "--seed", "5", "--java", "none"]
    for fault in faults:
        words += ["--fault", fault]
    code, result = soak(tmp_path, *words, environment=environment)
    kinds = kinds_found(result, capsys)
    assert bool(GONE & kinds) == planted, (code, kinds, result["problems"])


@pytest.mark.parametrize(("bug", "is_lost"), [(None, False), (plants.nothing_synced, True)])
def test_records_that_nobody_synced_are_lost_where_machines_crash(
    bug: Callable[[], None] | None,
    is_lost: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """By the history alone."""
    environment = None if bug is None else plants.planted(bug, tmp_path / "site")
    words = ["--minutes", "3.5", "--seed", "7", "--java", "none", "--machines-crash"]
    _, result = soak(tmp_path, *words, "--fault", "kill", environment=environment)
    assert ("lost" in kinds_found(result, capsys)) == is_lost
