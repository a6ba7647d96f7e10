"""Random worlds: each can be written and read, and is the same wherever it is drawn."""

from __future__ import annotations

import subprocess
import sys

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from emulator.conformance.actions import QUIET_AFTER_LAST_US
from emulator.kernel.rng import Stream
from emulator.scenario.actions.base import actions
from emulator.scenario.actions.drawing import Draw
from emulator.scenario.actions.life import Start
from emulator.scenario.load import LoadedScenario, loads
from emulator.scenario.standing import standing_after
from emulator.scenario.version import VersionOptions
from emulator.search.fuzz.worlds import (
    LIVENESS_MS,
    SETTLING_MS,
    draw_script,
    draw_world,
    healed_us,
)
from emulator.worlds.real_kafka.capabilities import capabilities_of_kafka, check_supported

SEEDS = [*range(15), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(15, 60))]
DRAWN = sorted(name for name, kind in actions().items() if kind.weight)
PRINT = "from emulator.search.fuzz.worlds import draw_world; print(draw_world(11))"


@pytest.mark.parametrize("seed", SEEDS)
def test_every_world_is_a_scenario_in_which_whatever_lasts_ends_when_it_is_healed(
    seed: int,
) -> None:
    text = draw_world(seed)
    scenario = loads(text, "drawn")
    assert scenario.duration_us == healed_us(text) + LIVENESS_MS * 1000
    assert [e.text for e in scenario.expectations] == ["the cluster converges"]
    for step in scenario.steps:
        if step.fault and step.action.healed() is not None:
            assert step.at_us <= healed_us(text)


@pytest.mark.slow
def test_whatever_can_be_drawn_is_drawn_now_and_then() -> None:
    seen = {
        name
        for seed in range(300)
        for entry in yaml.safe_load(draw_world(seed))["faults"]
        for name in entry
    }
    assert set(DRAWN) <= seen


@pytest.mark.parametrize("name", DRAWN)
def test_what_is_drawn_is_of_its_own_kind_and_nothing_is_held_by_accident(name: str) -> None:
    kind = actions()[name]
    draw = Draw(Stream(5), (1, 2, 3), {"a": [(1, 2, 3)], "b": [(2, 3)]}, {})
    found = kind.drawn(draw)
    assert type(found) is kind
    assert found.holds() == found.holds()


def test_the_same_seed_is_the_same_world_in_every_process() -> None:
    texts = {
        subprocess.run(
            [sys.executable, "-c", PRINT],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert texts == {draw_world(11) + "\n"}


VERSIONS = [(0, 8, 2, 2), (1, 0, 2), (2, 6, 3), (3, 3, 2)]


def random_script(seed: int, brokers: int, version: tuple[int, ...]) -> LoadedScenario:
    capabilities = capabilities_of_kafka(version)
    chosen = VersionOptions(".".join(map(str, version[: 3 if version[0] == 0 else 2])))
    text = draw_script(seed, brokers, chosen, lambda one: not capabilities.refusal(one))
    return loads(text, "script", chosen=chosen)


@example(950, 3, (0, 8, 2, 2))  # a partition that a refused action would have added
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**64 - 1), st.integers(3, 5), st.sampled_from(VERSIONS))
def test_a_random_script_is_one_that_real_kafka_of_that_version_can_be_given_and_ends_healed(
    seed: int, brokers: int, version: tuple[int, ...]
) -> None:
    script = random_script(seed, brokers, version)
    check_supported(script, version)
    assert 60_000_000 <= script.duration_us <= 120_000_000
    everyone = {*range(1, brokers + 1)}
    assert {boot.broker for boot in script.boots} == everyone
    assert not any(step.action.is_random for step in script.steps)
    quiet_us = script.duration_us - SETTLING_MS * 1000
    faults = [step for step in script.steps if step.fault]
    assert faults[-1].at_us <= quiet_us
    # The play of its recording lasts as long, because producers end last.
    assert script.steps[-1].at_us + QUIET_AFTER_LAST_US == script.duration_us
    assert standing_after(step.action for step in script.steps) == []
    started = {
        step.action.broker
        for step in script.steps
        if isinstance(step.action, Start) and step.at_us == quiet_us
    }
    assert started == everyone


@pytest.mark.parametrize("version", [(0, 8, 2, 2), (2, 6, 3)])
def test_what_a_version_cannot_be_given_is_drawn_again_and_not_left_out(
    version: tuple[int, ...],
) -> None:
    for seed in range(20):
        faults = [step for step in random_script(seed, 3, version).steps if step.fault]
        begun = [step for step in faults if not isinstance(step.action, Start)]
        assert len(begun) >= 4


def test_a_spread_reaches_both_ends() -> None:
    draw = Draw(Stream(1), (1,), {}, {})
    values = [draw.spread(3, 40) for _ in range(2000)]
    assert (min(values), max(values)) == (3, 40)
