"""The links of a cluster's brokers, and the effects of faults on them
(scenario.actions.base.Links).

A link has two directions: between two brokers, or between a broker and ZooKeeper. In memory each
message asks its direction for a delay; between processes each connection goes through a proxy. This
module has what both kinds share, without brokers and ZooKeeper themselves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from emulator.scenario.actions.base import ZOOKEEPER
from emulator.scenario.actions.drawing import Ways
from emulator.worlds.network.links import LinkDirection, Stream
from emulator.worlds.network.memory import Break, MemoryNetwork
from zk.real.proxy import Proxy
from zk.wire import Direction, When

ChanceOf = Callable[[str, str], Callable[[], Stream]]
"""(purpose, actor): where its draws come from."""


class Plug(Protocol):
    """Disconnect a broker from the network, or reconnect it; False if that is not supported
    here."""

    def __call__(self, broker: int, /, *, connected: bool) -> bool: ...


_ZOOKEEPER_WAYS: dict[str, tuple[Direction, ...]] = {
    "both": (Direction.TO_SERVER, Direction.TO_CLIENT),
    "to_peer": (Direction.TO_SERVER,),
    "from_peer": (Direction.TO_CLIENT,),
}


class ZooKeeperLinks(Protocol):
    """The link of each broker to ZooKeeper."""

    def cut(self, broker: int, ways: tuple[Direction, ...]) -> None: ...

    def heal(self, broker: int) -> None: ...

    def delay(self, broker: int, delay_ms: int) -> None: ...

    def disturb(self, broker: int, drawn_us: Callable[[Direction], int]) -> None:
        """Delay each message by a drawn time."""
        ...


class BrokerLinks(ABC):
    """What all kinds of links share. Subclasses apply it to a link between two brokers."""

    def __init__(
        self, brokers: Sequence[int], zookeeper: ZooKeeperLinks, chance_of: ChanceOf
    ) -> None:
        self._brokers, self._zookeeper, self._chance_of = brokers, zookeeper, chance_of
        self._directions: dict[tuple[str, str], LinkDirection] = {}

    def cut(self, broker: int, peer: int | str, ways: Ways = "both") -> None:
        if isinstance(peer, str):
            self._zookeeper.cut(broker, _ZOOKEEPER_WAYS[ways])
        else:
            for a, b in _directions(broker, peer, ways):
                self._cut(a, b)

    def heal(self, broker: int, peer: int | str) -> None:
        if isinstance(peer, str):
            self._zookeeper.heal(broker)
        else:
            self._heal(broker, peer)

    def delay(self, broker: int, peer: int | str, delay_ms: int) -> None:
        if isinstance(peer, str):
            self._zookeeper.delay(broker, delay_ms)
        else:
            self._delay(broker, peer, delay_ms * 1000)

    def link_latency(
        self, broker: int, peer: int | str, ways: Ways, times_ms: tuple[int, int, int]
    ) -> None:
        low, typical, high = (ms * 1000 for ms in times_ms)
        self._disturb(broker, peer, ways, {"low_us": low, "typical_us": typical, "high_us": high})

    def lose(self, broker: int, peer: int | str, ways: Ways, loss: float) -> None:
        self._disturb(broker, peer, ways, {"loss": loss})

    def narrow(self, broker: int, peer: int, ways: Ways, bytes_per_s: int) -> None:
        for a, b in _directions(broker, peer, ways):
            self._narrow(a, b, bytes_per_s)

    def unplug(self, broker: int) -> None:
        for peer in self._peers(broker):
            self.cut(broker, peer)

    def plug_in(self, broker: int) -> None:
        for peer in self._peers(broker):
            self.heal(broker, peer)

    def _peers(self, broker: int) -> list[int | str]:
        return [*(other for other in self._brokers if other != broker), ZOOKEEPER]

    def _disturb(
        self, broker: int, peer: int | str, directions: Ways, changes: Mapping[str, float]
    ) -> None:
        for a, b in _directions(broker, peer, directions):
            direction = self._direction(a, b)
            conditions = msgspec.structs.replace(direction.conditions, **changes)
            name = f"{_name(a)}>{_name(b)}"
            # A stream for each direction: draws of one do not shift those of another.
            direction.behave(conditions, self._chance_of("link", name))
        forth, back = self._direction(broker, peer), self._direction(peer, broker)
        if isinstance(peer, str):
            # ZooKeeper's side knows client and server, a link its two ends: this maps between them.
            drawn = {Direction.TO_SERVER: forth.drawn_us, Direction.TO_CLIENT: back.drawn_us}
            self._zookeeper.disturb(broker, lambda direction: drawn[direction]())
        else:
            self._disturbed(broker, peer, forth, back)

    def _direction(self, a: int | str, b: int | str) -> LinkDirection:
        return self._directions.setdefault((_name(a), _name(b)), LinkDirection())

    # -- between two brokers ----------------------------------------------------------------------

    @abstractmethod
    def _cut(self, a: int, b: int) -> None: ...

    @abstractmethod
    def _heal(self, a: int, b: int) -> None: ...

    @abstractmethod
    def _delay(self, a: int, b: int, extra_us: int) -> None: ...

    @abstractmethod
    def _narrow(self, a: int, b: int, bytes_per_s: int) -> None: ...

    @abstractmethod
    def _disturbed(self, a: int, b: int, forth: LinkDirection, back: LinkDirection) -> None:
        """The conditions of a direction have changed."""


class MemoryLinks(BrokerLinks):
    """Between brokers on one kernel: each message asks its direction for a delay."""

    def __init__(
        self,
        brokers: Sequence[int],
        zookeeper: ZooKeeperLinks,
        chance_of: ChanceOf,
        network: MemoryNetwork,
    ) -> None:
        super().__init__(brokers, zookeeper, chance_of)
        self._network = network

    def break_connection(
        self, broker: int, peer: int, when: When, request: str | None, late_ms: int, count: int
    ) -> None:
        how = Break(when, request, late_ms * 1000)
        self._network.break_connections(_name(broker), _name(peer), how, count)

    def limit_bandwidth(self, broker: int, bytes_per_s: int) -> None:
        self._network.limit_bandwidth(_name(broker), bytes_per_s)

    def _direction(self, a: int | str, b: int | str) -> LinkDirection:
        return self._network.direction(_name(a), _name(b))

    def _cut(self, a: int, b: int) -> None:
        self._network.cut(_name(a), _name(b))

    def _heal(self, a: int, b: int) -> None:
        self._network.heal(_name(a), _name(b))

    def _delay(self, a: int, b: int, extra_us: int) -> None:
        self._network.delay(_name(a), _name(b), extra_us)

    def _narrow(self, a: int, b: int, bytes_per_s: int) -> None:
        self._direction(a, b).narrow(bytes_per_s)

    def _disturbed(self, a: int, b: int, forth: LinkDirection, back: LinkDirection) -> None:
        """Nothing to do: messages ask the direction itself."""


class ProxiedLinks(BrokerLinks):
    """Between processes: a proxy on the connections that one broker opens to another. It sees
    bytes: a drawn delay applies to a chunk of them, not to a message."""

    def __init__(
        self,
        brokers: Sequence[int],
        zookeeper: ZooKeeperLinks,
        chance_of: ChanceOf,
        proxies: Mapping[tuple[int, int], Proxy],
        plug: Plug = lambda _broker, connected: False,
    ) -> None:
        """`proxies` by (client, server). `plug` disconnects a broker from the network or reconnects
        it; False if that is not supported here: its links are then cut one by one."""
        super().__init__(brokers, zookeeper, chance_of)
        self._proxies, self._plug = proxies, plug

    def unplug(self, broker: int) -> None:
        if not self._plug(broker, connected=False):
            super().unplug(broker)

    def plug_in(self, broker: int) -> None:
        if not self._plug(broker, connected=True):
            super().plug_in(broker)

    def break_connection(self, *_: Any) -> None:
        raise AssertionError("a proxy between brokers does not read requests: Capabilities say so")

    def limit_bandwidth(self, broker: int, bytes_per_s: int) -> None:
        """Limit the responses on connections that the broker opened: the records that it
        fetches."""
        for (client, _), proxy in self._proxies.items():
            if client == broker:
                proxy.throttle(bytes_per_s, Direction.TO_CLIENT)

    def _between(self, a: int, b: int) -> Iterable[tuple[Proxy, Direction, Direction]]:
        """The proxies between the two brokers, each with its direction from `a` to `b` and the
        other one."""
        yield self._proxies[a, b], Direction.TO_SERVER, Direction.TO_CLIENT
        yield self._proxies[b, a], Direction.TO_CLIENT, Direction.TO_SERVER

    def _cut(self, a: int, b: int) -> None:
        for proxy, forth, _ in self._between(a, b):
            proxy.cut(forth)

    def _heal(self, a: int, b: int) -> None:
        for proxy, _, _ in self._between(a, b):
            proxy.heal()

    def _delay(self, a: int, b: int, extra_us: int) -> None:
        for proxy, _, _ in self._between(a, b):
            proxy.delay(extra_us)

    def _narrow(self, a: int, b: int, bytes_per_s: int) -> None:
        """Limit each connection's bytes per second from `a` to `b`."""
        for proxy, forth, _ in self._between(a, b):
            proxy.throttle(bytes_per_s, forth)

    def _disturbed(self, a: int, b: int, forth: LinkDirection, back: LinkDirection) -> None:
        for proxy, from_a, from_b in self._between(a, b):
            drawn = {from_a: forth.drawn_us, from_b: back.drawn_us}
            proxy.disturb(lambda direction, drawn=drawn: drawn[direction]())  # type: ignore[misc]


def _name(end: int | str) -> str:
    return end if isinstance(end, str) else f"broker-{end}"


def _directions(broker: int, peer: int | str, ways: Ways) -> list[tuple[Any, Any]]:
    """The chosen directions as pairs (sender, receiver)."""
    by_name = {"to_peer": (broker, peer), "from_peer": (peer, broker)}
    return list(by_name.values()) if ways == "both" else [by_name[ways]]
