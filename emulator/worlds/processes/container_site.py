"""Brokers in containers: a network, volumes, and ZooKeeper beside them.

Owns everything that one run creates in the engine, and its removal: if this process is killed,
another process that holds a pipe of it removes everything with the run's label. Everything here
belongs to the run; `compose_site` uses the network and ZooKeeper of `docker compose`. Knows how to
reach a broker, not what a scenario does to it.
"""

from __future__ import annotations

import os
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.scenario.schema import Scenario
from emulator.worlds.live import server_times
from emulator.worlds.processes.container_brokers import ContainerBroker
from zk.real.child import Watchdog
from zk.real.server import HOST, Address, ServerError, reserve
from zk.real.server_container import LABEL, engine, in_network, unpack
from zk.real.server_ensemble import ContainerEnsemble, Ensemble
from zk.real.txnlog import Entry

if TYPE_CHECKING:  # the Docker SDK takes half a second to import
    from docker import DockerClient
    from docker.models.containers import Container

IMAGE = "kafka-isr-emulator"
RUN_LABEL = "kafka-isr-emulator-run"
_WATCHDOG = """
import sys
if not sys.stdin.readline():
    from emulator.worlds.processes.container_site import remove_all
    remove_all(sys.argv[1])
"""


class NoImage(ServerError):
    """This project's image does not exist."""


class ContainerDeployment:
    """One run's objects in the engine (emulator.worlds.processes.local_site.Deployment)."""

    def __init__(self, scenario: Scenario, folder: Path) -> None:
        """`folder` gets traces and logs after the run. Raises ServerError; nothing is left then."""
        self.scenario, self._folder = scenario, folder
        self.engine = engine()
        self.name = f"isr-run-{uuid.uuid4().hex[:8]}"
        self.labels = {RUN_LABEL: self.name, LABEL: str(os.getpid())}
        self._brokers: dict[int, ContainerBroker] = {}
        self._reserved = {boot.broker: reserve(0) for boot in scenario.boots}
        self._watchdog: Watchdog | None = None
        self._ensemble: Ensemble | None = None
        try:
            self._image = require_image(self.engine)
            self._watchdog = Watchdog([sys.executable, "-c", _WATCHDOG, self.name])
            self._prepare(scenario)
        except BaseException:
            self.close()
            raise

    def _prepare(self, scenario: Scenario) -> None:
        """Create the network and choose addresses."""
        self.network = self.name
        made = self.engine.networks.create(self.network, driver="bridge", labels=self.labels)
        made.reload()
        self.here: str = made.attrs["IPAM"]["Config"][0]["Gateway"]
        self._own = ContainerEnsemble(
            scenario.zookeeper.servers, server_times(scenario, 1), self.network
        )
        self._ensemble = self._own
        self.zookeeper: Address = self._own.address

    # -- up ----------------------------------------------------------------------------------------

    def start(self) -> None:
        self._own.start()

    def process(self, broker: int) -> ContainerBroker:
        log = self._folder / f"broker-{broker}.log"
        made = ContainerBroker(broker, lambda words: self._make(broker, words), log)
        self._brokers[broker] = made
        return made

    def words(self, broker: int) -> list[str]:
        host, port = self.advertised_address(broker)
        words = ["--listen", f"0.0.0.0:{port}", "--advertise", f"{host}:{port}"]
        return [*words, "--data", "/data", "--trace", "/traces"]

    def advertised_address(self, broker: int) -> tuple[str, int]:
        """Clients of this machine reach a broker there, and so does the broker itself; brokers
        reach each other through proxies."""
        return self.address_of(broker)

    def address_of(self, broker: int) -> tuple[str, int]:
        return HOST, self._reserved[broker].getsockname()[1]

    def _published(self, broker: int) -> dict[str, tuple[str, int]]:
        host, port = self.address_of(broker)
        return {f"{port}/tcp": (host, port)}

    def _alias(self, broker: int) -> str:
        """Its name in the network."""
        return f"broker-{broker}"

    def _make(self, broker: int, words: list[str]) -> Container:
        alias = self._alias(broker)
        return self.engine.containers.create(
            self._image,
            ["broker", *words],
            name=f"{self.name}-{alias}",
            labels=self.labels,
            ports=self._published(broker),
            volumes=[
                f"{self._volume(broker, 'data')}:/data",
                f"{self._volume(broker, 'traces')}:/traces",
            ],
            **in_network(self.engine, self.network, alias),
        )

    def _volume(self, broker: int, what: str) -> str:
        name = f"{self.name}-broker-{broker}-{what}"
        if not self.engine.volumes.list(filters={"name": name}):
            self.engine.volumes.create(name, labels=self.labels)
        return name

    # -- actions -----------------------------------------------------------------------------------

    def lose(self, broker: int, what: str) -> None:
        assert what == "disk", "the operating system keeps the rest: Capabilities say so"
        name = self._volume(broker, "data")
        self._brokers[broker].forget(lambda: self.engine.volumes.get(name).remove(force=True))

    def act_on(self, server: str, what: str) -> None:
        assert self._ensemble is not None
        self._ensemble.act_on(server, what)

    def limit_space(self, broker: int, free_bytes: int | None, /) -> None:
        raise AssertionError("its limits are the engine's: Capabilities say so")

    def limit_descriptors(self, broker: int, /, *, limited: bool) -> None:
        raise AssertionError("its limits are the engine's: Capabilities say so")

    def set_clock(self, broker: int, offset_ms: int, /) -> None:
        raise AssertionError("its clock is the engine's: Capabilities say so")

    def plug(self, broker: int, /, *, connected: bool) -> bool:
        network = self.engine.networks.get(self.network)

        def done(container: Container) -> None:
            if connected:
                network.connect(container, aliases=[self._alias(broker)])
            else:
                network.disconnect(container)

        self._brokers[broker].reach(done)
        return True

    # -- down --------------------------------------------------------------------------------------

    def gather(self) -> list[Entry]:
        assert self._ensemble is not None
        for broker in self._brokers.values():
            broker.reach(lambda container: unpack(container, "/traces/.", self._folder))
            broker.join()
        return self._ensemble.entries(self._folder / "zookeeper")

    def close(self) -> None:
        for broker in self._brokers.values():
            broker.close()
        self._brokers.clear()
        if self._ensemble is not None:
            self._ensemble.close()
            self._ensemble = None
        if self._watchdog is not None:
            # Containers before networks and volumes: the engine does not remove those while they
            # are in use.
            remove_all(self.name, self.engine)
            self._watchdog.dismiss()
            self._watchdog = None
        for reservation in self._reserved.values():
            reservation.close()
        self.engine.close()


def require_image(client: DockerClient) -> str:
    """Check the image of brokers (`ISR_IMAGE` names another). Raises NoImage."""
    from docker.errors import ImageNotFound

    name = os.environ.get("ISR_IMAGE") or IMAGE
    try:
        client.images.get(name)
    except ImageNotFound:
        raise NoImage(
            f"there is no image {name}: docker compose build, or docker build --target isr -t"
            f" {IMAGE} ."
        ) from None
    return name


def remove_all(name: str, client: DockerClient | None = None) -> None:
    """Remove everything of a run that is still in the engine."""
    from docker.errors import NotFound

    client = client or engine()
    of_it = {"label": f"{RUN_LABEL}={name}"}
    for container in client.containers.list(all=True, filters=of_it):
        try:
            container.remove(force=True, v=True)
        except NotFound:
            continue
    for network in client.networks.list(filters=of_it):
        network.remove()
    for volume in client.volumes.list(filters=of_it):
        volume.remove(force=True)
