"""A modelled ZooKeeper service: one server's sessions, connections and log over `zk.model.tree`.

The server processes one request at a time on its lane; the order of application is that of the
zxids. A session expires when its client has been silent for its timeout, rounded up to a tick
(`session_tracker`); its ephemerals are then removed in one transaction. Faults are methods.
`model_client` is the client's side; `link` is between the two.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from functools import partial

from zk.errors import Code
from zk.model.connection import Connection, ServerSession
from zk.model.follower import Change, Follower
from zk.model.link import Latency, Link, Pipe
from zk.model.model_client import ModelSession
from zk.model.packets import (
    END_OF_STREAM,
    PING,
    CloseSession,
    Connect,
    Connected,
    EndOfStream,
    Ping,
    SetWatches,
    ToClient,
    ToServer,
)
from zk.model.session_tracker import SessionTracker
from zk.model.tree import Applied, Tree
from zk.model.watches import FiredWatches
from zk.ops import Exists, GetChildren, GetData, Reply, Request, name_of
from zk.wire import Direction, Lane, Listener, Observer, When, labelled

_READS = (Exists, GetData, GetChildren)


class ServerState(Enum):
    """How far the server's process is. It listens before it can answer."""

    DOWN = auto()
    LISTENING = auto()
    LOADING = auto()
    SERVING = auto()


class Ensemble:
    """`zk.wire.Service`, modelled; clients are known by name, and faults apply to one client."""

    def __init__(
        self,
        *,
        server: Lane,
        network: Lane,
        latency: Latency,
        observer: Observer,
        tick_time_ms: int = 2000,
        min_session_timeout_ms: int | None = None,
        max_session_timeout_ms: int | None = None,
        tick_phase_ms: int = 0,
        epoch_ms: int = 0,
        tracker: Lane | None = None,
    ) -> None:
        """`epoch_ms` is the wall clock at the world's time 0. `tick_phase_ms` shifts the server's
        ticks, which depend on the start of a real machine. `tracker` is the thread that expires
        sessions; without one the server checks before each packet.
        """
        self.tree = Tree()
        self._server = server
        self._has_tracker_thread = tracker is not None
        self._network = network
        self._now_us = network.now_us
        self._latency = latency
        self._observer = observer
        self._tracker = SessionTracker(
            tracker or server,
            tick_time_ms,
            tick_phase_ms,
            lambda session: session.session_id in self._sessions,
            self._close_session,
        )
        self._min_ms = min_session_timeout_ms or 2 * tick_time_ms
        self._max_ms = max_session_timeout_ms or 20 * tick_time_ms
        self._epoch_ms = epoch_ms
        self._state = ServerState.SERVING
        self._last_session_id = 0
        self._sessions: dict[int, ServerSession] = {}
        self._clients: dict[int, str] = {}
        self._connections: dict[Connection, None] = {}
        self._links: dict[str, Link] = {}
        self._followers: dict[str, Follower] = {}
        self._drops: dict[str, list[tuple[When, str | None]]] = {}
        self._forgotten: dict[str, list[ServerSession]] = {}

    # the service

    def open_session(
        self, client: str, timeout_ms: int, lane: Lane, listener: Listener
    ) -> ModelSession:
        """See zk.wire.Service."""

        def on_pass(packet: ToServer) -> None:
            if isinstance(packet, (Ping, EndOfStream)):
                return
            named: Request | str
            if isinstance(packet, Connect):
                named = "connect"
            elif isinstance(packet, SetWatches):
                named = "setWatches"
            else:
                named = "closeSession" if isinstance(packet, CloseSession) else packet
            self._observer.on_request(self._now_us(), client, named)

        return ModelSession(self, self._link(client), timeout_ms, lane, listener, on_pass)

    def accept(
        self, link: Link, to_client: Pipe[ToClient], on_pass: Callable[[ToServer], None]
    ) -> Pipe[ToServer] | None:
        """A client connects; None if no process listens."""
        if self._state is ServerState.DOWN:
            return None
        connection = Connection(link, to_client, self._server, self._on_packet, on_pass)
        self._connections[connection] = None
        return connection.to_server

    # faults

    def cut(self, client: str, *ways: Direction) -> None:
        """Stop packets between `client` and the server, in both directions or in these; connections
        stay open."""
        self._link(client).cut(*ways)

    def heal(self, client: str) -> None:
        """Release the packets that `cut` holds, in order."""
        self._link(client).heal()

    def delay(self, client: str, extra_us: int) -> None:
        """Delay every packet by `extra_us` in each direction; 0 ends this."""
        self._link(client).extra_us = extra_us

    def disturb(self, client: str, drawn_us: Callable[[Direction], int]) -> None:
        """Delay every packet by a drawn time, in each direction."""
        self._link(client).drawn_us = drawn_us

    def expire(self, client: str) -> None:
        """End the sessions of `client` now, as if they had timed out; a server that is down does
        nothing."""
        self._server.post(partial(self._expire_client, client))

    def forget(self, client: str) -> None:
        """The server no longer knows the sessions of `client` when it reconnects; their ephemerals
        stay until `end_forgotten` (ZOOKEEPER-2985, as after a leader election among servers)."""
        self._server.post(partial(self._forget_client, client))

    def end_forgotten(self, client: str) -> None:
        """End the forgotten sessions of `client` and remove their ephemerals."""
        self._server.post(partial(self._end_forgotten, client))

    def drop_connection(
        self, client: str, when: When, kind: str | None = None, count: int = 1
    ) -> None:
        """Break the connection at the next `count` requests of `kind` (`setData`, `multi`; None:
        any) from `client`: before the request is applied, or after it, so that the response is
        lost. 0 cancels earlier orders.
        """
        ordered = self._drops.pop(client, [])
        if count:
            self._drops[client] = [*ordered, *[(when, kind)] * count]

    def lag(self, client: str, lag_us: int) -> None:
        """Connect `client` to a server that applies everything `lag_us` later; 0: that server
        catches up."""
        follower = self._followers.get(client)
        if follower is not None:
            follower.lag_us = lag_us
        elif lag_us:
            follower = Follower(self.tree.copy(), lag_us, self._server, self._deliver)
            self._followers[client] = follower
            # Watches are stored where their session is connected: each tree drops the others'.
            for session in self._sessions.values():
                elsewhere = self.tree if session.client == client else follower.tree
                elsewhere.watches.remove_session(session.session_id)
            for connection in self._connections:
                if connection.link.client == client:
                    connection.follower = follower

    @property
    def is_up(self) -> bool:
        """Whether the server serves."""
        return self._state is ServerState.SERVING

    def stop(self) -> None:
        """The server's process ends: connections break and new ones are refused; its data stays."""
        self._state = ServerState.DOWN
        self._tracker.clear()
        for connection in list(self._connections):
            self._break(connection)

    def listen(self) -> None:
        """A new server process listens, but has no database yet."""
        if self._state is ServerState.DOWN:
            self._state = ServerState.LISTENING

    def load(self) -> None:
        """It reads its data."""
        if self._state is ServerState.LISTENING:
            self._state = ServerState.LOADING

    def start(self) -> None:
        """The server is back; the sessions in its log get a full timeout from now on."""
        if self._state is ServerState.SERVING:
            return
        self._state = ServerState.SERVING
        # The log has no deadlines: no session expires because the server was down.
        for session in self._sessions.values():
            self._tracker.touch(session)
            self._tracker.track(session)

    def client_of(self, session_id: int) -> str:
        """The client of a session, which may have ended."""
        return self._clients[session_id]

    def _link(self, client: str) -> Link:
        link = self._links.get(client)
        if link is None:
            link = self._links[client] = Link(client, self._network, self._latency)
        return link

    # the server, on its lane

    def _on_packet(self, connection: Connection, packet: ToServer) -> None:
        # Without a tracker thread of its own, due sessions expire before the packet is processed.
        if not self._has_tracker_thread:
            self._tracker.expire_due()
        # A parked packet outlives its connection.
        if connection not in self._connections:
            return
        if isinstance(packet, EndOfStream):
            self._forget(connection)
        elif connection.park(packet):
            return
        elif connection.session is None:
            assert isinstance(packet, Connect), "a request before the connection's first answer"
            self._on_connect(connection, packet)
        else:
            session = connection.session
            self._tracker.touch(session)
            if isinstance(packet, Ping):
                connection.to_client.send(PING, "zk_reply")
            elif isinstance(packet, SetWatches):
                tree = self._tree_of(connection)
                # Watches that missed a change fire before the response.
                self._deliver(
                    tree.set_watches(
                        session.session_id, packet.zxid, packet.data, packet.exist, packet.child
                    )
                )
                connection.to_client.send(Reply(Code.OK, tree.zxid), "zk_reply")
            elif isinstance(packet, CloseSession):
                self._close_session(session, is_requested=True)
            elif not isinstance(packet, Connect):
                self._on_request(connection, session, packet)

    def _on_request(self, connection: Connection, session: ServerSession, request: Request) -> None:
        drop = self._take_drop(connection, request) if self._drops else None
        if drop == "before":
            self._break(connection)
            return
        follower, session_id = connection.follower, session.session_id
        now_ms = self._epoch_ms + self._now_us() // 1000

        def apply(tree: Tree) -> Applied:
            return tree.apply(request, session_id, now_ms)

        if follower is None:
            reply = self._commit(apply)
            if drop is None:
                connection.to_client.send(reply, "zk_reply")
        elif isinstance(request, _READS):
            # Read from the follower's own tree, which may be behind.
            reply, _, _ = apply(follower.tree)
            connection.to_client.send(reply, "zk_reply")
        else:
            reply = self._commit(apply)
            connection.when_applied(lambda: connection.to_client.send(reply, "zk_reply"))
        # The operation was applied, and its response is lost.
        if drop == "after":
            self._break(connection)

    def _commit(self, change: Change) -> Reply:
        """Apply `change` at the leader; followers replay it if it was logged."""
        reply, transaction, fired = change(self.tree)
        if transaction is not None:
            self._observer.on_transaction(self._now_us(), transaction)
            for follower in self._followers.values():
                follower.commit(change)
        self._deliver(fired)
        return reply

    def _deliver(self, fired: FiredWatches) -> None:
        for session_id, event in fired:
            session = self._sessions.get(session_id)
            # A session without a connection gets the event through SetWatches after its
            # reconnection.
            if session is not None and session.connection is not None:
                session.connection.to_client.send(event, "zk_watch")

    # sessions

    def _on_connect(self, connection: Connection, packet: Connect) -> None:
        if not self.is_up:
            # NIOServerCnxn.readConnectRequest: "ZooKeeperServer not running". To close a connection
            # takes the database: without one NIOServerCnxn.close fails before it closes the socket,
            # and the client waits until it gives up (seen in the log of a 3.9.3 server).
            if self._state is ServerState.LOADING:
                self._break(connection)
            return
        connection.follower = self._followers.get(connection.link.client)
        if packet.session_id:
            # The older connection of the session is closed (ZooKeeperServer.processConnectRequest,
            # reopenSession).
            known = self._sessions.get(packet.session_id)
            if known is None:
                connection.to_client.send(Connected(packet.session_id, 0), "zk_reply")
                self._break(connection)
                return
            session = known
            if session.connection is not None:
                self._break(session.connection)
            self._tracker.touch(session)
        else:
            self._last_session_id += 1
            session_id = self._last_session_id
            timeout_ms = min(max(packet.timeout_ms, self._min_ms), self._max_ms)
            session = ServerSession(session_id, connection.link.client, timeout_ms)
            self._sessions[session_id] = session
            self._clients[session_id] = session.client

            self._commit(lambda tree: tree.create_session(session_id, timeout_ms))
            self._tracker.touch(session)
            self._tracker.track(session)
        connection.session = session
        session.connection = connection
        # The granted timeout, which may differ from the requested one: the client computes its
        # pings from it.
        answer = Connected(session.session_id, session.timeout_ms)
        connection.when_applied(lambda: connection.to_client.send(answer, "zk_reply"))

    def _close_session(self, session: ServerSession, *, is_requested: bool = False) -> None:
        """Close the session in one transaction; watches fire, then its connection ends."""
        reply = self._commit(lambda tree: tree.close_session(session.session_id))
        self._sessions.pop(session.session_id, None)
        connection = session.connection
        if connection is not None:
            # A client whose session expires only sees its connection end; it learns of the expiry
            # when it reconnects.
            if is_requested:
                connection.to_client.send(reply, "zk_reply")
            self._break(connection)

    @labelled("expire_client")
    def _expire_client(self, client: str) -> None:
        """As with a real server (zk.real.expiry): the connection ends first, so the session does
        not see the events that its own end fires."""
        for session in list(self._sessions.values()):
            if session.client == client and self.is_up:
                if session.connection is not None:
                    self._break(session.connection)
                self._close_session(session)

    @labelled("forget_client")
    def _forget_client(self, client: str) -> None:
        for session in list(self._sessions.values()):
            if session.client == client:
                if session.connection is not None:
                    self._break(session.connection)
                del self._sessions[session.session_id]
                self._forgotten.setdefault(client, []).append(session)

    @labelled("end_forgotten")
    def _end_forgotten(self, client: str) -> None:
        for session in self._forgotten.pop(client, []):
            self._close_session(session)

    # connections that end

    def _break(self, connection: Connection) -> None:
        """The server closes its end."""
        connection.to_client.send(END_OF_STREAM, "zk_reply")
        self._forget(connection)

    def _forget(self, connection: Connection) -> None:
        self._connections.pop(connection, None)
        connection.to_server.close()
        session = connection.session
        if session is not None and session.connection is connection:
            session.connection = None
            self._tree_of(connection).watches.remove_session(session.session_id)

    def _tree_of(self, connection: Connection) -> Tree:
        """The tree of the server at the connection's other end."""
        return self.tree if connection.follower is None else connection.follower.tree

    def _take_drop(self, connection: Connection, request: Request) -> When | None:
        drops = self._drops.get(connection.link.client, [])
        # The first matching order is used up; orders for other requests stay.
        for drop in drops:
            if drop[1] in (None, name_of(request)):
                drops.remove(drop)
                return drop[0]
        return None
