"""Real ZooKeeper servers in containers, through the Docker SDK.

Owns one container of the official image (or of `ZOOKEEPER_IMAGE`): starts, pauses, kills and
restarts it on its data, and removes it with its volumes. However this process ends, even by
SIGKILL, the container is removed: a watchdog process reads a pipe of ours and removes it when the
pipe ends without a message (as `zk.real.child` does for a JVM). Several servers make an ensemble
(`zk.real.server_ensemble`). Knows no emulator.
"""

from __future__ import annotations

import io
import os
import re
import sys
import tarfile
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import tenacity

from zk.real.child import Watchdog
from zk.real.server import (
    HOST,
    Address,
    ServerError,
    StartFailed,
    reserve,
    wait_until_serving,
)

IMAGE = "zookeeper:3.9.3"
LABEL = "kafka-isr-emulator"
FREEZING_S = 30
SERVES_TIMEOUT_MS = 180_000
"""On a busy machine three Java processes took more than a minute."""
_WATCHDOG = """
import sys
import docker
if not sys.stdin.readline():
    docker.from_env().containers.get(sys.argv[1]).remove(force=True, v=True)
"""


class NoEngine(ServerError):
    """No Docker engine responds."""


def engine() -> Any:
    """The Docker engine according to the environment. Raises NoEngine."""
    import docker
    from docker.errors import DockerException

    client = None
    try:
        client = docker.from_env()
        client.ping()
    except DockerException as error:
        if client is not None:
            client.close()
        words = re.findall(r"'([^']+)'", str(error))  # of nested errors, the innermost
        raise NoEngine(f"no Docker engine answers: {words[-1] if words else error}") from None
    return client


def in_network(client: Any, network: str, *aliases: str) -> dict[str, Any]:
    """Options that put a new container into a network, with further names."""
    if not network:
        return {}
    end = client.api.create_endpoint_config(aliases=list(aliases))
    return {"network": network, "networking_config": {network: end}}


def freeze(container: Any) -> None:
    """The engine's pause. On a busy machine the kernel's freezer fails while processes are being
    created; then it is repeated. Raises docker's APIError."""
    from docker.errors import APIError

    tenacity.Retrying(
        stop=tenacity.stop_after_delay(FREEZING_S),
        wait=tenacity.wait_fixed(0.1),
        retry=tenacity.retry_if_exception(
            lambda error: isinstance(error, APIError) and "unable to freeze" in str(error)
        ),
        reraise=True,
    )(container.pause)


def unpack(container: Any, path: str, folder: Path) -> None:
    """Copy a path of a container, running or not, into a folder."""
    chunks, _ = container.get_archive(path)
    with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as archive:
        if hasattr(tarfile, "data_filter"):  # Python 3.11.4
            archive.extraction_filter = tarfile.data_filter
        archive.extractall(folder)


class ControllableServer:
    """A server in a container, whether started by us or not."""

    _container: Any

    def pause(self) -> None:
        """Pause its processes: sockets stay open, no response is sent, no session expires."""
        freeze(self._container)

    def resume(self) -> None:
        """Resume its processes; nothing if they are running."""
        self._container.reload()
        if self._container.status == "paused":
            self._container.unpause()

    def fetch_log(self, folder: Path) -> Path:
        """Copy its current transaction log below `folder`. Returns the `version-2` to read."""
        unpack(self._container, "/datalog/version-2", folder)
        return folder / "version-2"


class ContainerServer(ControllableServer):
    """One server, like `zk.real.server.EmbeddedServer`, but with its log inside the container.

    As a context manager it starts the server, and always removes it.
    """

    def __init__(
        self,
        tick_ms: int = 2000,
        min_session_timeout_ms: int | None = None,
        max_session_timeout_ms: int | None = None,
        *,
        image: str = "",
        network: str = "",
        alias: str = "",
        more: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`network`: the engine's network to join, under the name `alias`; `more` is passed to the
        entry point. Raises NoEngine."""
        self._engine = engine()
        self.image = image or os.environ.get("ZOOKEEPER_IMAGE") or IMAGE
        self.name = f"isr-zookeeper-{uuid.uuid4().hex[:12]}"
        self._network, self._alias = network, alias
        self._environment = {
            "ZOO_TICK_TIME": str(tick_ms),
            "ZOO_MAX_CLIENT_CNXNS": "0",
            "ZOO_4LW_COMMANDS_WHITELIST": "*",
            "ZOO_CFG_EXTRA": f"minSessionTimeout={min_session_timeout_ms or 2 * tick_ms}"
            f" maxSessionTimeout={max_session_timeout_ms or 20 * tick_ms}",
            **more,
        }
        self._container: Any = None
        self._watchdog: Watchdog | None = None
        with reserve(0) as reservation:
            self.port: int = reservation.getsockname()[1]
        self.is_started = False

    @property
    def address(self) -> Address:
        return Address(((HOST, self.port),))

    def start(self, timeout_ms: int = SERVES_TIMEOUT_MS) -> None:
        """Start it on the existing data, and return when it serves. Raises StartFailed or NotReady
        after removing it."""
        try:
            self.launch()
            self.wait_until_it_serves(timeout_ms)
        except BaseException:
            self.close()
            raise

    def launch(self) -> None:
        """Start it without waiting. Raises StartFailed."""
        from docker.errors import APIError, ImageNotFound

        assert not self.is_started, "already started"
        try:
            if self._container is None:
                try:
                    self._engine.images.get(self.image)
                except ImageNotFound:
                    self._engine.images.pull(self.image)
                # Before the container: it may be created although we are killed during the request.
                self._watchdog = Watchdog([sys.executable, "-c", _WATCHDOG, self.name])
                self._container = self._engine.containers.create(
                    self.image,
                    name=self.name,
                    labels={LABEL: str(os.getpid())},
                    environment=self._environment,
                    ports={"2181/tcp": (HOST, self.port)},
                    **in_network(self._engine, self._network, self._alias),
                )
            self._container.start()
        except ImageNotFound:
            raise StartFailed(f"there is no image {self.image}, and none could be pulled") from None
        except APIError as error:
            raise StartFailed(f"{self.image}: {' '.join(str(error.explanation).split())}") from None
        self.is_started = True

    def stop(self) -> None:
        """Kill it; data and port stay for the next `launch`."""
        if self.is_started:
            self.is_started = False
            self._container.kill()
            self._container.wait()

    def close(self) -> None:
        """Remove it, with its volumes."""
        self.is_started = False
        container, self._container = self._container, None
        if container is not None:
            container.remove(force=True, v=True)
        if self._watchdog is not None:
            self._watchdog.dismiss()
            self._watchdog = None
        self._engine.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def require_alive(self) -> None:
        """Raise StartFailed if it has ended without being stopped."""
        if not self.is_started:
            return
        self._container.reload()
        if self._container.status in ("exited", "dead"):
            lines = self._container.logs(tail=1).decode(errors="replace").split("\n")
            words = lines[0].strip() or "no word in its log"
            raise StartFailed(f"the ZooKeeper container has ended: {words}")

    def wait_until_it_serves(self, timeout_ms: int = SERVES_TIMEOUT_MS) -> None:
        """Raises NotReady, StartFailed."""
        what = "the ZooKeeper container"
        wait_until_serving((HOST, self.port), timeout_ms, what, self.require_alive)


class FoundServer(ControllableServer):
    """A server in somebody else's container: it may be paused or stopped, but is never removed."""

    def __init__(self, container: Any) -> None:
        self._container = container

    @property
    def is_started(self) -> bool:
        self._container.reload()
        return str(self._container.status) in ("running", "paused")

    def launch(self) -> None:
        self._container.start()

    def stop(self) -> None:
        self.resume()
        self._container.kill()
        self._container.wait()

    def close(self) -> None:
        """Leave it running, as it was found."""
        self.resume()
        if not self.is_started:
            self.launch()
