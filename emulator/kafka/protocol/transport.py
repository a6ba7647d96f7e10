"""The port between a node and the network: connections that carry one request after the other.

A connection is an object: requests and answers in order; the broker reads the next request when it
has answered the last; it breaks, and what was in flight fails when an end dies. Nothing here knows
what is carried, or the world.
"""

from __future__ import annotations

from typing import Protocol

from emulator.kafka.protocol.messages import Request, Response


class Disconnected(Exception):
    """The connection broke, or no answer came in time; the request may or may not have been
    handled."""


class Connection(Protocol):
    """The client's end of a connection."""

    async def send(self, request: Request, timeout_ms: int) -> Response:
        """Write a request and block until its answer is there; Disconnected when it breaks or time
        is up (which closes it)."""
        ...

    def close(self) -> None: ...

    @property
    def open(self) -> bool: ...


class ServerConnection(Protocol):
    """The broker's end of a connection."""

    # One request at a time: the next is read only when this one is answered, so that a request
    # that waits in purgatory holds up what its client has sent behind it.
    def respond(self, response: Response | None) -> None:
        """Write the answer to the request that was read last, and read on (None: no answer, acks
        0)."""
        ...

    def hang_up(self) -> None:
        """Close it instead of responding: a client that expects no response learns that something
        is wrong.
        """
        ...

    @property
    def client(self) -> str:
        """Who is at the other end (`broker-2`, `producer-1`)."""
        ...

    @property
    def host(self) -> str:
        """Where that is, as group members are listed."""
        ...


class Network(Protocol):
    """How a node reaches others."""

    async def connect(self, client: str, host: str, port: int, timeout_ms: int) -> Connection:
        """Open a connection; Disconnected when nobody answers in time."""
        ...

    def stop_listening(self, port: int) -> None:
        """Nobody answers on this port any more; the connections that it accepted break."""
        ...
