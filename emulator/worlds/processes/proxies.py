"""The links of brokers that are processes of their own: a proxy each, in front of every peer.

Broker 1 reaches broker 2 through another proxy than broker 3 does, and ZooKeeper through a tap of
its own; so each link can be cut, delayed and narrowed by itself, from outside. What is asked of
ZooKeeper is kept, with the time at which it passed. Owns proxies; what actions make of them is in
`worlds.links`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from emulator.worlds.real_kafka.inter_broker_proxies import InterBrokerProxies
from zk.errors import Code
from zk.ops import Request
from zk.real.expiry import Expiries
from zk.real.proxy import Proxy
from zk.real.server import HOST, Address
from zk.real.tap import Exchange, Tap, Taps

Ends = tuple[int, int]
"""The broker that connects, and the broker that it connects to."""


class ProcessProxies:
    """All proxies of one run."""

    def __init__(
        self,
        now_us: Callable[[], int],
        zookeeper: Address,
        brokers: dict[int, Address],
        here: str = HOST,
        kafka: Collection[int] = (),
    ) -> None:
        """`brokers`: where each of them listens; proxies listen `here`. `kafka`: brokers that are
        given no route to a proxy of their own; they connect to the address that each advertises."""
        self.zookeeper_requests: list[Exchange] = []
        self._taps = Taps(self, now_us)
        self._expiries = Expiries(zookeeper)
        self.taps: dict[str, Tap] = {}
        for client in (f"broker-{broker}" for broker in brokers):
            self.taps[client] = tap = self._taps.open(client, zookeeper, (here, 0))
            tap.keep = self.zookeeper_requests.append
        # Of a connection to what is advertised the first request says whose it is.
        self.advertised: dict[int, Address] = {}
        identified = InterBrokerProxies(self._taps)
        if kafka:
            self.advertised = {b: identified.open(b, where) for b, where in brokers.items()}
        # Otherwise a proxy cannot tell who connects to it: each ordered pair has its own.
        self.between: dict[Ends, Proxy] = {
            (a, b): identified.links[a, b]
            if a in kafka
            else self._taps.open_proxy(where, (here, 0))
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

    def tap_of(self, broker: int) -> Tap:
        return self.taps[f"broker-{broker}"]

    # -- ZooKeeper --------------------------------------------------------------------------------

    def expire_session(self, broker: int) -> None:
        """Have the server end the broker's last session, which is the one it has."""
        # A client that lost its session has opened another one: earlier ones are of no account.
        for session_id, granted in list(self.tap_of(broker).sessions.items())[-1:]:
            self._expiries.expire(session_id, granted.password, granted.timeout_ms)
