"""Clients of a real cluster, as actions start and stop them (scenario.actions.base.Clients)."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from contextlib import suppress

from emulator.scenario.actions.base import Action
from emulator.scenario.actions.clients import Consume, Produce, Send
from emulator.worlds.real_kafka.clients import Administrator, ClientSettings, Driver, wall_us
from emulator.worlds.real_kafka.consumer import Reader
from emulator.worlds.real_kafka.notes import RunNotes
from emulator.worlds.real_kafka.tools import Replicas, Tools, is_by_tool


class RealClients:
    """Producers, consumers, one administrator and Kafka's own tools."""

    def __init__(
        self, version: tuple[int, ...], reach: Callable[[], ClientSettings], notes: RunNotes
    ) -> None:
        """`reach`: how clients reach the brokers."""
        self._version, self._reach, self._notes = version, reach, notes
        self.administrator: Administrator | None = None
        self.tools: Tools | None = None
        self._drivers: list[Driver] = []
        self._readers: list[Reader] = []
        # One thread: requests are sent in the order of the time line. At the end nobody waits for
        # it: a dead broker leaves a request without a response until the request times out.
        self._requests: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._closed = threading.Event()
        threading.Thread(target=self._send_requests, name="administrator", daemon=True).start()

    def admin(self, request: Action) -> None:
        """Requests run one after the other, in parallel to the time line: a response may take
        long."""
        record = self._notes.actions[-1]
        assert self.administrator is not None
        assert self.tools is not None
        # A tool is a JVM that takes seconds: the time line continues meanwhile.
        by_tool = is_by_tool(request, self._version)
        do = self.tools.do if by_tool else self.administrator.do

        def perform() -> None:
            record.result = do(request)
            record.returned_us = wall_us()

        self._requests.put(perform)

    def _send_requests(self) -> None:
        while True:
            perform = self._requests.get()
            if self._closed.is_set():
                return
            with suppress(Exception):  # a request that fails has no result; later ones are sent
                perform()

    def replicas_of(self, topic: str) -> Replicas:
        """As some broker reports them."""
        assert self.administrator is not None
        return self.administrator.replicas_of(topic)

    def produce(self, request: Action) -> None:
        assert isinstance(request, Produce | Send)
        name = f"producer-{len(self._drivers) + 1}"
        self._drivers.append(Driver(name, request, self._reach(), self._notes.produced.append))

    def consume(self, request: Action) -> None:
        assert isinstance(request, Consume)
        name = f"consumer-{len(self._readers) + 1}"
        consumed = self._notes.consumed.append
        settings = {**self._reach(), **({"client.rack": request.rack} if request.rack else {})}
        self._readers.append(Reader(name, request, settings, wall_us, consumed))

    def stop_clients(self, topic: str, acks: str | None) -> None:
        for driver in self._drivers:
            if driver.request.topic == topic and acks in (None, driver.request.acks):
                driver.stop()

    def stop(self) -> None:
        """Stop all drivers."""
        for driver in self._drivers:
            driver.stop()

    def close(self) -> None:
        for driver in self._drivers:
            driver.close(0.0)  # what has no result when the recording ends has none
        for reader in self._readers:
            reader.close(5.0)
        self._closed.set()
        self._requests.put(lambda: None)  # wakes the thread
        if self.tools is not None:
            self.tools.close()
