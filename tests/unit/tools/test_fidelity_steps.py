"""Durations from one ZooKeeper request of a thread to its next, recorded and emulated."""

from __future__ import annotations

import random
from typing import Any

import pytest

from emulator.conformance.recording import Fact, Recording
from emulator.kafka.profiles.base import profiles
from tools.fidelity.steps import Step, difference, steps_of

TOPICS, ORDERS = "/brokers/topics", "/brokers/topics/orders"


def recording(*requests: tuple[int, str]) -> Recording:
    """Broker 1, whose boot took half as long as usual, lists and reads topics."""
    settings: dict[str, Any] = {"t": None, "kind": "settings", "kafka": "2.6.3"}
    facts: list[Fact] = [
        {"kind": "stimulus", "t": -1000, "do": "start", "broker": 1},
        {"kind": "stimulus", "t": -250, "do": "registered", "broker": 1},
    ]
    for at_ms, path in requests:
        op = "getChildren2" if path == TOPICS else "getData"
        fact = {"op": op, "path": path, "watch": True}
        facts.append({"kind": "zookeeper_request", "t": at_ms, "broker": 1, **fact})
    return Recording(settings, facts, [], "recorded")


def test_a_step_is_measured_in_units_of_the_boot_and_by_its_use() -> None:
    real = recording((0, TOPICS), (10, ORDERS), (300, TOPICS), (303, ORDERS), (2000, TOPICS))
    listed, read = f"getChildren2 {TOPICS} W", "getData /brokers/topics/T W"
    assert list(steps_of(real, real, lambda _: profiles()["2.6"])) == [
        (Step("controller", listed, read, 1), 20.0),
        (Step("controller", read, listed, 1), 580.0),
        (Step("controller", listed, read, 2), 6.0),
    ]


def test_a_restart_has_steps_from_the_registration_to_the_return_to_an_isr() -> None:
    real = recording((0, TOPICS))
    partition = {"topic": "orders", "partition": 0}
    real.events.extend(
        {"broker": 1, **partition, **fact}
        for fact in (
            {"kind": "becomes_follower", "t": 500},
            {"kind": "stimulus", "t": 1000, "do": "start"},
            {"kind": "stimulus", "t": 4000, "do": "registered"},
            {"kind": "update_metadata", "t": 4200},
            {"kind": "leader_and_isr", "t": 4220},
            {"kind": "update_metadata", "t": 4230},
            {"kind": "becomes_follower", "t": 4250},
            {"kind": "expand", "t": 4300, "broker": 2, "from_isr": [2], "to_isr": [2, 3]},
            {"kind": "expand", "t": 4400, "broker": 2, "from_isr": [2, 3], "to_isr": [2, 3, 1]},
        )
    )
    steps = [s for s in steps_of(real, real, lambda _: profiles()["2.4"]) if s[0].lane == "restart"]
    assert steps == [
        (Step("restart", "registered", "metadata", 1), 100.0),
        (Step("restart", "metadata", "LeaderAndIsr", 1), 10.0),
        (Step("restart", "LeaderAndIsr", "role", 1), 15.0),
        (Step("restart", "role", "expansion", 1), 75.0),
    ]


@pytest.mark.parametrize(("shift", "differs"), [(0.0, False), (5.0, True)])
def test_only_durations_that_differ_more_than_chance_makes_them_stand_out(
    shift: float, differs: bool
) -> None:
    draw = random.Random(1)
    one, other = ([draw.uniform(0, 10) for _ in range(200)] for _ in range(2))
    assert (difference(one, [x + shift for x in other]) > 1.95) is differs
