"""Links between real brokers: proxies that can be cut, delayed and disturbed, one for each of two.

All brokers reach a broker at one address, its door. Who connects says so in the header of its first
request, where a broker's client id is its number (`1`, or `broker-1-fetcher-0`); from then on its
bytes pass the link between the two. Owns doors and links; of Kafka's protocol it knows this header.
"""

from __future__ import annotations

import re
import socket
import struct
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import msgspec

from emulator.scenario.actions.base import Ways
from emulator.worlds.network.links import Manners, Stream
from zk.real.proxy import Conversation, Proxies, Proxy
from zk.real.server import Address
from zk.wire import Way

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
    found = _BROKER.fullmatch(name)
    return int(found[1]) if found else NOBODY


class _Introduction:
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


class _Door(Proxy):
    """Where brokers connect to one of them."""

    def __init__(self, between: Between, broker: int, server: Address) -> None:
        self._between, self.broker = between, broker
        super().__init__(between.proxies, server)

    def listen_to(self, client: socket.socket) -> Conversation:
        return _Introduction(self._known)

    def _known(self, conversation: Conversation, sender: int) -> None:
        link = self._between.links.get((sender, self.broker))
        if link is not None:
            self.hand_over(conversation, link)


class Between:
    """All doors and links; `stream` gives each direction its chance."""

    def __init__(self, proxies: Proxies, stream: Callable[[str], Stream]) -> None:
        self.proxies, self._stream = proxies, stream
        self.links: dict[tuple[int, int], Proxy] = {}
        self._manners: dict[tuple[int, int], Manners] = {}
        self._doors: list[_Door] = []

    def open(self, broker: int, server: Address) -> Address:
        """The door of a broker that listens there."""
        door = self.proxies.add(_Door(self, broker, server))
        for other in self._doors:
            for a, b, to in ((broker, other.broker, other), (other.broker, broker, door)):
                self.links[a, b] = self.proxies.open_proxy(to.server)
        self._doors.append(door)
        return door.address

    def cut(self, broker: int, peer: int, ways: Ways) -> None:
        for proxy, way in self._directions(broker, peer, ways):
            proxy.cut(way)

    def heal(self, broker: int, peer: int) -> None:
        for pair in ((broker, peer), (peer, broker)):
            self.links[pair].heal()

    def delay(self, broker: int, peer: int, delay_ms: int) -> None:
        for pair in ((broker, peer), (peer, broker)):
            self.links[pair].delay(delay_ms * 1000)

    def narrow(self, broker: int, peer: int, ways: Ways, bytes_per_s: int) -> None:
        for proxy, way in self._directions(broker, peer, ways):
            proxy.throttle(bytes_per_s, way)

    def disturb(self, broker: int, peer: int, ways: Ways, changes: Mapping[str, float]) -> None:
        """What passes takes longer by what is drawn for it, as in the emulator's own worlds."""
        self._change(broker, peer, ways, changes)
        for a, b in ((broker, peer), (peer, broker)):
            self.links[a, b].disturb(partial(self._drawn_us, a, b))

    def disturb_tap(
        self, tap: Proxy, broker: int, ways: Ways, changes: Mapping[str, float]
    ) -> None:
        """The same on the way to ZooKeeper."""
        self._change(broker, NOBODY, ways, changes)
        tap.disturb(partial(self._drawn_us, broker, NOBODY))

    def _change(self, broker: int, peer: int, ways: Ways, changes: Mapping[str, float]) -> None:
        for pair in _pairs(broker, peer, ways):
            before = self._manners.get(pair, Manners())
            self._manners[pair] = msgspec.structs.replace(before, **changes)

    def _drawn_us(self, client: int, server: int, way: Way) -> int:
        a, b = (client, server) if way is Way.TO_SERVER else (server, client)
        return self._manners.get((a, b), Manners()).drawn_us(self._stream(f"{a}>{b}"))

    def _directions(self, broker: int, peer: int, ways: Ways) -> Iterator[tuple[Proxy, Way]]:
        """For bytes from one to the other, on connections that either of them has made."""
        for a, b in _pairs(broker, peer, ways):
            yield self.links[a, b], Way.TO_SERVER
            yield self.links[b, a], Way.TO_CLIENT


def _pairs(broker: int, peer: int, ways: Ways) -> list[tuple[int, int]]:
    """From whom to whom."""
    wanted = {"to_peer": [(broker, peer)], "from_peer": [(peer, broker)]}
    return wanted.get(ways, [(broker, peer), (peer, broker)])
