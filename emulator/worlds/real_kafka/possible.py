"""What a real cluster can be given: asked of every stimulus before anything starts.

A world that does nothing and refuses what cannot be done with signals, proxies in front
of ZooKeeper and between brokers, a real client and Kafka's own tools. Knows the port of stimuli,
no process.
"""

from __future__ import annotations

from emulator.scenario.actions.base import Stimulus
from emulator.scenario.actions.clients import Consume, Produce, Send
from emulator.scenario.capabilities import CannotBeGiven, Possible, check_steps
from emulator.scenario.errors import UserError
from emulator.scenario.load import LoadedScenario
from emulator.scenario.schema import Scenario
from emulator.worlds.real_kafka.clients import ASKED, SPOKEN_FROM
from emulator.worlds.real_kafka.tools import is_by_tool, why_not

ZOOKEEPER = "zookeeper"
LINKS_FROM = (0, 10, 2)
"""From here on a broker can have a listener of its own for other brokers (KIP-103)."""


class _Possible(Possible):
    """The port of stimuli, for asking."""

    whom = "real processes"

    def __init__(self, numbers: tuple[int, ...]) -> None:
        self._numbers = numbers

    pause = resume = kill = terminate = Possible.fine
    stop_zookeeper = start_zookeeper = stop_clients = drop_connection = Possible.fine
    delay = heal = link_latency = lose = narrow = Possible.fine

    def consider(self, stimulus: Stimulus) -> None:
        if isinstance(_peer_of(stimulus), int) and self._numbers < LINKS_FROM:
            raise CannotBeGiven("before 0.10.2 brokers have no listener of their own")

    def start_again(self, broker: int, registered_ms: int | None) -> None:
        if registered_ms is not None:
            raise CannotBeGiven("nobody can say when a JVM registers")

    def lose_from_disk(self, broker: int, what: str) -> None:
        if what == "unflushed":
            raise CannotBeGiven("what the operating system was given, no signal takes back")

    def cut(self, broker: int, peer: int | str, ways: str = "both") -> None:
        if peer == ZOOKEEPER and ways != "both":
            raise CannotBeGiven("the proxy in front of ZooKeeper cuts both ways")

    def admin(self, request: Stimulus) -> None:
        if is_by_tool(request, self._numbers):
            why = why_not(request, self._numbers)
            if why is not None:
                raise CannotBeGiven(why)
        elif type(request) not in ASKED:
            raise CannotBeGiven("the client that is used has no such request")

    def produce(self, request: Produce | Send) -> None:
        self._clients()

    def consume(self, request: Consume) -> None:
        self._clients()

    def _clients(self) -> None:
        if self._numbers < SPOKEN_FROM:
            raise CannotBeGiven("the client library speaks to no broker before 0.10")


def has_links(scenario: LoadedScenario | Scenario) -> bool:
    """It does something to links between two brokers."""
    return any(isinstance(_peer_of(step.stimulus), int) for step in scenario.steps)


def _peer_of(stimulus: Stimulus) -> int | str:
    peer: int | str = getattr(stimulus, "peer", ZOOKEEPER)
    return peer


def check_possible(scenario: LoadedScenario, numbers: tuple[int, ...]) -> None:
    """Raises UserError for the first stimulus that a real cluster cannot be given."""
    if scenario.broker_profiles:
        raise UserError(f"{scenario.source}: broker_profile: one version of Kafka is recorded")
    if scenario.broker_settings:
        raise UserError(f"{scenario.source}: broker_config: a recording has one set of settings")
    check_steps(scenario, _Possible(numbers), "a real cluster")
