"""The port between a node and the network: connections that carry one request after the other.

Requests and responses on a connection are in order; the broker reads the next request after it has
responded to the last. When an end dies, the connection breaks and its request in flight fails.
Nothing here knows the content of messages, or the world.
"""

from __future__ import annotations

from typing import Protocol

from emulator.kafka.protocol.messages import Request, Response


class Disconnected(Exception):
    """The connection broke, or no response came in time. The request may or may not have been
    processed."""


class Connection(Protocol):
    """The client's end of a connection."""

    async def send(self, request: Request, timeout_ms: int) -> Response:
        """Send a request and block until its response arrives. Raises Disconnected when the
        connection breaks or the time is up (which closes it)."""
        ...

    def close(self) -> None: ...

    @property
    def open(self) -> bool: ...


class ServerConnection(Protocol):
    """The broker's end of a connection."""

    # The next request is read only after this response: a request in a purgatory delays everything
    # that its client has sent behind it.
    def respond(self, response: Response | None) -> None:
        """Send the response to the last request, then read the next one (None: no response,
        acks=0)."""
        ...

    def hang_up(self) -> None:
        """Close the connection instead of responding: a client that expects no response thus
        notices an error."""
        ...

    @property
    def client(self) -> str:
        """The name of the other end (`broker-2`, `producer-1`)."""
        ...

    @property
    def host(self) -> str:
        """The host of the other end, as shown in the list of group members."""
        ...


class Network(Protocol):
    """How a node connects to others."""

    async def connect(self, client: str, host: str, port: int, timeout_ms: int) -> Connection:
        """Open a connection; raises Disconnected if there is none in time."""
        ...

    def stop_listening(self, port: int) -> None:
        """Close the port and break the connections that it accepted."""
        ...
