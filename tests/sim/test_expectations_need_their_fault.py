"""An expectation that holds all the same when nothing is done to the cluster expects nothing, and
a fault that no expectation misses is idle: both are taken away here, for every shipped scenario.
"""

from __future__ import annotations

import msgspec
import pytest

from emulator.runs.play import PlayOptions
from emulator.scenario.actions.base import Action
from emulator.scenario.actions.life import Start
from emulator.scenario.load import LoadedScenario
from emulator.scenario.schema import Step
from tests.sim.shipped_runs import NAMES, Played, played, scenario, without_faults

SEED = 1


def faults(loaded: LoadedScenario) -> list[list[Step]]:
    """Each fault, with what ends it: its healing, or a start as something else. What is done at
    one moment is one fault."""
    left = [step for step in loaded.steps if step.fault]
    found: dict[int, list[Step]] = {}
    while left:
        begin = left.pop(0)
        end = next((step for step in left if ends(begin.action, step.action)), None)
        found.setdefault(begin.at_us, []).append(begin)
        if end is not None:
            found[begin.at_us].append(end)
            left.remove(end)
    return list(found.values())


def ends(fault: Action, other: Action) -> bool:
    healed = fault.healed()
    if isinstance(healed, Start) and isinstance(other, Start):
        return healed.broker == other.broker
    return healed is not None and healed == other


def without(loaded: LoadedScenario, fault: list[Step]) -> LoadedScenario:
    steps = tuple(step for step in loaded.steps if not any(step is one for one in fault))
    return msgspec.structs.replace(loaded, steps=steps)


def held(run: Played) -> dict[str, str]:
    return {text: found.seen for text, found in run.findings.items() if found.held}


def some_fault_of_each() -> list[tuple[str, int]]:
    """Of a repeated fault the first and the last."""
    pairs = []
    for name in NAMES:
        kinds: dict[str, list[int]] = {}
        for number, fault in enumerate(faults(scenario(name))):
            kinds.setdefault(str(fault[0].action), []).append(number)
        pairs += [
            (name, n) for numbers in kinds.values() for n in sorted({numbers[0], numbers[-1]})
        ]
    return pairs


@pytest.mark.parametrize("name", NAMES)
def test_it_has_faults_and_expectations(name: str) -> None:
    assert faults(scenario(name))
    assert scenario(name).expectations


@pytest.mark.parametrize("name", NAMES)
def test_no_expectation_holds_without_the_faults(name: str) -> None:
    assert held(played(without_faults(scenario(name)), PlayOptions(seed=SEED))) == {}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "number"), some_fault_of_each())
def test_each_single_fault_is_missed_by_some_expectation(name: str, number: int) -> None:
    whole = scenario(name)
    run = played(without(whole, faults(whole)[number]), PlayOptions(seed=SEED))
    assert len(held(run)) < len(whole.expectations)
