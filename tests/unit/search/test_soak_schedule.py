"""What a soak does to its cluster: drawn by a seed, given to processes, and healed in the end."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from emulator.scenario.actions.base import actions
from emulator.scenario.actions.disk import DiskFault
from emulator.scenario.actions.life import EndsProcess, Start
from emulator.scenario.load import LoadedScenario, loads
from emulator.scenario.written import parameters
from emulator.search.soak.schedule import (
    QUIET_S,
    draw_schedule,
    fault_counts,
    soak_faults,
    stop_us,
    supported_faults,
)
from emulator.worlds.processes.host import process_capabilities

SECONDS = 900


@cache
def drawn(seed: int, upgrade: str = "", kinds: tuple[str, ...] | None = None) -> LoadedScenario:
    return loads(draw_schedule(seed, SECONDS, "2.6", upgrade, kinds), "soak")


def test_the_same_seed_is_the_same_schedule_and_another_is_another() -> None:
    texts = [draw_schedule(seed, SECONDS, "2.6") for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]


@pytest.mark.parametrize("seed", range(6))
def test_processes_can_be_given_all_of_it_and_it_is_healed_before_clients_end(seed: int) -> None:
    scenario, capabilities = drawn(seed), process_capabilities({}, ensemble=False)
    healed_us = (SECONDS - QUIET_S) * 1_000_000
    for step in scenario.steps:
        assert capabilities.refusal(step.action) == ""
        if not isinstance(step.action, Start):
            assert step.at_us <= healed_us
    assert healed_us < stop_us(SECONDS) < scenario.duration_us


@pytest.mark.parametrize("seed", range(6))
def test_containers_can_be_given_what_is_drawn_for_them(seed: int) -> None:
    kinds = supported_faults("containers")
    capabilities = process_capabilities({}, ensemble=True)
    assert soak_faults().keys() - kinds == {"disk", "jump_clock", "use_up_descriptors"}
    for step in drawn(seed, kinds=tuple(kinds)).steps:
        assert capabilities.refusal(step.action) == ""


def test_processes_can_be_given_every_fault_of_a_soak() -> None:
    assert supported_faults("processes") == soak_faults()


def test_whatever_ends_a_broker_is_followed_by_a_start() -> None:
    for seed in range(3):
        steps = drawn(seed).steps
        for n, step in enumerate(steps):
            if isinstance(step.action, EndsProcess | DiskFault):
                later = [one.action for one in steps[n:] if isinstance(one.action, Start)]
                assert any(one.broker == step.action.broker for one in later)


@pytest.mark.slow
def test_every_fault_of_a_soak_is_drawn_in_a_few_half_hours() -> None:
    counts = [fault_counts(drawn(seed).steps) for seed in range(12)]
    weighted = {name for name, kind in actions().items() if kind.soak_weight}
    assert weighted <= {name for count in counts for name in count}


@pytest.mark.parametrize("seed", range(6))
def test_ten_minutes_have_every_situation(seed: int) -> None:
    """Each is known by what it alone does at one moment."""
    scenario = loads(draw_schedule(seed, 600, "2.6"), "soak")
    at_once: dict[int, list[str]] = {}
    for step in scenario.steps:
        at_once.setdefault(step.at_us, []).append(step.action.name)
    moments = [Counter(names) for names in at_once.values()]
    assert any(names["disk"] == 3 for names in moments), "all disks are full"
    assert any(names["kill"] == 3 for names in moments), "all are killed"
    assert any(names["cut_link"] == 2 and names["cut_zookeeper_link"] == 1 for names in moments), (
        "a leader loses everybody"
    )
    delays = {s.at_us for s in scenario.steps if parameters(s.action).get("delay_ms") == 1000}
    pauses = {step.at_us for step in scenario.steps if step.action.name == "pause"}
    assert any(at_us + 4_000_000 in pauses for at_us in delays), "a follower misses elections"
    assert fault_counts(scenario.steps)["terminate"] >= 3, "a rolling restart"


@pytest.mark.parametrize("kinds", [("disk",), ("pause", "kill"), ("terminate",)])
def test_some_faults_alone_can_be_drawn(kinds: tuple[str, ...]) -> None:
    assert set(fault_counts(drawn(1, kinds=kinds).steps)) == set(kinds)


def test_where_machines_crash_no_broker_is_only_killed_and_each_record_is_synced() -> None:
    scenario = loads(draw_schedule(1, SECONDS, "2.6", machines_crash=True), "soak")
    counts = fault_counts(scenario.steps)
    assert counts["crash"] > 3
    assert "kill" not in counts
    assert scenario.settings["log.flush.interval.messages"] == "1"


def test_an_upgrade_begins_with_the_code_and_ends_with_the_propagation() -> None:
    starts = [one.action for one in drawn(1, "2.7").steps if isinstance(one.action, Start)]
    versions = [(one.profile, one.propagation) for one in starts if one.profile]
    assert list(dict.fromkeys(versions)) == [("2.7", "zk"), ("2.7", "rpc")]
    for broker in (1, 2, 3):
        assert {one.propagation for one in starts if one.broker == broker} >= {"zk", "rpc"}
