"""Observes a running cluster: ZooKeeper through a separate session, brokers by requests.

Owns the connections and threads of `isr top` and `isr watch`. Everything is read-only: ZooKeeper
receives reads, Exists and watches, brokers Metadata requests and reads of their status page.
`zookeeper_view` interprets the znodes.
"""

from __future__ import annotations

import contextlib
import http.client
import threading
import time
import urllib.request
from collections import deque
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Protocol

import msgspec

from emulator.trace.values import PartitionState
from emulator.view.live.top_model import BrokerLook, Look
from emulator.view.live.zookeeper_view import Seen, SeenBroker, SeenState, seen
from zk.errors import Code
from zk.ops import Multi, Request, SetData
from zk.paths import partition_of_state_path
from zk.real.kazoo_lane import QueueLane
from zk.real.kazoo_service import KazooService
from zk.real.mirror import Mirror
from zk.real.server import Address, SessionTimeoutClamped, require_session_timeout
from zk.real.tap import Taps

SESSION_MS = 10_000
_SLICE_US = 100_000
_ASK_EVERY_S = 1.0
_PAGE_PATIENCE_S = 0.5
_RATE_OVER_S = 10.0


class BrokerMetadata(Protocol):
    """The content of a broker's metadata cache."""

    @property
    def controller_id(self) -> int: ...
    @property
    def partitions(self) -> tuple[PartitionState, ...]: ...


class MetadataQuery(Protocol):
    """Queries brokers by host and port; a text explains why one does not respond."""

    def __call__(
        self, brokers: Mapping[int, tuple[str, int]], /
    ) -> Mapping[int, BrokerMetadata | str]: ...
    def close(self) -> None: ...


class Link(Enum):
    """The state of our connection to ZooKeeper; while it is lost, the last known state is shown."""

    UP = "connected"
    LOST = "disconnected"


OnSeen = Callable[[Seen, Link], None]


class Watching:
    """A session at the cluster's ZooKeeper. Calls `on_seen` with the state and the connection
    whenever something changed and no read is pending. Raises ServerError."""

    def __init__(self, address: Address, on_seen: OnSeen) -> None:
        self._on_seen = on_seen
        self._lane = QueueLane()
        self._shown: tuple[Seen, Link] | None = None
        self._service = KazooService(address)
        timeout_ms = SESSION_MS
        try:
            require_session_timeout(address, timeout_ms)
        except SessionTimeoutClamped as clamped:
            timeout_ms = clamped.granted_ms
        self._mirror = Mirror(self._service, self._lane, timeout_ms, self._changed)

    def _changed(self) -> None:
        mirror = self._mirror
        if mirror.connected and not mirror.complete:
            return
        now = (seen(mirror.nodes, mirror.children), Link.UP if mirror.connected else Link.LOST)
        if now != self._shown and (self._shown is not None or mirror.connected):
            self._shown = now
            self._on_seen(*now)

    def run(self, for_us: int) -> None:
        """Process the events of this interval."""
        self._lane.run(for_us)

    def close(self) -> None:
        """Close the session."""
        self._mirror.close()
        self._service.close()


class Conflicts:
    """Counts writes of partition states that failed with BadVersion, at a tap in front of
    ZooKeeper."""

    def __init__(self) -> None:
        self._moments: deque[float] = deque()

    def on_request(self, at_us: int, client: str, request: Request | str) -> None:
        """Only responses matter."""

    def on_reply(self, client: str, request: Request | str, code: Code, elapsed_us: int) -> None:
        ops = request.ops if isinstance(request, Multi) else (request,)
        writes_state = any(
            isinstance(op, SetData) and partition_of_state_path(op.path) is not None for op in ops
        )
        if code is Code.BAD_VERSION and writes_state:
            self._moments.append(time.monotonic())

    def per_s(self) -> float:
        """The rate over the last ten seconds."""
        since = time.monotonic() - _RATE_OVER_S
        while self._moments and self._moments[0] < since:
            self._moments.popleft()
        return len(self._moments) / _RATE_OVER_S


class ClusterObserver:
    """Observes a cluster until it is closed; `look()` returns the newest state. Use as a context
    manager. With `listen` it is also a tap, and counts the conflicts of its clients."""

    def __init__(
        self, address: Address, query: MetadataQuery, listen: tuple[str, int] | None = None
    ) -> None:
        self._address, self._query = address, query
        self._seen, self._link = Seen(), Link.LOST
        self._brokers: dict[int, BrokerLook] = {}
        self._over, self._news = threading.Event(), threading.Event()
        self._watching = Watching(address, self._update_seen)
        self._conflicts = None if listen is None else Conflicts()
        self._taps = None
        if listen is not None and self._conflicts is not None:
            self._taps = Taps(self._conflicts, lambda: time.monotonic_ns() // 1000)
            self._taps.open("", address, listen)
        names = {"zk-watching": self._watch, "asking-brokers": self._ask_brokers}
        self._threads = [
            threading.Thread(target=run, name=name, daemon=True) for name, run in names.items()
        ]

    def __enter__(self) -> ClusterObserver:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()
        self._watching.close()
        if self._taps is not None:
            self._taps.close()

    def look(self) -> Look:
        per_s = None if self._conflicts is None else self._conflicts.per_s()
        connected = self._link is Link.UP
        return Look(self._seen, self._brokers, connected, per_s, str(self._address))

    def wait_for_change(self, timeout_s: float) -> None:
        """Return after a change since the last call, or after the timeout."""
        self._news.wait(timeout_s)
        self._news.clear()

    def _update_seen(self, what: Seen, link: Link) -> None:
        self._seen, self._link = what, link
        self._news.set()

    def _watch(self) -> None:
        while not self._over.is_set():
            self._watching.run(_SLICE_US)

    def _ask_brokers(self) -> None:
        try:
            while not self._over.wait(_ASK_EVERY_S):
                present = self._seen.brokers
                metadata = self._query({b.broker: (b.host, b.port) for b in present.values()})
                self._brokers = {
                    broker: _look_at(present[broker], one) for broker, one in metadata.items()
                }
                self._news.set()
        finally:
            self._query.close()


class _Page(msgspec.Struct):
    """A status page of our own brokers (`worlds.processes.status_page`)."""

    metadata: dict[str, SeenState]
    leads: dict[str, SeenState]
    controls: dict[str, SeenState] | None = None


def _look_at(broker: SeenBroker, metadata: BrokerMetadata | str) -> BrokerLook:
    """From its status page, or from its metadata if it has none."""
    controller = None if isinstance(metadata, str) else metadata.controller_id
    if broker.page_port > 0:
        url = f"http://{broker.host}:{broker.page_port}/status"
        # A real Kafka's JMX port does not speak HTTP.
        not_ours = (OSError, ValueError, http.client.HTTPException, msgspec.MsgspecError)
        with (
            contextlib.suppress(*not_ours),
            urllib.request.urlopen(url, timeout=_PAGE_PATIENCE_S) as answer,
        ):
            page = msgspec.json.decode(answer.read(), type=_Page)
            return BrokerLook(page.metadata, page.leads, page.controls, controller)
    if isinstance(metadata, str):
        return BrokerLook(problem=metadata)
    states = {
        str(one.partition): SeenState(one.leader, one.leader_epoch, one.isr)
        for one in metadata.partitions
    }
    return BrokerLook(states, controller=controller)
