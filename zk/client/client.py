"""Kafka's ZooKeeperClient: one session at a time, pipelined asynchronous requests, one-shot
watches.

Owns the session and its re-creation after an expiry, the limit of requests in flight, and the
handlers by path. A read sets a watch if a handler for its path is registered at that moment (spec
§2.2). This module knows no brokers or controllers and has no threads: everything that blocks comes
in through `Threads`. Source: zookeeper/ZooKeeperClient.scala@2.6.3.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Protocol

from zk.client.generations import SessionListener
from zk.errors import AuthFailed, Code, MalformedZNode, SessionExpired, ZooKeeperError
from zk.ops import (
    EventType,
    Exists,
    GetChildren,
    GetData,
    Reply,
    Request,
    SessionState,
    WatchedEvent,
)
from zk.wire import Lane, Service, Session, labelled

RETRY_BACKOFF_MS = 1000

_timeout = labelled("timeout")


class Promise(Protocol):
    """A result that is set once."""

    def resolve(self, value: None) -> None: ...

    async def wait(self) -> None: ...


class Permits(Protocol):
    """A counting semaphore."""

    async def acquire(self) -> None: ...

    def release(self) -> None: ...


class ReadWriteLock(Protocol):
    """A re-entrant read-write lock."""

    async def acquire_read(self) -> None: ...

    async def acquire_write(self) -> None: ...

    def release_read(self) -> None: ...

    def release_write(self) -> None: ...


class PausedAtWatch(Protocol):
    """The event thread is held at a watch event; everything behind it waits in order."""

    def behind(self, call: Callable[[], object]) -> None: ...


class Threads(Protocol):
    """The blocking primitives and threads of the client's process."""

    def promise(self) -> Promise: ...

    def permits(self, number: int) -> Permits: ...

    def read_write_lock(self, name: str) -> ReadWriteLock: ...

    def lane(self, thread: str) -> Lane: ...

    def spawn(self, thread: str, body: Coroutine[object, None, object]) -> object: ...

    def checkpoint(self, name: str) -> Awaitable[None]:
        """A place where the calling thread takes time in a JVM."""
        ...

    def now_us(self) -> int: ...

    def before(self, request: Request) -> Awaitable[None] | None:
        """What this thread waits for before it sends a request, if it is held there."""
        ...

    def after(self, requests: Sequence[Request]) -> Awaitable[None] | None:
        """The same after all responses of a batch have arrived and before they are used."""
        ...

    def at_watch(self, event: WatchedEvent, lane: Lane) -> PausedAtWatch | None:
        """The hold of the event thread `lane` at this event, if there is one."""
        ...


class Probe(Protocol):
    """Observes the client (for the trace)."""

    def sent(self, request: Request) -> None: ...

    def replied(self, request: Request, reply: Reply, elapsed_us: int) -> None: ...

    def watch_fired(self, event: WatchedEvent) -> None: ...

    def session_state(self, state: SessionState, session_id: int) -> None: ...

    def malformed(self, error: MalformedZNode) -> None: ...


class ZNodeChangeHandler(Protocol):
    """Is called when the znode at `path` is created, deleted or changed."""

    path: str

    def handle_creation(self) -> None: ...

    def handle_deletion(self) -> None: ...

    def handle_data_change(self) -> None: ...


class ZNodeChildChangeHandler(Protocol):
    """Is called when the children of the znode at `path` change."""

    path: str

    def handle_child_change(self) -> None: ...


class StateChangeHandler(Protocol):
    """Is called before and after a new session replaces an expired one."""

    async def before_initializing_session(self) -> None: ...

    async def after_initializing_session(self) -> None: ...


class ZooKeeperClient:
    """The client of one process."""

    def __init__(
        self,
        service: Service,
        threads: Threads,
        probe: Probe,
        *,
        name: str,
        session_timeout_ms: int,
        max_in_flight: int,
        callbacks_outside_lock: bool = True,
        reinitializes_alive: bool = False,
    ) -> None:
        """`callbacks_outside_lock`: state handlers are called before the lock for a new session is
        taken. `reinitializes_alive`: they are also called after a failed authentication, although
        the session continues (KAFKA-13461).
        """
        self._service, self._threads, self._probe = service, threads, probe
        self._name, self._session_timeout_ms = name, session_timeout_ms
        self._permits = threads.permits(max_in_flight)
        self._callbacks_outside_lock = callbacks_outside_lock
        self._reinitializes_alive = reinitializes_alive
        self._initialization_lock = threads.read_write_lock("initializationLock")
        self._event_lane = threads.lane("main-EventThread")
        self._change_handlers: dict[str, ZNodeChangeHandler] = {}
        self._child_handlers: dict[str, ZNodeChildChangeHandler] = {}
        self._state_handlers: list[StateChangeHandler] = []
        self._callbacks: list[Callable[[], Awaitable[None]]] = []
        self._waiting: list[Promise] = []
        self._state = SessionState.DISCONNECTED
        self._closed = False
        self._watch_pause: PausedAtWatch | None = None
        self._generation = 0
        self._session = self._open()

    @property
    def session_id(self) -> int:
        return self._session.session_id

    @property
    def connected(self) -> bool:
        return self._session.linked and not self._closed

    # -- requests ----------------------------------------------------------------------------------

    async def handle_requests(self, requests: Sequence[Request]) -> list[Reply]:
        """Send a pipelined batch and block until all responses have arrived (handleRequests).
        Result codes are returned, never raised."""
        replies: list[Reply | None] = [None] * len(requests)
        if not requests:
            return []
        done, missing = self._threads.promise(), len(requests)

        @labelled("answered")
        def answered(at: int, request: Request, sent_us: int, reply: Reply) -> None:
            nonlocal missing
            if self._watch_pause is not None:
                again = partial(answered, at, request, sent_us, reply)
                self._watch_pause.behind(again)
                return
            self._permits.release()
            self._probe.replied(request, reply, self._threads.now_us() - sent_us)
            replies[at] = reply
            missing -= 1
            if not missing:
                done.resolve(None)

        for at, request in enumerate(requests):
            held = self._threads.before(request)
            if held is not None:
                await held
            await self._permits.acquire()
            # After the permit: a new session excludes requests, but not threads that wait for a
            # permit.
            await self._initialization_lock.acquire_read()
            try:
                self._probe.sent(request)
                on_reply = partial(answered, at, request, self._threads.now_us())
                self._session.submit(request, on_reply)
            finally:
                self._initialization_lock.release_read()
        await done.wait()
        held = self._threads.after(requests)
        if held is not None:
            await held
        return [reply for reply in replies if reply is not None]

    def with_watch(self, request: Request) -> Request:
        """Set the request's watch flag if a handler is registered for its path (shouldWatch)."""
        match request:
            case GetChildren(path, watch):
                return GetChildren(path, watch and path in self._child_handlers)
            case Exists(path):
                return Exists(path, path in self._change_handlers)
            case GetData(path):
                return GetData(path, path in self._change_handlers)
        return request

    async def retry_until_connected(self, requests: Sequence[Request]) -> list[Reply]:
        """As `handle_requests`, but requests that lose their connection are sent again after a
        reconnection within the same session. SessionExpired is raised if the session ended
        (retryRequestsUntilConnected).
        """
        requests = [self.with_watch(request) for request in requests]
        replies: list[Reply] = [_LOST] * len(requests)
        open_ = list(range(len(requests)))
        while open_:
            answers = await self.handle_requests([requests[i] for i in open_])
            for i, reply in zip(open_, answers, strict=True):
                replies[i] = reply
            open_ = [i for i in open_ if replies[i].code is Code.CONNECTION_LOSS]
            if open_:
                await self.wait_until_connected()
        return replies

    async def wait_until_connected(self, timeout_ms: int | None = None) -> None:
        """Block until connected (waitUntilConnected). SessionExpired or AuthFailed is raised if
        that cannot happen, OPERATION_TIMEOUT if it takes too long. A closed client does not count
        as connected.
        """
        timer = None
        expired = False

        @labelled("timeout")
        def time_out() -> None:
            nonlocal expired
            expired = True
            self._wake_waiting()

        if timeout_ms is not None:
            timer = self._event_lane.call_later(timeout_ms * 1000, time_out)
        while not self.connected or self._closed:
            if expired:
                raise ZooKeeperError(Code.OPERATION_TIMEOUT)
            if self._state is SessionState.AUTH_FAILED:
                raise AuthFailed
            if self._state in (SessionState.EXPIRED, SessionState.CLOSED) or self._closed:
                raise SessionExpired
            changed = self._threads.promise()
            self._waiting.append(changed)
            await changed.wait()
        if timer is not None:
            timer.cancel()

    async def sleep_session_timeout(self) -> None:
        """Sleep for the session timeout (zkSessionTimeout): a session without a connection has
        expired by then."""
        over = self._threads.promise()
        self._event_lane.call_later(
            self._session_timeout_ms * 1000, _timeout(lambda: over.resolve(None))
        )
        await over.wait()

    def _wake_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for promise in waiting:
            promise.resolve(None)

    # -- handlers ----------------------------------------------------------------------------------

    def register_change_handler(self, handler: ZNodeChangeHandler) -> None:
        """Store the handler; the next read of its path sets the watch."""
        self._change_handlers[handler.path] = handler

    def unregister_change_handler(self, path: str) -> None:
        self._change_handlers.pop(path, None)

    def register_child_handler(self, handler: ZNodeChildChangeHandler) -> None:
        self._child_handlers[handler.path] = handler

    async def subscribe_child_changes(self, handler: ZNodeChildChangeHandler) -> None:
        """Register the handler; the next read sets the watch."""
        self.register_child_handler(handler)

    def listed(self, path: str) -> list[str] | None:
        """The children that came with the current event; None: the caller has to read them."""
        return None

    def shown(self, path: str) -> bytes | None:
        """The data that came with the current event; None: the caller has to read it."""
        return None

    def unregister_child_handler(self, path: str) -> None:
        self._child_handlers.pop(path, None)

    def wait_for_callbacks(self, done: Callable[[], Awaitable[None]]) -> None:
        """Listeners work in the event thread, which continues when `done` returns (ZkClient, up to
        0.10)."""
        self._callbacks.append(done)

    def register_state_handler(self, handler: StateChangeHandler) -> None:
        self._state_handlers.append(handler)

    @labelled("on_watch")
    def on_watch(self, event: WatchedEvent) -> None:
        """A watch fired: call the path's handler, if it is still registered
        (ZooKeeperClientWatcher.process)."""
        if self._watch_pause is not None:
            self._watch_pause.behind(partial(self.on_watch, event))
            return
        self._watch_pause = self._threads.at_watch(event, self._event_lane)
        if self._watch_pause is not None:
            self._watch_pause.behind(partial(self._continue_after_watch, event))
            return
        self._probe.watch_fired(event)
        if event.type is EventType.NODE_CHILDREN_CHANGED:
            child = self._child_handlers.get(event.path)
            if child is not None:
                child.handle_child_change()
            return
        handler = self._change_handlers.get(event.path)
        if handler is None:
            return
        if event.type is EventType.NODE_CREATED:
            handler.handle_creation()
        elif event.type is EventType.NODE_DELETED:
            handler.handle_deletion()
        else:
            handler.handle_data_change()

    @labelled("goes_on_with")
    def _continue_after_watch(self, event: WatchedEvent) -> None:
        self._watch_pause = None
        self.on_watch(event)

    # -- the session -------------------------------------------------------------------------------

    def _open(self) -> Session:
        self._generation += 1
        self._state = SessionState.DISCONNECTED
        listener = SessionListener(self, self._generation)
        return self._service.open_session(
            self._name, self._session_timeout_ms, self._event_lane, listener
        )

    @labelled("on_state")
    def on_state(self, state: SessionState) -> None:
        """The session's state changed; after an expiry a separate thread opens a new session."""
        if self._watch_pause is not None:
            self._watch_pause.behind(partial(self.on_state, state))
            return
        self._state = state
        self._probe.session_state(state, self._session.session_id)
        self._wake_waiting()
        if state is SessionState.EXPIRED and not self._closed:
            self._threads.spawn("zk-session-expiry-handler0", self._reinitialize())

    def fail_authentication(self) -> None:
        """AuthFailed after a reconnection with optional SASL: the session continues without it. 2.8
        opens a new session a second later, as after an expiry (KAFKA-7987)."""
        self._probe.session_state(SessionState.AUTH_FAILED, self._session.session_id)
        if self._reinitializes_alive:
            self._event_lane.call_later(RETRY_BACKOFF_MS * 1000, self._spawn_reinitialize)

    @labelled("begin_anew")
    def _spawn_reinitialize(self) -> None:
        if not self._closed:
            self._threads.spawn("zk-session-expiry-handler0", self._reinitialize())

    async def _reinitialize(self) -> None:
        """Drain the controller's queue, then open a new session while requests are excluded (spec
        §2.10)."""
        if self._callbacks_outside_lock:
            await self._before_init_callback()
        await self._initialization_lock.acquire_write()
        try:
            if not self._callbacks_outside_lock:
                await self._before_init_callback()
            # After a failed authentication the session continues, although its handlers were
            # called.
            if self._state is SessionState.EXPIRED and not self._closed:
                self._session.close()
                self._session = self._open()
        finally:
            self._initialization_lock.release_write()
        for handler in self._state_handlers:
            await handler.after_initializing_session()

    async def _before_init_callback(self) -> None:
        """Up to 1.1.0 the callbacks run under the lock that the controller's next request needs
        (KAFKA-6879)."""
        for handler in self._state_handlers:
            await handler.before_initializing_session()

    def is_current(self, generation: int) -> bool:
        """Whether a callback belongs to the current session."""
        return generation == self._generation and not self._closed

    def close(self) -> None:
        """Orderly end."""
        self._closed = True
        self._session.close()

    def abandon(self) -> None:
        """The process died."""
        self._closed = True
        self._session.abandon()

    def report_malformed(self, error: MalformedZNode) -> None:
        """A znode could not be decoded; the reader treats it as absent."""
        self._probe.malformed(error)


_LOST = Reply(Code.CONNECTION_LOSS)
