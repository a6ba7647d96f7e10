"""Clients of a real cluster: producers and an administrator, through librdkafka.

Producers have the settings that recordings describe (linger.ms 0, metadata every second, unlimited
retries), and a driver that hands over records at a rate and collects results in every round.
AlterPartitionReassignments, which librdkafka lacks, is sent by our own client. Results are reported
through callbacks.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import confluent_kafka.admin
import msgspec
from confluent_kafka import ElectionType, KafkaError, KafkaException, Producer, TopicPartition
from tenacity import RetryCallState, Retrying, retry_if_result, stop_after_delay, wait_fixed

from emulator.kafka.protocol.messages import AdminResponse, AlterPartitionReassignmentsRequest
from emulator.scenario.actions import admin
from emulator.scenario.actions.base import Action
from emulator.scenario.actions.clients import Produce, Send
from emulator.trace import values
from emulator.worlds.clients.blocking_client import send_request
from emulator.worlds.real_kafka.release import Release

if TYPE_CHECKING:
    from confluent_kafka import Message

kafka_admin: Any = confluent_kafka.admin
"""It does not say which of its names are public."""

PRODUCER = {
    "linger.ms": 0,
    "topic.metadata.refresh.interval.ms": 1000,
    "retries": 100_000,
    "message.timeout.ms": 60_000,
    "request.timeout.ms": 30_000,
}
API_VERSIONS_FROM = (0, 10)
"""From here on a broker says which requests it knows (KIP-35); of an older one librdkafka
has to be given the version."""
ClientSettings = dict[str, str | int | bool]
ADMIN_TIMEOUT_S = 60.0
_AGAIN_S = 0.1
"""Until a refused command is repeated: meanwhile a new controller may announce itself."""
_QUIET = {"log_level": 0}


class Produced(msgspec.Struct, frozen=True):
    """The result of one record: when it was handed over and when its driver received the result,
    wall clock in microseconds."""

    client: str
    topic: str
    partition: int
    acks: str
    result: str
    offset: int
    handed_us: int
    told_us: int


def wall_us() -> int:
    return time.time_ns() // 1000


class Driver:
    """One producer's thread: rounds at a rate, until it is stopped or has sent its records; it then
    waits for those in flight."""

    def __init__(
        self,
        name: str,
        request: Produce | Send,
        reach: ClientSettings,
        on_result: Callable[[Produced], object],
    ) -> None:
        self.request, self._name, self._on_result = request, name, on_result
        self.sent = 0
        self._stop, self._over = threading.Event(), threading.Event()
        settings = {**PRODUCER, **_QUIET, **request.client, "acks": request.acks}
        self._producer = Producer({**reach, **settings})
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Hand over no more records; those already handed over are still delivered."""
        self._stop.set()

    def close(self, patience_s: float) -> None:
        """Wait this long for results, then drop the rest."""
        self.stop()
        self._thread.join(patience_s)
        self._over.set()
        self._thread.join(5.0)

    def _run(self) -> None:
        request = self.request
        if isinstance(request, Send):
            self._hand_over(request.records)
        else:
            period_s, began_s = request.batch / request.rate, time.monotonic()
            rounds = 0
            while not self._stop.is_set():
                self._hand_over(request.batch)
                rounds += 1
                self._producer.poll(0)
                # Counted from the start: rounds do not drift by the duration of a hand-over.
                self._stop.wait(max(0.0, began_s + rounds * period_s - time.monotonic()))
        while len(self._producer) and not self._over.is_set():
            self._producer.poll(0.05)
        # The remaining records get their result now: purged (`_done`).
        self._producer.purge()
        self._producer.poll(0)
        del self._producer  # closed: it would ask for its topic's metadata as long as it lives

    def _hand_over(self, records: int) -> None:
        value = bytes(self.request.record_bytes)
        for _ in range(records):
            for one in self.request.partitions:
                done = partial(self._done, wall_us())
                try:
                    self._producer.produce(self.request.topic, value, partition=one, callback=done)
                    self.sent += 1
                except BufferError:
                    return  # as a driver does whose client is full: the round is left out
                except KafkaException as refusal:
                    if refusal.args[0].code() != KafkaError._UNKNOWN_TOPIC:
                        raise
                    return  # the topic was deleted: the client takes no more records

    def _done(self, handed_us: int, error: KafkaError | None, message: Message) -> None:
        if error is not None and error.code() == KafkaError._PURGE_QUEUE:
            return  # we let it go: nobody knows what became of it
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None
        assert partition is not None
        self._on_result(
            Produced(
                self._name,
                topic,
                partition,
                self.request.acks,
                "ok" if error is None else error.name().removeprefix("_"),
                offset if error is None and offset is not None else -1,
                handed_us,
                wall_us(),
            )
        )


class Administrator:
    """Carries out admin requests one at a time and reports the results."""

    def __init__(self, reach: ClientSettings) -> None:
        self._client = kafka_admin.AdminClient({**reach, **_QUIET})

    def live(self, timeout_s: float = 1.0) -> tuple[int, ...]:
        """The live brokers in some broker's metadata; empty if none responds."""
        try:
            return tuple(sorted(self._client.list_topics(timeout=timeout_s).brokers))
        except KafkaException:
            return ()

    def replicas_of(self, topic: str) -> list[list[int]]:
        """The replicas of each partition, in the order of their numbers."""
        partitions = self._client.list_topics(topic, ADMIN_TIMEOUT_S).topics[topic].partitions
        return [list(partitions[number].replicas) for number in sorted(partitions)]

    def do(self, request: Action) -> str:
        """Returns `NONE`, or the error's name. librdkafka remembers the controller, would wait for
        a dead one, and does not repeat what a former one has refused; this does."""

        def find_controller(_: RetryCallState) -> None:
            self.live()

        repeating = Retrying(
            before=find_controller,
            retry=retry_if_result(lambda result: result == "NOT_CONTROLLER"),
            wait=wait_fixed(_AGAIN_S),
            stop=stop_after_delay(ADMIN_TIMEOUT_S),
            retry_error_callback=lambda state: state.outcome.result() if state.outcome else "",
        )
        return str(repeating(self._send, request))

    def _send(self, request: Action) -> str:
        client = self._client
        try:
            match request:
                case admin.Reassign():
                    return self._reassign(request)
                case admin.PreferredElection() | admin.UncleanElection():
                    parts = request.partitions and [
                        TopicPartition(topic, number) for topic, number in request.partitions
                    ]
                    kind = _ELECTIONS[type(request)]
                    answers = client.elect_leaders(kind, parts).result(ADMIN_TIMEOUT_S)
                    errors = (error for error in answers.values() if error is not None)
                    return next((str(error.args[0].name()) for error in errors), "NONE")
                case admin.CreateTopic():
                    futures = client.create_topics(
                        [_new_topic(request)], operation_timeout=ADMIN_TIMEOUT_S
                    )
                case admin.AddPartitions():
                    futures = client.create_partitions([self._more_partitions(request)])
                case admin.DeleteTopic():
                    futures = client.delete_topics([request.topic], operation_timeout=1.0)
                case admin.DeleteRecords(topic=name, partitions=numbers, before=before):
                    # librdkafka too has -1 for the high watermark.
                    offset = -1 if before is None else before
                    futures = client.delete_records(
                        [TopicPartition(name, number, offset) for number in numbers]
                    )
                case admin.TopicConfig(topic=name) | admin.BrokerConfig(broker=name):
                    is_topic = isinstance(request, admin.TopicConfig)
                    kinds = kafka_admin.ResourceType
                    entries = [
                        kafka_admin.ConfigEntry(
                            key, value, incremental_operation=kafka_admin.AlterConfigOpType.SET
                        )
                        for key, value in request.config.items()
                    ]
                    resource = kafka_admin.ConfigResource(
                        kinds.TOPIC if is_topic else kinds.BROKER,
                        str(name),
                        incremental_configs=entries,
                    )
                    futures = client.incremental_alter_configs([resource])
                case _:
                    raise AssertionError(f"{request.name}: capabilities should have refused it")
            for future in futures.values():
                future.result(ADMIN_TIMEOUT_S)
        except KafkaException as error:
            return str(error.args[0].name()).removeprefix("_")
        return "NONE"

    def _more_partitions(self, request: admin.AddPartitions) -> Any:
        before = len(self.replicas_of(request.topic))
        total = request.count if request.count > 0 else before + len(request.assignment)
        replicas = [list(one) for one in request.assignment]
        # librdkafka treats an empty assignment as invalid.
        more = {"replica_assignment": replicas} if replicas else {}
        return kafka_admin.NewPartitions(request.topic, total, **more)

    def _reassign(self, request: admin.Reassign) -> str:
        """AlterPartitionReassignments to the controller (KIP-455)."""
        cluster = self._client.list_topics(timeout=ADMIN_TIMEOUT_S)
        controller = cluster.brokers[cluster.controller_id]
        partition = values.TopicPartition(request.topic, request.partition)
        replicas = None if request.replicas is None else tuple(request.replicas)
        reassignment = AlterPartitionReassignmentsRequest(((partition, replicas),))
        server = str(controller.host), int(controller.port)
        response = send_request(server, reassignment, ADMIN_TIMEOUT_S)
        assert isinstance(response, AdminResponse)
        return response.error.name


def _new_topic(request: admin.CreateTopic) -> Any:
    if request.assignment:
        replicas = [list(one) for one in request.assignment]
        size = {"num_partitions": len(replicas), "replica_assignment": replicas}
    else:
        factor = request.replication_factor
        size = {"num_partitions": request.num_partitions, "replication_factor": factor}
    return kafka_admin.NewTopic(request.topic, config=request.config, **size)


_ELECTIONS = {
    admin.PreferredElection: ElectionType.PREFERRED,
    admin.UncleanElection: ElectionType.UNCLEAN,
}
REQUESTS = frozenset(
    {
        *_ELECTIONS,
        admin.AddPartitions,
        admin.BrokerConfig,
        admin.CreateTopic,
        admin.DeleteRecords,
        admin.DeleteTopic,
        admin.Reassign,
        admin.TopicConfig,
    }
)
"""What an administrator can be asked for."""


def client_settings(addresses: Sequence[str], release: Release) -> ClientSettings:
    """Where brokers are, and which requests they know where they cannot say it themselves."""
    settings: ClientSettings = {"bootstrap.servers": ",".join(addresses)}
    if release.numbers < API_VERSIONS_FROM:
        settings |= {"api.version.request": False, "broker.version.fallback": release.version}
    return settings
