"""A day of one cluster of real Kafka 2.6.3, recorded in pieces: ten in which it keeps its promises,
whatever is done to it, and one with three failures. Only these are found, where they were."""

from __future__ import annotations

import datetime as dt
import re
import tarfile
from pathlib import Path

import pytest

from emulator.forensics.diagnoses.base import Diagnosed
from emulator.forensics.findings import find
from emulator.forensics.imported import Result, import_folders
from tests.unit.forensics.strangers import LOGS

DAY = LOGS / "day"
THREE = "kafka-2.6.3-three-hazards"
HEALTHY = sorted(
    path.name.removesuffix(".tar.xz") for path in DAY.glob("*.xz") if THREE not in path.name
)

# When each began and ended, as the recording has it: `isr record three-hazards.yaml` notes when a
# process ends, and reads ZooKeeper's own log for the states.
RECORDED_MS = {
    "KAFKA-2729": (1_795_446_658_945, 1_795_446_661_160),
    "missed deletion": (1_795_446_686_860, 1_795_446_699_187),
    "KAFKA-1555": (1_795_446_741_403, 1_795_446_751_473),
}
_TIME = re.compile(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3})\]", re.MULTILINE)


def unpacked(name: str, folder: Path) -> Path:
    with tarfile.open(DAY / f"{name}.tar.xz") as packed:
        packed.extractall(folder, filter="data")
    return folder


def imported(folder: Path, scratch: Path) -> Result:
    result = import_folders([folder], scratch / "runs")
    assert all(one.not_understood == {} for one in result.imported.brokers.values())
    return result


@pytest.mark.parametrize("name", HEALTHY)
def test_nothing_is_diagnosed_in_a_healthy_cluster(name: str, tmp_path: Path) -> None:
    result = imported(unpacked(name, tmp_path / "logs"), tmp_path)
    assert find(result.performed.events).diagnoses == []


def test_there_are_ten_healthy_recordings() -> None:
    assert len(HEALTHY) == 10


def moved(text: str, later: dt.timedelta) -> str:
    def at(match: re.Match[str]) -> str:
        time = dt.datetime.fromisoformat(f"{match[1]}.{match[2]}") + later
        return f"[{time:%Y-%m-%d %H:%M:%S},{time.microsecond // 1000:03}]"

    return _TIME.sub(at, text)


def a_day(folder: Path) -> tuple[Path, dt.timedelta]:
    """The recordings, two hours apart, in one set of files; the hazards at noon, and how much later
    than recorded that is."""
    parts = [*HEALTHY[:5], THREE, *HEALTHY[5:]]
    noon_later = dt.timedelta()
    for hour, name in enumerate(parts):
        logs = unpacked(name, folder / name)
        times = [
            match[1] for log in logs.rglob("*.log") for match in _TIME.finditer(log.read_text())
        ]
        begins = dt.datetime.fromisoformat(f"2026-11-23 {2 * hour:02}:00:00")
        later = begins - dt.datetime.fromisoformat(min(times))
        noon_later = later if name == THREE else noon_later
        for log in sorted(logs.rglob("*.log")):
            target = folder / "day" / log.relative_to(logs)
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("a") as file:
                file.write(moved(log.read_text(), later))
    return folder / "day", noon_later


@pytest.mark.slow
def test_three_hazards_of_a_day_are_found_with_beginning_and_end(tmp_path: Path) -> None:
    folder, later = a_day(tmp_path)
    result = imported(folder, tmp_path)
    assert len(result.imported.coverage.silences) == 10
    findings = find(result.performed.events, result.imported.coverage)
    assert sorted(case.name for case in findings.diagnoses) == sorted(RECORDED_MS)
    cases = {case.name: case for case in findings.diagnoses}
    later_ms = int(later.total_seconds() * 1000)
    for name, (from_ms, to_ms) in RECORDED_MS.items():
        began, ended = in_ms(cases[name], result.imported.began_ms)
        assert abs(began - later_ms - from_ms) <= 100
        assert abs(ended - later_ms - to_ms) <= 100


def in_ms(case: Diagnosed, began_ms: int) -> tuple[int, int]:
    assert case.to_us is not None
    return began_ms + case.from_us // 1000, began_ms + case.to_us // 1000


def test_each_case_rests_on_events_of_its_own_time(tmp_path: Path) -> None:
    result = imported(unpacked(THREE, tmp_path / "logs"), tmp_path)
    events = result.performed.events
    for case in find(events).diagnoses:
        assert case.to_us is not None
        assert case.facts
        assert events[case.facts[-1]].t <= case.to_us
