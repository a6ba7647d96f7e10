"""The metadata cache of each broker of a running cluster, read with Kafka's Metadata request.

Supported by any Kafka from 0.10 on, and by emulated brokers. Read-only: the request creates no
topic. Does not use ZooKeeper, and does not depend on a screen.
"""

from __future__ import annotations

from collections.abc import Mapping

from emulator.kafka.protocol.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    MetadataRequest,
    MetadataResponse,
)
from emulator.worlds.clients.blocking_client import Connection
from emulator.worlds.wire.discovery import Metadata
from emulator.worlds.wire.errors import Malformed

_TIMEOUT_S = 1.0
_NEWEST = 7
"""The first Metadata version with leader epochs (KIP-320); what came later is of no use here."""

Server = tuple[str, int]


class MetadataQuery:
    """Connections to brokers, kept while they work."""

    def __init__(self) -> None:
        self._connections: dict[Server, tuple[Connection, int]] = {}

    def __call__(self, brokers: Mapping[int, Server]) -> dict[int, MetadataResponse | str]:
        """Each broker's response, or why there is none. Connections to other brokers are closed."""
        for server in set(self._connections) - set(brokers.values()):
            self._forget(server)
        return {broker: self._query(server) for broker, server in sorted(brokers.items())}

    def _query(self, server: Server) -> MetadataResponse | str:
        try:
            if server not in self._connections:
                self._connections[server] = _connect(server)
            connection, version = self._connections[server]
            response = connection.send(MetadataRequest(), version)
        except (OSError, Malformed) as error:
            self._forget(server)
            return " ".join(str(error).split()) or type(error).__name__
        assert isinstance(response, MetadataResponse)
        return response

    def _forget(self, server: Server) -> None:
        connection, _ = self._connections.pop(server, (None, 0))
        if connection is not None:
            connection.close()

    def close(self) -> None:
        for server in list(self._connections):
            self._forget(server)


def _connect(server: Server) -> tuple[Connection, int]:
    """A connection, and the newest Metadata version that both sides support."""
    connection = Connection(server, _TIMEOUT_S)
    try:
        response = connection.send(ApiVersionsRequest(), 0)
    except BaseException:
        connection.close()
        raise
    assert isinstance(response, ApiVersionsResponse)
    return connection, min(_NEWEST, response.newest.get(Metadata.key, 1))
