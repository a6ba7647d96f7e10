"""Replays a run: reads its inputs from its directory, plays it again, and compares the traces.

Only a run in virtual time repeats exactly: there the seed decides every choice. Owns turning a run
directory back into a play. It must not know how the difference of two traces is shown.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec

from emulator.runs.play import SIMULATED
from emulator.runs.run_directory import RUN, SCENARIO, SUMMARY, TRACE, versions
from emulator.runs.session import OnProgress, Request, play_run
from emulator.scenario.document import read_text
from emulator.scenario.errors import UserError
from emulator.scenario.load import LoadedScenario, loads
from emulator.scenario.version import VersionOptions, as_switches
from emulator.trace.difference import Compared, compare_traces
from emulator.trace.untrusted_json import decode_untrusted

PLATFORM = ("platform",)
"""Options that do not influence a run."""


class RunManifest(msgspec.Struct, frozen=True):
    """The fields of `run.json` that a replay needs."""

    scenario: str
    seed: int
    zookeeper: str
    profile: str = ""
    guards: dict[str, str] = {}
    propagation: str = ""
    set: tuple[str, ...] = ()
    repeat: str = ""
    versions: dict[str, str] = {}


_MANIFEST = msgspec.json.Decoder(RunManifest)
_SUMMARY = msgspec.json.Decoder(dict[str, object])


class ReplayResult(NamedTuple):
    """A replayed run. `cut_short`: the original was interrupted, so its trace is incomplete."""

    compared: Compared
    directory: Path
    cut_short: bool


def about_run(directory: Path) -> RunManifest:
    """The inputs of the run. Raises UserError."""
    file = directory / RUN
    try:
        return decode_untrusted(file.read_bytes(), _MANIFEST)
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror}") from None
    except msgspec.DecodeError as error:
        raise UserError(f"{file}: does not say how the run was made: {error}") from None


def scenario_of(directory: Path, about: RunManifest) -> LoadedScenario:
    """The scenario as it was played, including options of the command line. Raises UserError."""
    file = directory / SCENARIO
    chosen = VersionOptions(about.profile, as_switches(about.guards), about.propagation)
    return loads(read_text(file, str(file)), about.scenario, str(file), about.set, chosen)


def request_of(directory: Path, about: RunManifest, base: Path) -> Request:
    """The request that repeats this run, below `base`. Raises UserError."""
    if about.zookeeper != SIMULATED:
        raise UserError(
            f"{directory}: was played live (ZooKeeper {about.zookeeper});"
            " only a run in virtual time repeats exactly"
        )
    return Request(
        scenario=scenario_of(directory, about),
        seed=about.seed,
        zookeeper=SIMULATED,
        sets=about.set,
        repeat=about.repeat,
        base=base,
    )


def other_versions(about: RunManifest) -> dict[str, tuple[str, str]]:
    """Versions that have changed since the run: name to (then, now)."""
    now = versions()
    names = sorted({*about.versions, *now} - {*PLATFORM})
    both = {name: (about.versions.get(name, "none"), now.get(name, "none")) for name in names}
    return {name: pair for name, pair in both.items() if pair[0] != pair[1]}


def play_again(
    directory: Path, request: Request, on_progress: OnProgress | None = None
) -> ReplayResult:
    """Play the run again, and compare the traces."""
    again = play_run(request, on_progress).directory
    assert again is not None
    compared = compare_traces(directory / TRACE, again / TRACE)
    try:
        summary = decode_untrusted((directory / SUMMARY).read_bytes(), _SUMMARY)
        broken_off = bool(summary.get("interrupted"))
    except (OSError, msgspec.DecodeError):
        broken_off = True  # killed: there is no summary
    difference = compared.difference
    if broken_off and difference is not None and difference.first is None:
        compared = Compared(compared.events, None)
    return ReplayResult(compared, again, broken_off)
