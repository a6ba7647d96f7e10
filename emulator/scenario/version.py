"""The Kafka version of a scenario (profile, guards, propagation), from its file and the command
line.

Owns the keys `profile`, `guards` and `propagation` of a file, the options of the same names, which
take precedence, and the errors for unknown ones. A broker's own profile (`cluster: broker_profile`)
is read with the brokers. Nothing here knows what a guard does.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from emulator.kafka.profiles.base import CannotPropagate, Profile, profiles
from emulator.kafka.profiles.guards.base import guards
from emulator.scenario.document import Item
from emulator.scenario.errors import UserError, instead_of

PROFILE = "2.6"
SWITCH = {"on": True, "off": False}


def switch_words(guards: Mapping[str, bool]) -> dict[str, str]:
    """Switched guards in the format of files: name to `on` or `off`."""
    return {name: "on" if on else "off" for name, on in guards.items()}


def as_switches(guards: Mapping[str, str]) -> tuple[str, ...]:
    """Switched guards in the format of `--guard`: NAME=on or NAME=off."""
    return tuple(f"{name}={state}" for name, state in guards.items())


class VersionOptions(msgspec.Struct, frozen=True):
    """The options `--profile`, `--guard NAME=off|on` (repeatable) and `--propagation`. Empty: not
    set."""

    profile: str = ""
    guards: tuple[str, ...] = ()
    propagation: str = ""

    def words(self) -> list[str]:
        """The options as words of a command line."""
        words = ["--profile", self.profile] if self.profile else []
        for switch in self.guards:
            words += ["--guard", switch]
        return [*words, *(["--propagation", self.propagation] if self.propagation else [])]


class Version(msgspec.Struct, frozen=True):
    """The cluster's profile by name, the switched guards, and the propagation (empty: each
    profile's own)."""

    profile: str = PROFILE
    guards: Mapping[str, bool] = {}
    propagation: str = ""

    def of(self, name: str) -> Profile:
        """A profile with these guards. Raises CannotPropagate."""
        return profiles()[name].altered(self.guards, self.propagation)


def read_version(keys: Mapping[str, Item], chosen: VersionOptions) -> Version:
    """The version from the file's sections, overridden by the options."""
    profile = chosen.profile or (keys["profile"].text() if "profile" in keys else PROFILE)
    problem = unknown_profile(profile)
    if problem and chosen.profile:
        raise UserError(f"--profile {profile}: {problem}")
    if problem:
        keys["profile"].fail(problem)
    switched = {**_written(keys.get("guards")), **_switched(chosen.guards)}
    propagation = chosen.propagation
    if not propagation and "propagation" in keys:
        propagation = keys["propagation"].text()
    version = Version(profile, switched, propagation)
    try:
        version.of(profile)
    except CannotPropagate as error:
        if not chosen.propagation and "propagation" in keys:
            keys["propagation"].fail(str(error))
        raise UserError(f"--propagation {propagation}: {error}") from None
    return version


def unknown_profile(name: str) -> str:
    """The error message for an unknown profile; empty if the profile exists."""
    if name in profiles():
        return ""
    return f"there is no profile {name}; {instead_of(name, profiles())}"


def _unknown_guard(name: str) -> str:
    return f"there is no guard {name}; {instead_of(name, guards())}"


def _written(item: Item | None) -> dict[str, bool]:
    """Read `guards: {NAME: off}`; YAML writers turn off and on into false and true."""
    chosen_guards: dict[str, bool] = {}
    for name, value in (item.mapping() if item else {}).items():
        if name not in guards():
            value.fail(_unknown_guard(name))
        state = {"true": "on", "false": "off"}.get(value.text().lower(), value.text().lower())
        if state not in SWITCH:
            value.fail(f"expected on or off, not {value.text()!r}")
        chosen_guards[name] = SWITCH[state]
    return chosen_guards


def _switched(switches: tuple[str, ...]) -> dict[str, bool]:
    chosen_guards: dict[str, bool] = {}
    for switch in switches:
        name, _, state = switch.partition("=")
        if state not in SWITCH:
            raise UserError(f"--guard {switch}: write NAME=off or NAME=on")
        if name not in guards():
            raise UserError(f"--guard {switch}: {_unknown_guard(name)}")
        chosen_guards[name] = SWITCH[state]
    return chosen_guards
