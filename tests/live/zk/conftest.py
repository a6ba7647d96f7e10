"""A real ZooKeeper server for the tests of `zk`, sessions on it, and the check that nothing stays.

The server's ticks are short, so that sessions may be short; each test has its own chroot.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.live.zk.owner import PATIENCE_S, QUICK, TICK_MS, Deaf, Owner
from zk.real.kazoo_service import KazooService
from zk.real.server import Address, EmbeddedServer, ensure_chroot
from zk.real.tap import Tap, Taps

_chroots = itertools.count()


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    folder: Path = tmp_path_factory.mktemp("zookeeper")
    with EmbeddedServer(folder, tick_ms=TICK_MS, max_session_timeout_ms=60_000) as running:
        yield running


@pytest.fixture
def address(server: EmbeddedServer) -> Address:
    """With a chroot that is this test's own."""
    own = msgspec.structs.replace(server.address, chroot=f"/test-{next(_chroots)}")
    ensure_chroot(own)
    return own


@pytest.fixture
def service(address: Address) -> Iterator[KazooService]:
    made = KazooService(address, QUICK)
    yield made
    made.close()


@pytest.fixture
def owner() -> Owner:
    return Owner()


@pytest.fixture
def taps() -> Iterator[Taps]:
    with Taps(Deaf(), lambda: time.monotonic_ns() // 1000) as running:
        yield running


@pytest.fixture
def tap(taps: Taps, service: KazooService, address: Address) -> Tap:
    """Between `broker-1` and the server."""
    made = taps.open("broker-1", address)
    service.route("broker-1", made.address)
    return made


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    """No thread and no file descriptor of a test outlives it."""
    threads, files = threading.active_count(), _open_files()
    yield
    deadline = time.monotonic() + PATIENCE_S
    for thread in threading.enumerate():
        if thread.name.startswith("zk"):
            thread.join(max(0.0, deadline - time.monotonic()))
    assert threading.active_count() <= threads, threading.enumerate()
    assert _open_files() <= files


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))
