"""Requests of an administrator through Kafka's admin API."""

from __future__ import annotations

from typing import ClassVar, Literal

from emulator.scenario.actions.base import Action, World
from emulator.scenario.actions.drawing import Draw

_RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
_THROTTLED = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
_NO_LIMIT = str((1 << 63) - 1)


class AdminRequest(Action, frozen=True):
    """A request that a client sends, and whose response is awaited."""

    def apply(self, world: World) -> None:
        world.clients.admin(self)


class CreateTopic(AdminRequest, frozen=True, tag="create_topic"):
    """CreateTopics: `assignment` lists each partition's replicas, the preferred leader first;
    without it the controller's broker assigns `num_partitions` and `replication_factor` (-1: its
    defaults) as Kafka does."""

    makes_topic: ClassVar[bool] = True
    topic: str
    assignment: tuple[tuple[int, ...], ...] = ()
    config: dict[str, str] = {}
    num_partitions: int = -1
    replication_factor: int = -1

    weight = 2

    @classmethod
    def drawn(cls, draw: Draw) -> Action:
        topic, factor = draw.new_topic(), draw.between(1, min(3, len(draw.brokers)))
        draw.topics[topic] = [draw.replicas(factor) for _ in range(draw.between(1, 4))]
        return cls(topic, tuple(draw.topics[topic]))

    def wrong(self) -> str | None:
        if self.assignment and max(self.num_partitions, self.replication_factor) > 0:
            return "an assignment, or num_partitions and replication_factor"
        return None

    def enter_topics(self, topics: dict[str, int]) -> None:
        topics[self.topic] = len(self.assignment) or max(self.num_partitions, 1)


class AddPartitions(AdminRequest, frozen=True, tag="add_partitions"):
    """CreatePartitions: `assignment` lists the replicas of each additional partition; without it
    the topic grows to `count` partitions in total."""

    topic: str
    assignment: tuple[tuple[int, ...], ...] = ()
    count: int = -1

    weight = 2

    @classmethod
    def drawn(cls, draw: Draw) -> Action | None:
        topic = draw.topic
        if topic is None:
            return None
        factor = len(draw.topics[topic][0])
        added = [draw.replicas(factor) for _ in range(draw.between(1, 2))]
        draw.topics[topic] += added
        return cls(topic, tuple(added))

    def wrong(self) -> str | None:
        if bool(self.assignment) == (self.count > 0):
            return "expected either an assignment or a count"
        return None

    def enter_topics(self, topics: dict[str, int]) -> None:
        before = topics.get(self.topic, 0)
        topics[self.topic] = max(before, before + len(self.assignment), self.count)


class DeleteTopic(AdminRequest, frozen=True, tag="delete_topic"):
    """DeleteTopics."""

    topic: str

    weight = 1

    @classmethod
    def drawn(cls, draw: Draw) -> Action | None:
        topic = draw.topic
        if topic is None or len(draw.topics) < 2:
            return None
        del draw.topics[topic]
        return cls(topic)


class DeleteRecords(AdminRequest, frozen=True, tag="delete_records"):
    """DeleteRecords: everything before an offset, in each of these partitions; without `before`,
    everything that is committed."""

    topic: str
    partitions: tuple[int, ...] = (0,)
    before: int | None = None


class Reassign(AdminRequest, frozen=True, tag="reassign"):
    """AlterPartitionReassignments of one partition; without replicas: cancel. `through`: `znode`
    writes the command znode instead."""

    topic: str
    partition: int
    replicas: tuple[int, ...] | None = None
    through: Literal["api", "znode"] = "api"

    weight = 4

    @classmethod
    def drawn(cls, draw: Draw) -> Action | None:
        topic = draw.topic
        if topic is None:
            return None
        partition = draw.below(len(draw.topics[topic]))
        if draw.chance(15):
            return cls(topic, partition)
        replicas = draw.replicas(draw.between(1, min(3, len(draw.brokers))))
        return cls(topic, partition, replicas, "znode" if draw.chance(30) else "api")

    def wrong(self) -> str | None:
        if self.replicas is None and self.through == "znode":
            return "a reassignment is cancelled through the API"
        return None


class PreferredElection(AdminRequest, frozen=True, tag="preferred_election"):
    """ElectLeaders of the preferred replicas, for all partitions unless some are given (`topic-0`
    or [topic, 0]). `through`: `znode` writes the command znode instead."""

    partitions: tuple[tuple[str, int], ...] | None = None
    through: Literal["api", "znode"] = "api"

    means_all = True
    weight = 3

    @classmethod
    def drawn(cls, draw: Draw) -> Action:
        through: Literal["api", "znode"] = draw.one_of(("api", "znode"))
        return cls(through=through)


class UncleanElection(AdminRequest, frozen=True, tag="unclean_election"):
    """ElectLeaders with unclean election: any live replica where no ISR member is live, regardless
    of the configuration (KIP-460). For all partitions unless some are given."""

    partitions: tuple[tuple[str, int], ...] | None = None

    means_all = True
    weight = 1

    @classmethod
    def drawn(cls, draw: Draw) -> Action | None:
        topic = draw.topic
        return None if topic is None else cls(((topic, draw.below(len(draw.topics[topic]))),))


class TopicConfig(AdminRequest, frozen=True, tag="topic_config"):
    """IncrementalAlterConfigs of a topic."""

    topic: str
    config: dict[str, str]

    weight = 2

    @classmethod
    def drawn(cls, draw: Draw) -> Action | None:
        topic = draw.topic
        if topic is None:
            return None
        if draw.chance(30):
            return cls(topic, {"unclean.leader.election.enable": "true"})
        if draw.chance(50):
            return cls(topic, dict.fromkeys(_THROTTLED, "*"))
        return cls(topic, {"min.insync.replicas": str(draw.between(1, 2))})


class BrokerConfig(AdminRequest, frozen=True, tag="broker_config"):
    """IncrementalAlterConfigs of one broker (dynamic configuration), sent to that broker.
    Replication quotas are undone by setting Kafka's default: no limit."""

    broker: int
    config: dict[str, str]

    weight = 2

    @classmethod
    def drawn(cls, draw: Draw) -> Action:
        """Quotas for the throttled replicas (see TopicConfig)."""
        rate = str(draw.spread(500, 200_000))
        names = draw.one_of((_RATES, _RATES[:1], _RATES[1:]))
        return cls(draw.broker, dict.fromkeys(names, rate))

    def holds(self) -> tuple[object, ...]:
        return (self.name, self.broker)

    def healed(self) -> Action | None:
        if set(self.config) <= set(_RATES):
            return BrokerConfig(self.broker, dict.fromkeys(self.config, _NO_LIMIT))
        return None
