"""Which actions each part of a cluster supports; checked for every action before anything starts.

Each part (a kind of host, ZooKeeper, clients) declares its capabilities in a class with the method
names of its port in `scenario.actions.base`. A method that exists is supported, and may refuse some
parameters; all others are not. This module makes the check and knows no target.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from typing import Any

from emulator.scenario.actions.base import Action
from emulator.scenario.errors import UserError
from emulator.scenario.schema import Scenario
from emulator.scenario.units import show_us


class Unsupported(Exception):
    """Why a part of a cluster does not support an action."""


class Capabilities:
    """The capabilities of one part. Subclasses define what it supports."""

    subject = "this target"

    def supported(self, *_: object, **__: object) -> None:
        """Accept any parameters."""

    def __getattr__(self, name: str) -> Any:
        raise Unsupported(f"{name.replace('_', ' ')} is not supported for {self.subject}")


class HostCapabilities(Capabilities):
    """The capabilities of a kind of broker host: its process and its links."""

    is_running = False
    links = Capabilities()

    def start_again(self, registered_ms: int | None) -> None:
        """A restart is supported; a registration time only where the emulator controls time."""
        if registered_ms is not None:
            raise Unsupported("nobody can say when a process registers")


class _Links:
    """Both ends of a link must support an action on it."""

    def __init__(self, hosts: Mapping[int, HostCapabilities]) -> None:
        self._hosts = hosts

    def __getattr__(self, name: str) -> Any:
        return partial(self._check, name)

    def _check(self, name: str, broker: int, peer: object = None, *parameters: object) -> None:
        ends = [broker, peer] if isinstance(peer, int) and name not in _OF_ONE_BROKER else [broker]
        for end in ends:
            getattr(self._hosts[end].links, name)(broker, peer, *parameters)


_OF_ONE_BROKER = ("limit_bandwidth", "unplug", "plug_in")


class ClusterCapabilities:
    """A cluster without effects (`scenario.actions.base.World`): applying an action to it raises
    Unsupported if a part does not support the action."""

    def __init__(
        self,
        hosts: Mapping[int, HostCapabilities],
        zookeeper: Capabilities,
        clients: Capabilities,
        places: Capabilities | None = None,
    ) -> None:
        """`places`: the supported hold points; None: none."""
        self.hosts, self.zookeeper, self.clients = hosts, zookeeper, clients
        self.links = _Links(hosts)
        self._places = places or _NO_PLACES

    @classmethod
    def of_one_kind(
        cls,
        host: HostCapabilities,
        zookeeper: Capabilities,
        clients: Capabilities,
        places: Capabilities | None = None,
    ) -> ClusterCapabilities:
        """Every broker on the same kind of host."""
        return cls(defaultdict(lambda: host), zookeeper, clients, places)

    def start_again(self, broker: int, registered_ms: int | None) -> None:
        self.hosts[broker].start_again(registered_ms)

    def hold(self, place: object) -> None:
        self._places.hold(place)

    def release(self, place: object) -> None:
        self._places.release(place)

    def refusal(self, action: Action) -> str:
        """Why the action is not supported; empty if it is."""
        try:
            action.apply(self)
        except Unsupported as why:
            return str(why)
        return ""


class _NoPlaces(Capabilities):
    subject = "processes"


_NO_PLACES = _NoPlaces()


def check_steps(scenario: Scenario, capabilities: ClusterCapabilities, to: str) -> None:
    """Raises UserError for the first action that the target `to` does not support."""
    for step in scenario.steps:
        if why := capabilities.refusal(step.action):
            raise UserError(
                f"{scenario.source}: {step.action.name} at {show_us(step.at_us)} cannot be given"
                f" to {to}: {why}"
            )
