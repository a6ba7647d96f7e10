"""A scenario in memory, which every world plays. Made by `load` from YAML, or by
`conformance.actions` from a recording.

Times are in microseconds since the cluster was up (all brokers registered and started). Nothing
here knows a world.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from emulator.kafka.profiles.base import Profile, profiles
from emulator.scenario.actions.base import Action

Storage = Literal["memory", "files"]
"""Where emulated brokers keep their logs: in memory, or in the files of a modelled disk."""

Settings = dict[str, str]
"""Kafka's setting names to values as text, as in server.properties."""


class Step(msgspec.Struct, frozen=True):
    """One action on the time line. `fault`: a test may remove it to see whether an expectation
    depends on it."""

    at_us: int
    action: Action
    fault: bool = False


class Boot(msgspec.Struct, frozen=True):
    """When a broker's process starts, or when it is launched with its registration to be created at
    a recorded time (the boot phases before it are computed backwards). Microseconds; None: as soon
    as the previous broker has started."""

    broker: int
    start_us: int | None = None
    registered_us: int | None = None
    launched_us: int | None = None


class ZooKeeperSettings(msgspec.Struct, frozen=True):
    """The server's settings, in milliseconds, and the size of the ensemble where servers run in
    containers (elsewhere 1)."""

    tick_time_ms: int = 500
    min_session_timeout_ms: int = 1000
    max_session_timeout_ms: int = 60000
    servers: int = 1


class Host(msgspec.Struct, frozen=True):
    """Where a broker runs, for targets with one process per broker; `version` is that of a real
    Kafka. Hollow brokers share one process."""

    kind: Literal["process", "hollow", "container", "kafka"]
    version: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.version}".strip()


class Expectation(msgspec.Struct, frozen=True):
    """One line of `expect`: its text, and the name and arguments of the parsed form."""

    text: str
    check: str
    arguments: dict[str, object]


class Scenario(msgspec.Struct, frozen=True):
    """A complete scenario. `broker_profiles`: brokers with another version than `profile`.
    `guards`: switched on or off at every broker, whatever its version. `propagation`: empty means
    each version's own. `hosts`: brokers that run elsewhere than the target's default. `ports`: of
    brokers whose ports were recorded; emulated brokers register with them. `remembers_controller`:
    as the admin client of an older recording does."""

    name: str
    about: str
    profile: str
    boots: tuple[Boot, ...]
    settings: Settings
    broker_settings: dict[int, Settings]
    zookeeper: ZooKeeperSettings
    steps: tuple[Step, ...]
    duration_us: int
    expectations: tuple[Expectation, ...] = ()
    race_free: bool = False
    source: str = ""
    broker_profiles: dict[int, str] = {}
    guards: dict[str, bool] = {}
    propagation: str = ""
    hosts: dict[int, Host] = {}
    storage: Storage = "memory"
    ports: dict[int, int] = {}
    remembers_controller: bool = False

    def running(self, broker: int | None = None, name: str = "") -> Profile:
        """The profile of a broker with the switched guards; `name` replaces its version."""
        name = name or self.broker_profiles.get(broker or 0, self.profile)
        return profiles()[name].altered(self.guards, self.propagation)
