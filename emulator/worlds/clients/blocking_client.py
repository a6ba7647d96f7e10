"""A client of brokers as processes for a command that asks one thing: a socket, and the answer.

Blocks. Finds the controller as Kafka's admin client does, by Metadata; asks again while there is
none. Knows Kafka's protocol through `protocol.wire`, no kernel.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable
from contextlib import closing

from emulator.kafka.model.errors import Errors
from emulator.kafka.profiles.base import profiles
from emulator.kafka.protocol.messages import (
    AdminResponse,
    LiveBroker,
    MetadataRequest,
    MetadataResponse,
    Request,
    Response,
)
from emulator.worlds.wire.api import spoken
from emulator.worlds.wire.errors import Malformed
from emulator.worlds.wire.frames import api_of, length_of, request_frame, response_from

SPOKEN = "2.6"
"""The Kafka whose clients this is one of."""

AGAIN_S = 0.1


class Unreachable(Exception):
    """Nobody answered; the message says where and why."""


def ask(
    server: tuple[str, int], request: Request, timeout_s: float, kafka: str = SPOKEN
) -> Response:
    """One question, one answer, as a client of that Kafka asks. Unreachable."""
    version = spoken(profiles()[kafka])[api_of(request).name][1]
    try:
        with closing(Connection(server, timeout_s)) as connection:
            return connection.ask(request, version)
    except (OSError, Malformed) as error:
        raise Unreachable(f"{server[0]}:{server[1]}: {error}") from None


class Connection:
    """One socket to a broker, on which one request after the other is answered. OSError,
    Malformed."""

    def __init__(self, server: tuple[str, int], timeout_s: float) -> None:
        self._socket = socket.create_connection(server, timeout_s)
        self._requests = 0

    def ask(self, request: Request, version: int) -> Response:
        self._requests += 1
        self._socket.sendall(request_frame(request, version, self._requests, "isr"))
        payload = self._receive(length_of(self._receive(4)))
        correlation_id, response = response_from(payload, request, version)
        if correlation_id != self._requests:
            raise Malformed(f"a response to request {correlation_id}, not to {self._requests}")
        return response

    def close(self) -> None:
        self._socket.close()

    def _receive(self, length: int) -> bytes:
        data = bytearray()
        while len(data) < length:
            more = self._socket.recv(length - len(data))
            if not more:
                raise ConnectionResetError("the connection was closed")
            data += more
        return bytes(data)


def metadata(
    servers: Iterable[tuple[str, int]], timeout_s: float, kafka: str = SPOKEN
) -> MetadataResponse:
    """Of the first that answers. Unreachable."""
    problem = Unreachable("no broker is named")
    for server in servers:
        try:
            answer = ask(server, MetadataRequest(), timeout_s, kafka)
        except Unreachable as error:
            problem = error
            continue
        assert isinstance(answer, MetadataResponse)
        return answer
    raise problem


def ask_controller(
    servers: list[tuple[str, int]], request: Request, timeout_s: float
) -> AdminResponse:
    """Wherever it is, until it answers or time is up. Unreachable."""
    until = time.monotonic() + timeout_s
    while True:
        known = metadata(servers, timeout_s)
        controller = next((b for b in known.brokers if b.broker == known.controller_id), None)
        answer = AdminResponse(Errors.NOT_CONTROLLER) if controller is None else None
        answer = answer or _told(controller, request, timeout_s)
        if answer.error is not Errors.NOT_CONTROLLER or time.monotonic() > until:
            return answer
        time.sleep(AGAIN_S)


def _told(controller: LiveBroker | None, request: Request, timeout_s: float) -> AdminResponse:
    assert controller is not None
    answer = ask((controller.host, controller.port), request, timeout_s)
    assert isinstance(answer, AdminResponse)
    return answer
