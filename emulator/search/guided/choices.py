"""The choices of a guided match as a file, from which its runs can be repeated.

It contains the inputs (settings and actions of the recording), the chosen seeds, and the version of
the declared latencies; nothing of the real cluster's behaviour. Also owns the reruns by which a
match's delays are judged: the same choices with other seeds for all latencies. This module must not
know how choices are searched.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from emulator.conformance.actions import (
    AS_RECORDED,
    last_fact_ms,
    ports_of,
    scenario_of,
)
from emulator.conformance.export import export
from emulator.conformance.player import Script, play_options, script_of
from emulator.conformance.processes import processes_of
from emulator.conformance.recording import Fact, Recording
from emulator.kernel.rng import Choice, Stream, mix
from emulator.runs.play import World
from emulator.runs.session import Session
from emulator.scenario.version import VersionOptions
from emulator.trace.untrusted_json import decode_untrusted
from emulator.worlds import latency
from emulator.worlds.gc_tuning import rare_collections

RERUNS = 20
"""The number of reruns that define the range of a match's delays."""

_LATENCIES = frozenset(
    f"net_{step}"
    for step in ("connect", "request", "response", "control_request", "control_response")
) | frozenset(f"zk_{step}" for step in ("connect", "request", "process", "reply", "watch"))
"""The durations of messages and operations, which a rerun redraws. It keeps all other draws: phases
of tasks, a client's reconnection delay, work at a broker, and the order in which a resumed process
continues."""

_OUTCOMES = ("returned", "controller")
"""Fields of actions that are outcomes. A producer's number of `sent` records is an input: it must
send that many, and a producer that hung sends no more.
"""


class BadChoices(Exception):
    """A file without choices that can be played here."""


class ChosenStream(msgspec.Struct, frozen=True, array_like=True):
    """One choice (emulator.kernel.rng.Choice). An empty actor and purpose means all other streams
    of the segment; an empty actor and a moment, all streams from then on."""

    segment: int
    actor: str
    purpose: str
    seed: int


class ChosenRun(msgspec.Struct, frozen=True):
    """One run: the chosen streams, and the seed of all others."""

    seed: int
    chosen: tuple[ChosenStream, ...]

    @property
    def by_stream(self) -> dict[Choice, int]:
        return {(c.segment, c.actor, c.purpose): c.seed for c in self.chosen}


class Choices(msgspec.Struct, frozen=True):
    """All inputs of a replay, and `draws`: how many draws the search took for each segment."""

    recording: str
    latencies: int
    runs: tuple[ChosenRun, ...]
    draws: dict[str, int]
    settings: Fact
    actions: tuple[Fact, ...] = msgspec.field(name="stimuli")  # the key in stored choices


_MOMENT = re.compile(r"-?\d{1,15}")

_CHOICES = msgspec.json.Decoder(Choices)


def chosen_run(seed: int, chosen: Mapping[Choice, int]) -> ChosenRun:
    return ChosenRun(seed, tuple(ChosenStream(*key, chosen[key]) for key in sorted(chosen)))


def choices_of(real: Recording, runs: Iterable[ChosenRun], draws: dict[str, int]) -> Choices:
    bare = inputs_of(real)
    actions = tuple(bare.events)
    return Choices(real.name, latency.VERSION, tuple(runs), draws, bare.settings, actions)


def inputs_of(real: Recording) -> Recording:
    """The part of a recording that may reach the core: settings, actions without their outcomes,
    how long each process took to boot, its port, and how long after the last action it goes on, if
    that is longer than usual.
    """
    ports = ports_of(real)
    actions = []
    for fact in real.of("stimulus"):
        action = {key: value for key, value in fact.items() if key not in _OUTCOMES}
        if action["do"] == "start" and action["broker"] in ports:
            action["port"] = ports[action["broker"]]
        actions.append(action)
    requests = (one.refused_request for one in processes_of(real))
    refused = [request for request in requests if request is not None]
    events = sorted([*actions, *refused], key=lambda fact: fact["t"])
    bare = Recording(real.settings, events, name=real.name)
    last_ms = last_fact_ms(real)
    if last_ms * 1000 >= scenario_of(bare).duration_us:
        events.append({"t": last_ms, "kind": "recorded"})
    return bare


def write_choices(choices: Choices, file: Path) -> None:
    """Compressed if the name ends with `.gz`."""
    data = msgspec.json.format(msgspec.json.encode(choices), indent=1) + b"\n"
    file.write_bytes(gzip.compress(data, mtime=0) if file.suffix == ".gz" else data)


def read_choices(file: Path) -> Choices:
    try:
        data = file.read_bytes()
        if file.suffix == ".gz":
            data = gzip.decompress(data)
        choices = decode_untrusted(data, _CHOICES)
    except (OSError, EOFError, zlib.error, msgspec.DecodeError) as error:
        raise BadChoices(f"{file}: {error}") from None
    if choices.latencies != latency.VERSION:
        raise BadChoices(
            f"{file}: chosen from latencies of version {choices.latencies};"
            f" those here are version {latency.VERSION}"
        )
    for one in (one for run in choices.runs for one in run.chosen if not one.actor and one.purpose):
        if not _MOMENT.fullmatch(one.purpose):
            raise BadChoices(f"{file}: segment {one.segment}: {one.purpose!r} is not a moment")
    return choices


def script_from(choices: Choices, chosen: VersionOptions = AS_RECORDED) -> Script:
    """Raises `CannotPlay`."""
    recording = Recording(choices.settings, list(choices.actions), name=choices.recording)
    return script_of(recording, chosen)


class RecordingChoices(dict[Choice, int]):
    """Choices that record which streams a run draws from."""

    def __init__(self, choices: Mapping[Choice, int]) -> None:
        super().__init__(choices)
        self.streams: dict[Choice, None] = {}

    def get(self, key: Choice, default: int | None = None) -> int | None:  # type: ignore[override]
        if key[2]:
            self.streams[key] = None
        return super().get(key, default)


def record_streams(world: World, choices: Mapping[Choice, int]) -> RecordingChoices:
    """Record choices from now on. Draws during the construction of the world are not choices."""
    world.chance.choices = recording = RecordingChoices(choices)
    return recording


def replay(script: Script, run: ChosenRun) -> tuple[Recording, list[Choice]]:
    """Play the chosen run. Return its recording and the streams that it drew from."""
    options = play_options(script, run.seed, run.by_stream)
    with Session(script.scenario, options, hearing="nothing") as session, rare_collections():
        recording = record_streams(session.world, run.by_stream)
        session.run.play()
    exported = export(session.events, script.settings, "the choices", script.exits)
    return exported, list(recording.streams)


def with_other_latencies(run: ChosenRun, streams: list[Choice], nth: int) -> dict[Choice, int]:
    """The choices of the nth rerun, with another seed for each latency stream."""
    seeds = Stream(mix(run.seed ^ mix(nth)))
    others = {key: seeds.bits() for key in streams if key[2] in _LATENCIES}
    return {**run.by_stream, **others}
