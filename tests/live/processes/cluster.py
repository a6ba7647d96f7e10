"""Brokers as processes for a test: three of them, and a ZooKeeper server of our own."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from emulator.kafka.protocol.messages import CreateTopicsRequest, MetadataResponse
from emulator.trace.values import PartitionState, TopicPartition
from emulator.worlds.clients.blocking_client import Unreachable, ask_controller, metadata
from emulator.worlds.processes.local_brokers import BrokerEnded, LocalBroker
from zk.real.server import EmbeddedServer, reserve

T = TypeVar("T")
PATIENCE_S = 60.0
SESSIONS = {"min_session_timeout_ms": 1000, "max_session_timeout_ms": 60_000}


class Brokers:
    """The processes, and what is asked of them."""

    def __init__(self, folder: Path, server: EmbeddedServer, sets: tuple[str, ...]) -> None:
        self.folder, self.server = folder, server
        self.reserved = {n: reserve(0) for n in (1, 2, 3)}
        self.ports = {n: int(one.getsockname()[1]) for n, one in self.reserved.items()}
        self.by_id = {
            n: LocalBroker(n, self._words(n, sets), folder / f"{n}.log") for n in (1, 2, 3)
        }

    def _words(self, broker: int, sets: tuple[str, ...]) -> list[str]:
        words = ["--id", str(broker), "--zookeeper", str(self.server.address)]
        words += ["--listen", f"127.0.0.1:{self.ports[broker]}"]
        words += ["--data", str(self.folder / f"data-{broker}"), "--trace", str(self.folder)]
        for pair in (one.replace("{broker}", str(broker)) for one in sets):
            words += ["--set", pair] if "=" in pair and "." in pair else pair.split(" ")
        return words

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.ports.values())

    def metadata(self, broker: int) -> MetadataResponse:
        """From this broker's cache."""
        return metadata([("127.0.0.1", self.ports[broker])], 10)

    def controller(self, asked: int = 1) -> int:
        return self.metadata(asked).controller_id

    def partition(self, broker: int, topic: str, number: int = 0) -> PartitionState | None:
        wanted = TopicPartition(topic, number)
        states = self.metadata(broker).partitions
        return next((s for s in states if s.partition == wanted), None)

    def create(self, topic: str, *replicas: tuple[int, ...], **config: str) -> None:
        """A topic, with leaders for all of its partitions."""
        pairs = tuple((key.replace("_", "."), value) for key, value in config.items())
        servers = [("127.0.0.1", port) for port in self.ports.values()]
        answer = ask_controller(servers, CreateTopicsRequest(topic, replicas, pairs), 30)
        assert answer.error.name == "NONE", answer

    def until(self, found: Callable[[], T], wanted: Callable[[T], bool]) -> T:
        """Repeat the request until the result is as expected, also after errors."""
        for _ in range(600):
            try:
                value = found()
                if wanted(value):
                    return value
            except Unreachable:
                assert not any(b.is_dead and not b.stopped for b in self.by_id.values()), (
                    self.said()
                )
            _moment()
        raise AssertionError(f"in {PATIENCE_S} s not as wanted; brokers said:\n{self.said()}")

    def restart(self, *numbers: int) -> None:
        """Killed and started; a registration of before is in the way until its session has
        ended."""
        for number in numbers:
            self.by_id[number].kill()
        for number in numbers:
            self.by_id[number].launch()
        for number in numbers:
            broker = self.by_id[number]
            for _ in range(60):
                try:
                    if broker.wait_until_started(1):
                        break
                except BrokerEnded:
                    broker.launch()
            else:
                raise AssertionError(broker.log_text())

    def said(self) -> str:
        return "\n".join(broker.log_text() for broker in self.by_id.values())


def _moment() -> None:
    """A tenth of a second: changes in another process cannot be waited for."""
    end, other = socket.socketpair()
    with end, other:
        end.settimeout(PATIENCE_S / 600)
        try:
            end.recv(1)
        except TimeoutError:
            pass


@contextmanager
def three_brokers(folder: Path, *sets: str) -> Iterator[Brokers]:
    """Up, and each knows all of them; gone at the end."""
    with EmbeddedServer(folder / "zookeeper", tick_ms=500, **SESSIONS) as server:
        brokers = Brokers(folder, server, sets)
        try:
            for broker in brokers.by_id.values():
                broker.launch()
            for number in brokers.by_id:
                brokers.until(lambda n=number: brokers.metadata(n), lambda m: len(m.brokers) == 3)
            yield brokers
        finally:
            for broker in brokers.by_id.values():
                broker.resume()
                broker.kill()
            for broker in brokers.by_id.values():
                broker.join()
            for reservation in brokers.reserved.values():
                reservation.close()
