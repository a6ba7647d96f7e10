"""The links of brokers that are processes of their own: a proxy each, in front of every peer.

Broker 1 reaches broker 2 through another proxy than broker 3 does, and ZooKeeper through a tap of
its own; so each link can be cut, delayed and narrowed by itself, from outside. What is asked of
ZooKeeper is kept, with the time at which it passed. Owns proxies; what stimuli make of them is the
cluster's. A proxy sees bytes: what is drawn is drawn for a piece of them, not for a message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from emulator.worlds.network.links import Way as DrawnWay
from zk.errors import Code
from zk.ops import Request
from zk.real.expiry import Expiries
from zk.real.proxy import Proxy
from zk.real.server import HOST, Address
from zk.real.tap import Exchange, Tap, Taps
from zk.wire import Way

Ends = tuple[int, int]
"""Who connects, and to whom."""


class ProcessLinks:
    """All proxies of one run."""

    def __init__(
        self,
        now_us: Callable[[], int],
        zookeeper: Address,
        brokers: dict[int, Address],
        here: str = HOST,
    ) -> None:
        """`brokers`: where each of them listens; proxies listen `here`."""
        self.asked: list[Exchange] = []
        self._taps = Taps(self, now_us)
        self._expiries = Expiries(zookeeper)
        self.taps: dict[str, Tap] = {}
        for client in (f"broker-{broker}" for broker in brokers):
            self.taps[client] = tap = self._taps.open(client, zookeeper, (here, 0))
            tap.keep = self.asked.append
        self.between: dict[Ends, Proxy] = {
            (a, b): self._taps.open_proxy(where, (here, 0))
            for a in brokers
            for b, where in brokers.items()
            if a != b
        }

    def routes_of(self, broker: int) -> dict[int, str]:
        """Where it finds each of the others."""
        return {b: str(proxy.address) for (a, b), proxy in self.between.items() if a == broker}

    def close(self) -> None:
        self._expiries.close()
        self._taps.close()

    # -- TapObserver, on the taps' thread ---------------------------------------------------------

    def on_request(self, at_us: int, client: str, request: Request | str) -> None:
        """It is kept, with its name on the wire."""

    def on_reply(self, client: str, request: Request | str, code: Code, elapsed_us: int) -> None:
        """Who asked has it in his own trace."""

    # -- brokers ----------------------------------------------------------------------------------

    def _of(self, a: int, b: int) -> Iterable[tuple[Proxy, Way, Way]]:
        """The proxies that carry bytes between the two; for each, which way is from `a` to `b`, and
        which is back."""
        yield self.between[a, b], Way.TO_SERVER, Way.TO_CLIENT
        yield self.between[b, a], Way.TO_CLIENT, Way.TO_SERVER

    def cut(self, a: int, b: int) -> None:
        """Bytes stop from `a` to `b`."""
        for proxy, there, _ in self._of(a, b):
            proxy.cut(there)

    def heal(self, a: int, b: int) -> None:
        for proxy, _, _ in self._of(a, b):
            proxy.heal()

    def delay(self, a: int, b: int, extra_us: int) -> None:
        for proxy, _, _ in self._of(a, b):
            proxy.delay(extra_us)

    def disturb(self, a: int, b: int, there: DrawnWay, back: DrawnWay) -> None:
        """Times are drawn, by the manners of both ways."""
        for proxy, forth, home in self._of(a, b):
            proxy.disturb(partial(_drawn, {forth: there, home: back}))

    def narrow(self, a: int, b: int, bytes_per_s: int) -> None:
        """Of each connection no more passes from `a` to `b`."""
        for proxy, there, _ in self._of(a, b):
            proxy.throttle(bytes_per_s, there)

    def narrow_answers(self, to: int, bytes_per_s: int) -> None:
        """What comes back on connections that `to` has opened: the records that it fetches."""
        for (client, _), proxy in self.between.items():
            if client == to:
                proxy.throttle(bytes_per_s, Way.TO_CLIENT)

    # -- ZooKeeper --------------------------------------------------------------------------------

    def expire_session(self, client: str) -> None:
        """Have the server end the client's last session, which is the one it has."""
        for session_id, granted in list(self.taps[client].sessions.items())[-1:]:
            self._expiries.expire(session_id, granted.password, granted.timeout_ms)


def _drawn(ways: dict[Way, DrawnWay], way: Way) -> int:
    return ways[way].drawn_us()
