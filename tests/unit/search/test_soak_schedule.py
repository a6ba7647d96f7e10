"""What a soak does to its cluster: drawn by a seed, given to processes, and healed in the end."""

from __future__ import annotations

import pytest

from emulator.scenario.actions.base import actions
from emulator.scenario.actions.life import EndsProcess, Start
from emulator.scenario.actions.resources import FillDisk
from emulator.scenario.load import LoadedScenario, loads
from emulator.search.soak.schedule import QUIET_S, draw_schedule, fault_counts, stop_us
from emulator.worlds.processes.host import process_capabilities

SECONDS = 900


def drawn(seed: int, upgrade: str = "", without: tuple[type, ...] = ()) -> LoadedScenario:
    return loads(draw_schedule(seed, SECONDS, "2.6", upgrade, without), "soak")


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


def test_whatever_ends_a_broker_is_followed_by_a_start() -> None:
    for seed in range(3):
        steps = drawn(seed).steps
        for n, step in enumerate(steps):
            if isinstance(step.action, EndsProcess | FillDisk):
                later = [one.action for one in steps[n:] if isinstance(one.action, Start)]
                assert any(one.broker == step.action.broker for one in later)


def test_every_fault_of_a_soak_is_drawn_in_a_few_half_hours() -> None:
    counts = [fault_counts(drawn(seed).steps) for seed in range(12)]
    weighted = {name for name, kind in actions().items() if kind.soak_weight}
    assert weighted <= {name for count in counts for name in count}


def test_a_fault_that_cannot_be_given_here_is_left_out() -> None:
    assert "fill_disk" not in fault_counts(drawn(1, without=(FillDisk,)).steps)


def test_an_upgrade_begins_with_the_code_and_ends_with_the_propagation() -> None:
    starts = [one.action for one in drawn(1, "2.7").steps if isinstance(one.action, Start)]
    versions = [(one.profile, one.propagation) for one in starts if one.profile]
    assert list(dict.fromkeys(versions)) == [("2.7", "zk"), ("2.7", "rpc")]
    for broker in (1, 2, 3):
        assert {one.propagation for one in starts if one.broker == broker} >= {"zk", "rpc"}
