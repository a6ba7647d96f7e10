"""I0Itec's ZkClient, as Kafka used it up to 1.0: every call blocks until it gets its response, on
any session.

An operation that loses its connection or its session is repeated on the next session: a write of an
old session is thus sent in the new one (KAFKA-2729, KAFKA-3083). One thread delivers events to
listeners and sets the watches again with its own reads. This module knows no brokers or
controllers. Sources: org.I0Itec.zkclient.ZkClient 0.10 retryUntilConnected, process, fireAllEvents;
spec §2.1, §2.10, §2.12.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from zk.client.client import (
    Promise,
    ZNodeChangeHandler,
    ZNodeChildChangeHandler,
    ZooKeeperClient,
)
from zk.errors import Code, SessionExpired
from zk.ops import (
    EventType,
    Exists,
    GetChildren,
    GetChildrenNames,
    GetData,
    Reply,
    Request,
    SessionState,
    WatchedEvent,
)
from zk.scala.java_hash import hash_set_order

THREAD = "ZkClient-EventThread"
_AGAIN = (Code.CONNECTION_LOSS, Code.SESSION_EXPIRED)
Delivery = Callable[[], Awaitable[None]]


class BlockingZkClient(ZooKeeperClient):
    """The client of one process, with its event thread."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self._deliveries: deque[Delivery] = deque()
        self._idle: Promise | None = None
        self._listed: dict[str, list[str]] = {}
        self._shown: dict[str, bytes] = {}
        super().__init__(*arguments, **named)
        self._threads.spawn(THREAD, self._deliver())

    # -- requests ----------------------------------------------------------------------------------

    async def retry_until_connected(self, requests: Sequence[Request]) -> list[Reply]:
        """Send one request after the other, each until it gets a response. SessionExpired is raised
        only if the client is closed."""
        return [await self._until_answered(request) for request in requests]

    async def _until_answered(self, request: Request) -> Reply:
        while True:
            (reply,) = await self.handle_requests([self.with_watch(request)])
            if reply.code not in _AGAIN:
                return reply
            await self._until_connected()

    async def _until_connected(self) -> None:
        # ZkClient's own state (_currentState), which events change: ZooKeeper's getState returns
        # CONNECTED until the next attempt, and a request that is sent then waits in the old
        # session, for its end.
        while self._closed or self._state is not SessionState.CONNECTED:
            if self._closed:
                raise SessionExpired
            changed = self._threads.promise()
            self._waiting.append(changed)
            await changed.wait()

    def with_watch(self, request: Request) -> Request:
        """Set a watch on every path that has a listener (hasListeners), and where the request asks
        for one."""
        match request:
            case GetChildren(path, watch):
                return GetChildrenNames(path, watch and self._has_listeners(path))
            case Exists(path, watch):
                return Exists(path, watch or self._has_listeners(path))
            case GetData(path, watch):
                return GetData(path, watch or self._has_listeners(path))
        return request

    def _has_listeners(self, path: str) -> bool:
        return path in self._change_handlers or path in self._child_handlers

    async def subscribe_child_changes(self, handler: ZNodeChildChangeHandler) -> None:
        """Two reads, because the node itself may not exist yet (watchForChilds)."""
        self.register_child_handler(handler)
        await self.retry_until_connected([Exists(handler.path), GetChildren(handler.path, True)])

    # -- events ------------------------------------------------------------------------------------

    def listed(self, path: str) -> list[str] | None:
        return self._listed.get(path)

    def shown(self, path: str) -> bytes | None:
        return self._shown.get(path)

    def on_watch(self, event: WatchedEvent) -> None:
        self._probe.watch_fired(event)
        if event.path in self._child_handlers and event.type is not EventType.NODE_DATA_CHANGED:
            self._put_children_changed(event.path)
        if event.path in self._change_handlers and (
            event.type is not EventType.NODE_CHILDREN_CHANGED
        ):
            self._put_node_changed(event)

    def on_state(self, state: SessionState) -> None:
        """After an expiry the next session is opened at once, even during a delivery. Then all
        listeners are called, because anything may have changed."""
        self._state = state
        self._probe.session_state(state, self._session.session_id)
        self._wake_waiting()
        if state is not SessionState.EXPIRED or self._closed:
            return
        self._session.close()
        self._session = self._open()
        # fireNewSessionEvents: an event for each listener, in the order of their registration. Up
        # to 0.10 the controller's is first and works in the event's thread: the broker registers
        # only when the election is over.
        for handler in self._state_handlers:
            self._put(handler.after_initializing_session)
        # fireAllEvents iterates over two ConcurrentHashMaps, children first.
        for path in hash_set_order(self._child_handlers):
            self._put_children_changed(path)
        for path in hash_set_order(self._change_handlers):
            self._put_node_changed(WatchedEvent(EventType.NODE_DATA_CHANGED, path))

    # An event has the listener of when it is fired, and calls it even if it is gone by its turn.

    def _put_children_changed(self, path: str) -> None:
        self._put(partial(self._children_changed, path, self._child_handlers[path]))

    def _put_node_changed(self, event: WatchedEvent) -> None:
        self._put(partial(self._node_changed, event, self._change_handlers[event.path]))

    def _put(self, delivery: Delivery) -> None:
        self._deliveries.append(delivery)
        if self._idle is not None:
            idle, self._idle = self._idle, None
            idle.resolve(None)

    async def _deliver(self) -> None:
        while True:
            while not self._deliveries:
                self._idle = self._threads.promise()
                await self._idle.wait()
            # Another thread than the one that receives responses: a response behind the event may
            # be read first.
            await self._threads.checkpoint("zkclient_event")
            try:
                await self._deliveries.popleft()()
            except SessionExpired:
                return
            # Up to 0.10 the controller works in its listener: the next event waits until it has
            # finished.
            for callback in self._callbacks:
                await callback()

    async def _children_changed(self, path: str, handler: ZNodeChildChangeHandler) -> None:
        # The reads set both watches again, before the listener runs: changes during its work come
        # as another event.
        await self._until_answered(Exists(path))
        reply = await self._until_answered(GetChildren(path, watch=True))
        self._listed[path] = list(reply.children)
        handler.handle_child_change()

    async def _node_changed(self, event: WatchedEvent, handler: ZNodeChangeHandler) -> None:
        """Read the znode; its present state decides which method of the listener is called."""
        # Unlike the reads of children these set a watch also if the listener is gone by now: a
        # controller that has resigned leaves them behind.
        await self._until_answered(Exists(event.path, watch=True))
        reply = await self._until_answered(GetData(event.path, watch=True))
        self._shown.pop(event.path, None)
        if reply.code is Code.NO_NODE:
            handler.handle_deletion()
            return
        self._shown[event.path] = reply.data or b""
        if event.type is EventType.NODE_DATA_CHANGED:
            handler.handle_data_change()
        else:
            handler.handle_creation()
