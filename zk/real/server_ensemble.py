"""Actions on ZooKeeper servers: on one, or on all servers of an ensemble.

Owns which server is meant (`zookeeper`: all; `zookeeper-2`: the second), and one thread that acts
on them in order: a container engine takes tenths of a second for each. Knows the interface of a
`Server`, not what it runs in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from zk.real.server import Address
from zk.real.server_container import ContainerServer
from zk.real.txnlog import Entry, read_log


class Server(Protocol):
    """One server in our hands: a process on this machine, or in a container."""

    @property
    def is_started(self) -> bool: ...

    def stop(self) -> None: ...

    def launch(self) -> None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...


class LoggedServer(Server, Protocol):
    """Its transaction log can be copied."""

    def fetch_log(self, folder: Path) -> Path: ...


def act_on(server: Server | None, action: str) -> None:
    """`pause`, `resume`, `stop` (SIGKILL) or `launch` it, where that changes anything: what is not
    there cannot be paused, and what is cannot be launched."""
    assert server is not None, "this needs a server of our own: Capabilities say so"
    if server.is_started != (action == "launch"):
        order: Callable[[], None] = getattr(server, action)
        order()


class Ensemble:
    """The servers that this run has started, and the thread that acts on them."""

    def __init__(self, servers: Sequence[LoggedServer]) -> None:
        self.servers = list(servers)
        self._hands = ThreadPoolExecutor(1, "zookeeper-servers")
        self._orders: list[Future[None]] = []

    def act_on(self, name: str, action: str) -> None:
        """Those that are meant; what goes wrong is raised at one of the next orders."""
        _, _, number = name.partition("-")
        meant = [self.servers[int(number) - 1]] if number else self.servers

        def order() -> None:
            for server in meant:
                act_on(server, action)

        for done in [one for one in self._orders if one.done()]:
            self._orders.remove(done)
            done.result()
        self._orders.append(self._hands.submit(order))

    def entries(self, folder: Path) -> list[Entry]:
        """What any of them has in its log: a server that was away lacks what others decided."""
        self.settle()
        entries: dict[int, Entry] = {}
        for number, server in enumerate(self.servers, start=1):
            for entry in read_log(server.fetch_log(folder / str(number))):
                entries.setdefault(entry.transaction.zxid, entry)
        return [entries[zxid] for zxid in sorted(entries)]

    def settle(self) -> None:
        """What was ordered has been done."""
        for order in self._orders:
            order.result()
        self._orders.clear()

    def close(self) -> None:
        """The thread ends; the servers are whose they are."""
        self._hands.shutdown()


class ContainerEnsemble(Ensemble):
    """Servers in containers of their own, in one network of the engine's."""

    def __init__(self, count: int, times: tuple[int, int, int], network: str) -> None:
        """`times`: tick, least and most that a session may ask for. Raises NoEngine."""
        names = [f"zookeeper-{n + 1}" for n in range(count)]
        known = " ".join(
            f"server.{n}={name}:2888:3888;2181" for n, name in enumerate(names, start=1)
        )
        of_all = {"ZOO_SERVERS": known} if count > 1 else {}
        self.own = [
            ContainerServer(
                *times, network=network, alias=name, more=of_all | {"ZOO_MY_ID": str(n)}
            )
            for n, name in enumerate(names, start=1)
        ]
        super().__init__(self.own)

    @property
    def address(self) -> Address:
        """From the machine of the engine."""
        return Address(tuple(one.address.servers[0] for one in self.own))

    def start(self) -> None:
        """All of them; returns when they serve. An ensemble serves when most are there."""
        for server in self.own:
            server.launch()
        for server in self.own:
            server.wait_until_it_serves()

    def close(self) -> None:
        super().close()
        for server in self.own:
            server.close()
