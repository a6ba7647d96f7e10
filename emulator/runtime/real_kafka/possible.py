"""What a real cluster can be given: asked of every stimulus before anything starts.

A world that does nothing and refuses what cannot be done with signals, a proxy in front of
ZooKeeper and a real client. Knows the port of stimuli, no process.
"""

from __future__ import annotations

from typing import Any

from emulator.faults.base import Stimulus
from emulator.faults.clients import Produce, Send
from emulator.runtime.real_kafka.clients import ASKED
from emulator.scenario.errors import UserError
from emulator.scenario.load import LoadedScenario
from emulator.scenario.units import show_us

ZOOKEEPER = "zookeeper"
MODERN = (1, 0)
"""From here on librdkafka's admin client is understood."""


class _CannotBeGiven(Exception):
    """Why a real cluster cannot be given a stimulus."""


class _Possible:
    """The port of stimuli, for asking: what is not here cannot be done."""

    def _fine(self, *_: object, **__: object) -> None:
        """It can be done, whatever its parameters."""

    pause = resume = kill = terminate = _fine
    stop_zookeeper = start_zookeeper = stop_clients = heal = delay = drop_connection = _fine

    def runs(self, broker: int) -> bool:
        return False

    def start_again(self, broker: int, registered_ms: int | None) -> None:
        if registered_ms is not None:
            raise _CannotBeGiven("nobody can say when a JVM registers")

    def lose_from_disk(self, broker: int, what: str) -> None:
        if what == "unflushed":
            raise _CannotBeGiven("what the operating system was given, no signal takes back")

    def cut(self, broker: int, peer: int | str, ways: str = "both") -> None:
        if peer != ZOOKEEPER:
            raise _CannotBeGiven("there is no proxy between two brokers")

    def admin(self, request: Stimulus) -> None:
        if type(request) not in ASKED:
            raise _CannotBeGiven("the client that is used has no such request")
        if getattr(request, "through", "api") != "api":
            raise _CannotBeGiven("command znodes are not written here")

    def produce(self, request: Produce | Send) -> None:
        """A producer can always be started."""

    def __getattr__(self, name: str) -> Any:
        raise _CannotBeGiven(f"real processes cannot be told to {name.replace('_', ' ')}")


def check_possible(scenario: LoadedScenario, numbers: tuple[int, ...]) -> None:
    """Raises UserError for the first stimulus that a real cluster cannot be given."""
    if numbers < MODERN:
        raise UserError(
            f"Kafka {'.'.join(map(str, numbers))}: its clients' protocol is older than the client"
            " library that is used; 1.0 to 3.9 can be recorded"
        )
    if scenario.broker_profiles:
        raise UserError(f"{scenario.source}: broker_profile: one version of Kafka is recorded")
    if scenario.broker_settings:
        raise UserError(f"{scenario.source}: broker_config: a recording has one set of settings")
    for step in scenario.steps:
        try:
            _check_peers(step.stimulus)
            step.stimulus.apply(_Possible())  # type: ignore[arg-type]
        except _CannotBeGiven as why:
            raise UserError(
                f"{scenario.source}: {step.stimulus.name} at {show_us(step.at_us)} cannot be given"
                f" to a real cluster: {why}"
            ) from None


def _check_peers(stimulus: Stimulus) -> None:
    """Of links, only those to ZooKeeper have a proxy."""
    if getattr(stimulus, "peer", ZOOKEEPER) != ZOOKEEPER:
        raise _CannotBeGiven("there is no proxy between two brokers")
    if getattr(stimulus, "ways", "both") != "both":
        raise _CannotBeGiven("the proxy cuts both ways")
