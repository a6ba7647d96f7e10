"""A broker host of its own process: `isr broker` on this machine or in a container.

What is done to it is done from outside: signals, and proxies on its links. What its process cannot
say itself (it is paused, runs on, was killed) goes on the trace here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress

from emulator.kernel.scheduler import Kernel
from emulator.scenario.capabilities import (
    Capabilities,
    ClusterCapabilities,
    HostCapabilities,
    Unsupported,
)
from emulator.trace import events
from emulator.trace.values import ProcessState
from emulator.worlds.clients.blocking_client import Unreachable, metadata
from emulator.worlds.clients.emulated import AnyClient
from emulator.worlds.processes.local_site import Deployment
from emulator.worlds.zookeeper import OwnEnsemble, OwnServer

ASK_S = 1.0
_LOOK_US = 1_000
_FOLLOW_US = 20_000


class LinkOfProcesses(Capabilities):
    """What proxies can do."""

    whom = "processes of their own"

    cut = heal = delay = link_latency = lose = narrow = Capabilities.supported
    limit_bandwidth = unplug = plug_in = Capabilities.supported


class OfItsOwn(HostCapabilities):
    """What signals can do, and what a broker is started with."""

    whom = "processes of their own"
    links = LinkOfProcesses()

    pause = resume = kill = terminate = install = Capabilities.supported

    def lose_from_disk(self, what: str) -> None:
        if what == "unflushed":
            raise Unsupported("what the operating system was given, no signal takes back")


def process_capabilities(*, ensemble: bool) -> ClusterCapabilities:
    """Of brokers that are processes; `ensemble`: ZooKeeper's servers can be struck one by one."""
    server = OwnEnsemble() if ensemble else OwnServer()
    return ClusterCapabilities.of_one_kind(OfItsOwn(), server, AnyClient())


class ProcessHost:
    """One broker, and whichever process it has now."""

    def __init__(
        self,
        broker: int,
        deployment: Deployment,
        kernel: Kernel,
        profile: str,
        arguments: Callable[[int, str, str], list[str]],
    ) -> None:
        """`arguments`: what follows `isr broker` for a broker that runs this version and propagates
        ISR changes like this."""
        self.broker, self._deployment, self._kernel = broker, deployment, kernel
        self._arguments = arguments
        self._profile, self._propagation = profile, ""
        self.process = deployment.process(broker)
        self._before_pause: ProcessState | None = None
        self._successor: Callable[[], object] | None = None

    def boot(self, not_before_us: Mapping[str, int] | None = None) -> None:
        assert not_before_us is None, "time is the machine's: Capabilities say so"
        self._before_pause = None
        self.process.launch(self._arguments(self.broker, self._profile, self._propagation))

    @property
    def started(self) -> bool:
        return self.process.started

    @property
    def is_running(self) -> bool:
        return self.process.runs

    def knows(self, brokers: Collection[int]) -> bool:
        with suppress(Unreachable):
            known = metadata([self._deployment.reached(self.broker)], ASK_S, self._profile)
            return len(known.brokers) == len(brokers) and known.controller_id >= 0
        return False

    def when_dead(self, then: Callable[[], object]) -> None:
        waits, self._successor = self._successor is not None, then
        if not waits:
            self._look_for_the_end()

    def _look_for_the_end(self) -> None:
        if self.process.is_dead:
            then, self._successor = self._successor, None
            assert then is not None
            then()
        else:
            self._kernel.world.lane("world").call_later(_FOLLOW_US, self._look_for_the_end)

    def end(self) -> None:
        self.process.resume()
        self.process.terminate()

    def join(self) -> None:
        self.process.join()

    # -- what is done to it ------------------------------------------------------------------------

    def pause(self) -> None:
        state = self._state()
        if state not in ("dead", "paused"):
            self.process.pause()
            self._before_pause = state
            self._report("paused")

    def resume(self) -> None:
        self.process.resume()
        before, self._before_pause = self._before_pause, None
        if before is not None and not self.process.is_dead:
            self._report(before)

    def kill(self) -> None:
        if not self.process.is_dead:
            self.process.kill()
            self._before_pause = None
            self._report_death(self._kernel.cause)

    def terminate(self) -> None:
        self.process.terminate()

    def lose_from_disk(self, what: str) -> None:
        """The files are what a kill leaves."""
        if what == "disk":
            self.process.join()
            self._deployment.erase(self.broker)

    def install(self, profile: str, propagation: str) -> None:
        self._profile = profile or self._profile
        self._propagation = propagation or self._propagation

    def fail_log_dir(self, directory: int) -> None:
        raise AssertionError("its disk is the machine's: Capabilities say so")

    repair_log_dir = slow_disk = fail_log_dir

    def fail_authentication(self) -> None:
        raise AssertionError("its client is its own: Capabilities say so")

    # -- what it is --------------------------------------------------------------------------------

    def _state(self) -> ProcessState:
        if self.process.is_dead:
            return "dead"
        if self._before_pause is not None:
            return "paused"
        if not self.process.runs:
            return "stopping"
        return "up" if self.process.started else "starting"

    def _report(self, state: ProcessState) -> None:
        """What happens next is because of what led here, not of this event."""
        cause = self._kernel.cause
        self._kernel.emit(events.ProcessStateChanged, self.broker, state)
        self._kernel.cause = cause

    def _report_death(self, cause: int) -> None:
        """Once it is gone (an engine takes its time): until then it may still write events."""
        if self.process.is_dead:
            self._kernel.cause = cause
            self._report("dead")
        else:
            lane = self._kernel.world.lane("world")
            lane.call_later(_LOOK_US, lambda: self._report_death(cause))
