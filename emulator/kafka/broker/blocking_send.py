"""The connection of one fetcher thread: one request in flight, and the thread waits for its
response.

Source: server/ReplicaFetcherBlockingSend.scala@2.6.3; spec §5.1.
"""

from __future__ import annotations

from emulator.kafka.broker.context import BrokerContext
from emulator.kafka.model.errors import Errors
from emulator.kafka.profiles.guards.following import CLOSED_CONNECTIONS_NOTICED
from emulator.kafka.protocol.messages import FetchResponse, LiveBroker, Request
from emulator.kafka.protocol.transport import Connection, Disconnected, Network


class ReplicaFetcherBlockingSend:
    """Connects when the first request is sent."""

    def __init__(
        self, context: BrokerContext, network: Network, leader: LiveBroker, fetcher_id: int
    ) -> None:
        self._context, self._network, self._leader = context, network, leader
        self._client = f"broker-{context.broker}-fetcher-{fetcher_id}"
        self._connection: Connection | None = None
        self._knows_that_it_broke = False
        self._closed = False
        self._cannot_read_errors = context.profile.fetch_errors_are_unreadable

    async def send(self, request: Request) -> object:
        """Send a request and return its response. Raises Disconnected if there is none within
        `request.timeout.ms`."""
        config = self._context.config
        if self._connection is None:
            await self._context.kernel.checkpoint("fetcher_connect")
            # The fetcher was shut down meanwhile: there was no connection to close yet.
            if self._closed:
                raise Disconnected("the fetcher ends")
        elif not self._connection.open and not self._knows_that_it_broke:
            self._knows_that_it_broke = True
            if CLOSED_CONNECTIONS_NOTICED not in self._context.guards:
                raise Disconnected("the leader had closed the connection")
        # A broken connection is opened again by the next request, not earlier.
        if self._connection is None or not self._connection.open:
            self._connection = await self._network.connect(
                self._client, self._leader.host, self._leader.port, config.replica_socket_timeout_ms
            )
            self._knows_that_it_broke = False
        try:
            response = await self._connection.send(request, config.request_timeout_ms)
        except Disconnected:
            self._knows_that_it_broke = True
            raise
        if (
            self._cannot_read_errors
            and isinstance(response, FetchResponse)
            and response.error is Errors.UNKNOWN_SERVER_ERROR
        ):
            self._connection.close()
            self._connection = None
            raise Disconnected("the response has another version than the request")
        return response

    def close(self) -> None:
        """Close the connection; a request in flight ends with Disconnected."""
        self._closed = True
        if self._connection is not None:
            self._connection.close()
