"""Scenarios on real Kafka, by our own command; each is matched by the emulator under blind seeds.

Real time, and Maven: `make test-kafka`.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from emulator.conformance.compare import Reference, conclude
from emulator.conformance.player import script_of, simulate
from emulator.conformance.recording import read_recording
from emulator.forensics.findings import find, isr_history
from emulator.forensics.imported import import_folder
from emulator.view.stored import open_run

pytestmark = pytest.mark.kafka

SEEDS = range(1, 41)
RECORDED = [
    ("shrink-and-expand", "2.6.3"),
    ("reassignment", "2.6.3"),
    ("shrink-and-expand", "2.7.2"),
    ("leader-crash", "2.7.2"),
]


def record(scenario: str, kafka: str, out: Path) -> subprocess.Popen[str]:
    isr = [sys.executable, "-c", "from emulator.cli import main; main()"]
    command = [*isr, "record", scenario, "--kafka", kafka]
    return subprocess.Popen(
        [*command, "--out", str(out)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


@pytest.mark.parametrize(("scenario", "kafka"), RECORDED)
def test_what_real_kafka_did_the_emulator_does(scenario: str, kafka: str, tmp_path: Path) -> None:
    """Expectations are of the scenario's own version, and some are of records: not asked here."""
    run = recorded(scenario, kafka, tmp_path)
    real = read_recording(run)
    reference = Reference(real)
    script = script_of(real)
    examined = [reference.examine(simulate(script, seed)) for seed in SEEDS]
    assert conclude(reference, examined).matched
    assert diagnosed(run, tmp_path) == set()


def test_a_stuck_leader_is_found_in_the_logs_of_its_cluster(tmp_path: Path) -> None:
    """Its link to ZooKeeper was cut past its session's time-out, and healed."""
    run = recorded("leader-loses-zookeeper", "2.6.3", tmp_path)
    assert diagnosed(run, tmp_path) == {"KAFKA-2729"}


def recorded(scenario: str, kafka: str, out: Path) -> Path:
    process = record(scenario, kafka, out)
    said, _ = process.communicate(timeout=180)
    assert process.returncode in (0, 1, 2), said
    return (out / "latest").resolve()


def diagnosed(run: Path, folder: Path) -> set[str]:
    """By `isr import` of the brokers' logs, which tell the same ISR history as the run."""
    imported = import_folder(run, folder / "imported").performed.events
    assert isr_history(imported) == isr_history(open_run(run).events)
    return {one.name for one in find(imported).diagnoses}


def brokers_of(process: subprocess.Popen[str]) -> list[int]:
    """Process files of the brokers that it has started."""
    listed = subprocess.run(
        ["ps", "-eww", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    )
    rows = (row.split(None, 2) for row in listed.stdout.splitlines())
    found = [row for row in rows if row[1] == str(process.pid) and "kafka.Kafka" in row[2]]
    return [os.pidfd_open(int(row[0])) for row in found]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_however_it_ends_nothing_of_it_goes_on(number: signal.Signals, tmp_path: Path) -> None:
    process = record("shrink-and-expand", "2.6.3", tmp_path)
    assert process.stdout is not None
    assert any("brokers 1, 2, 3" in line for line in process.stdout), "they did not come up"
    brokers = brokers_of(process)
    assert len(brokers) == 3
    process.send_signal(number)
    process.communicate(timeout=60)
    for broker in brokers:
        assert select.select([broker], [], [], 30)[0], "a broker runs on"
        os.close(broker)
