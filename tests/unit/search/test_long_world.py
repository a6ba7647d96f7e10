"""Long worlds: the same seed the same text, nothing in them that loses records by itself."""

from __future__ import annotations

from itertools import pairwise

import pytest

from emulator.scenario.actions.base import names_of
from emulator.scenario.actions.life import Crash, Start
from emulator.scenario.capabilities import check_steps
from emulator.scenario.load import LoadedScenario, loads
from emulator.worlds.processes.host import process_capabilities
from tests.harmless import is_harmless
from tests.long_world import SETTLE_MS, draw_long_world

SECONDS = 600


def drawn(seed: int, servers: int = 3) -> LoadedScenario:
    return loads(draw_long_world(seed, SECONDS, servers, is_harmless), f"seed {seed}")


@pytest.mark.parametrize("seed", range(5))
def test_containers_can_be_given_all_of_it_and_no_disk_is_lost(seed: int) -> None:
    world = drawn(seed)
    check_steps(world, process_capabilities({}, ensemble=True), "containers")
    struck = [step.action for step in world.steps if step.fault]
    assert not [one for one in struck if isinstance(one, Crash) and one.lose != "nothing"]
    assert world.settings["min.insync.replicas"] == "2"
    assert world.settings["unclean.leader.election.enable"] == "false"


def test_faults_are_spread_over_the_time_and_many_kinds_and_each_server() -> None:
    faults = [step for step in drawn(1).steps if step.fault]
    named = {one.action.name for one in faults}
    assert {"pause", "kill", "cut_link", "stop_zookeeper"} <= named
    assert {getattr(one.action, "server", None) for one in faults} >= set(names_of(3)[1:])
    moments = [one.at_us for one in faults if not isinstance(one.action, Start)]
    longest_us = max(b - a for a, b in pairwise(moments))
    assert longest_us < 60_000_000


def test_when_it_is_over_everything_is_healed_and_there_is_time_to_settle() -> None:
    world = drawn(2)
    last = max(s.at_us for s in world.steps if not isinstance(s.action, Start))
    assert world.duration_us - last >= SETTLE_MS * 1000 - 1


def test_one_seed_one_text_and_guards_are_written_into_it() -> None:
    assert draw_long_world(3, 60, 1, is_harmless) == draw_long_world(3, 60, 1, is_harmless)
    assert draw_long_world(3, 60, 1, is_harmless) != draw_long_world(4, 60, 1, is_harmless)
    guarded = loads(draw_long_world(3, 60, 1, is_harmless, ("every-death-is-told",)), "guarded")
    assert guarded.guards == {"every-death-is-told": True}
