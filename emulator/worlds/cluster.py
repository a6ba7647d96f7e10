"""A cluster: broker hosts, clients, ZooKeeper and the links between them.

The same for every kind of host: emulated in this process, emulated as a process or in a container,
real Kafka. What is done to a broker its host does, what is done to a link the links. What each can
be given is declared in its `Capabilities`, and what cannot be given is refused here. Knows no kind
of host, no world and no scenario by name.
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
    """One broker somewhere, as its cluster sees it."""

    def boot(self, not_before_us: Mapping[str, int] | None = None) -> None:
        """Its next process; `not_before_us` holds steps of the boot back, where time is ours."""
        ...

    @property
    def started(self) -> bool:
        """Its sockets answer."""
        ...

    def knows(self, brokers: Collection[int]) -> bool:
        """It serves, and its metadata has all of these."""
        ...

    def when_dead(self, then: Callable[[], object]) -> None:
        """Call it as soon as there is no process; of several that wait, the last."""
        ...

    def end(self) -> None:
        """The run is over: begin to end its process, whatever it is doing."""
        ...

    def join(self) -> None:
        """It has ended."""
        ...


H = TypeVar("H", bound=BrokerHost)


class Places(Protocol):
    """Where something can be held (scenario.actions.hold)."""

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
        """`record` notes an action before it is carried out."""
        self.hosts, self.zookeeper, self.links, self.clients = hosts, zookeeper, links, clients
        self.capabilities, self._record, self._places = capabilities, record, places
        self.on_start: Callable[[int, int | None], object] = labelled("on_start")(
            lambda broker, _: self.start(broker)
        )

    @labelled("start")
    def start(self, broker: int, not_before_us: Mapping[str, int] | None = None) -> H:
        """Boot a broker's next process."""
        host = self.hosts[broker]
        host.boot(not_before_us)
        return host

    @property
    def is_up(self) -> bool:
        """Every broker has started, and every metadata cache knows all of them."""
        return all(host.knows(self.hosts.keys()) for host in self.hosts.values())

    def close(self) -> None:
        """All brokers end, in an orderly way where they still can."""
        for host in self.hosts.values():
            # All are asked to end before any is waited for: a run's end takes as long as its
            # slowest broker.
            host.end()
        for host in self.hosts.values():
            host.join()

    # -- actions ----------------------------------------------------------------------------------

    @labelled("apply")
    def apply(self, action: Action) -> None:
        """Note an action, and carry it out. UserError when a part of the cluster cannot."""
        if why := self.capabilities.refusal(action):
            raise UserError(f"{action.name}: {why}")
        # Before it is carried out: what it leads to has the action as its cause.
        self._record(action)
        action.apply(self)

    def start_again(self, broker: int, registered_ms: int | None) -> None:
        """Two processes of one broker at a time would share its disk: one that is about to end is
        followed by the next when it has."""
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
    """Places on a kernel; it has none of its own until something is held."""

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
    """An action as an event, which nothing has led to."""
    kernel.current, kernel.cause = None, -1
    broker = getattr(action, "broker", None) or 0
    kernel.emit(events.ActionApplied, broker, action.name, action.parameters)
