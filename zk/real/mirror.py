"""A copy of Kafka's znodes, kept up to date by watches.

Owns which znodes are read and watched, and the copy; it never writes. It uses `zk.wire`, so it
works with a real server and with the model. After an expiry it starts over in a new session;
without a connection the copy stays unchanged. Between a watch event and the following read a znode
may change several times, as its version shows. Knows no emulator, and only Kafka's paths.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from zk import paths
from zk.client.codec import decode_topic
from zk.client.generations import SessionListener
from zk.errors import Code, MalformedZNode
from zk.ops import (
    EventType,
    Exists,
    GetChildren,
    GetData,
    Reply,
    Request,
    SessionState,
    Stat,
    WatchedEvent,
)
from zk.wire import Lane, Service, Session

SINGLE = (
    paths.CONTROLLER,
    paths.CONTROLLER_EPOCH,
    paths.CLUSTER_ID,
    paths.REASSIGN_PARTITIONS,
    paths.PREFERRED_REPLICA_ELECTION,
)
PARENTS = {
    paths.BROKER_IDS: True,
    paths.TOPICS: True,
    paths.ISR_CHANGE_NOTIFICATION: True,
    paths.LOG_DIR_EVENT_NOTIFICATION: False,
    paths.DELETE_TOPICS: False,
}
"""Paths whose children are listed, and whether the children's data is read."""


class ZNode(msgspec.Struct, frozen=True):
    """A znode at its last read."""

    data: bytes
    stat: Stat


class Mirror:
    """The copy. `on_change` is called on the lane after each change of it."""

    def __init__(
        self, service: Service, lane: Lane, timeout_ms: int, on_change: Callable[[], None]
    ) -> None:
        self._service, self._lane, self._timeout_ms = service, lane, timeout_ms
        self._on_change = on_change
        self.nodes: dict[str, ZNode] = {}
        self.children: dict[str, tuple[str, ...]] = {}
        self.connected = False
        self.requests_in_flight = 0
        """The number of requests without a response yet."""
        self._generation = 0
        self._session = self._open()

    @property
    def complete(self) -> bool:
        """Whether everything was read once, and no read is pending."""
        return self.connected and not self.requests_in_flight

    def close(self) -> None:
        self._generation += 1
        self._session.close()

    # -- the session -------------------------------------------------------------------------------

    def _open(self) -> Session:
        self._generation += 1
        self.requests_in_flight = 0
        listener = SessionListener(self, self._generation)
        return self._service.open_session("mirror", self._timeout_ms, self._lane, listener)

    def is_current(self, generation: int) -> bool:
        return generation == self._generation

    def on_state(self, state: SessionState) -> None:
        was, self.connected = self.connected, state is SessionState.CONNECTED
        if state is SessionState.EXPIRED:
            self.nodes.clear()
            self.children.clear()
            self._session = self._open()
        elif self.connected and not was:
            # Requests pending at a disconnect have no response, so everything is read again.
            self.requests_in_flight = 0
            for path in SINGLE:
                self._read(path)
            for path in PARENTS:
                self._list(path)
            for path in [node for node in self.nodes if node not in SINGLE]:
                self._read(path)
        self._on_change()

    # -- reading -----------------------------------------------------------------------------------

    def _submit(self, request: Request, then: Callable[[Reply], None]) -> None:
        generation = self._generation

        def answered(reply: Reply) -> None:
            if not self.is_current(generation):
                return
            self.requests_in_flight = max(0, self.requests_in_flight - 1)
            if reply.code not in (Code.CONNECTION_LOSS, Code.SESSION_EXPIRED):
                then(reply)
            self._on_change()

        self.requests_in_flight += 1
        self._session.submit(request, answered)

    def _read(self, path: str) -> None:
        def was_read(reply: Reply) -> None:
            if reply.code is Code.NO_NODE:
                self.nodes.pop(path, None)
                self._wait_for(path, self._read)
            elif reply.code is Code.OK and reply.stat is not None and self._is_mirrored(path):
                is_new = path not in self.nodes
                self.nodes[path] = ZNode(reply.data or b"", reply.stat)
                self._follow_partitions(path, is_new=is_new)

        self._submit(GetData(path, watch=True), was_read)

    def _list(self, path: str) -> None:
        def was_listed(reply: Reply) -> None:
            if reply.code is Code.NO_NODE:
                self.children[path] = ()
                self._wait_for(path, self._list)
                return
            before, self.children[path] = self.children.get(path, ()), reply.children
            for gone in (f"{path}/{name}" for name in before if name not in reply.children):
                for node in [n for n in self.nodes if n == gone or n.startswith(gone + "/")]:
                    del self.nodes[node]
            for name in reply.children:
                if PARENTS[path] and f"{path}/{name}" not in self.nodes:
                    self._read(f"{path}/{name}")

        self._submit(GetChildren(path, watch=True), was_listed)

    def _wait_for(self, path: str, then: Callable[[str], None]) -> None:
        """Set a watch on a missing znode: getData and getChildren set none there."""

        def looked(reply: Reply) -> None:
            # The znode was created between the two requests; otherwise the watch is now set.
            if reply.code is Code.OK and self._is_mirrored(path):
                then(path)

        self._submit(Exists(path, watch=True), looked)

    def _follow_partitions(self, path: str, *, is_new: bool) -> None:
        """Follow the partitions in a topic's assignment."""
        topic = paths.topic_of_path(path)
        if topic is None:
            return
        try:
            assignment = decode_topic(path, self.nodes[path].data)
        except MalformedZNode:
            return
        for partition in assignment:
            state = paths.topic_partition_state(topic, partition)
            if is_new or state not in self.nodes:
                self._read(state)

    def _is_mirrored(self, path: str) -> bool:
        """Whether the path is still followed: its topic may be deleted."""
        of = paths.partition_of_state_path(path)
        if of is not None:
            return of[0] in self.children.get(paths.TOPICS, ())
        parent, _, name = path.rpartition("/")
        return path in SINGLE or path in PARENTS or name in self.children.get(parent, ())

    # -- watches -----------------------------------------------------------------------------------

    def on_watch(self, event: WatchedEvent) -> None:
        path = event.path
        if path in PARENTS:
            self._list(path)
            return
        if event.type is EventType.NODE_DELETED:
            self.nodes.pop(path, None)
            self._on_change()
        if self._is_mirrored(path):
            self._read(path)
