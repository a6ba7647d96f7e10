"""Proxies between real brokers, one for each ordered pair.

All brokers reach a broker at one address, its proxy's listener. The header of a connection's first
request names the sender: a broker's client id contains its number (`1`, or `broker-1-fetcher-0`).
From then on the connection's bytes pass through the link between the two. Owns listeners and links
(`worlds.links` has the effects of faults); of Kafka's protocol it knows only this header.
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
    """The broker that sent a connection's first bytes (NOBODY: no broker); None: too few bytes
    yet."""
    if len(data) < _HEAD.size:
        return None
    *_, length = _HEAD.unpack_from(data)
    if length > 0 and len(data) < _HEAD.size + length:
        return None
    name = data[_HEAD.size : _HEAD.size + max(0, length)].decode("utf-8", "replace")
    match = _BROKER.fullmatch(name)
    return int(match[1]) if match else NOBODY


class _BrokerIdentification:
    """Reads the first bytes until the sender is known."""

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
    """The address at which brokers connect to one of them."""

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
        """The address at which others reach a broker that listens at `server`."""
        made = self.proxies.add(_ProxyListener(self, broker, server))
        for other in self._listeners:
            for a, b, to in ((broker, other.broker, other), (other.broker, broker, made)):
                self.links[a, b] = self.proxies.open_proxy(to.server)
        self._listeners.append(made)
        return made.address
