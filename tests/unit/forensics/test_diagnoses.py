"""A diagnosis is made where the hazard's own schedule was played, and nowhere else."""

from __future__ import annotations

from functools import cache

import msgspec
import pytest

from emulator.forensics.diagnoses.base import Diagnosed, diagnose, diagnoses
from emulator.forensics.diagnoses.kafka_1367 import PATIENCE_US
from emulator.forensics.diagnoses.kafka_6082 import SURE_AFTER_US
from emulator.hazards.entry import catalogue, find
from emulator.hazards.reproduce import play_side_in_memory
from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.values import Parameters

LONG_US = 120_000_000
"""Long enough for what waits for something that never comes."""


@cache
def played(name: str, *, cured: bool) -> tuple[AnyEvent, ...]:
    entry = find(name)
    scenario = entry.scenario(cured=cured)
    duration_us = max(LONG_US if name == "KAFKA-1367" else 0, scenario.duration_us)
    scenario = msgspec.structs.replace(scenario, duration_us=duration_us)
    return tuple(play_side_in_memory(entry, cured=cured, scenario=scenario).events)


def the_case(events: tuple[AnyEvent, ...]) -> Diagnosed:
    (case,) = diagnose(events)
    return case


@pytest.mark.parametrize("name", ["KAFKA-1367", "KAFKA-6082"])
def test_a_hazards_own_schedule_has_its_name_and_with_the_cure_none(name: str) -> None:
    assert the_case(played(name, cured=False)).name == name
    assert diagnose(played(name, cured=True)) == []


def test_each_is_named_as_an_entry_of_the_catalogue() -> None:
    assert {one.name for one in diagnoses()} <= set(catalogue())


def test_a_replaced_controllers_writes_are_told_with_both_epochs() -> None:
    case = the_case(played("KAFKA-6082", cured=False))
    assert (case.broker, case.partitions) == (3, (("orders", 0),))
    assert case.seen == (
        "broker 3, controller of epoch 1, wrote 1 state up to 2.0 s after broker 1 was elected"
        " with epoch 2"
    )


def test_a_write_of_the_moment_of_the_election_is_nobodys_fault() -> None:
    """Logs' clocks agree only so far."""
    events = played("KAFKA-6082", cured=False)
    write_us = the_case(events).to_us
    assert write_us is not None

    def elected_later(event: AnyEvent, by_us: int) -> AnyEvent:
        if isinstance(event, e.ControllerElected) and event.controller_epoch == 2:
            return msgspec.structs.replace(event, t=write_us - by_us)
        return event

    for by_us, found in ((SURE_AFTER_US, 1), (SURE_AFTER_US - 1, 0)):
        assert len(diagnose([elected_later(event, by_us) for event in events])) == found


def test_what_nobody_shows_is_diagnosed_once_a_notification_must_have_come() -> None:
    events = played("KAFKA-1367", cured=False)
    case = the_case(events)
    assert "wrote ISR [1,2] of orders-0" in case.seen
    assert "every broker still shows [1]" in case.seen
    for patience_us, found in ((PATIENCE_US - 1, 0), (PATIENCE_US, 1)):
        until = case.from_us + patience_us
        end = e.ActionApplied(10**9, until, 0, "", -1, "up", Parameters())
        shorter = [event for event in events if event.t < until]
        assert len(diagnose([*shorter, end])) == found
