"""A real cluster: processes, proxies, clients, and notes of all actions.

The wall-clock world behind the port of actions: pause is SIGSTOP, kill SIGKILL, terminate SIGTERM;
a link to ZooKeeper is cut in its tap. It notes actions and traffic by the wall clock. The logs of
brokers and ZooKeeper are read after the run, not here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from emulator.kernel.rng import Chance, Stream
from emulator.scenario.schema import Scenario
from emulator.trace.values import Parameters
from emulator.worlds.cluster import Cluster
from emulator.worlds.errors import DidNotComeUp
from emulator.worlds.links import ProxiedLinks
from emulator.worlds.real_kafka.broker import RealBroker
from emulator.worlds.real_kafka.capabilities import capabilities_of_kafka, has_links
from emulator.worlds.real_kafka.client_side import RealClients
from emulator.worlds.real_kafka.clients import (
    Administrator,
    ClientSettings,
    client_settings,
    wall_us,
)
from emulator.worlds.real_kafka.host import RealHost
from emulator.worlds.real_kafka.inter_broker_proxies import InterBrokerProxies
from emulator.worlds.real_kafka.notes import ActionRecord, PassedRequest, RunNotes
from emulator.worlds.real_kafka.release import Release
from emulator.worlds.real_kafka.tools import Tools
from emulator.worlds.zookeeper import TappedZooKeeper
from zk.errors import Code
from zk.ops import Request
from zk.real.server import EmbeddedServer
from zk.real.server_ensemble import act_on
from zk.real.tap import Tap, Taps

BRING_UP_LIMIT_S = 90.0
LISTS_BROKERS_FROM = (0, 9)
"""A broker of 0.8 hears of the others with the first topic: before, its metadata is empty."""
QUIET_AFTER_LAST_US = 3_000_000
"""A recording goes on for this long after the last action, as the judge's plays do."""
TOOL = 0
"""Whose tap the tools pass: no broker's."""
_TICK_S = 0.005


class RealKafkaWorld:
    """Kafka brokers and a ZooKeeper server as processes of this machine. A context manager: nothing
    of it keeps running after the exit."""

    def __init__(self, scenario: Scenario, release: Release, folder: Path) -> None:
        self.scenario, self.release, self.folder = scenario, release, folder
        self.notes = RunNotes(wall_us())
        zookeeper = scenario.zookeeper
        self._server = EmbeddedServer(
            folder / "zookeeper",
            tick_ms=zookeeper.tick_time_ms,
            min_session_timeout_ms=zookeeper.min_session_timeout_ms,
            max_session_timeout_ms=zookeeper.max_session_timeout_ms,
        )
        self._taps = Taps(self, wall_us)
        self._tap: dict[int, Tap] = {}
        self._proxies = InterBrokerProxies(self._taps)
        self._hosts: dict[int, RealHost] = {}
        self._clients = RealClients(
            release.numbers, lambda: self._reach(list(self._hosts.values())), self.notes
        )
        chance = Chance(0)

        def chance_of(purpose: str, actor: str) -> Callable[[], Stream]:
            stream = chance.stream(purpose, actor)
            return lambda: stream

        reached = TappedZooKeeper(
            self._tap.__getitem__,
            lambda _, what: act_on(self._server, what),
            lambda _broker: None,
        )
        brokers = [boot.broker for boot in scenario.boots]
        self.cluster: Cluster[RealHost] = Cluster(
            self._hosts,
            reached,
            ProxiedLinks(brokers, reached, chance_of, self._proxies.links),
            self._clients,
            capabilities_of_kafka(release.numbers),
            self.notes.record,
        )

    def __enter__(self) -> RealKafkaWorld:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def zookeeper_log(self) -> Path:
        return self._server.txn_log_dir

    def bring_up(self) -> None:
        """Start the brokers one after the other; `up` is when each of them knows all others."""
        self._server.start()
        tool = self._tap[TOOL] = self._taps.open("tool", self._server.address)
        self._clients.tools = Tools(
            self.release, str(tool.address), self.folder, self._clients.replicas_of
        )
        for boot in self.scenario.boots:
            broker = boot.broker
            tap = self._tap[broker] = self._taps.open(f"broker-{broker}", self._server.address)
            settings = {**self.scenario.settings, "zookeeper.connect": str(tap.address)}
            # Another listener changes the registrations: only if a scenario needs links.
            listener = partial(self._proxies.open, broker) if has_links(self.scenario) else None
            folder = self.folder / f"broker-{broker}"
            real = RealBroker(broker, folder, self.release)
            real.configure(settings, listener)
            self._hosts[broker] = RealHost(real, self.notes)
        for boot in self.scenario.boots:
            host = self.cluster.start(boot.broker)
            self._wait(lambda host=host: host.started, host)  # type: ignore[misc]
        # Checked for each broker: metadata reaches one broker after the other, and `up` is when the
        # last one has it.
        for host in self._hosts.values():
            self._wait_until_all_are_known(Administrator(self._reach([host])), host)
        all_hosts = list(self._hosts.values())
        self._clients.administrator = Administrator(self._reach(all_hosts))
        self._wait_until_all_are_known(self._clients.administrator, all_hosts[0])
        self.notes.up_us = wall_us()
        self.notes.actions.append(ActionRecord(self.notes.up_us, "up", 0, Parameters()))

    def play(self, on_progress: Callable[[int, RealKafkaWorld], object]) -> None:
        """Carry out the scenario's actions, each at its time."""
        last_us = max((step.at_us for step in self.scenario.steps), default=0)
        until_us = max(self.scenario.duration_us, last_us + QUIET_AFTER_LAST_US)
        for step in self.scenario.steps:
            self._pass_time(step.at_us, on_progress)
            late_us = wall_us() - self.notes.up_us - step.at_us
            self.notes.late_us_max = max(late_us, self.notes.late_us_max)
            self.cluster.apply(step.action)
        self._pass_time(until_us, on_progress)
        self.notes.ended_us = wall_us()

    def _pass_time(
        self, until_us: int, on_progress: Callable[[int, RealKafkaWorld], object]
    ) -> None:
        while (left_us := self.notes.up_us + until_us - wall_us()) > 0:
            self._server.require_alive()  # without it a recording would go on, of nothing
            for host in self._hosts.values():
                host.look()
            on_progress(wall_us() - self.notes.up_us, self)
            time.sleep(min(_TICK_S, left_us / 1e6))

    def close(self) -> None:
        """End everything at once; written files stay."""
        self.notes.ended_us = self.notes.ended_us or wall_us()
        self._clients.stop()
        self.cluster.close()
        self._clients.close()
        # A tap has seen which sessions its broker was granted.
        for broker, tap in self._tap.items():
            owner = f"broker-{broker}" if broker != TOOL else "tool"
            self.notes.sessions |= dict.fromkeys(tap.sessions, owner)
        self._taps.close()
        self._server.close()

    def _wait(self, condition: Callable[[], bool], host: RealHost) -> None:
        """Poll a process until the condition holds: it reports nothing itself."""
        end_s = time.monotonic() + BRING_UP_LIMIT_S
        while not condition():
            real = host.real
            if not real.runs:
                raise DidNotComeUp(f"broker {real.id} ended while it booted: {real.last_error()}")
            if time.monotonic() > end_s:
                raise DidNotComeUp(f"broker {real.id} did not come up in {BRING_UP_LIMIT_S:g} s")
            time.sleep(_TICK_S)

    def _wait_until_all_are_known(self, administrator: Administrator, host: RealHost) -> None:
        """As some broker reports to clients."""
        if self.release.numbers < LISTS_BROKERS_FROM:
            return  # each has logged that it started, which is all that can be known
        all_brokers = tuple(sorted(self._hosts))
        self._wait(lambda: administrator.live() == all_brokers, host)

    def _reach(self, hosts: Sequence[RealHost]) -> ClientSettings:
        """How clients reach them."""
        return client_settings([host.real.address for host in hosts], self.release)

    # -- TapObserver, on the taps' thread -------------------------------------------------------

    def on_request(self, at_us: int, client: str, request: Request | str) -> None:
        self.notes.requests.append(PassedRequest(at_us, client, request))

    def on_reply(self, client: str, request: Request | str, code: Code, elapsed_us: int) -> None:
        """Responses are not stored: the server's own log has the transactions."""
