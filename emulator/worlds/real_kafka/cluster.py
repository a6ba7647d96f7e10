"""A real cluster in our hands: processes, proxies, clients, and notes of all that was done to it.

The third world behind the port of stimuli: pause is SIGSTOP, kill SIGKILL, terminate SIGTERM, a
link to ZooKeeper is cut in its tap. It notes what it did and what passed, by the wall clock; what
the brokers' logs and ZooKeeper's tell is read when all is over, and not here.
"""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from emulator.kernel.rng import Chance
from emulator.scenario.actions.base import Stimulus, Ways
from emulator.scenario.actions.clients import Consume, Produce, Send
from emulator.scenario.schema import Scenario
from emulator.trace.values import Parameters, ProcessState
from emulator.worlds.errors import DidNotComeUp
from emulator.worlds.real_kafka.between import Between
from emulator.worlds.real_kafka.broker import RealBroker
from emulator.worlds.real_kafka.clients import (
    SPOKEN_FROM,
    Administrator,
    ClientSettings,
    Driver,
    Produced,
    client_settings,
    wall_us,
)
from emulator.worlds.real_kafka.consumer import Consumed, Reader
from emulator.worlds.real_kafka.possible import ZOOKEEPER, has_links
from emulator.worlds.real_kafka.release import Release
from emulator.worlds.real_kafka.tools import Tools, is_by_tool
from zk.errors import Code
from zk.ops import Request
from zk.real.server import EmbeddedServer
from zk.real.tap import Tap, Taps
from zk.wire import When

BRING_UP_LIMIT_S = 90.0
QUIET_AFTER_LAST_US = 3_000_000
"""A recording goes on for this long after the last stimulus, as the judge's plays do."""
TOOL = 0
"""Whose tap the tools pass: no broker's."""
_TICK_S = 0.005
_PATIENCE_S = 0.5


class Noted(msgspec.Struct):
    """Something that was done to the cluster; `returned_us`: when its client had the answer."""

    at_us: int
    do: str
    broker: int
    parameters: Parameters
    returned_us: int = 0
    result: str = ""


class Asked(msgspec.Struct, frozen=True):
    """A request as it passed a broker's tap."""

    at_us: int
    client: str
    request: Request | str


class ProcessEvent(msgspec.Struct, frozen=True):
    """A broker's process is in another state from here on; `orderly`: it ended as it was asked to
    (SIGTERM)."""

    at_us: int
    broker: int
    state: ProcessState
    orderly: bool = False


class Notes(msgspec.Struct):
    """All that is known of a run before any log is read; wall clock in microseconds."""

    began_us: int
    up_us: int = 0
    ended_us: int = 0
    late_us_max: int = 0
    stimuli: list[Noted] = []
    asked: list[Asked] = []
    processes: list[ProcessEvent] = []
    produced: list[Produced] = []
    consumed: list[Consumed] = []
    sessions: dict[int, str] = {}


class RealCluster:
    """Kafka brokers and a ZooKeeper server as processes of this machine. A context manager: however
    it is left, nothing of it runs."""

    def __init__(self, scenario: Scenario, release: Release, folder: Path) -> None:
        self.scenario, self.release, self.folder = scenario, release, folder
        self.notes = Notes(wall_us())
        zookeeper = scenario.zookeeper
        self._server = EmbeddedServer(
            folder / "zookeeper",
            tick_ms=zookeeper.tick_time_ms,
            min_session_timeout_ms=zookeeper.min_session_timeout_ms,
            max_session_timeout_ms=zookeeper.max_session_timeout_ms,
        )
        self._taps = Taps(self, wall_us)
        self._tap: dict[int, Tap] = {}
        self.brokers: dict[int, RealBroker] = {}
        chance = Chance(0)
        self._between = Between(self._taps, lambda actor: chance.stream("link", actor))
        self._tools: Tools | None = None
        self._drivers: list[Driver] = []
        self._readers: list[Reader] = []
        self._administrator: Administrator | None = None
        self._asking = ThreadPoolExecutor(1, "administrator")
        self._answers: list[Future[None]] = []
        self._to_start: dict[int, None] = {}
        self._leaving: dict[int, None] = {}
        self._states: dict[int, ProcessState] = {b.broker: "dead" for b in scenario.boots}
        self._before_pause: dict[int, ProcessState] = {}

    def __enter__(self) -> RealCluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def zookeeper_log(self) -> Path:
        return self._server.txn_log_dir

    # -- its life -------------------------------------------------------------------------------

    def bring_up(self) -> None:
        """Each broker starts when the one before it has; `up` is when all know all."""
        self._server.start()
        tool = self._tap[TOOL] = self._taps.open("tool", self._server.address)
        self._tools = Tools(self.release, str(tool.address), self.folder)
        for boot in self.scenario.boots:
            self._make(boot.broker)
        for boot in self.scenario.boots:
            self._launch(boot.broker)
            self._wait(self.brokers[boot.broker].has_started, boot.broker)
        for broker, real in self.brokers.items():
            self._wait_until_all_are_known(Administrator(self._reach([real])), broker)
        self._administrator = Administrator(self._reach(self._in_boot_order()))
        self._wait_until_all_are_known(self._administrator, self.scenario.boots[0].broker)
        self.notes.up_us = wall_us()
        self.notes.stimuli.append(Noted(self.notes.up_us, "up", 0, Parameters()))

    def play(self, on_progress: Callable[[int, RealCluster], object]) -> None:
        """Give it the scenario's stimuli, each at its moment."""
        last_us = max((step.at_us for step in self.scenario.steps), default=0)
        until_us = max(self.scenario.duration_us, last_us + QUIET_AFTER_LAST_US)
        for step in self.scenario.steps:
            self._pass_time(step.at_us, on_progress)
            late_us = wall_us() - self.notes.up_us - step.at_us
            self.notes.late_us_max = max(late_us, self.notes.late_us_max)
            self.apply(step.stimulus)
        self._pass_time(until_us, on_progress)
        self.notes.ended_us = wall_us()

    def _pass_time(self, until_us: int, on_progress: Callable[[int, RealCluster], object]) -> None:
        while (left_us := self.notes.up_us + until_us - wall_us()) > 0:
            self._look_around()
            on_progress(wall_us() - self.notes.up_us, self)
            time.sleep(min(_TICK_S, left_us / 1e6))

    def _look_around(self) -> None:
        """Processes that have ended, and those that wait for that to be started."""
        self._server.require_alive()
        for broker, one in self.brokers.items():
            if not one.runs and self._states[broker] != "dead":
                self._note_state(broker, "dead", orderly=broker in self._leaving)
                self._leaving.pop(broker, None)
        for broker in [b for b in self._to_start if not self.brokers[b].runs]:
            del self._to_start[broker]
            self._launch(broker)

    def close(self) -> None:
        """End everything at once; what was written stays."""
        self.notes.ended_us = self.notes.ended_us or wall_us()
        for driver in self._drivers:
            driver.stop()
        for real in self.brokers.values():
            real.close()
        for driver in self._drivers:
            driver.close(0.0)
        for reader in self._readers:
            reader.close(5.0)
        self._asking.shutdown(wait=False, cancel_futures=True)
        for broker, tap in self._tap.items():
            whose = f"broker-{broker}" if broker != TOOL else "tool"
            self.notes.sessions |= dict.fromkeys(tap.sessions, whose)
        self._taps.close()
        self._server.close()

    def _make(self, broker: int) -> None:
        tap = self._tap[broker] = self._taps.open(f"broker-{broker}", self._server.address)
        settings = {**self.scenario.settings, **self.scenario.broker_settings.get(broker, {})}
        settings["zookeeper.connect"] = str(tap.address)
        folder = self.folder / f"broker-{broker}"
        door = partial(self._between.open, broker) if has_links(self.scenario) else None
        self.brokers[broker] = RealBroker(broker, folder, self.release, settings, door)

    def _note_state(
        self, broker: int, state: ProcessState, at_us: int = 0, *, orderly: bool = False
    ) -> None:
        self._states[broker] = state
        self.notes.processes.append(ProcessEvent(at_us or wall_us(), broker, state, orderly))

    def _launch(self, broker: int) -> None:
        self._note_state(broker, "starting")
        self.brokers[broker].start()

    def _wait(self, for_it: Callable[[], bool], broker: int) -> None:
        """For something of a process that tells nobody: it is looked at again and again."""
        end_s = time.monotonic() + BRING_UP_LIMIT_S
        while not for_it():
            one = self.brokers[broker]
            if not one.runs:
                raise DidNotComeUp(f"broker {broker} ended while it booted: {one.last_error()}")
            if time.monotonic() > end_s:
                raise DidNotComeUp(f"broker {broker} did not come up in {BRING_UP_LIMIT_S:g} s")
            time.sleep(_TICK_S)

    def _wait_until_all_are_known(self, asker: Administrator, broker: int) -> None:
        """As some broker tells clients; where none is understood, having started is enough."""
        if self.release.numbers < SPOKEN_FROM:
            return
        everybody = tuple(sorted(self.brokers))
        self._wait(lambda: asker.live() == everybody, broker)

    def _in_boot_order(self) -> list[RealBroker]:
        return [self.brokers[boot.broker] for boot in self.scenario.boots]

    def _reach(self, brokers: Sequence[RealBroker]) -> ClientSettings:
        """How clients reach them."""
        return client_settings([one.address for one in brokers])

    # -- TapObserver, on the taps' thread -------------------------------------------------------

    def on_request(self, at_us: int, client: str, request: Request | str) -> None:
        self.notes.asked.append(Asked(at_us, client, request))

    def on_reply(self, client: str, request: Request | str, code: Code, elapsed_us: int) -> None:
        """Answers are not kept: the server's own log has what was applied."""

    # -- stimuli: scenario.actions.base.World ----------------------------------------------------

    def apply(self, stimulus: Stimulus) -> Noted:
        """Note a stimulus, and carry it out."""
        broker = getattr(stimulus, "broker", None) or 0
        noted = Noted(wall_us(), stimulus.name, broker, stimulus.parameters)
        self.notes.stimuli.append(noted)
        stimulus.apply(self)  # type: ignore[arg-type]
        return noted

    def pause(self, target: int | str) -> None:
        if target == ZOOKEEPER:
            self._server.pause()
        else:
            broker = int(target)
            self.brokers[broker].signal(signal.SIGSTOP)
            if self._states[broker] not in ("dead", "paused"):
                self._before_pause[broker] = self._state_now(broker)
                self._note_state(broker, "paused", self.notes.stimuli[-1].at_us)

    def resume(self, target: int | str) -> None:
        if target == ZOOKEEPER:
            self._server.resume()
        else:
            broker = int(target)
            self.brokers[broker].signal(signal.SIGCONT)
            if self._states[broker] == "paused":
                before = self._before_pause[broker]
                self._note_state(broker, before, self.notes.stimuli[-1].at_us)

    def _state_now(self, broker: int) -> ProcessState:
        """It says in its log when it is up; nobody has looked since it was launched."""
        state = self._states[broker]
        return "up" if state == "starting" and self.brokers[broker].has_started() else state

    def kill(self, broker: int) -> None:
        self.brokers[broker].kill()
        if self._states[broker] != "dead":
            self._leaving.pop(broker, None)
            self._note_state(broker, "dead", self.notes.stimuli[-1].at_us)

    def lose_from_disk(self, broker: int, what: str) -> None:
        if what == "disk":
            data = self.brokers[broker].folder / "data"
            shutil.rmtree(data, ignore_errors=True)
            data.mkdir()

    def terminate(self, broker: int) -> None:
        self._leaving[broker] = None
        self.brokers[broker].signal(signal.SIGTERM)
        if self._states[broker] == "paused":
            self._before_pause[broker] = "stopping"  # the signal waits until it runs on
        elif self._states[broker] != "dead":
            self._note_state(broker, "stopping", self.notes.stimuli[-1].at_us)

    def runs(self, broker: int) -> bool:
        return self.brokers[broker].runs and broker not in self._leaving

    def start_again(self, broker: int, registered_ms: int | None) -> None:
        """Once the last process is gone."""
        self._to_start[broker] = None
        self._look_around()

    def cut(self, broker: int, peer: int | str, ways: Ways = "both") -> None:
        if isinstance(peer, int):
            self._between.cut(broker, peer, ways)
        else:
            self._tap[broker].cut()

    def heal(self, broker: int, peer: int | str) -> None:
        if isinstance(peer, int):
            self._between.heal(broker, peer)
        else:
            self._tap[broker].heal()

    def delay(self, broker: int, peer: int | str, delay_ms: int) -> None:
        if isinstance(peer, int):
            self._between.delay(broker, peer, delay_ms)
        else:
            self._tap[broker].delay(delay_ms * 1000)

    def link_latency(
        self, broker: int, peer: int | str, ways: Ways, times_ms: tuple[int, int, int]
    ) -> None:
        low, typical, high = (ms * 1000 for ms in times_ms)
        self._disturb(broker, peer, ways, {"low_us": low, "typical_us": typical, "high_us": high})

    def lose(self, broker: int, peer: int | str, ways: Ways, loss: float) -> None:
        self._disturb(broker, peer, ways, {"loss": loss})

    def narrow(self, broker: int, peer: int, ways: Ways, bytes_per_s: int) -> None:
        self._between.narrow(broker, peer, ways, bytes_per_s)

    def _disturb(
        self, broker: int, peer: int | str, ways: Ways, changes: Mapping[str, float]
    ) -> None:
        if isinstance(peer, int):
            self._between.disturb(broker, peer, ways, changes)
        else:
            self._between.disturb_tap(self._tap[broker], broker, ways, changes)

    def drop_connection(self, broker: int, when: When, op: str | None, count: int) -> None:
        self._tap[broker].drop_connection(when, op, count)

    def stop_zookeeper(self) -> None:
        self._server.stop()

    def start_zookeeper(self) -> None:
        if not self._server.is_there:
            self._server.launch()

    def admin(self, request: Stimulus) -> None:
        """One after the other, beside the time line: an answer may take its time."""
        noted = self.notes.stimuli[-1]
        assert self._administrator is not None
        assert self._tools is not None
        by_tool = is_by_tool(request, self.release.numbers)
        do = self._tools.do if by_tool else self._administrator.ask

        def ask() -> None:
            noted.result = do(request)
            noted.returned_us = wall_us()

        self._answers.append(self._asking.submit(ask))

    def produce(self, request: Any) -> None:
        assert isinstance(request, Produce | Send)
        name = f"producer-{len(self._drivers) + 1}"
        settings = self._reach(self._in_boot_order())
        self._drivers.append(Driver(name, request, settings, self.notes.produced.append))

    def consume(self, request: Any) -> None:
        assert isinstance(request, Consume)
        name = f"consumer-{len(self._readers) + 1}"
        settings = self._reach(self._in_boot_order())
        self._readers.append(Reader(name, request, settings, wall_us, self.notes.consumed.append))

    def stop_clients(self, topic: str, acks: str | None) -> None:
        for driver in self._drivers:
            if driver.request.topic == topic and acks in (None, driver.request.acks):
                driver.stop()
