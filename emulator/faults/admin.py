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


class AddPartitions(Stimulus, frozen=True, tag="add_partitions"):
    """CreatePartitions: `assignment` lists the replicas of each further partition."""

    topic: str
    assignment: tuple[tuple[int, ...], ...]

    def apply(self, world: World) -> None:
        world.admin(self)


class DeleteTopic(Stimulus, frozen=True, tag="delete_topic"):
    """DeleteTopics."""

    topic: str

    def apply(self, world: World) -> None:
        world.admin(self)


class Reassign(Stimulus, frozen=True, tag="reassign"):
    """AlterPartitionReassignments of one partition; without replicas: cancel. `through`: `znode`
    writes the command znode instead."""

    topic: str
    partition: int
    replicas: tuple[int, ...] | None = None
    through: str = "api"

    def apply(self, world: World) -> None:
        world.admin(self)


class PreferredElection(Stimulus, frozen=True, tag="preferred_election"):
    """ElectLeaders of the preferred replicas, for all partitions unless some are named (`topic-0`
    or [topic, 0]). `through`: `znode` writes the command znode instead."""

    partitions: tuple[tuple[str, int], ...] | None = None
    through: str = "api"

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
