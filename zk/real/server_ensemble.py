"""Actions on one ZooKeeper server, or on all servers of an ensemble.

Owns the names of servers (`zookeeper`: all; `zookeeper-2`: the second), and one thread that
executes actions in order, because a container engine takes tenths of a second for each. Knows only
the interface of a `Server`.
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
    """A server that we control: a process on this machine, or a container."""

    @property
    def is_started(self) -> bool: ...

    def stop(self) -> None: ...

    def launch(self) -> None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...


class LoggedServer(Server, Protocol):
    """A server whose transaction log can be copied."""

    def fetch_log(self, folder: Path) -> Path: ...


def act_on(server: Server | None, action: str) -> None:
    """`pause`, `resume`, `stop` (SIGKILL) or `launch` a server, if that changes its state."""
    assert server is not None, "this needs a server of our own: Capabilities say so"
    if server.is_started != (action == "launch"):
        order: Callable[[], None] = getattr(server, action)
        order()


class Ensemble:
    """The servers that this run has started, and the thread that controls them."""

    def __init__(self, servers: Sequence[LoggedServer]) -> None:
        self.servers = list(servers)
        self._hands = ThreadPoolExecutor(1, "zookeeper-servers")
        self._orders: list[Future[None]] = []

    def act_on(self, name: str, action: str) -> None:
        """Queue an action on the named servers; its error is raised by one of the next calls."""
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
        """The union of all servers' logs: a server that was down lacks some transactions."""
        self.settle()
        entries: dict[int, Entry] = {}
        for number, server in enumerate(self.servers, start=1):
            for entry in read_log(server.fetch_log(folder / str(number))):
                entries.setdefault(entry.transaction.zxid, entry)
        return [entries[zxid] for zxid in sorted(entries)]

    def settle(self) -> None:
        """Wait until all queued actions are done."""
        for order in self._orders:
            order.result()
        self._orders.clear()

    def close(self) -> None:
        """End the thread, but not the servers."""
        self._hands.shutdown()


class ContainerEnsemble(Ensemble):
    """Several servers in containers, in one network of the engine."""

    def __init__(self, count: int, times: tuple[int, int, int], network: str) -> None:
        """`times`: tick, minimum and maximum session timeout. Raises NoEngine."""
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
        """The address for clients on the engine's machine."""
        return Address(tuple(one.address.servers[0] for one in self.own))

    def start(self) -> None:
        """Start all servers, and return when they serve, which needs a majority."""
        for server in self.own:
            server.launch()
        for server in self.own:
            server.wait_until_it_serves()

    def close(self) -> None:
        super().close()
        for server in self.own:
            server.close()
