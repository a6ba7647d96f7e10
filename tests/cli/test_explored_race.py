"""Finds a race of real Kafka by choices alone, as a user would: without holds or random faults.

Broker 2 is gone when its session ends; the controller is about to remove it from the ISR when
/controller is deleted. In the default order the result is correct. If the controller's messages are
slow, it writes after another one was elected, which fencing prevents (KAFKA-6082).
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command import Isr

RACE = """\
guards: {fenced-controller-writes: off}
cluster:
  brokers: 3
  first: 3
  config: {replica.lag.time.max.ms: 10000, zookeeper.session.timeout.ms: 6000,
           auto.leader.rebalance.enable: false}
topics: {orders: {partitions: [[1, 2]]}}
faults:
  - {at: 3s, kill: 2}
  - {at: 4s, expire_session: 2}
  - {at: 4010ms, delete_controller: }
run: 8s
"""
SEARCH = ("--seed", 1, "--from", "3998ms", "--steps", 40, "--then", "100ms", "--strategy", "pct")
FENCED = ("--guard", "fenced-controller-writes=on")
FILE = "runs/explore/race-0x1.yaml"


@pytest.fixture
def isr(isr: Isr, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Isr:
    """The command in a directory with one scenario."""
    monkeypatch.chdir(tmp_path)
    Path("race.yaml").write_text(RACE, encoding="utf-8")
    return isr


def test_it_is_found_by_choices_alone_and_repeated_and_made_small(isr: Isr) -> None:
    code, out, _ = isr("explore", "race.yaml", *SEARCH, "--schedules", 100, "--json")
    found = json.loads(out)
    assert (code, found["verdict"]) == (1, 1)
    assert found["schedule"]["violation"]["invariant"] == "state has one writer"
    assert found["schedules"] > 1, "what happens by itself does not break it"
    assert found["schedule"]["choices"]
    assert not found["schedule"].get("faults")

    code, out, _ = isr("replay", FILE, "--width", 120)
    assert (code, "state has one writer" in out, "the same: " in out) == (0, True, True)

    code, out, _ = isr("shrink", FILE, "--json")
    small = json.loads(out)
    assert code == 0
    assert small["violation"]["invariant"] == "state has one writer"
    assert small["length"] == 1 < small["length_before"]
    (slow,) = small["choices"]
    assert "broker-3" in slow["over"]
    code, out, _ = isr("replay", small["file"], "--json")
    assert (code, json.loads(out)["same"]) == (0, True)


def test_with_the_fence_the_same_search_finds_nothing(isr: Isr) -> None:
    """And it has run the race: an old controller's write came too late."""
    how = ("--schedules", 40, "--sometimes", "BadVersion seen")
    code, out, _ = isr("explore", "race.yaml", *SEARCH, *FENCED, *how)
    assert (code, "verdict    nothing violated" in out) == (0, True), out


def test_a_search_that_has_not_run_the_race_does_not_know(isr: Isr) -> None:
    """The controller does not move before the fourth second."""
    early = ("--from", "2s", "--steps", 1, "--then", "100ms", "--schedules", 20, "--seed", 1)
    code, out, _ = isr("explore", "race.yaml", *early, "--sometimes", "controller moved")
    assert (code, "verdict    unknown: no race was run" in out) == (2, True), out
