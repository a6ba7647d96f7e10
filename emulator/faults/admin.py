"""What an administrator asks for, through Kafka's admin API."""

from __future__ import annotations

from emulator.faults.base import Stimulus, World


class CreateTopic(Stimulus, frozen=True, tag="create_topic"):
    """CreateTopics: `assignment` lists each partition's replicas, the preferred leader first."""

    topic: str
    assignment: tuple[tuple[int, ...], ...]
    config: dict[str, str] = {}

    def apply(self, world: World) -> None:
        world.admin(self)


class TopicConfig(Stimulus, frozen=True, tag="topic_config"):
    """IncrementalAlterConfigs of a topic."""

    topic: str
    config: dict[str, str]

    def apply(self, world: World) -> None:
        world.admin(self)


class BrokerConfig(Stimulus, frozen=True, tag="broker_config"):
    """IncrementalAlterConfigs of one broker (dynamic configuration); sent to that broker."""

    broker: int
    config: dict[str, str]

    def apply(self, world: World) -> None:
        world.admin(self)
