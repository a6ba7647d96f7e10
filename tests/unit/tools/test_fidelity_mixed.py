"""Mixed clusters against all-real ones: who plays which role, and how a mixed run is judged."""

from __future__ import annotations

import json
import shutil
import sys
from datetime import datetime
from pathlib import Path

import pytest
import yaml

from emulator.conformance.recording import read_recording, write_recording
from emulator.kafka.profiles.base import Propagation
from emulator.runs.run_directory import TRACE
from emulator.scenario.load import loads
from emulator.scenario.shipped import shipped
from emulator.scenario.units import duration_us
from emulator.trace.events import ActionApplied, BrokerStarting
from emulator.trace.reader import SCHEMA_VERSION, Header, TraceWriter
from emulator.trace.values import Parameters
from tools.fidelity import mixed
from tools.fidelity.mixed import (
    ALL_REAL,
    BOOT_US,
    STORIES,
    MixedVersion,
    judged,
    scenario_text,
    warnings,
)
from tools.fidelity.results import MIXES, Mix

RECORDED = Path(__file__).parents[2] / "recordings" / "repeats" / "kafka-2.6.3" / "random-pauses-6"
KAFKA_2_6 = MixedVersion("2.6.3", "zk")


@pytest.mark.parametrize("story", STORIES)
def test_every_role_of_every_story_is_real_or_ours(story: str) -> None:
    texts = {mix: scenario_text(story, mix, KAFKA_2_6) for mix in MIXES}
    assert len(set(texts.values())) == 8
    for mix, text in texts.items():
        loaded = loads(text, story)
        assert (len(loaded.hosts) == len(loaded.boots)) is (mix == ALL_REAL)
        assert {str(host) for host in loaded.hosts.values()} <= {"kafka 2.6.3"}
        assert (loaded.boots[0].broker in loaded.hosts) is mix.controller


def test_a_mixed_run_is_held_to_the_all_real_ones(tmp_path: Path) -> None:
    story = tmp_path / "story"
    for number in (1, 2):
        stored(story / "RRR" / str(number), RECORDED / str(number), ["a fetch failed"])
    # One that is as an all-real run was, and one whose real brokers complained of something new.
    stored(story / "ORR" / "1", RECORDED / "1", ["a fetch failed"])
    stored(story / "OOO" / "1", RECORDED / "1", ["what is this?"])
    rows = {row.mix: row for row in judged(story, KAFKA_2_6)}
    assert set(rows) == {"RRR", "ORR", "OOO"}
    assert (rows["RRR"].runs, rows["ORR"].runs) == (2, 1)
    assert rows["ORR"].matched == 1
    assert rows["ORR"].equal == "1, 1, 1, 1, 1, 1, 1"
    assert rows["ORR"].delays_inside == rows["ORR"].delays > 0
    assert (rows["ORR"].unusual_sentences, rows["OOO"].unusual_sentences) == ("", "what is this?")


def test_a_mixed_run_that_decided_otherwise_does_not_match(tmp_path: Path) -> None:
    story = tmp_path / "story"
    for number in (1, 2):
        stored(story / "RRR" / str(number), RECORDED / str(number), [])
    stored(story / "ORR" / "1", RECORDED / "1", [])
    other = read_recording(story / "ORR" / "1")
    for fact in other.of("zookeeper"):
        if fact.get("path", "").endswith("/state") and fact["op"] == "setData":
            fact["data"] = json.dumps({**json.loads(fact["data"]), "isr": [9]})
    write_recording(other, story / "ORR" / "1")
    (row,) = (row for row in judged(story, KAFKA_2_6) if row.mix == "ORR")
    assert row.matched == 0
    assert row.difference.startswith("no run equal in state history")


@pytest.mark.parametrize(("exit_code", "up_s"), [(mixed.UNKNOWN, 5), (0, 13)])
def test_a_run_on_a_machine_that_was_late_is_played_again_and_not_kept(
    exit_code: int,
    up_s: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Late for a fault, or slow to start its brokers."""
    played = tmp_path / "played"
    played.mkdir()
    trace = [
        BrokerStarting(0, 1_000_000, 3, "", -1, "2.6"),
        ActionApplied(1, 1_000_000 + up_s * 1_000_000, 0, "", -1, "up", Parameters()),
    ]
    with TraceWriter(played / TRACE, Header(SCHEMA_VERSION, "", 0, "2.6", "embedded")) as writer:
        for event in trace:
            writer(event)
    says = f"print({json.dumps({'run_directory': str(played)})!r}); raise SystemExit({exit_code})"
    monkeypatch.setattr(mixed, "ISR", (sys.executable, "-c", says))
    mixed.record("leader-crash", ALL_REAL, KAFKA_2_6, tmp_path / "1", ())
    assert capsys.readouterr().err.count("leader-crash RRR: the machine was late") == mixed.PLAYS
    assert [file.name for file in (tmp_path / "1").iterdir()] == ["leader-crash.yaml"]


def stored(folder: Path, recording: Path, sentences: list[str]) -> None:
    shutil.copytree(recording, folder)
    (folder / "warnings.json").write_text(json.dumps({"broker-1": sentences}))


def test_sentences_are_what_was_logged_before_the_end_less_what_varies(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "server.log").write_text(
        "[2026-11-23 18:40:01,100] INFO all is well (kafka.server.KafkaServer)\n"
        "[2026-11-23 18:40:02,100] WARN to 127.0.0.1:9092 in [1, 2, 3] (kafka.server.X)\n"
        "[2026-11-23 18:40:02,200] ERROR 7 fails (type=A, states=[B(c)]) to broker 2 (kafka.Y)\n"
        "[2026-11-23 18:40:02,300] WARN fails: fetch (type=F, data={a-0=(b=1)}, rack=) (kafka.Z)\n"
        "[2026-11-23 18:40:09,100] WARN at the end (kafka.server.X)\n"
    )
    ended_s = datetime(2026, 11, 23, 18, 40, 5).astimezone().timestamp()
    assert list(warnings(tmp_path, ended_s)) == [
        "to N:N in [N] (kafka.server.X)",
        "N fails (a request) to broker N (kafka.Y)",
        "fails: fetch (a request) (kafka.Z)",
    ]


def test_a_mix_is_written_in_the_order_of_its_roles() -> None:
    assert str(Mix(controller=False, leader=True, follower=True)) == "ORR"


def test_a_scenario_of_a_story_is_a_scenario() -> None:
    text = scenario_text("leader-crash", Mix(True, False, True), KAFKA_2_6)
    assert yaml.safe_load(text)["hosts"] == {2: "kafka 2.6.3", 3: "kafka 2.6.3"}


@pytest.mark.parametrize("propagation", ["rpc", "zk"])
def test_a_newer_kafka_propagates_as_asked(propagation: Propagation) -> None:
    version = MixedVersion("2.7.2", propagation)
    loaded = loads(scenario_text("leader-crash", Mix(True, False, True), version), "leader-crash")
    assert (loaded.profile, loaded.propagation) == ("2.7", propagation)
    assert {loaded.running(broker).propagation for broker in (1, 2, 3)} == {propagation}
    assert str(version) == f"2.7.2-{propagation}"


def test_a_fault_that_follows_a_start_waits_for_the_jvm() -> None:
    """On a busy machine the broker was not in its ISRs again, and the story another one."""
    played = yaml.safe_load(scenario_text("controlled-shutdown", Mix(True, True, True), KAFKA_2_6))
    of_it = yaml.safe_load(shipped()["controlled-shutdown"].read_text())
    first, second = (duration_us(fault["at"]) for fault in played["faults"])
    assert first == duration_us(of_it["faults"][0]["at"])
    assert second == duration_us(of_it["faults"][1]["at"]) + BOOT_US
    # The producer is there for it.
    (work,) = played["workload"]
    assert duration_us(work["until"]) == duration_us(of_it["workload"][0]["until"]) + BOOT_US
    assert duration_us(played["run"]) == duration_us(of_it["run"]) + 2 * BOOT_US
