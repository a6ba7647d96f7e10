"""What a real Kafka of a version supports: signals, proxies, a real client and Kafka's own
tools."""

from __future__ import annotations

from emulator.scenario.actions.base import ZOOKEEPER, Action
from emulator.scenario.capabilities import (
    Capabilities,
    ClusterCapabilities,
    HostCapabilities,
    Unsupported,
    check_steps,
)
from emulator.scenario.errors import UserError
from emulator.scenario.load import LoadedScenario
from emulator.scenario.schema import Scenario
from emulator.worlds.real_kafka.clients import REQUESTS
from emulator.worlds.real_kafka.tools import is_by_tool, unsupported_reason
from emulator.worlds.zookeeper import OwnServer

LINKS_FROM = (0, 10, 2)
"""From here on a broker can have a listener of its own for other brokers (KIP-103)."""
SUBJECT = "real processes"
Version = tuple[int, ...]


class LinksOfKafka(Capabilities):
    """Proxies between brokers and in front of ZooKeeper."""

    subject = SUBJECT

    def __init__(self, version: Version) -> None:
        self._version = version

    def delay(self, broker: int, peer: int | str, *_: object) -> None:
        # Without a separate listener a proxy would stand in front of clients too.
        if isinstance(peer, int) and self._version < LINKS_FROM:
            raise Unsupported("before 0.10.2 brokers have no listener of their own")

    heal = link_latency = lose = narrow = delay

    def cut(self, broker: int, peer: int | str, ways: str = "both") -> None:
        if peer == ZOOKEEPER and ways != "both":
            raise Unsupported("the proxy in front of ZooKeeper cuts both ways")
        self.delay(broker, peer)


class HostOfKafka(HostCapabilities):
    """Signals to a JVM."""

    subject = SUBJECT

    pause = resume = kill = terminate = Capabilities.supported

    def __init__(self, version: Version) -> None:
        self.links = LinksOfKafka(version)

    def lose_from_disk(self, what: str) -> None:
        if what == "unflushed":
            raise Unsupported(
                "the operating system keeps unflushed records; use --target simulated"
            )


class ServerOfKafka(Capabilities):
    """A server whose sessions belong to real brokers."""

    subject = SUBJECT

    pause = resume = stop = start = OwnServer.pause
    drop_connection = Capabilities.supported


class ClientsOfKafka(Capabilities):
    """The requests of librdkafka and of the version's own tools."""

    subject = SUBJECT

    produce = consume = stop_clients = Capabilities.supported

    def __init__(self, version: Version) -> None:
        self._version = version

    def admin(self, request: Action) -> None:
        if is_by_tool(request, self._version):
            why = unsupported_reason(request, self._version)
            if why is not None:
                raise Unsupported(why)
        elif type(request) not in REQUESTS:
            raise Unsupported("the client that is used has no such request")


def capabilities_of_kafka(version: Version) -> ClusterCapabilities:
    """The capabilities of a cluster of one version."""
    return ClusterCapabilities.of_one_kind(
        HostOfKafka(version), ServerOfKafka(), ClientsOfKafka(version)
    )


def has_links(scenario: LoadedScenario | Scenario) -> bool:
    """Whether the scenario has actions on links between two brokers."""
    return any(isinstance(getattr(s.action, "peer", ZOOKEEPER), int) for s in scenario.steps)


def check_supported(scenario: LoadedScenario, version: Version) -> None:
    """Raises UserError for the first action that a real cluster does not support."""
    if scenario.broker_profiles:
        raise UserError(f"{scenario.source}: broker_profile: one version of Kafka is recorded")
    if scenario.broker_settings:
        raise UserError(f"{scenario.source}: broker_config: a recording has one set of settings")
    if scenario.hosts:
        raise UserError(f"{scenario.source}: hosts: every broker of a recording is real Kafka")
    check_steps(scenario, capabilities_of_kafka(version), "a real cluster")
