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


@pytest.mark.parametrize(("shift", "differs"), [(0.0, False), (5.0, True)])
def test_only_durations_that_differ_more_than_chance_makes_them_stand_out(
    shift: float, differs: bool
) -> None:
    draw = random.Random(1)
    one, other = ([draw.uniform(0, 10) for _ in range(200)] for _ in range(2))
    assert (difference(one, [x + shift for x in other]) > 1.95) is differs
