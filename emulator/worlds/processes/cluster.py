"""A scenario's cluster whose brokers are processes: what is done to it is done from outside.

A `Cluster` with the same clients, admin requests and order of steps; a broker here is a child with
a command line, a port and files, a pause is a signal, a link has a proxy. Owns how stimuli reach
them; the children are a `Site`'s, the proxies `process_links`'.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from emulator.kafka.protocol.messages import LiveBroker
from emulator.scenario.actions.base import Ways
from emulator.scenario.capabilities import CannotBeGiven, Possible
from emulator.scenario.errors import UserError
from emulator.scenario.schema import Scenario
from emulator.trace import events
from emulator.trace.values import ProcessState
from emulator.worlds.clients.blocking_client import Unreachable, metadata
from emulator.worlds.clients.clients import ClientNetwork
from emulator.worlds.cluster import Cluster, Surroundings, directions
from emulator.worlds.live_clock import LiveKernel
from emulator.worlds.network.links import Way
from emulator.worlds.network.memory import MemoryNetwork
from emulator.worlds.processes.local_site import Child, Site
from emulator.worlds.processes.proxies import ProcessLinks

ASK_S = 1.0
WHOM = "processes of their own"


class Processes(Surroundings, Protocol):
    """The world, as this cluster sees it."""

    scenario: Scenario
    site: Site
    links: ProcessLinks

    @property
    def network(self) -> ClientNetwork:
        """How clients reach brokers: on the ways that no proxy is on."""
        ...

    @property
    def began_ns(self) -> int:
        """When the world began, by the machine's monotonic clock."""
        ...


class PossibleForProcesses(Possible):
    """What can be done to processes: the port of stimuli, for asking."""

    whom = WHOM

    pause = resume = kill = terminate = install = Possible.fine
    cut = heal = delay = link_latency = lose = narrow = limit_bandwidth = Possible.fine
    expire_session = drop_connection = stop_zookeeper = start_zookeeper = Possible.fine
    unplug = plug_in = Possible.fine
    admin = produce = consume = stop_clients = Possible.fine

    def start_again(self, broker: int, registered_ms: int | None) -> None:
        if registered_ms is not None:
            raise CannotBeGiven("nobody can say when a process registers")

    def lose_from_disk(self, broker: int, what: str) -> None:
        if what == "unflushed":
            raise CannotBeGiven("what the operating system was given, no signal takes back")


class PossibleForContainers(PossibleForProcesses):
    """Their ZooKeeper has servers that can be struck one by one."""

    strike_server = Possible.fine


class HarmlessToDisks(PossibleForContainers):
    """No record goes by the fault itself, and nobody is asked for something."""

    def lose_from_disk(self, broker: int, what: str) -> None:
        if what != "nothing":
            raise CannotBeGiven("records would be gone")

    def _no_fault(self, *_: object, **__: object) -> None:
        raise CannotBeGiven("it is a request, no fault")

    admin = produce = consume = stop_clients = _no_fault


class ProcessCluster(Cluster):
    """The brokers' processes in the place of brokers on our kernel."""

    def __init__(self, world: Processes, kernel: LiveKernel) -> None:
        self._world, self._site = world, world.site
        self._ids = [boot.broker for boot in world.scenario.boots]
        self.children: dict[int, Child] = {}
        self._runs_as: dict[int, tuple[str, str]] = {}
        self._follow: set[int] = set()
        self._paused: dict[int, ProcessState] = {}
        unused = MemoryNetwork(kernel, lambda _purpose, _actor: 0)
        super().__init__(world.scenario, kernel, unused, world)
        live = [LiveBroker(b, *self._site.told(b)) for b in self._ids]
        self.reach_through(world.network, live)

    def start(  # type: ignore[override]
        self, broker: int, not_before_us: object = None
    ) -> Child:
        """Its next process."""
        child = self.children.get(broker)
        if child is None:
            child = self.children[broker] = self._site.child(broker)
        child.launch(self._words(broker))
        return child

    def install(self, broker: int, profile: str, propagation: str) -> None:
        """See Cluster."""
        has, how = self._runs_as.get(broker, ("", ""))
        self._runs_as[broker] = profile or has, propagation or how

    def _words(self, broker: int) -> list[str]:
        world, scenario = self._world, self._world.scenario
        tap = world.links.taps[f"broker-{broker}"]
        words = ["--id", str(broker), "--zookeeper", str(tap.address), *self._site.words(broker)]
        for peer, proxy in world.links.routes_of(broker).items():
            words += ["--through", "{}:{}={}".format(*self._site.told(peer), proxy)]
        words += ["--began-ns", str(world.began_ns)]
        profile, propagation = self._runs_as.get(broker, ("", ""))
        words += ["--profile", profile or scenario.running(broker).name]
        for name, on in scenario.guards.items():
            words += ["--guard", f"{name}={'on' if on else 'off'}"]
        if propagation or scenario.propagation:
            words += ["--propagation", propagation or scenario.propagation]
        settings = {**scenario.settings, **scenario.broker_settings.get(broker, {})}
        for key, value in settings.items():
            words += ["--set", f"{key}={value}"]
        return words

    @property
    def is_up(self) -> bool:
        """See Cluster."""
        return all(self._knows_all(broker) for broker in self.children)

    def _knows_all(self, broker: int) -> bool:
        with suppress(Unreachable):
            runs = self._world.scenario.running(broker).name
            known = metadata([self._site.reached(broker)], ASK_S, runs)
            return len(known.brokers) == len(self._ids) and known.controller_id >= 0
        return False

    def close(self) -> None:
        """All of them end, in an orderly way where they still can."""
        for child in self.children.values():
            child.resume()
            child.terminate()
        for child in self.children.values():
            child.join()

    # -- processes --------------------------------------------------------------------------------

    def pause(self, target: int | str) -> None:
        if isinstance(target, str):
            self._site.strike(target, "pause")
        elif (state := self._process_state(target)) not in ("dead", "paused"):
            self.children[target].pause()
            self._paused[target] = state
            self._note_state(target, "paused")

    def resume(self, target: int | str) -> None:
        if isinstance(target, str):
            self._site.strike(target, "resume")
        else:
            self.children[target].resume()
            if not self.children[target].is_dead and target in self._paused:
                self._note_state(target, self._paused[target])
            self._paused.pop(target, None)

    def kill(self, broker: int) -> None:
        if not self.children[broker].is_dead:
            self.children[broker].kill()
            self._paused.pop(broker, None)
            self._note_death(broker, self.kernel.cause)

    def _note_death(self, broker: int, cause: int) -> None:
        """Once it is gone (an engine takes its time): until then it may still write events."""
        if self.children[broker].is_dead:
            self.kernel.cause = cause
            self._note_state(broker, "dead")
        else:
            lane = self.kernel.world.lane("world")
            lane.call_later(1_000, lambda: self._note_death(broker, cause))

    def _process_state(self, broker: int) -> ProcessState:
        child = self.children[broker]
        if child.is_dead:
            return "dead"
        if broker in self._paused:
            return "paused"
        if not child.runs:
            return "stopping"
        return "up" if child.started else "starting"

    def _note_state(self, broker: int, state: ProcessState) -> None:
        """What a broker cannot say itself; the rest is in its own trace."""
        cause = self.kernel.cause
        self.kernel.emit(events.ProcessStateChanged, broker, state)
        self.kernel.cause = cause

    def lose_from_disk(self, broker: int, what: str) -> None:
        """The files are what a kill leaves."""
        if what == "disk":
            self.children[broker].join()
            self._site.erase(broker)

    def terminate(self, broker: int) -> None:
        self.children[broker].terminate()

    def start_again(self, broker: int, registered_ms: int | None) -> None:
        """One that is about to end is followed by the next when it has."""
        child = self.children[broker]
        if child.runs:
            raise UserError(f"start: broker {broker} runs already")
        if broker not in self._follow:
            self._follow.add(broker)
            self._follow_when_dead(broker, registered_ms)

    def _follow_when_dead(self, broker: int, registered_ms: int | None) -> None:
        """However often it was asked for meanwhile, one follows."""
        if self.children[broker].is_dead:
            self._follow.remove(broker)
            self.on_start(broker, registered_ms)
        else:
            lane = self.kernel.world.lane("world")
            lane.call_later(20_000, lambda: self._follow_when_dead(broker, registered_ms))

    def runs(self, broker: int) -> bool:
        return self.children[broker].runs

    # -- links ------------------------------------------------------------------------------------

    def unplug(self, broker: int) -> None:
        if not self._site.plug(broker, connected=False):
            super().unplug(broker)

    def plug_in(self, broker: int) -> None:
        if not self._site.plug(broker, connected=True):
            super().plug_in(broker)

    def strike_server(self, server: str, what: str) -> None:
        self._site.strike(server, what)

    def cut(self, broker: int, peer: int | str, ways: Ways = "both") -> None:
        if isinstance(peer, str):
            super().cut(broker, peer, ways)
        else:
            self._each_way(broker, peer, ways, self._world.links.cut)

    def heal(self, broker: int, peer: int | str) -> None:
        if isinstance(peer, str):
            super().heal(broker, peer)
        else:
            self._world.links.heal(broker, peer)

    def delay(self, broker: int, peer: int | str, delay_ms: int) -> None:
        if isinstance(peer, str):
            super().delay(broker, peer, delay_ms)
        else:
            self._world.links.delay(broker, peer, delay_ms * 1000)

    def narrow(self, broker: int, peer: int, ways: Ways, bytes_per_s: int) -> None:
        narrow = self._world.links.narrow
        self._each_way(broker, peer, ways, lambda a, b: narrow(a, b, bytes_per_s))

    def limit_bandwidth(self, broker: int, bytes_per_s: int) -> None:
        self._world.links.narrow_answers(broker, bytes_per_s)

    def disturbed(self, broker: int, peer: int | str, there: Way, back: Way) -> None:
        if isinstance(peer, str):
            super().disturbed(broker, peer, there, back)
        else:
            self._world.links.disturb(broker, peer, there, back)

    def _each_way(
        self, broker: int, peer: int, ways: Ways, do: Callable[[int, int], object]
    ) -> None:
        ids = {f"broker-{broker}": broker, f"broker-{peer}": peer}
        for a, b in directions(broker, peer, ways):
            do(ids[a], ids[b])
