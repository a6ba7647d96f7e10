"""A scenario in memory: what every world plays. Made by `load` from YAML, or by
`conformance.actions` from a recording.

Times are microseconds since the cluster is up (all brokers registered and started). Nothing here
knows a world.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from emulator.kafka.profiles.base import Profile, profiles
from emulator.scenario.actions.base import Action

Storage = Literal["memory", "files"]
"""Where emulated brokers have their logs: in memory, or in the files of a modelled disk."""

Settings = dict[str, str]
"""Kafka's names to values as text, as a server.properties file has them."""


class Step(msgspec.Struct, frozen=True):
    """One action on the time line. `fault` is true for what a test may remove to see whether an
    expectation depends on it."""

    at_us: int
    action: Action
    fault: bool = False


class Boot(msgspec.Struct, frozen=True):
    """When a broker's process starts, or when it is launched and its registration is to be created
    (a recording gives those moments; the boot before it is drawn backwards). Microseconds; None: as
    soon as the one before has started."""

    broker: int
    start_us: int | None = None
    registered_us: int | None = None
    launched_us: int | None = None


class ZooKeeperSettings(msgspec.Struct, frozen=True):
    """The server's own settings, in milliseconds; and how many of them make an ensemble, where
    there are servers in containers (elsewhere it is one)."""

    tick_time_ms: int = 500
    min_session_timeout_ms: int = 1000
    max_session_timeout_ms: int = 60000
    servers: int = 1


class Host(msgspec.Struct, frozen=True):
    """Where a broker runs, on targets where each is a process of its own; `version` is of real
    Kafka."""

    kind: Literal["process", "container", "kafka"]
    version: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.version}".strip()


class Expectation(msgspec.Struct, frozen=True):
    """One line of `expect`: its text as written, and the parsed form's name and arguments."""

    text: str
    check: str
    arguments: dict[str, object]


class Scenario(msgspec.Struct, frozen=True):
    """All that is needed to play it. `broker_profiles` are of brokers that run another version than
    `profile`; `guards` are put in or taken out at every broker, whatever its version;
    `propagation` is empty where each version's own holds; `hosts` names brokers that do not run
    where the target has them."""

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

    def running(self, broker: int | None = None, name: str = "") -> Profile:
        """The version that a broker runs, or the cluster's, with its guards as they are here;
        `name`: another version in its place."""
        name = name or self.broker_profiles.get(broker or 0, self.profile)
        return profiles()[name].altered(self.guards, self.propagation)
