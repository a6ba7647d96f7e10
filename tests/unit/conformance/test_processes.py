"""The processes of a recording: one list for the scenario and for the search."""

from __future__ import annotations

from math import inf

from emulator.conformance.actions import scenario_of
from emulator.conformance.player import script_of, simulate
from emulator.conformance.processes import Process, processes_of
from emulator.conformance.recording import Fact, Recording
from emulator.scenario.actions.life import Start


def did(t: int, do: str, broker: int = 1) -> Fact:
    return {"t": t, "kind": "stimulus", "do": do, "broker": broker}


def asked(t: int, broker: int = 1) -> Fact:
    path = f"/brokers/ids/{broker}"
    return {"t": t, "kind": "zookeeper_request", "broker": broker, "op": "create", "path": path}


def recorded(*facts: Fact) -> Recording:
    return Recording({"kafka": "2.6.3"}, list(facts))


BOUNCED = (
    did(-2000, "start"),
    did(-800, "registered"),
    did(5000, "kill"),
    did(6000, "start"),
    asked(7100),
    asked(7300),
    did(7400, "exited"),
    did(9000, "start"),
    did(9900, "registered"),
)


def test_a_process_has_its_launch_its_registration_and_its_end() -> None:
    first, refused, last = processes_of(recorded(*BOUNCED))
    assert first == Process(1, -2000, -800, ended_ms=5000)
    assert (refused.registers_ms, refused.refused_request, refused.ended_ms) == (
        7100,
        asked(7100),
        7400,
    )
    assert not refused.is_registered
    assert last == Process(1, 9000, 9900, ended_ms=inf)
    assert [one.boot_ms for one in (first, refused, last)] == [1200, 1100, 900]


def test_a_process_that_may_not_register_boots_as_long_as_the_recorded_one() -> None:
    scenario = scenario_of(recorded(*BOUNCED))
    starts = [step.action for step in scenario.steps if isinstance(step.action, Start)]
    assert [(one.broker, one.registered_ms) for one in starts] == [(1, 7100), (1, 9900)]


def test_a_process_that_ends_before_it_asks_has_no_registration() -> None:
    (_, ended) = processes_of(recorded(*BOUNCED[:4], did(6100, "exited")))
    assert (ended.registers_ms, ended.refused_request, ended.boot_ms) == (None, None, None)


def test_a_stop_that_takes_longer_than_the_recorded_one_delays_the_next_start() -> None:
    """The recorded registration is over when the last process has ended here."""
    facts = [did(-2000, "start"), did(-800, "registered"), did(5000, "terminate")]
    facts += [did(5020, "exited"), did(5030, "start"), did(5080, "registered")]
    facts += [did(12_000, "kill")]
    played = simulate(script_of(recorded(*facts)), seed=1)
    registered = [fact["t"] for fact in played.of("stimulus") if fact["do"] == "registered"]
    assert len(registered) == 2
    assert registered[1] > 5200
