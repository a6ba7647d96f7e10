"""The two sides of `isr compare`, and the command that repeats it.

Owns the version, path, settings and guards of each side, and their names. It must not know how
they are played.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from emulator.cli.parts.options import announcement, check_playable, command_words
from emulator.cli.parts.target import SIMULATED
from emulator.kafka.profiles.base import profiles
from emulator.runs.comparison import Variant
from emulator.runs.side_by_side import Keep, Plays
from emulator.scenario import shipped
from emulator.scenario.errors import UserError
from emulator.scenario.load import LoadedScenario, load
from emulator.scenario.version import VersionOptions

BOTH_PATHS = "2.7"
"""The version with both propagation paths, used if the scenario's own has only one."""
PATHS = ("zk", "rpc")


class SideOptions(NamedTuple):
    """The options of one side, or those of both. `profile`, `propagation`: empty if not set."""

    profile: str
    propagation: str
    sets: tuple[str, ...]
    guards: tuple[str, ...]

    @classmethod
    def of_side(
        cls,
        profile: str | None,
        propagation: str | None,
        sets: Sequence[str] | None,
        guards: Sequence[str] | None,
        *,
        both: SideOptions,
    ) -> SideOptions:
        """Combine the options of both sides with this side's, which take precedence."""
        return cls(
            profile or "",
            propagation or both.propagation,
            (*both.sets, *(sets or ())),
            (*both.guards, *(guards or ())),
        )


class ComparisonOptions(NamedTuple):
    """Options that both sides share."""

    scenario: str
    seed: int
    zookeeper: str
    time_scale: int
    out: Path

    def sides(self, own: Sequence[SideOptions], both: SideOptions) -> tuple[Variant, Variant]:
        """Both sides, checked. Raises UserError."""
        versions = self._versions(own, both)
        chosen = [
            VersionOptions(version, side.guards, path)
            for (version, path), side in zip(versions, own, strict=True)
        ]
        loaded = [
            load(shipped.find(self.scenario), side.sets, one)
            for side, one in zip(own, chosen, strict=True)
        ]
        names = _names(loaded, versions)
        variants = []
        for name, scenario, version, side in zip(names, loaded, chosen, own, strict=True):
            check_playable(scenario, self.zookeeper, self.time_scale)
            repeat = partial(self._repeat_run, version, side)
            variants.append(Variant(name, scenario, side.sets, repeat))
        return variants[0], variants[1]

    def _versions(self, own: Sequence[SideOptions], both: SideOptions) -> list[tuple[str, str]]:
        """(profile, propagation) of each side; empty: the profile's own. Sides without differences
        become both paths of one version."""
        named = any(one.profile for one in own)
        if both.profile and named:
            raise UserError("--profile names the version of both sides, --a and --b one each")
        scenarios = both.profile or load(shipped.find(self.scenario)).profile
        if named or own[0] != own[1]:
            return [(one.profile or scenarios, one.propagation) for one in own]
        if both.propagation:
            raise UserError(
                f"--propagation {both.propagation}: both sides are the same. Add a difference"
                " (--a, --b, --set-a, --guard-a), or leave it out to compare both paths"
            )
        able = both.profile != "" or set(PATHS) <= set(profiles()[scenarios].propagations)
        return [(scenarios if able else BOTH_PATHS, path) for path in PATHS]

    def _repeat_run(self, version: VersionOptions, own: SideOptions, seed: int) -> str:
        """The command that plays one seed of a side."""
        words = command_words(self.scenario, seed, self.zookeeper, self.time_scale, list(own.sets))
        return shlex.join(["isr", "run", *words, *version.words(), *self._out()])

    def plays(
        self, sides: tuple[Variant, Variant], number: int, jobs: int, keep: Keep | None
    ) -> Plays:
        """The plays of both sides."""
        return Plays(
            sides=sides,
            seeds=range(self.seed, self.seed + number),
            jobs=jobs,
            zookeeper=self.zookeeper,
            time_scale=self.time_scale,
            base=self.out,
            keep=keep,
        )

    def announced(self, sides: tuple[Variant, Variant], number: int) -> str:
        """The first line, with the seed, printed before anything can fail."""
        scenario, names = sides[0].scenario, " and ".join(side.name for side in sides)
        words = f"{scenario.name}: {names}, {number} each"
        return announcement(words, self.seed, self.zookeeper, scenario.duration_us)

    def repeat(self, options: Mapping[str, object]) -> str:
        """The command that repeats the comparison."""
        words = ["isr", "compare", self.scenario, "--seed", f"{self.seed:#x}"]
        if self.zookeeper != SIMULATED:
            words += ["--zookeeper", self.zookeeper]
        if self.time_scale != 1:
            words += ["--time-scale", str(self.time_scale)]
        for option, value in options.items():
            for one in value if isinstance(value, list) else [value]:
                words += [] if one is None else [option, str(one)]
        return shlex.join([*words, *self._out()])

    def _out(self) -> list[str]:
        return [] if self.out == Path("runs") else ["--out", str(self.out)]


def _names(
    loaded: Sequence[LoadedScenario], versions: Sequence[tuple[str, str]]
) -> tuple[str, str]:
    """Names made of the differences: path (or version), settings, guards. Identical sides are
    called `first` and `second`."""
    one, other = loaded
    parts: list[tuple[str, str]] = []
    paths = one.running().propagation, other.running().propagation
    if paths[0] != paths[1] and (versions[0][1] or versions[1][1]):
        parts.append(paths)
    elif one.profile != other.profile:
        parts.append((one.profile, other.profile))
    values = [{**side.running().values, **side.settings} for side in loaded]
    parts += [
        (f"{key}={values[0].get(key)}", f"{key}={values[1].get(key)}")
        for key in sorted({*one.settings, *other.settings})
        if values[0].get(key) != values[1].get(key)
    ]
    for name in sorted({*one.guards, *other.guards}):
        states = [any(guard.name == name for guard in side.running().guards) for side in loaded]
        if states[0] != states[1]:
            words = [f"{name}={'on' if state else 'off'}" for state in states]
            parts.append((words[0], words[1]))
    if not parts:
        return "first", "second"
    return ",".join(part[0] for part in parts), ",".join(part[1] for part in parts)
