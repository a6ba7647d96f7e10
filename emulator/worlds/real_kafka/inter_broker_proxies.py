"""Proxies between real brokers, one for each of two that one connects from and to.

All brokers reach a broker at one address, its proxy's listener. Who connects says so in the header
of its first request, where a broker's client id is its number (`1`, or `broker-1-fetcher-0`); from
then on its bytes pass the link between the two. Owns listeners and links (what faults make of links
is in `worlds.links`); of Kafka's protocol it knows this header.
"""

from __future__ import annotations

import re
import socket
import struct
from collections.abc import Callable

from zk.real.proxy import Conversation, Proxies, Proxy
from zk.real.server import Address

_BROKER = re.compile(r"(?:broker-)?(\d+)(?:-fetcher-\d+)?")
_HEAD = struct.Struct("!ihhih")
"""Size, API key, version, correlation id, length of the client id."""

NOBODY = -1


def sender_of(data: bytes) -> int | None:
    """The broker that a connection's first bytes are of (NOBODY: no broker); None: too few yet."""
    if len(data) < _HEAD.size:
        return None
    *_, length = _HEAD.unpack_from(data)
    if length > 0 and len(data) < _HEAD.size + length:
        return None
    name = data[_HEAD.size : _HEAD.size + max(0, length)].decode("utf-8", "replace")
    match = _BROKER.fullmatch(name)
    return int(match[1]) if match else NOBODY


class _BrokerIdentification:
    """Reads along until it is known who has connected."""

    def __init__(self, on_known: Callable[[Conversation, int], None]) -> None:
        self._on_known, self._read = on_known, bytearray()
        self.may_break = True

    def sent(self, data: bytes) -> None:
        if not self.may_break:
            return
        self._read += data
        sender = sender_of(bytes(self._read))
        if sender is not None:
            self.may_break = False
            self._on_known(self, sender)

    def answered(self, data: bytes) -> None: ...

    def ended(self) -> None: ...


class _ProxyListener(Proxy):
    """Where brokers connect to one of them."""

    def __init__(self, between: InterBrokerProxies, broker: int, server: Address) -> None:
        self._between, self.broker = between, broker
        super().__init__(between.proxies, server)

    def listen_to(self, client: socket.socket) -> Conversation:
        def hand_over(conversation: Conversation, sender: int) -> None:
            link = self._between.links.get((sender, self.broker))
            if link is not None:  # else a client's: it stays here, and no action reaches it
                self.hand_over(conversation, link)

        return _BrokerIdentification(hand_over)


class InterBrokerProxies:
    """All listeners and links."""

    def __init__(self, proxies: Proxies) -> None:
        self.proxies = proxies
        self.links: dict[tuple[int, int], Proxy] = {}
        self._listeners: list[_ProxyListener] = []

    def open(self, broker: int, server: Address) -> Address:
        """Where others reach a broker that listens at `server`."""
        made = self.proxies.add(_ProxyListener(self, broker, server))
        for other in self._listeners:
            for a, b, to in ((broker, other.broker, other), (other.broker, broker, made)):
                self.links[a, b] = self.proxies.open_proxy(to.server)
        self._listeners.append(made)
        return made.address
