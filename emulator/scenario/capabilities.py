"""What the parts of a cluster can be given: asked of every action before anything starts.

Each part (a kind of host, ZooKeeper, clients) declares it in a class of the same methods as its
port in `scenario.actions.base`: a method that is there is supported, all others are not, and one
that looks at its parameters may refuse them. Here is the one place that asks; it knows no target.
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
    """Why a part of a cluster cannot be given an action."""


class Capabilities:
    """Of one part. Heirs name what it supports."""

    subject = "this target"

    def supported(self, *_: object, **__: object) -> None:
        """It can be done, whatever its parameters."""

    def __getattr__(self, name: str) -> Any:
        raise Unsupported(f"{name.replace('_', ' ')} is not supported for {self.subject}")


class HostCapabilities(Capabilities):
    """Of a kind of broker host: its process, and what can be done to its links with others."""

    is_running = False
    links = Capabilities()

    def start_again(self, registered_ms: int | None) -> None:
        """It can be started again; at a moment that is given only in the emulator's own time."""
        if registered_ms is not None:
            raise Unsupported("nobody can say when a process registers")


class _Links:
    """A link is between two: both must support what is done to it."""

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
    """A cluster that does nothing (`scenario.actions.base.World`): an action that is applied to it
    raises Unsupported where a part cannot be given it."""

    def __init__(
        self,
        hosts: Mapping[int, HostCapabilities],
        zookeeper: Capabilities,
        clients: Capabilities,
        places: Capabilities | None = None,
    ) -> None:
        """`places`: where something can be held; None: nowhere."""
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
        """Why it cannot be given; empty: it can."""
        try:
            action.apply(self)
        except Unsupported as why:
            return str(why)
        return ""


class _NoPlaces(Capabilities):
    subject = "processes"


_NO_PLACES = _NoPlaces()


def check_steps(scenario: Scenario, capabilities: ClusterCapabilities, to: str) -> None:
    """Raises UserError for the first action that `to` cannot be given."""
    for step in scenario.steps:
        if why := capabilities.refusal(step.action):
            raise UserError(
                f"{scenario.source}: {step.action.name} at {show_us(step.at_us)} cannot be given"
                f" to {to}: {why}"
            )
