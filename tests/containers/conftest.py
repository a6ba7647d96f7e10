"""A Docker engine, and docker-compose.yml as a project of its own that leaves nothing behind.

`make test-containers` starts an engine where none answers and makes the images. These tests are not
skipped: without an engine they fail.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tenacity
from kazoo.client import KazooClient

from emulator.view.live.watch import ClusterObserver
from emulator.worlds.clients.metadata_query import MetadataQuery
from tests.command import Isr
from zk.real.server import AddressInUse, parse_address, reserve
from zk.real.server_container import LABEL, engine

ROOT = Path(__file__).resolve().parents[2]
PROJECT = f"isrtest{os.getpid()}"
OF_PROJECT = f"com.docker.compose.project={PROJECT}"


def free_ports() -> Iterator[int]:
    """Unused ports on loopback, below those that the system gives out: a container that is stopped
    and started again finds its port free."""
    for port in range(20_000 + os.getpid() % 1000 * 10, 32_000):
        try:
            reserve(port).close()
        except AddressInUse:
            continue
        yield port


_FREE = free_ports()
PAGES = {broker: next(_FREE) for broker in (1, 2, 3)}
PORTS = {
    "ZOOKEEPER_PORT": str(next(_FREE)),
    "SPARK_PORT": str(next(_FREE)),
    **{f"BROKER_{n}_PORT": str(next(_FREE)) for n in PAGES},
    **{f"BROKER_{n}_PAGE": str(port) for n, port in PAGES.items()},
}
AT_ZOOKEEPER = f"127.0.0.1:{PORTS['ZOOKEEPER_PORT']}"
PATIENCE_S = 180


def left_by(*labels: str) -> list[str]:
    """Whatever the engine still has of this process's runs and servers, or of what carries all of
    `labels`. (Other tests run beside us.)"""
    client = engine()
    try:
        # The SDK takes a tuple for a single label, of which there is nothing.
        of_it = {"label": list(labels) or [f"{LABEL}={os.getpid()}"]}
        kinds = (
            client.containers.list(all=True, filters=of_it),
            client.networks.list(filters=of_it),
            client.volumes.list(filters=of_it),
        )
        return [str(one) for kind in kinds for one in kind]
    finally:
        client.close()


class Compose:
    """`docker compose`, whichever version there is, with options of its own (profiles)."""

    def __init__(self, *options: str) -> None:
        has_plugin = subprocess.run(
            ["docker", "compose", "version"], capture_output=True, check=False
        )
        classic = shutil.which("docker-compose") or "docker-compose"
        command = ["docker", "compose"] if has_plugin.returncode == 0 else [classic]
        self._words = [*command, "-p", PROJECT, *options]
        self.engine: Any = engine()
        self.observer: ClusterObserver

    def __call__(self, *words: str) -> str:
        """Standard output. Progress goes to standard error."""
        done = self.tried(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def tried(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Whatever came of it."""
        return subprocess.run(
            [*self._words, *words],
            cwd=ROOT,
            env={**os.environ, **PORTS},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    def lab(self, *words: str) -> str:
        """`isr WORDS` inside the network of the brokers."""
        return self("run", "--rm", "-T", "lab", *words)

    def scenario(self, name: str) -> dict[str, Any]:
        """The summary of a run that was started from inside, whatever came of it."""
        words = ("isr", "run", name, "--target", "compose", "--json")
        done = self.tried("run", "--rm", "-T", "lab", *words)
        assert done.stdout, done.stderr
        summary: dict[str, Any] = json.loads(done.stdout)
        return summary

    def container(self, service: str) -> Any:
        wanted = [f"com.docker.compose.project={PROJECT}", f"com.docker.compose.service={service}"]
        (found,) = self.engine.containers.list(all=True, filters={"label": wanted})
        return found

    def at_root(self) -> list[str]:
        """ZooKeeper's root: this cluster, and runs with a chroot."""
        client = KazooClient(AT_ZOOKEEPER)
        client.start(PATIENCE_S)
        try:
            return list(client.get_children("/"))
        finally:
            client.stop()
            client.close()

    # -- what brokers say --------------------------------------------------------------------------

    def status(self, broker: int) -> dict[str, Any]:
        """A broker's own account. OSError when it does not answer."""
        with urllib.request.urlopen(f"http://127.0.0.1:{PAGES[broker]}/status", timeout=5) as page:
            found: dict[str, Any] = json.load(page)
        return found

    def metrics(self, broker: int) -> dict[str, float]:
        with urllib.request.urlopen(f"http://127.0.0.1:{PAGES[broker]}/metrics", timeout=5) as page:
            lines = page.read().decode().splitlines()
        pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        return {name: float(value) for name, value in pairs}

    def controllers(self) -> list[int]:
        """The brokers that believe they are the controller, of those that respond."""
        found = []
        for broker in PAGES:
            try:
                if self.status(broker)["controls"] is not None:
                    found.append(broker)
            except OSError:
                continue
        return found


def eventually(check: Any) -> Any:
    """The result of `check`, repeated until it succeeds."""
    for attempt in tenacity.Retrying(
        stop=tenacity.stop_after_delay(PATIENCE_S),
        wait=tenacity.wait_fixed(0.3),
        retry=tenacity.retry_if_exception_type((AssertionError, OSError, KeyError)),
        reraise=True,
    ):
        with attempt:
            found = check()
            assert found
    return found


@pytest.fixture
def isr(capsys: pytest.CaptureFixture[str]) -> Isr:
    return Isr(capsys)


@pytest.fixture(scope="module")
def compose() -> Iterator[Compose]:
    """Up, every container healthy; down afterwards, with its volumes."""
    made = Compose()
    try:
        made("up", "-d", "--no-build")
        for service in ("zookeeper", "broker-1", "broker-2", "broker-3"):
            eventually(lambda service=service: _is_healthy(made.container(service)))
        with ClusterObserver(parse_address(AT_ZOOKEEPER), MetadataQuery()) as made.observer:
            yield made
    finally:
        made("down", "--volumes", "--remove-orphans", "--timeout", "5")
        made.engine.close()
    assert left_by(OF_PROJECT) == []


def _is_healthy(container: Any) -> bool:
    container.reload()
    return bool(container.attrs["State"]["Health"]["Status"] == "healthy")
