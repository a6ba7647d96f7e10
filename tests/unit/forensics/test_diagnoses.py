"""A diagnosis is made where the hazard's own schedule was played, and nowhere else."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import msgspec
import pytest

from emulator.forensics.diagnoses.base import Coverage, Diagnosed, diagnose, diagnoses, name_of
from emulator.forensics.diagnoses.kafka_1367 import PATIENCE_US
from emulator.forensics.diagnoses.kafka_6082 import SURE_AFTER_US
from emulator.hazards.entry import catalogue, find
from emulator.hazards.reproduce import play_side_in_memory
from emulator.invariants.known.base import hazards
from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.values import Parameters
from tests.unit.forensics.loggable import loggable

ROOT = Path(__file__).resolve().parents[3]
LONGER_US = 40_000_000
"""Long enough for what waits for something that never comes."""
LONG_US = {"KAFKA-1367": 120_000_000}

NAMES = [name_of(kind) for kind in diagnoses()]
ELSEWHERE = {
    "KAFKA-2729": "its own schedule leads to no further ISR change: real logs have it",
    "missed deletion": "it is no entry of the catalogue: real logs have it",
}
OWN = [name for name in NAMES if name not in ELSEWHERE]
NOT_CURED = {"KAFKA-1555": "min.insync.replicas keeps what is acknowledged: the election remains"}


@cache
def played(name: str, *, cured: bool) -> tuple[AnyEvent, ...]:
    entry = find(name)
    scenario = entry.scenario(cured=cured)
    scenario = msgspec.structs.replace(scenario, duration_us=duration_us(name))
    return tuple(play_side_in_memory(entry, cured=cured, scenario=scenario).events)


def duration_us(name: str) -> int:
    return max(LONG_US.get(name, 0), find(name).scenario().duration_us + LONGER_US)


def diagnosed(name: str, *, cured: bool) -> list[Diagnosed]:
    """From what logs tell that were copied when the run was over."""
    return diagnose(loggable(played(name, cured=cured)), Coverage(duration_us(name)))


def the_case(events: tuple[AnyEvent, ...]) -> Diagnosed:
    (case,) = diagnose(events)
    return case


@pytest.mark.parametrize("name", OWN)
def test_a_hazards_own_schedule_has_its_name_from_what_is_logged(name: str) -> None:
    cases = [case for case in diagnosed(name, cured=False) if case.name == name]
    assert cases
    end_us = max(played(name, cured=False)[-1].t, duration_us(name))
    for case in cases:
        assert 0 <= case.from_us <= (case.to_us or end_us) <= end_us
        assert case.facts
        assert (case.to_us is None) == (case.ended == "it had not ended when the trace ends")


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in OWN if name not in NOT_CURED])
def test_with_the_cure_there_is_no_such_case(name: str) -> None:
    cases = diagnosed(name, cured=True)
    assert [case for case in cases if case.name == name] == []


def test_each_is_named_as_an_entry_of_the_catalogue_or_as_invariants_name_it() -> None:
    assert len(NAMES) >= 12
    assert set(NAMES) <= set(catalogue()) | {hazard.name for hazard in hazards()}


def test_the_page_about_incidents_names_them_all() -> None:
    page = (ROOT / "docs" / "do" / "incidents.md").read_text()
    rows = " ".join(line.split("|")[1] for line in page.splitlines() if line.startswith("| "))
    assert [name for name in NAMES if not re.search(rf"{name}(?![-\w])", rows)] == []


def test_a_replaced_controllers_writes_are_named_with_both_epochs() -> None:
    case = the_case(played("KAFKA-6082", cured=False))
    assert (case.broker, case.partitions) == (3, (("orders", 0),))
    assert case.seen == (
        "broker 3, controller of epoch 1, wrote 1 state up to 2.0 s after broker 2 was elected"
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
    assert "every broker still showed [1]" in case.seen
    for patience_us, found in ((PATIENCE_US - 1, 0), (PATIENCE_US, 1)):
        until = case.from_us + patience_us
        end = e.ActionApplied(10**9, until, 0, "", -1, "up", Parameters())
        shorter = [event for event in events if event.t < until]
        assert len(diagnose([*shorter, end])) == found
