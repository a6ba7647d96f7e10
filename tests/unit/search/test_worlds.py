"""Random worlds: each can be written and read, and is the same wherever it is drawn."""

from __future__ import annotations

import subprocess
import sys

import pytest
import yaml

from emulator.kernel.rng import Stream
from emulator.scenario.actions.base import actions
from emulator.scenario.actions.drawing import Draw
from emulator.scenario.load import loads
from emulator.scenario.version import VersionOptions
from emulator.search.fuzz.worlds import LIVENESS_MS, draw_script, draw_world, healed_us
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


@pytest.mark.parametrize("version", [(0, 8, 2, 2), (1, 0, 2), (2, 6, 3), (3, 3, 2)])
def test_a_random_script_has_only_what_real_kafka_of_that_version_can_be_given(
    version: tuple[int, ...],
) -> None:
    capabilities = capabilities_of_kafka(version)
    chosen = VersionOptions(".".join(map(str, version[: 3 if version[0] == 0 else 2])))
    for seed in range(20):
        brokers = 3 + seed % 3
        text = draw_script(seed, brokers, chosen, lambda one: not capabilities.refusal(one))
        script = loads(text, "script", chosen=chosen)
        check_supported(script, version)
        assert 60_000_000 <= script.duration_us <= 120_000_000
        assert sorted(boot.broker for boot in script.boots) == [*range(1, brokers + 1)]
        assert not any(step.action.is_random for step in script.steps)


def test_a_spread_reaches_both_ends() -> None:
    draw = Draw(Stream(1), (1,), {}, {})
    values = [draw.spread(3, 40) for _ in range(2000)]
    assert (min(values), max(values)) == (3, 40)
