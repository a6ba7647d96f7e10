"""The links of brokers in separate processes: a proxy for each ordered pair of brokers.

Broker 1 reaches broker 2 through another proxy than broker 3 does, and ZooKeeper through its own
tap. So each link can be cut, delayed and limited separately, from outside. Requests to ZooKeeper
are stored with the time at which they passed. Owns the proxies; `worlds.links` has the effects of
actions on them.
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
        """`brokers`: the listener address of each; proxies listen on `here`. `kafka`: brokers
        without a route to proxies of their own; they connect to the advertised addresses."""
        self.zookeeper_requests: list[Exchange] = []
        self._taps = Taps(self, now_us)
        self._expiries = Expiries(zookeeper)
        self.taps: dict[str, Tap] = {}
        for client in (f"broker-{broker}" for broker in brokers):
            self.taps[client] = tap = self._taps.open(client, zookeeper, (here, 0))
            tap.keep = self.zookeeper_requests.append
        # On connections to an advertised address the first request names the sender.
        self.advertised: dict[int, Address] = {}
        identified = InterBrokerProxies(self._taps)
        if kafka:
            self.advertised = {b: identified.open(b, where) for b, where in brokers.items()}
        # Otherwise a proxy cannot know who connects to it: each ordered pair has its own.
        self.between: dict[Ends, Proxy] = {
            (a, b): identified.links[a, b]
            if a in kafka
            else self._taps.open_proxy(where, (here, 0))
            for a in brokers
            for b, where in brokers.items()
            if a != b
        }

    def routes_of(self, broker: int) -> dict[int, str]:
        """The addresses at which a broker reaches each of the others."""
        return {b: str(proxy.address) for (a, b), proxy in self.between.items() if a == broker}

    def close(self) -> None:
        self._expiries.close()
        self._taps.close()

    # -- TapObserver, on the taps' thread ---------------------------------------------------------

    def on_request(self, at_us: int, client: str, request: Request | str) -> None:
        """Store the request under its name on the wire."""

    def on_reply(self, client: str, request: Request | str, code: Code, elapsed_us: int) -> None:
        """The process that sent the request has the response in its own trace."""

    def tap_of(self, broker: int) -> Tap:
        return self.taps[f"broker-{broker}"]

    # -- ZooKeeper --------------------------------------------------------------------------------

    def expire_session(self, broker: int) -> None:
        """Have the server end the broker's current session, which is its last one."""
        # A client that lost its session has opened another one: earlier ones do not count.
        for session_id, granted in list(self.tap_of(broker).sessions.items())[-1:]:
            self._expiries.expire(session_id, granted.password, granted.timeout_ms)
