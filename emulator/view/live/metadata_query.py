"""What each broker of a running cluster has in its metadata cache: asked over Kafka's protocol.

Owns one connection per broker and the Metadata requests on them; any Kafka from 0.10 on answers,
and so do brokers of ours. Read-only: no topic is created by asking. A broker that does not answer
in time has no view, with the reason. It must know nothing of ZooKeeper, and nothing of a screen.
"""

from __future__ import annotations

import io
import socket
import struct
from collections.abc import Mapping
from typing import Any

import msgspec

_PATIENCE_S = 1.0
_FRAME_MAX = 1 << 26
_METADATA, _API_VERSIONS = 3, 18
_NEWEST = 7
"""The first Metadata version with leader epochs (KIP-320); what came later is of no use here."""


class Told(msgspec.Struct, frozen=True):
    """A partition in a broker's metadata cache."""

    leader: int
    leader_epoch: int | None
    isr: tuple[int, ...]


class Answer(msgspec.Struct, frozen=True):
    """What a broker said, or why it did not."""

    controller: int | None = None
    partitions: dict[str, Told] = {}
    problem: str = ""


class AskedBrokers:
    """Connections to brokers, kept while they hold."""

    def __init__(self) -> None:
        self._connections: dict[tuple[str, int], _Connection] = {}

    def ask(self, brokers: Mapping[int, tuple[str, int]]) -> dict[int, Answer]:
        """Every broker's view; those that are not asked any more are hung up on."""
        for where in set(self._connections) - set(brokers.values()):
            self._connections.pop(where).close()
        return {broker: self._ask(where) for broker, where in sorted(brokers.items())}

    def _ask(self, where: tuple[str, int]) -> Answer:
        try:
            if where not in self._connections:
                self._connections[where] = _Connection(where)
            return self._connections[where].metadata()
        except (OSError, ValueError, ArithmeticError) as error:
            connection = self._connections.pop(where, None)
            if connection is not None:
                connection.close()
            return Answer(problem=" ".join(str(error).split()) or type(error).__name__)

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()


class _Connection:
    def __init__(self, where: tuple[str, int]) -> None:
        self._number = 0
        self._socket = socket.create_connection(where, _PATIENCE_S)
        self._socket.settimeout(_PATIENCE_S)
        try:
            self._version = self._newest_version()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._socket.close()

    def _newest_version(self) -> int:
        """The newest Metadata version that both sides know."""
        answer = self._ask(_API_VERSIONS, 0, b"")
        error, count = struct.unpack_from(">hi", answer)
        if error:
            raise ValueError(f"ApiVersions: error {error}")
        ranges = struct.iter_unpack(">hhh", answer[6 : 6 + 6 * count])
        return min(_NEWEST, max((most for key, _, most in ranges if key == _METADATA), default=1))

    def metadata(self) -> Answer:
        from kio.index import load_request_schema, load_response_schema
        from kio.serial import entity_reader, entity_writer

        schema: Any = load_request_schema(_METADATA, self._version)
        wanted: dict[str, Any] = {"topics": None}
        if self._version >= 4:
            wanted["allow_auto_topic_creation"] = False
        body = io.BytesIO()
        entity_writer(schema)(body, schema(**wanted))
        answer = self._ask(_METADATA, self._version, body.getvalue())
        said: Any
        said, _ = entity_reader(load_response_schema(_METADATA, self._version))(answer, 0)
        return _answer(said)

    def _ask(self, key: int, version: int, body: bytes) -> bytes:
        """One request; the answer behind its header (version 0)."""
        self._number += 1
        head = struct.pack(">hhih", key, version, self._number, 3) + b"isr"
        message = head + body
        self._socket.sendall(struct.pack(">i", len(message)) + message)
        (length,) = struct.unpack(">i", self._exactly(4))
        if not 4 <= length <= _FRAME_MAX:
            raise ValueError(f"an answer of {length} bytes")
        answer = self._exactly(length)
        (number,) = struct.unpack_from(">i", answer)
        if number != self._number:
            raise ValueError(f"an answer to request {number}, not to {self._number}")
        return answer[4:]

    def _exactly(self, length: int) -> bytes:
        data = bytearray()
        while len(data) < length:
            chunk = self._socket.recv(length - len(data))
            if not chunk:
                raise ConnectionError("the broker closed the connection")
            data += chunk
        return bytes(data)


def _answer(said: Any) -> Answer:
    partitions = {}
    for topic in said.topics:
        for one in topic.partitions:
            epoch = getattr(one, "leader_epoch", None)
            isr = tuple(int(broker) for broker in one.isr_nodes)
            told = Told(int(one.leader_id), None if epoch is None else int(epoch), isr)
            partitions[f"{topic.name}-{int(one.partition_index)}"] = told
    return Answer(int(said.controller_id), partitions)
