"""Many emulated brokers in one process, launched and signalled by another one.

This is the process's side. Requests come as lines of JSON through a connection, and reports about
brokers go back the same way. Each broker is a `StandaloneBroker` with its own port and ZooKeeper
session; kernel, clock and sockets are shared. Logs are in memory and survive a
restart of their broker, like a disk. `hollow_brokers` is the other side.
"""

from __future__ import annotations

import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import TypeAlias

import msgspec

from emulator.kafka.model.config import KafkaConfig
from emulator.scenario.errors import UserError
from emulator.trace import events
from emulator.worlds.processes.broker_process import (
    SLICE_US,
    BrokerOptions,
    ProcessParts,
    StandaloneBroker,
)
from emulator.worlds.storage.host_disk import DiskInMemory
from zk.real.kazoo_service import KazooService


class Launch(msgspec.Struct, frozen=True, tag="launch"):
    """Start a broker with the arguments of `isr broker`."""

    broker: int
    words: list[str]


class Signal(msgspec.Struct, frozen=True, tag="signal"):
    """SIGTERM, SIGKILL, SIGSTOP or SIGCONT to one of the brokers."""

    broker: int
    number: int


class ReportCounts(msgspec.Struct, frozen=True, tag="counts"):
    """What the brokers have done so far."""


HollowRequest: TypeAlias = Launch | Signal | ReportCounts


class Started(msgspec.Struct, frozen=True, tag="started"):
    """The broker accepts connections."""

    broker: int


class SessionOpened(msgspec.Struct, frozen=True, tag="session"):
    """ZooKeeper has granted it a session."""

    broker: int
    session: int


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """`code`: as of a process (negative: the signal); `failure`: why it could not start."""

    broker: int
    code: int
    failure: str = ""


class Count(msgspec.Struct):
    """The number of events of one kind, and the time of the last, by the monotonic clock."""

    count: int = 0
    last_ns: int = 0


class Counts(msgspec.Struct, frozen=True, tag="counted"):
    """Events by type; of MetadataCacheUpdated also its partition states; and requests by API."""

    kinds: dict[str, Count]


HollowReport: TypeAlias = Started | SessionOpened | Ended | Counts

STATES, REQUEST = "states of MetadataCacheUpdated", "request "
_COUNTED = (
    events.BecomesFollower,
    events.BecomesLeader,
    events.BrokerRegistered,
    events.IsrUpdated,
    events.LogTruncated,
    events.MetadataCacheUpdated,
    events.ZkSessionState,
)
"""The events that measurements use; counting fetches would only cost time."""


class HollowBrokers:
    """The brokers of this process. `options_of` reads the words that follow `isr broker`; raises
    UserError."""

    def __init__(
        self, connection: socket.socket, options_of: Callable[[list[str]], BrokerOptions]
    ) -> None:
        self._connection, self._options_of = connection, options_of
        self._encoder = msgspec.json.Encoder()
        self._parts: ProcessParts | None = None
        self._brokers: dict[int, StandaloneBroker] = {}
        self._disks: dict[int, DiskInMemory] = {}
        self._killed: set[int] = set()
        self._is_over = threading.Event()
        self._received: list[HollowRequest] = []
        self._has_received = threading.Event()
        self._counts: dict[str, Count] = {}

    def run(self) -> None:
        """Run until the other end closes the connection."""
        threading.Thread(target=self._read, name="requests", daemon=True).start()
        # The first launch has the options that all brokers share.
        while self._parts is None and not self._is_over.is_set():
            self._has_received.wait()
            self._take_requests()
        while self._parts is not None and not self._is_over.is_set():
            kernel = self._parts.kernel
            kernel.run(kernel.now + SLICE_US)
            for one in [one for one in self._brokers.values() if one.is_dead]:
                self._end(one)
        for one in self._brokers.values():
            one.node.halt("the process that launched it is gone")
            one.close()
        if self._parts is not None:
            self._parts.close()

    def _read(self) -> None:
        """A thread of its own."""
        with self._connection.makefile("rb") as lines:
            for line in lines:
                self._received.append(msgspec.json.decode(line, type=HollowRequest))
                self._wake()
        self._is_over.set()
        self._wake()

    def _wake(self) -> None:
        self._has_received.set()
        if self._parts is not None:
            self._parts.clock.put(self._take_requests)

    def _take_requests(self) -> None:
        self._has_received.clear()
        while self._received:
            match self._received.pop(0):
                case Launch(broker, words):
                    self._launch(broker, words)
                case Signal(broker, number):
                    self._signal(broker, number)
                case ReportCounts():
                    self._report(Counts(self._counts))
        if self._is_over.is_set() and self._parts is not None:
            self._parts.kernel.stop()

    def _report(self, report: HollowReport) -> None:
        try:
            self._connection.sendall(self._encoder.encode(report) + b"\n")
        except OSError:
            self._is_over.set()  # the other end is gone

    # -- one broker --------------------------------------------------------------------------------

    def _launch(self, broker: int, words: list[str]) -> None:
        try:
            options = self._options_of(words)
            if self._parts is None:
                self._parts = ProcessParts(options, _log)
                # The run began before this process; timeouts must not count from there.
                self._parts.kernel.now = self._parts.clock.now_us()
            config = KafkaConfig.of(options.profile.values, options.settings)
            stored = self._disks.setdefault(broker, DiskInMemory(config.log_directories))
            disk = stored.boot(config, options.profile.guards)
            one = StandaloneBroker(options, self._parts, disk)
        except UserError as error:
            self._report(Ended(broker, 1, str(error)))
            return
        self._brokers[broker] = one
        service = one.service
        self._parts.listen(broker, lambda event: self._on_event(event, service))
        one.network.on_request = self._count_request
        one.start()

    def _end(self, one: StandaloneBroker) -> None:
        broker = one.options.broker
        del self._brokers[broker]
        one.close()
        code = -signal.SIGKILL if broker in self._killed else 0 if one.node.exited else 1
        self._killed.discard(broker)
        self._report(Ended(broker, code, one.failure))

    def _signal(self, broker: int, number: int) -> None:
        one = self._brokers.get(broker)
        if one is None or one.is_dead:
            return
        process = one.node.context.process
        gate = one.service.gate(process.name)
        match number:
            case signal.SIGTERM:
                one.terminate()
            case signal.SIGKILL:
                gate.resume()
                self._killed.add(broker)
                one.node.crash()
            case signal.SIGSTOP:
                process.pause()
                gate.pause()
            case signal.SIGCONT:
                gate.resume()
                process.resume()

    # -- counts ------------------------------------------------------------------------------------

    def _on_event(self, event: events.AnyEvent, service: KazooService) -> None:
        if isinstance(event, events.BrokerStarted):
            self._report(Started(event.broker))
        elif isinstance(event, events.ZkSessionState):
            for session in service.session_ids:
                self._report(SessionOpened(event.broker, session))
        if isinstance(event, _COUNTED):
            self._count(type(event).__name__, 1)
            if isinstance(event, events.MetadataCacheUpdated):
                self._count(STATES, len(event.states))

    def _count(self, kind: str, number: int) -> None:
        count = self._counts.setdefault(kind, Count())
        count.count += number
        count.last_ns = time.monotonic_ns()

    def _count_request(self, api: str) -> None:
        self._count(f"{REQUEST}{api}", 1)


def _log(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
