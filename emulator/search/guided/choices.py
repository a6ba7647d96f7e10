"""The choices of a guided match, as a file that repeats its runs.

It holds what is given (settings and actions of the recording), the seeds that were chosen, and the
version of the declared latencies that they choose from; it holds nothing of the real cluster's
behaviour. Owns also the reruns by which a match's delays are judged: the same choices but for the
latencies, each of whose streams is given another seed. This module must not know how choices are
found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from emulator.conformance.actions import AS_RECORDED
from emulator.conformance.export import export
from emulator.conformance.player import Script, play_options, script_of
from emulator.conformance.recording import Fact, Recording
from emulator.kernel.rng import Choice, Stream, mix
from emulator.runs.play import World
from emulator.runs.session import Session
from emulator.scenario.version import VersionOptions
from emulator.trace.untrusted_json import decode_untrusted
from emulator.worlds import latency
from emulator.worlds.gc_tuning import rare_collections

RERUNS = 20
"""So many reruns say how long a match's delays may be."""

_LATENCIES = frozenset(f"net_{step}" for step in ("connect", "request", "response")) | frozenset(
    f"zk_{step}" for step in ("connect", "request", "process", "reply", "watch")
)
"""How long messages and operations take. All else that is drawn stays in a rerun: phases of tasks,
how long a client waits before it connects again, work at a broker, and what goes first when a
process is resumed."""

_OUTCOMES = ("returned", "controller")
"""Fields of actions that are outcomes. The number of records a producer `sent` is an input: it had
to send that many, and one that hung sends no more.
"""


class BadChoices(Exception):
    """A file that holds no choices that can be played here."""


class ChosenStream(msgspec.Struct, frozen=True, array_like=True):
    """One choice. An empty actor and purpose: all of the segment that is not chosen otherwise."""

    segment: int
    actor: str
    purpose: str
    seed: int


class ChosenRun(msgspec.Struct, frozen=True):
    """One run: the seed of all that is not chosen, and what is."""

    seed: int
    chosen: tuple[ChosenStream, ...]

    @property
    def by_stream(self) -> dict[Choice, int]:
        return {(c.segment, c.actor, c.purpose): c.seed for c in self.chosen}


class Choices(msgspec.Struct, frozen=True):
    """All that a replay needs. `draws` (for each segment, how many the search took) it does not."""

    recording: str
    latencies: int
    runs: tuple[ChosenRun, ...]
    draws: dict[str, int]
    settings: Fact
    actions: tuple[Fact, ...] = msgspec.field(name="stimuli")  # the key in stored choices


_CHOICES = msgspec.json.Decoder(Choices)


def chosen_run(seed: int, chosen: Mapping[Choice, int]) -> ChosenRun:
    return ChosenRun(seed, tuple(ChosenStream(*key, chosen[key]) for key in sorted(chosen)))


def choices_of(real: Recording, runs: Iterable[ChosenRun], draws: dict[str, int]) -> Choices:
    bare = inputs_of(real)
    actions = tuple(bare.events)
    return Choices(real.name, latency.VERSION, tuple(runs), draws, bare.settings, actions)


def inputs_of(real: Recording) -> Recording:
    """The part of a recording that may reach the core: settings, and actions without their
    outcomes.
    """
    actions = [
        {key: value for key, value in fact.items() if key not in _OUTCOMES}
        for fact in real.of("stimulus")
    ]
    return Recording(real.settings, actions, name=real.name)


def write_choices(choices: Choices, file: Path) -> None:
    file.write_bytes(msgspec.json.format(msgspec.json.encode(choices), indent=1) + b"\n")


def read_choices(file: Path) -> Choices:
    try:
        choices = decode_untrusted(file.read_bytes(), _CHOICES)
    except (OSError, msgspec.DecodeError) as error:
        raise BadChoices(f"{file}: {error}") from None
    if choices.latencies != latency.VERSION:
        raise BadChoices(
            f"{file}: chosen from latencies of version {choices.latencies};"
            f" those here are version {latency.VERSION}"
        )
    return choices


def script_from(choices: Choices, chosen: VersionOptions = AS_RECORDED) -> Script:
    """Raises `CannotPlay`."""
    recording = Recording(choices.settings, list(choices.actions), name=choices.recording)
    return script_of(recording, chosen)


class RecordingChoices(dict[Choice, int]):
    """Choices that remember which streams a run draws from: so their names are known afterwards."""

    def __init__(self, choices: Mapping[Choice, int]) -> None:
        super().__init__(choices)
        self.streams: dict[Choice, None] = {}

    def get(self, key: Choice, default: int | None = None) -> int | None:  # type: ignore[override]
        if key[2]:
            self.streams[key] = None
        return super().get(key, default)


def record_streams(world: World, choices: Mapping[Choice, int]) -> RecordingChoices:
    """From now on: what a world draws while it is made is no search's choice."""
    world.chance.choices = recording = RecordingChoices(choices)
    return recording


def replay(script: Script, run: ChosenRun) -> tuple[Recording, list[Choice]]:
    """The run that was chosen, and the streams that it drew from."""
    options = play_options(run.seed, run.by_stream)
    with Session(script.scenario, options, hearing="nothing") as session, rare_collections():
        recording = record_streams(session.world, run.by_stream)
        session.run.play()
    exported = export(session.events, script.settings, "the choices", script.exits)
    return exported, list(recording.streams)


def with_other_latencies(run: ChosenRun, streams: list[Choice], nth: int) -> dict[Choice, int]:
    """The choices of the nth rerun: every stream of a latency has another seed."""
    seeds = Stream(mix(run.seed ^ mix(nth)))
    others = {key: seeds.bits() for key in streams if key[2] in _LATENCIES}
    return {**run.by_stream, **others}
