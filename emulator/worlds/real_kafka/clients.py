"""Clients of a real cluster: producers and an administrator, through librdkafka.

Producers have the manners that recordings describe (linger.ms 0, metadata every second, retries
without end), and a driver that hands records over at a rate and asks for results in every round.
What librdkafka has no call for, AlterPartitionReassignments, is written by hand to the controller.
Tells what happened through call-backs; it must not know what becomes of it.
"""

from __future__ import annotations

import datetime as dt
import io
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import confluent_kafka.admin
import msgspec
from confluent_kafka import ElectionType, KafkaError, KafkaException, Producer, TopicPartition
from kio.schema.alter_partition_reassignments.v0 import request as reassignment
from kio.schema.alter_partition_reassignments.v0.response import AlterPartitionReassignmentsResponse
from kio.schema.errors import ErrorCode
from kio.schema.request_header.v2.header import RequestHeader
from kio.schema.response_header.v1.header import ResponseHeader
from kio.schema.types import BrokerId, TopicName
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i32, i32Timedelta

from emulator.scenario.actions import admin
from emulator.scenario.actions.base import Stimulus
from emulator.scenario.actions.clients import Produce, Send

kafka_admin: Any = confluent_kafka.admin
"""It does not say which of its names are public."""

PRODUCER = {
    "linger.ms": 0,
    "topic.metadata.refresh.interval.ms": 1000,
    "retries": 100_000,
    "message.timeout.ms": 60_000,
    "request.timeout.ms": 30_000,
}
SPOKEN_FROM = (0, 10)
"""librdkafka speaks to no broker before this version."""
ClientSettings = dict[str, str | int | bool]
ADMIN_TIMEOUT_S = 60.0
_QUIET = {"log_level": 0}


class Produced(msgspec.Struct, frozen=True):
    """What became of one record: when it was handed over, when its driver was told, wall clock in
    microseconds."""

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
    """One producer's thread: rounds at a rate, until it is told to stop or has sent what it was
    to; then it waits for what is still on its way."""

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
        """No further records; those that were handed over go on."""
        self._stop.set()

    def close(self, patience_s: float) -> None:
        """Wait that long for results, and let the rest go."""
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
                self._stop.wait(max(0.0, began_s + rounds * period_s - time.monotonic()))
        while len(self._producer) and not self._over.is_set():
            self._producer.poll(0.05)
        self._producer.purge()
        self._producer.poll(0)
        del self._producer  # closed: it would ask for its topic's metadata as long as it lives

    def _hand_over(self, records: int) -> None:
        value = bytes(self.request.record_bytes)
        for _ in range(records):
            for one in self.request.partitions:
                told = partial(self._told, wall_us())
                try:
                    self._producer.produce(self.request.topic, value, partition=one, callback=told)
                    self.sent += 1
                except BufferError:
                    return  # as a driver does whose client is full: the round is left out

    def _told(self, handed_us: int, error: KafkaError | None, message: Any) -> None:
        if error is not None and error.code() == KafkaError._PURGE_QUEUE:
            return
        self._on_result(
            Produced(
                self._name,
                message.topic(),
                message.partition(),
                self.request.acks,
                "ok" if error is None else error.name().removeprefix("_"),
                message.offset() if error is None and message.offset() is not None else -1,
                handed_us,
                wall_us(),
            )
        )


class Administrator:
    """Does what an administrator asks for, one request at a time, and says what came of it."""

    def __init__(self, reach: ClientSettings) -> None:
        self._client = kafka_admin.AdminClient({**reach, **_QUIET})

    def live(self, timeout_s: float = 1.0) -> tuple[int, ...]:
        """Who is there, as some broker's metadata has it; nobody if none answers."""
        try:
            return tuple(sorted(self._client.list_topics(timeout=timeout_s).brokers))
        except KafkaException:
            return ()

    def ask(self, request: Stimulus) -> str:
        """`NONE`, or the error's name."""
        try:
            return self._ask(request)
        except KafkaException as error:
            return str(error.args[0].name()).removeprefix("_")

    def _ask(self, request: Stimulus) -> str:
        match request:
            case admin.Reassign():
                return self._reassign(request)
            case admin.PreferredElection() | admin.UncleanElection():
                kind = _ELECTIONS[type(request)]
                named = request.partitions
                parts = None if named is None else [TopicPartition(t, p) for t, p in named]
                answers = self._client.elect_leaders(kind, parts).result(ADMIN_TIMEOUT_S)
                return _first_error(answers.values())
            case _:
                futures = _CALLS[type(request)](self._client, request)
                for future in futures.values():
                    future.result(ADMIN_TIMEOUT_S)
                return "NONE"

    def _reassign(self, request: admin.Reassign) -> str:
        """AlterPartitionReassignments v0 to the controller (KIP-455)."""
        cluster = self._client.list_topics(timeout=ADMIN_TIMEOUT_S)
        controller = cluster.brokers[cluster.controller_id]
        replicas = None if request.replicas is None else tuple(map(BrokerId, request.replicas))
        one = reassignment.ReassignablePartition(
            partition_index=i32(request.partition), replicas=replicas
        )
        topic = reassignment.ReassignableTopic(name=TopicName(request.topic), partitions=(one,))
        asked = reassignment.AlterPartitionReassignmentsRequest(
            timeout=i32Timedelta.parse(dt.timedelta(seconds=ADMIN_TIMEOUT_S)),
            topics=(topic,),
        )
        answer = _exchange((str(controller.host), int(controller.port)), asked)
        inside = [p.error_code for t in answer.responses for p in t.partitions]
        errors = [code for code in (answer.error_code, *inside) if code is not ErrorCode.none]
        return errors[0].name.upper() if errors else "NONE"


_ELECTIONS = {
    admin.PreferredElection: ElectionType.PREFERRED,
    admin.UncleanElection: ElectionType.UNCLEAN,
}


def _create_topic(client: Any, request: admin.CreateTopic) -> Any:
    new = kafka_admin.NewTopic(
        request.topic,
        num_partitions=len(request.assignment) or request.num_partitions,
        **_placed(request),
        config=request.config,
    )
    return client.create_topics([new], operation_timeout=ADMIN_TIMEOUT_S)


def _placed(request: admin.CreateTopic) -> dict[str, Any]:
    if request.assignment:
        return {"replica_assignment": [list(one) for one in request.assignment]}
    return {"replication_factor": request.replication_factor}


def _add_partitions(client: Any, request: admin.AddPartitions) -> Any:
    before = len(
        client.list_topics(request.topic, ADMIN_TIMEOUT_S).topics[request.topic].partitions
    )
    total = request.count if request.count > 0 else before + len(request.assignment)
    placed = [list(one) for one in request.assignment]
    more = {"replica_assignment": placed} if placed else {}
    return client.create_partitions([kafka_admin.NewPartitions(request.topic, total, **more)])


def _delete_topic(client: Any, request: admin.DeleteTopic) -> Any:
    return client.delete_topics([request.topic], operation_timeout=1.0)


def _alter(client: Any, kind: Any, name: str, config: dict[str, str]) -> Any:
    entries = [
        kafka_admin.ConfigEntry(key, value, incremental_operation=kafka_admin.AlterConfigOpType.SET)
        for key, value in config.items()
    ]
    return client.incremental_alter_configs(
        [kafka_admin.ConfigResource(kind, name, incremental_configs=entries)]
    )


_CALLS: dict[type, Callable[[Any, Any], Any]] = {
    admin.CreateTopic: _create_topic,
    admin.AddPartitions: _add_partitions,
    admin.DeleteTopic: _delete_topic,
    admin.TopicConfig: lambda client, it: _alter(
        client, kafka_admin.ResourceType.TOPIC, it.topic, it.config
    ),
    admin.BrokerConfig: lambda client, it: _alter(
        client, kafka_admin.ResourceType.BROKER, str(it.broker), it.config
    ),
}
REQUESTS = frozenset({*_CALLS, *_ELECTIONS, admin.Reassign})
"""What an administrator can be asked for."""


def _first_error(answers: Any) -> str:
    found = [one for one in answers if one is not None]
    return str(found[0].args[0].name()) if found else "NONE"


def _exchange(address: tuple[str, int], request: Any) -> AlterPartitionReassignmentsResponse:
    """One request on a connection of its own."""
    header = RequestHeader(
        request_api_key=type(request).__api_key__,
        request_api_version=type(request).__version__,
        correlation_id=i32(1),
        client_id="isr",
    )
    body = io.BytesIO()
    entity_writer(RequestHeader)(body, header)
    entity_writer(type(request))(body, request)
    with socket.create_connection(address, ADMIN_TIMEOUT_S) as connection:
        connection.sendall(struct.pack("!i", len(body.getvalue())) + body.getvalue())
        (size,) = struct.unpack("!i", _exactly(connection, 4))
        data = _exactly(connection, size)
    _, at = entity_reader(ResponseHeader)(data, 0)
    answer, _ = entity_reader(AlterPartitionReassignmentsResponse)(data, at)
    return answer


def _exactly(connection: socket.socket, size: int) -> bytes:
    pieces: list[bytes] = []
    while size > 0:
        piece = connection.recv(size)
        if not piece:
            raise ConnectionError("the broker closed the connection")
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def client_settings(addresses: Sequence[str]) -> ClientSettings:
    """Where brokers are."""
    return {"bootstrap.servers": ",".join(addresses)}
