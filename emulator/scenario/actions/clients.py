"""Producers and consumers that start and stop."""

from __future__ import annotations

from emulator.scenario.actions.base import Action, World

REFRESH = "topic.metadata.refresh.interval.ms"
CLIENT_DEFAULTS = {
    REFRESH: 1000,
    "retries": 100_000,
    "message.timeout.ms": 60_000,
    "request.timeout.ms": 30_000,
    "socket.timeout.ms": 60_000,
    "api.version.request.timeout.ms": 10_000,
    "retry.backoff.ms": 100,
    "retry.backoff.max.ms": 1000,
    "reconnect.backoff.ms": 100,
    "reconnect.backoff.max.ms": 10_000,
}
"""The supported producer settings under librdkafka's names, with their defaults."""


class Produce(Action, frozen=True, tag="produce"):
    """A producer with librdkafka's behaviour sends `rate` records per second to each of the
    partitions.

    It sends `batch` records at a time; `record_bytes` is the size of a record; `client` has the
    librdkafka settings that differ from linger.ms 0, retries 100000, message.timeout.ms 60000,
    request.timeout.ms 30000.
    """

    topic: str
    partitions: tuple[int, ...]
    rate: float
    acks: str = "1"
    record_bytes: int = 100
    batch: int = 1
    client: dict[str, int | str] = {}

    def ending(self) -> Action:
        return ProduceStop(self.topic, self.acks)

    def apply(self, world: World) -> None:
        world.clients.produce(self)


class Send(Action, frozen=True, tag="send"):
    """`records` records are sent at once to each of the partitions."""

    topic: str
    partitions: tuple[int, ...]
    records: int = 1
    acks: str = "1"
    record_bytes: int = 100
    client: dict[str, int | str] = {}

    def apply(self, world: World) -> None:
        world.clients.produce(self)


class ProduceStop(Action, frozen=True, tag="produce_stop"):
    """Producers of `topic` send no further records. They still deliver those already queued."""

    topic: str
    acks: str | None = None

    def apply(self, world: World) -> None:
        world.clients.stop_clients(self.topic, self.acks)


class Consume(Action, frozen=True, tag="consume"):
    """A consumer reads the partitions from their start, up to the high watermark.

    `rack` is its `client.rack`: from 2.4 on, with `replica.selector.class` and `broker.rack`, the
    leader may send it to a replica in that rack (KIP-392).
    """

    topic: str
    partitions: tuple[int, ...]
    rack: str = ""

    def apply(self, world: World) -> None:
        world.clients.consume(self)
