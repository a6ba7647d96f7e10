"""A broker's page over HTTP: `/metrics` for Prometheus, `/status` for `isr top`, `/healthy`.

Owns the HTTP server and the wording. The broker's memory is read on the kernel's thread; event
counts come from its events. Metrics have the names that Kafka's have behind the usual JMX exporter
(`kafka_server_replicamanager_...`). Read-only.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TypeVar

import msgspec
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import CollectorRegistry

from emulator.kafka.node import Broker
from emulator.trace import events
from emulator.trace.values import PartitionState
from zk.client.codec import LeaderAndIsr

T = TypeVar("T")
_PATIENCE_S = 5.0
_SERVER = "kafka_server_replicamanager"
_CONTROLLER = "kafka_controller_kafkacontroller"
COUNTED = {
    "isrshrinks": (f"{_SERVER}_isrshrinks", "ISR shrinks of partitions that this broker leads."),
    "isrexpands": (f"{_SERVER}_isrexpands", "ISR expansions."),
    "failed": (f"{_SERVER}_failedisrupdates", "ISR writes that met another version."),
    "expired": (
        "kafka_server_sessionexpirelistener_zookeeperexpires",
        "ZooKeeper sessions of this broker that expired.",
    ),
    "elections": (
        "kafka_controller_controllerstats_leaderelectionrate",
        "Times that this broker became controller.",
    ),
    "invalid": (
        "isr_broker_invalidrequests",
        "Requests that are not Kafka's protocol; their connections were closed (Kafka logs them).",
    ),
}
"""What is counted: its name (Kafka's, less `_total`), and what it is."""


class Counts:
    """A listener that counts events since the process started."""

    def __init__(self) -> None:
        self.counted: Counter[str] = Counter()

    def __call__(self, event: events.AnyEvent) -> None:
        match event:
            case events.IsrUpdated(change=change):
                self.counted[f"isr{change}s"] += 1
            case events.IsrUpdateRejected():
                self.counted["failed"] += 1
            case events.ControllerElected():
                self.counted["elections"] += 1
            case events.ZkSessionState(state="Expired"):
                self.counted["expired"] += 1
            case _:
                pass

    def count_invalid_request(self) -> None:
        """A connection was closed because of malformed input, which is not an event of the
        cluster."""
        self.counted["invalid"] += 1


def status_of(node: Broker) -> dict[str, object]:
    """Each partition as the broker knows it: its metadata cache, its leaderships, and, on the
    controller, the controller's cache."""
    cache, manager, controller = node.metadata_cache, node.replica_manager, node.controller
    known = ((partition, cache.partition(partition)) for partition in cache.partitions())
    leads = manager.partitions.values() if manager is not None else ()
    controls = epoch = None
    if controller is not None and controller.is_active:
        epoch = controller.context.epoch
        controls = {
            str(partition): _state(it.leader_and_isr, it.controller_epoch)
            for partition, it in controller.context.leadership.items()
        }
    return {
        "broker": node.broker,
        "broker_epoch": node.broker_epoch,
        "started": node.started,
        "metadata": {
            str(partition): _state(state, state.controller_epoch)
            for partition, state in known
            if state is not None
        },
        "leads": {
            str(one.partition): _state(
                LeaderAndIsr(node.broker, one.leader_epoch, one.isr, one.zk_version),
                one.controller_epoch,
            )
            for one in leads
            if one.is_leader
        },
        "controls": controls,
        "controller_epoch": epoch,
    }


def _state(it: PartitionState | LeaderAndIsr, controller_epoch: int) -> dict[str, object]:
    return {
        "leader": it.leader,
        "leader_epoch": it.leader_epoch,
        "isr": it.isr,
        "zk_version": it.zk_version,
        "controller_epoch": controller_epoch,
    }


def metrics_of(node: Broker, counts: Counts) -> Iterator[Metric]:
    """The metrics at this moment, as in Kafka."""
    for kind, (name, text) in COUNTED.items():
        yield CounterMetricFamily(name, text, counts.counted[kind])
    manager, controller = node.replica_manager, node.controller
    hosted = list(manager.partitions.values()) if manager is not None else []
    leads = [one for one in hosted if one.is_leader]
    # Partition.scala@2.6.3 isUnderReplicated: only a leader counts.
    under = sum(len(one.isr) < len(one.replicas) for one in leads)
    under_min = sum(len(one.isr) < one.min_insync_replicas for one in leads)
    active = controller is not None and controller.is_active
    gauges = {
        f"{_SERVER}_partitioncount": (len(hosted), "Replicas of this broker."),
        f"{_SERVER}_leadercount": (len(leads), "Partitions that it leads."),
        f"{_SERVER}_underreplicatedpartitions": (under, "Of these, with an ISR that is not whole."),
        f"{_SERVER}_underminisrpartitioncount": (under_min, "Below min.insync.replicas."),
        f"{_CONTROLLER}_activecontrollercount": (int(active), "1 on the controller."),
    }
    if controller is not None and active:
        leaders = [it.leader_and_isr.leader for it in controller.context.leadership.values()]
        offline = sum(leader not in controller.context.live_brokers for leader in leaders)
        gauges[f"{_CONTROLLER}_globalpartitioncount"] = (len(leaders), "Partitions there are.")
        gauges[f"{_CONTROLLER}_offlinepartitionscount"] = (offline, "Without a living leader.")
    for name, (value, text) in gauges.items():
        yield GaugeMetricFamily(name, text, value)


class StatusPage:
    """The server, from its creation to `close`. `on_kernel` runs a function on the kernel's thread.
    Raises OSError if the port is in use."""

    def __init__(
        self,
        where: tuple[str, int],
        node: Broker,
        counts: Counts,
        on_kernel: Callable[[Callable[[], None]], None],
    ) -> None:
        self._node, self._counts, self._on_kernel = node, counts, on_kernel
        self._registry = CollectorRegistry()
        self._registry.register(self)
        page = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                try:
                    code, kind, body = page.answer(self.path, self.headers.get("Accept", ""))
                except TimeoutError:
                    code, kind, body = 503, "text/plain", b"the broker does not answer\n"
                with suppress(ConnectionError):  # who asked did not wait for the answer
                    self.send_response(code)
                    self.send_header("Content-Type", kind)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Do not log requests."""

        self._server = ThreadingHTTPServer(where, Handler)
        self._server.daemon_threads = True  # one that still answers does not hold the broker's end
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="status-page", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def collect(self) -> Iterable[Metric]:
        """For prometheus_client; called on a thread of the server."""
        return self._read(lambda: list(metrics_of(self._node, self._counts)))

    def describe(self) -> Iterable[Metric]:
        """No names: they are not known before there is a broker."""
        return ()

    def _read(self, read: Callable[[], T]) -> T:
        """Read on the kernel's thread between two of its steps: other threads must not access a
        broker's memory. TimeoutError."""
        result: Future[T] = Future()

        def on_kernel() -> None:
            try:
                result.set_result(read())
            except Exception as error:  # noqa: BLE001 - the page's trouble, not the broker's
                result.set_exception(error)

        self._on_kernel(on_kernel)
        return result.result(_PATIENCE_S)

    def answer(self, path: str, accept: str) -> tuple[int, str, bytes]:
        """Code, content type and body."""
        if path == "/metrics":
            encode, kind = choose_encoder(accept)
            return 200, kind, encode(self._registry)
        status = self._read(lambda: status_of(self._node))
        if path == "/status":
            return 200, "application/json", msgspec.json.encode(status)
        if path == "/healthy":
            return (200 if status["started"] else 503), "text/plain", b"started\n"
        return 404, "text/plain", b"/metrics, /status or /healthy\n"
