"""A broker host with a separate process: `isr broker` on this machine or in a container.

Actions come from outside: signals, and proxies on its links. Events that the process cannot report
itself (it is paused, runs again, was killed by anyone) are added to the trace here.
"""

from __future__ import annotations

import signal
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress

from emulator.kernel.scheduler import Callback, Kernel
from emulator.scenario.capabilities import (
    Capabilities,
    ClusterCapabilities,
    HostCapabilities,
    Unsupported,
)
from emulator.scenario.schema import Host
from emulator.trace import events
from emulator.trace.values import ProcessState
from emulator.worlds.clients.blocking_client import Unreachable, metadata
from emulator.worlds.clients.emulated import AnyClient
from emulator.worlds.processes.local_site import Deployment
from emulator.worlds.real_kafka.capabilities import HostOfKafka
from emulator.worlds.real_kafka.release import numbers_of
from emulator.worlds.zookeeper import OwnEnsemble, OwnServer

ASK_S = 1.0
_LOOK_AFTER_KILL_US = 1_000
"""SIGKILL takes effect within a millisecond or two: the trace is to say when."""


class LinkOfProcesses(Capabilities):
    """What proxies support."""

    subject = "processes of their own"

    cut = heal = delay = link_latency = lose = narrow = Capabilities.supported
    limit_bandwidth = unplug = plug_in = Capabilities.supported


class SeparateProcess(HostCapabilities):
    """What signals and start options support."""

    subject = "processes of their own"
    links = LinkOfProcesses()

    pause = resume = kill = terminate = install = Capabilities.supported

    def lose_from_disk(self, what: str) -> None:
        if what == "unflushed":
            problem = "the operating system keeps unflushed records; use --target processes"
            raise Unsupported(problem)


class KafkaProcessPart(HostOfKafka):
    """A real broker of a mixed cluster: its next JVM may be of another version."""

    install = Capabilities.supported


class LinkOfHollow(Capabilities):
    """It has no proxy."""

    subject = "hollow brokers"


class HollowProcessPart(HostCapabilities):
    """What requests to the process that it shares with others can do."""

    subject = "hollow brokers"
    links = LinkOfHollow()

    pause = resume = kill = terminate = install = Capabilities.supported


class ServerOfHollow(OwnServer):
    """Hollow brokers reach it without a tap."""

    def __init__(self, hollow: frozenset[int]) -> None:
        self._hollow = hollow

    def expire_session(self, *parameters: object, **_: object) -> None:
        if parameters[0] in self._hollow:
            problem = f"broker {parameters[0]} is hollow: its session passes no proxy"
            raise Unsupported(problem)

    drop_connection = expire_session


class LocalProcess(SeparateProcess):
    """Also what can be done to a process of this machine."""

    lose_from_disk = limit_space = mend_disk = Capabilities.supported
    use_up_descriptors = free_descriptors = set_clock = Capabilities.supported


def process_capabilities(hosts: Mapping[int, Host], *, ensemble: bool) -> ClusterCapabilities:
    """The capabilities of brokers that are processes, except for the `hosts` of another kind;
    `ensemble`: in containers, where ZooKeeper's servers can be stopped one by one."""
    hollow = frozenset(broker for broker, host in hosts.items() if host.kind == "hollow")
    server = OwnEnsemble() if ensemble else ServerOfHollow(hollow) if hollow else OwnServer()
    kinds: defaultdict[int, HostCapabilities] = defaultdict(
        SeparateProcess if ensemble else LocalProcess
    )
    for broker, host in hosts.items():
        if host.kind == "kafka":
            kinds[broker] = KafkaProcessPart(numbers_of(host.version))
        elif host.kind == "hollow":
            kinds[broker] = HollowProcessPart()
    return ClusterCapabilities(kinds, server, AnyClient())


class ProcessHost:
    """One broker with its current process."""

    def __init__(
        self,
        broker: int,
        deployment: Deployment,
        kernel: Kernel,
        profile: str,
        arguments: Callable[[int, str, str], list[str]],
    ) -> None:
        """`arguments(version, propagation)`: the arguments of `isr broker` for a broker with this
        version and propagation of ISR changes."""
        self.broker, self._deployment, self._kernel = broker, deployment, kernel
        self._arguments = arguments
        self._profile, self._propagation = profile, ""
        self.process = deployment.process(broker)
        self._before_pause: ProcessState | None = None
        self._is_watched = False
        """There is a process whose end has not been seen."""
        self._next_look: Callback | None = None
        self._sent: dict[int, int] = {}
        """Signals of ours that end it, and what led to each."""
        self._successor: tuple[Callable[[], object], int] | None = None
        """What is done when it has ended, and what led to that."""

    def boot(self, not_before_us: Mapping[str, int] | None = None) -> None:
        assert not_before_us is None, "time is the machine's: Capabilities say so"
        self._before_pause = None
        self._sent.clear()
        self.process.launch(self._arguments(self.broker, self._profile, self._propagation))
        self._is_watched = True
        self._look()

    @property
    def started(self) -> bool:
        return self.process.started

    @property
    def is_running(self) -> bool:
        return self.process.runs

    @property
    def state(self) -> ProcessState:
        """The process's state according to its events."""
        if self.process.is_dead:
            return "dead"
        if self._before_pause is not None:
            return "paused"
        if not self.process.runs:
            return "stopping"
        return "up" if self.process.started else "starting"

    def knows(self, brokers: Collection[int]) -> bool:
        with suppress(Unreachable):  # it has not come to listening yet
            known = metadata([self._deployment.address_of(self.broker)], ASK_S, self._profile)
            return len(known.brokers) == len(brokers) and known.controller_id >= 0
        return False

    def when_dead(self, then: Callable[[], object]) -> None:
        self._successor = then, self._kernel.cause
        self._look()

    def _look(self) -> None:
        """Check whether its process has ended: nothing reports that."""
        kernel, process = self._kernel, self.process
        if self._next_look is not None:
            self._next_look.cancel()
        if not process.is_dead:
            after_us = _LOOK_AFTER_KILL_US if signal.SIGKILL in self._sent else process.look_us
            self._next_look = kernel.world.lane("world").call_later(after_us, self._look)
            return
        if self._is_watched:
            self._is_watched, self._before_pause = False, None
            code = process.exit_code(0)
            if code is not None and code < 0:  # else it has said so in its own trace
                kernel.cause = self._sent.get(-code, -1)
                if -code not in self._sent:
                    reason = f"{signal.Signals(-code).name} from outside the run"
                    kernel.emit(events.BrokerHalted, self.broker, reason)
                self._report("dead")
        if self._successor is not None:
            (then, kernel.cause), self._successor = self._successor, None
            then()

    def end(self) -> None:
        self.process.resume()  # SIGTERM waits for a process that is stopped
        self.process.terminate()

    def join(self) -> None:
        self.process.join()

    # -- actions -----------------------------------------------------------------------------------

    def pause(self) -> None:
        state = self.state
        if state not in ("dead", "paused"):
            self._before_pause = state
            self.process.pause()
            self._report("paused")

    def resume(self) -> None:
        self.process.resume()
        before, self._before_pause = self._before_pause, None
        if before is not None and not self.process.is_dead:
            self._report(before)

    def kill(self) -> None:
        if not self.process.is_dead:
            self._sent[signal.SIGKILL], self._before_pause = self._kernel.cause, None
            self.process.kill()
            # It is dead when its process is gone (an engine takes its time): until then it writes
            # events.
            self._look()

    def terminate(self) -> None:
        self._sent[signal.SIGTERM] = self._kernel.cause  # fatal until its handler is there
        self.process.terminate()

    def lose_from_disk(self, what: str) -> None:
        """The files are what a kill leaves."""
        if what != "nothing":
            self.process.join()
            self._deployment.lose(self.broker, what)

    def install(self, profile: str, propagation: str) -> None:
        self._profile = profile or self._profile
        self._propagation = propagation or self._propagation

    def limit_space(self, free_bytes: int) -> None:
        self._deployment.limit_space(self.broker, free_bytes)

    def mend_disk(self) -> None:
        self._deployment.limit_space(self.broker, None)

    def use_up_descriptors(self) -> None:
        self._deployment.limit_descriptors(self.broker, limited=True)

    def free_descriptors(self) -> None:
        self._deployment.limit_descriptors(self.broker, limited=False)

    def set_clock(self, offset_ms: int) -> None:
        self._deployment.set_clock(self.broker, offset_ms)

    def fail_log_dir(self, *_: object) -> None:
        raise AssertionError("its disk is the machine's: Capabilities say so")

    repair_log_dir = slow_disk = fail_disk_calls = shorten_writes = fail_log_dir
    damage_log = fail_log_dir

    def fail_authentication(self) -> None:
        raise AssertionError("its client is its own: Capabilities say so")

    def _report(self, state: ProcessState) -> None:
        """The event does not become the cause of what follows."""
        cause = self._kernel.cause
        self._kernel.emit(events.ProcessStateChanged, self.broker, state)
        self._kernel.cause = cause
