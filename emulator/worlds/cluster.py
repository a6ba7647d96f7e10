"""A cluster: broker hosts, clients, ZooKeeper and the links between them.

The same class serves every kind of host: emulated in this process, emulated as a process or in a
container, real Kafka. A host carries out the actions on its broker, the links those on connections.
Each declares what it supports in its `Capabilities`; an unsupported action is rejected here. Knows
no kind of host, no world and no scenario by name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Generic, Protocol, TypeVar

from emulator.kernel.holds import Holds, Place
from emulator.kernel.scheduler import Kernel
from emulator.scenario.actions import base
from emulator.scenario.actions.base import Action, Clients, Links, ZooKeeperControl
from emulator.scenario.capabilities import ClusterCapabilities
from emulator.scenario.errors import UserError
from emulator.trace import events
from zk.wire import labelled


class BrokerHost(base.BrokerHost, Protocol):
    """One broker of any kind, as its cluster sees it."""

    def boot(self, not_before_us: Mapping[str, int] | None = None) -> None:
        """Start the next process; `not_before_us` delays steps of the start-up, where the world
        controls time."""
        ...

    @property
    def started(self) -> bool:
        """Whether its sockets accept requests."""
        ...

    def knows(self, brokers: Collection[int]) -> bool:
        """Whether it is up and its metadata has all of these."""
        ...

    def when_dead(self, then: Callable[[], object]) -> None:
        """Call `then` as soon as there is no process; if several wait, the last one counts."""
        ...

    def end(self) -> None:
        """The run is over: start to end its process, in any state."""
        ...

    def join(self) -> None:
        """Wait until the process has ended."""
        ...


H = TypeVar("H", bound=BrokerHost)


class Places(Protocol):
    """The places where something can be held (scenario.actions.hold)."""

    def hold(self, place: Place) -> None: ...

    def release(self, place: Place) -> None: ...


class Cluster(Generic[H]):
    """All brokers and clients of one run (scenario.actions.base.World)."""

    def __init__(
        self,
        hosts: Mapping[int, H],
        zookeeper: ZooKeeperControl,
        links: Links,
        clients: Clients,
        capabilities: ClusterCapabilities,
        record: Callable[[Action], object],
        places: Places | None = None,
    ) -> None:
        """`record` records an action before it is carried out."""
        self.hosts, self.zookeeper, self.links, self.clients = hosts, zookeeper, links, clients
        self.capabilities, self._record, self._places = capabilities, record, places
        self.on_start: Callable[[int, int | None], object] = labelled("on_start")(
            lambda broker, _: self.start(broker)
        )

    @labelled("start")
    def start(self, broker: int, not_before_us: Mapping[str, int] | None = None) -> H:
        """Start a broker's next process."""
        host = self.hosts[broker]
        host.boot(not_before_us)
        return host

    @property
    def is_up(self) -> bool:
        """Whether every broker has started and every metadata cache has all of them."""
        return all(host.knows(self.hosts.keys()) for host in self.hosts.values())

    def close(self) -> None:
        """End all brokers, in an orderly way where that is still possible."""
        for host in self.hosts.values():
            # All brokers are stopped before any is waited for: the end of a run takes as long as
            # its slowest broker.
            host.end()
        for host in self.hosts.values():
            host.join()

    # -- actions ----------------------------------------------------------------------------------

    @labelled("apply")
    def apply(self, action: Action) -> None:
        """Record an action and carry it out. UserError if a part of the cluster does not support
        it."""
        if why := self.capabilities.refusal(action):
            raise UserError(f"{action.name}: {why}")
        # Before it is carried out: the action is the cause of its effects.
        self._record(action)
        action.apply(self)

    def start_again(self, broker: int, registered_ms: int | None) -> None:
        """Two simultaneous processes of one broker would share its disk: if one is about to end,
        the next one starts after its end."""
        host = self.hosts[broker]
        if host.is_running:
            raise UserError(f"start: broker {broker} runs already")
        host.when_dead(partial(self.on_start, broker, registered_ms))

    def hold(self, place: Place) -> None:
        assert self._places is not None
        self._places.hold(place)

    def release(self, place: Place) -> None:
        assert self._places is not None
        self._places.release(place)


class KernelPlaces:
    """Places on a kernel, created when the first hold is requested."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def hold(self, place: Place) -> None:
        if self._kernel.holds is None:
            self._kernel.holds = Holds(self._kernel)
        self._kernel.holds.order(place)

    def release(self, place: Place) -> None:
        if self._kernel.holds is None or not self._kernel.holds.release(place):
            raise UserError(f"release: no hold was ordered {place.words}")


def on_the_trace(kernel: Kernel, action: Action) -> None:
    """An action as an event without a cause."""
    kernel.current, kernel.cause = None, -1
    broker = getattr(action, "broker", None) or 0
    kernel.emit(events.ActionApplied, broker, action.name, action.parameters)
