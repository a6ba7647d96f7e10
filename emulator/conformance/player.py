"""Plays of a recording's scenario, each exported as a recording of its own.

A `Script` is the part of a recording that a play may see: settings and actions. Blind plays differ
only by their seeds; the number of parallel plays has no influence. This module must not know the
rest of the recording: the caller passes a function that examines each run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

import msgspec

from emulator.conformance.actions import AS_RECORDED, scenario_of
from emulator.conformance.export import export
from emulator.conformance.recorder_load import RecorderLoad
from emulator.conformance.recording import Fact, Recording
from emulator.kernel.rng import Choice
from emulator.runs.forks import in_children
from emulator.runs.play import SIMULATED, PlayOptions
from emulator.runs.session import play_without_listeners
from emulator.scenario.schema import Scenario
from emulator.scenario.version import VersionOptions
from emulator.worlds.latency import Table
from emulator.worlds.real_kafka.capabilities import has_links

T = TypeVar("T")

Choices = Mapping[Choice, int]


class Script(msgspec.Struct, frozen=True):
    """The input of a play: the recorded settings, the actions as a scenario, when the driver
    noticed process exits, and the ranges of latencies (None: the declared ones)."""

    settings: Fact
    scenario: Scenario
    exits: tuple[Fact, ...] = ()
    latencies: Table | None = None


def script_of(
    recording: Recording, chosen: VersionOptions = AS_RECORDED, latencies: Table | None = None
) -> Script:
    """Raises `CannotPlay`."""
    exits = tuple(fact for fact in recording.of("stimulus") if fact["do"] == "exited")
    return Script(recording.settings, scenario_of(recording, chosen), exits, latencies)


def play_options(
    script: Script, seed: int, choices: Choices | None = None, zookeeper: str = SIMULATED
) -> PlayOptions:
    """A recording is played on a model of the machine that recorded it."""
    return PlayOptions(
        seed=seed,
        choices=choices,
        zookeeper=zookeeper,
        machine_load=partial(RecorderLoad, has_proxies=has_links(script.scenario)),
        latencies=script.latencies,
    )


def simulate(
    script: Script, seed: int, choices: Choices | None = None, zookeeper: str = SIMULATED
) -> Recording:
    """One play in virtual time, or on a real ZooKeeper server and the wall clock. There are no
    listeners, because the judge of a recording reads only the export."""
    events = play_without_listeners(script.scenario, play_options(script, seed, choices, zookeeper))
    return export(events, script.settings, f"seed {seed}", script.exits)


def blind_plays(
    script: Script, seeds: Sequence[int], look: Callable[[int, Recording], T], jobs: int
) -> Iterator[tuple[int, T]]:
    """Each seed with the result of `look` on its play, computed in the playing process, in any
    order.
    """
    plays = in_children(seeds, lambda seed: look(seed, simulate(script, seed)), jobs)
    return ((seeds[index], seen) for index, seen in plays)


def live_plays(
    script: Script, seeds: Sequence[int], look: Callable[[int, Recording], T], zookeeper: str
) -> Iterator[tuple[int, T]]:
    """Like `blind_plays` on a real server, one after the other: parallel plays would delay each
    other."""
    assert zookeeper != SIMULATED
    return ((seed, look(seed, simulate(script, seed, zookeeper=zookeeper))) for seed in seeds)
