"""Scenarios on real Kafka, by our own command; each is matched by the emulator under blind seeds.

One recording is one throw of the dice: some of what decides it comes once in a hundred runs. So a
scenario is recorded again when it is lost, which prints what no seed did. Real time, and Maven:
`make test-kafka`.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from emulator.cli.parts.conform_report import verdict_lines
from emulator.conformance.compare import Examined, Reference, Verdict, conclude
from emulator.conformance.player import script_of, simulate
from emulator.conformance.recording import read_recording
from emulator.forensics.findings import find, isr_history
from emulator.forensics.imported import import_folders
from emulator.view.stored import open_run

pytestmark = pytest.mark.kafka

SEEDS = range(1, 41)
MORE_SEEDS = range(41, 201)
RECORDINGS = 5
"""At most, of one scenario; what is matched is not recorded again."""

RECORDED = [
    ("shrink-and-expand", "2.6.3"),
    ("reassignment", "2.6.3"),
    ("shrink-and-expand", "2.7.2"),
    ("leader-crash", "2.7.2"),
]


UNANSWERED = """\
about: brokers that are paused answer no administrator
profile: "2.6"
cluster: {brokers: 3}
faults:
  - {at: 0s, pause: {broker: 1}}
  - {at: 0s, pause: {broker: 2}}
  - {at: 0s, pause: {broker: 3}}
  - {at: 0s, create_topic: {topic: orders, assignment: [[1, 2, 3]]}}
run: 60s
"""


def record(scenario: str, kafka: str, out: Path) -> subprocess.Popen[str]:
    isr = [sys.executable, "-c", "from emulator.cli import main; main()"]
    command = [*isr, "record", scenario, "--kafka", kafka]
    return subprocess.Popen(
        [*command, "--out", str(out)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


@pytest.mark.parametrize(("scenario", "kafka"), RECORDED)
def test_what_real_kafka_did_the_emulator_does(
    scenario: str, kafka: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Expectations are of the scenario's own version, and some are of records: not asked here."""
    for attempt in range(1, RECORDINGS + 1):
        run = recorded(scenario, kafka, tmp_path / str(attempt))
        assert diagnosed(run, tmp_path / str(attempt)) == set()
        verdict = judged(run)
        if verdict.matched:
            return
        say(capsys, f"{scenario} on {kafka}, recording {attempt}:", *verdict_lines(verdict))
    pytest.fail(f"none of {RECORDINGS} recordings was matched: above is what no seed did")


def test_a_stuck_leader_is_found_in_the_logs_of_its_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its link to ZooKeeper was cut past its session's time-out, and healed."""
    for attempt in range(1, RECORDINGS + 1):
        run = recorded("leader-loses-zookeeper", "2.6.3", tmp_path / str(attempt))
        found = diagnosed(run, tmp_path / str(attempt))
        if found == {"KAFKA-2729"}:
            return
        say(capsys, f"leader-loses-zookeeper, recording {attempt}: diagnosed {sorted(found)}")
    pytest.fail(f"none of {RECORDINGS} recordings was diagnosed as KAFKA-2729 alone")


def judged(run: Path) -> Verdict:
    """By some seeds; by many, where these show too little."""
    real = read_recording(run)
    reference, script = Reference(real), script_of(real)
    examined: list[Examined] = []
    for seeds in (SEEDS, MORE_SEEDS):
        examined += [reference.examine(simulate(script, seed)) for seed in seeds]
        verdict = conclude(reference, examined)
        if verdict.matched:
            break
    return verdict


def say(capsys: pytest.CaptureFixture[str], *lines: str) -> None:
    """Seen even if the test passes."""
    with capsys.disabled():
        print("", *lines, sep="\n")


def recorded(scenario: str, kafka: str, out: Path) -> Path:
    process = record(scenario, kafka, out)
    said, _ = process.communicate(timeout=180)
    assert process.returncode in (0, 1, 2), said
    return (out / "latest").resolve()


def diagnosed(run: Path, folder: Path) -> set[str]:
    """By `isr import` of the brokers' logs, which tell the same ISR history as the run."""
    imported = import_folders([run], folder / "imported").performed.events
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
@pytest.mark.parametrize("unanswered", [False, True], ids=["", "with an unanswered request"])
def test_however_it_ends_nothing_of_it_goes_on(
    number: signal.Signals, unanswered: bool, tmp_path: Path
) -> None:
    """It does not wait for a response from brokers that it has just ended."""
    (tmp_path / "unanswered.yaml").write_text(UNANSWERED)
    scenario = str(tmp_path / "unanswered.yaml") if unanswered else "shrink-and-expand"
    process = record(scenario, "2.6.3", tmp_path)
    assert process.stdout is not None
    assert any("brokers 1, 2, 3" in line for line in process.stdout), "they did not come up"
    brokers = brokers_of(process)
    assert len(brokers) == 3
    process.send_signal(number)
    process.communicate(timeout=30)  # a request's own timeout is 60 s
    for broker in brokers:
        assert select.select([broker], [], [], 30)[0], "a broker runs on"
        os.close(broker)
