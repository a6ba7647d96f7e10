"""A blocking client of brokers as processes, for commands that send one request.

Finds the controller through Metadata, like Kafka's admin client, and retries while there is none.
Knows Kafka's protocol through `worlds.wire`; needs no kernel.
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
    MetadataRequest,
    MetadataResponse,
    Request,
    Response,
)
from emulator.worlds.wire.api import supported_versions
from emulator.worlds.wire.errors import Malformed
from emulator.worlds.wire.frames import api_of, length_of, request_frame, response_from

DEFAULT_VERSION = "2.6"
"""The version of Kafka whose client this is."""

AGAIN_S = 0.1


class Unreachable(Exception):
    """No broker responded; the message says where and why."""


def send_request(
    server: tuple[str, int], request: Request, timeout_s: float, kafka: str = DEFAULT_VERSION
) -> Response:
    """Send one request in the versions of that Kafka's clients. Raises Unreachable."""
    version = supported_versions(profiles()[kafka])[api_of(request).name][1]
    try:
        with closing(Connection(server, timeout_s)) as connection:
            return connection.send(request, version)
    except (OSError, Malformed) as error:
        raise Unreachable(f"{server[0]}:{server[1]}: {error}") from None


class Connection:
    """One socket to a broker, with one request at a time. Raises OSError, Malformed."""

    def __init__(self, server: tuple[str, int], timeout_s: float) -> None:
        self._socket = socket.create_connection(server, timeout_s)
        self._requests = 0

    def send(self, request: Request, version: int) -> Response:
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
    servers: Iterable[tuple[str, int]], timeout_s: float, kafka: str = DEFAULT_VERSION
) -> MetadataResponse:
    """Metadata from the first broker that answers. Raises Unreachable."""
    problem = Unreachable("no broker is named")
    for server in servers:
        try:
            response = send_request(server, MetadataRequest(), timeout_s, kafka)
        except Unreachable as error:
            problem = error
            continue
        assert isinstance(response, MetadataResponse)
        return response
    raise problem


def ask_controller(
    servers: list[tuple[str, int]], request: Request, timeout_s: float
) -> AdminResponse:
    """Find the controller and send it the request; retry until it responds or the time is up.
    Raises Unreachable."""
    until = time.monotonic() + timeout_s
    while True:
        cluster = metadata(servers, timeout_s)
        controller = next((b for b in cluster.brokers if b.broker == cluster.controller_id), None)
        # A broker's metadata may have no controller yet, or an outdated one.
        response: Response = AdminResponse(Errors.NOT_CONTROLLER)
        if controller is not None:
            response = send_request((controller.host, controller.port), request, timeout_s)
        assert isinstance(response, AdminResponse)
        if response.error is not Errors.NOT_CONTROLLER or time.monotonic() > until:
            return response
        time.sleep(AGAIN_S)
