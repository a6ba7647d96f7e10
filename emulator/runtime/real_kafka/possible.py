"""What a real cluster can be given: asked of every stimulus before anything starts.

A world that does nothing and refuses what cannot be done with signals, proxies in front
of ZooKeeper and between brokers, a real client and Kafka's own tools. Knows the port of stimuli,
no process.
"""

from __future__ import annotations

from typing import Any

from emulator.faults.base import Stimulus
from emulator.faults.clients import Consume, Produce, Send
from emulator.runtime.real_kafka.clients import ASKED
from emulator.runtime.real_kafka.tools import is_by_tool, why_not
from emulator.scenario.errors import UserError
from emulator.scenario.load import LoadedScenario
from emulator.scenario.schema import Scenario, Step
from emulator.scenario.units import show_us

ZOOKEEPER = "zookeeper"
LINKS_FROM = (0, 10, 2)
"""From here on a broker can have a listener of its own for other brokers (KIP-103)."""


class _CannotBeGiven(Exception):
    """Why a real cluster cannot be given a stimulus."""


class _Possible:
    """The port of stimuli, for asking: what is not here cannot be done."""

    def __init__(self, numbers: tuple[int, ...]) -> None:
        self._numbers = numbers

    def _fine(self, *_: object, **__: object) -> None:
        """It can be done, whatever its parameters."""

    pause = resume = kill = terminate = _fine
    stop_zookeeper = start_zookeeper = stop_clients = drop_connection = _fine
    delay = heal = link_latency = lose = narrow = _fine

    def runs(self, broker: int) -> bool:
        return False

    def start_again(self, broker: int, registered_ms: int | None) -> None:
        if registered_ms is not None:
            raise _CannotBeGiven("nobody can say when a JVM registers")

    def lose_from_disk(self, broker: int, what: str) -> None:
        if what == "unflushed":
            raise _CannotBeGiven("what the operating system was given, no signal takes back")

    def cut(self, broker: int, peer: int | str, ways: str = "both") -> None:
        if peer == ZOOKEEPER and ways != "both":
            raise _CannotBeGiven("the proxy in front of ZooKeeper cuts both ways")

    def admin(self, request: Stimulus) -> None:
        if is_by_tool(request, self._numbers):
            why = why_not(request, self._numbers)
            if why is not None:
                raise _CannotBeGiven(why)
        elif type(request) not in ASKED:
            raise _CannotBeGiven("the client that is used has no such request")

    def produce(self, request: Produce | Send) -> None:
        """A producer can always be started."""

    def consume(self, request: Consume) -> None:
        """So can a consumer."""

    def __getattr__(self, name: str) -> Any:
        raise _CannotBeGiven(f"real processes cannot be told to {name.replace('_', ' ')}")


def has_links(scenario: LoadedScenario | Scenario) -> bool:
    """It does something to links between two brokers."""
    return any(isinstance(peer, int) for peer in map(_peer_of, scenario.steps))


def _peer_of(step: Step) -> int | str:
    peer: int | str = getattr(step.stimulus, "peer", ZOOKEEPER)
    return peer


def check_possible(scenario: LoadedScenario, numbers: tuple[int, ...]) -> None:
    """Raises UserError for the first stimulus that a real cluster cannot be given."""
    if scenario.broker_profiles:
        raise UserError(f"{scenario.source}: broker_profile: one version of Kafka is recorded")
    if scenario.broker_settings:
        raise UserError(f"{scenario.source}: broker_config: a recording has one set of settings")
    for step in scenario.steps:
        try:
            if isinstance(_peer_of(step), int) and numbers < LINKS_FROM:
                raise _CannotBeGiven("before 0.10.2 brokers have no listener of their own")
            step.stimulus.apply(_Possible(numbers))  # type: ignore[arg-type]
        except _CannotBeGiven as why:
            raise UserError(
                f"{scenario.source}: {step.stimulus.name} at {show_us(step.at_us)} cannot be given"
                f" to a real cluster: {why}"
            ) from None
