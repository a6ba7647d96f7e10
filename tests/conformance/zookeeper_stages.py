"""Two stages for the same play: a real ZooKeeper server through kazoo, and the model of it.

A play is a sequence of steps by the clients `a`, `b` and `c`; each step ends when everything that
follows from it has been heard. What is heard and logged is written down in words that hold on both
stages: zxids count from the start of the play, sessions are named, paths are inside its folder.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal

import msgspec

from tests.live.zk.owner import PATIENCE_S, Owner, start_unwatched
from tests.unit.zk.virtual_lane import VirtualClock, VirtualLane
from zk.client.client_times import ClientTimes
from zk.model.ensemble import Ensemble
from zk.ops import (
    Create,
    CreateMode,
    Exists,
    Multi,
    Op,
    Reply,
    Request,
    SessionState,
    Stat,
    Transaction,
    WatchedEvent,
)
from zk.real.kazoo_service import KazooService
from zk.real.server import EmbeddedServer
from zk.real.tap import Taps
from zk.real.txnlog import LogTail
from zk.wire import Session

CLIENTS = ("a", "b", "c")
ROVER = "c"
"""The client whose link breaks."""

TIMEOUT_MS = 60_000


class Asks(msgspec.Struct, frozen=True):
    """A client sends requests, all at once."""

    client: str
    requests: tuple[Request, ...]


class Leaves(msgspec.Struct, frozen=True):
    """The rover's connection breaks, and none is made until it returns."""


class Returns(msgspec.Struct, frozen=True):
    """The rover's link is whole again: it reconnects within its session."""


class Loses(msgspec.Struct, frozen=True):
    """The rover's connection breaks with a change on its way: it, or its reply, is lost."""

    request: Request
    when: Literal["before", "after"]


class Sleeps(msgspec.Struct, frozen=True):
    """The rover is suspended until the server has closed its session; meanwhile `a` sends requests.
    Then it resumes, learns of the expiry, and opens another session."""

    meanwhile: tuple[Request, ...]


class Expires(msgspec.Struct, frozen=True):
    """The server ends the rover's session after these requests of it. The rover learns of it and
    opens another."""

    requests: tuple[Request, ...]


class Restarts(msgspec.Struct, frozen=True):
    """The server ends and is started again on its data; all clients find it again."""


class Closes(msgspec.Struct, frozen=True):
    """A client closes its session and opens another."""

    client: str


Step = Asks | Leaves | Returns | Loses | Sleeps | Expires | Restarts | Closes
Words = tuple[object, ...]


class Player:
    """One client on one stage; `heard` is the transcript of its sessions."""

    def __init__(self, stage: Stage, name: str) -> None:
        self._stage, self.name = stage, name
        self.heard: list[Words] = []
        self.session: Session
        self.state: SessionState | None = None
        self.waiting = self.sessions = 0
        self.made_ephemerals = False

    def on_watch(self, event: WatchedEvent) -> None:
        if (path := self._stage.inside(event.path)) is not None:
            self.heard.append((event.type.name, path))

    def on_state(self, state: SessionState) -> None:
        self.state = state
        self.heard.append((state.name,))

    def ask(self, request: Request) -> None:
        self.waiting += 1
        self.session.submit(self._stage.outside(request), partial(self._on_reply, request))

    def look_around(self) -> None:
        """A read whose answer comes behind everything that has happened so far."""
        self.waiting += 1
        self.session.submit(Exists("/"), self._on_look)

    def _on_reply(self, request: Request, reply: Reply) -> None:
        self.waiting -= 1
        self.heard.append((request, *self._stage.words_for(reply)))
        ops = request.ops if isinstance(request, Multi) else (request,)
        self.made_ephemerals |= any(isinstance(op, Create) and op.mode.ephemeral for op in ops)

    def _on_look(self, _: Reply) -> None:
        self.waiting -= 1


class Stage(ABC):
    """The common part of both stages: take steps, and write transcripts."""

    def __init__(self, rovers_timeout_ms: int) -> None:
        self._timeouts_ms = dict.fromkeys(CLIENTS, TIMEOUT_MS) | {ROVER: rovers_timeout_ms}
        self._folder = ""
        self._base_zxid = 0
        self._names: dict[int, str] = {}
        self.players = {name: Player(self, name) for name in CLIENTS}
        self.away = False

    # ---- what differs

    @abstractmethod
    def open_session(self, player: Player) -> Session: ...

    @abstractmethod
    def until(self, done: Callable[[], bool]) -> None: ...

    @abstractmethod
    def cut(self) -> None: ...

    @abstractmethod
    def heal(self) -> None: ...

    @abstractmethod
    def lose(self, request: Request, when: Literal["before", "after"]) -> None:
        """Ask as the rover, and break its connection before or after the server has applied it."""

    @abstractmethod
    def expire(self) -> None: ...

    @abstractmethod
    def stop_server(self) -> None: ...

    @abstractmethod
    def start_server(self) -> None: ...

    @abstractmethod
    def pause(self) -> None: ...

    @abstractmethod
    def resume(self) -> None: ...

    @abstractmethod
    def take_log(self) -> list[Transaction]:
        """The transactions in the server's log since the last call."""

    # ---- steps

    def begin(self, folder: str) -> None:
        """Make the folder of a new play; zxids count from there."""
        self._folder, self._names = folder, {}
        for player in self.players.values():
            player.sessions = 0
            player.made_ephemerals = False
            self._name(player)
        replies: list[Reply] = []
        self.players["a"].session.submit(Create(folder, b""), replies.append)
        self.until(lambda: bool(replies))
        self._base_zxid = replies[0].zxid
        self.take()
        self.take_log()

    def do(self, step: Step) -> None:
        """Take a step, and wait until all of its effects have been observed."""
        rover = self.players[ROVER]
        if isinstance(step, Asks):
            player = self.players[step.client]
            for request in step.requests:
                player.ask(request)
            if not self._is_away(player):
                self.until(lambda: not player.waiting)
        elif isinstance(step, Leaves):
            self.cut()
            self.until(lambda: rover.state is SessionState.DISCONNECTED)
            self.away = True
        elif isinstance(step, Returns):
            self.heal()
            self.until(lambda: rover.state is SessionState.CONNECTED and not rover.waiting)
            self.away = False
        elif isinstance(step, Loses):
            self.lose(step.request, step.when)
            self.until(lambda: rover.state is SessionState.CONNECTED and not rover.waiting)
        elif isinstance(step, Sleeps):
            self._sleep(step.meanwhile)
        elif isinstance(step, Expires):
            self._expire(step.requests)
        elif isinstance(step, Restarts):
            self.stop_server()
            self.until(lambda: self._all(SessionState.DISCONNECTED))
            self.start_server()
            self.until(lambda: self._all(SessionState.CONNECTED))
        else:
            self.renew(self.players[step.client])
        self._look_around(step)

    def _all(self, state: SessionState) -> bool:
        return all(player.state is state for player in self.players.values())

    def _sleep(self, meanwhile: tuple[Request, ...]) -> None:
        a, rover = self.players["a"], self.players[ROVER]
        rover.ask(Create("/lease", b"", CreateMode.EPHEMERAL))
        self.until(lambda: not rover.waiting)
        a.ask(Exists("/lease", watch=True))
        self.until(lambda: not a.waiting)
        self.pause()
        for request in meanwhile:
            a.ask(request)
        self.until(lambda: ("NODE_DELETED", "/lease") in a.heard and not a.waiting)
        self.resume()
        self._replace_expired(rover)

    def _expire(self, before: tuple[Request, ...]) -> None:
        rover = self.players[ROVER]
        for request in before:
            rover.ask(request)
        self.until(lambda: not rover.waiting)
        self.expire()
        self._replace_expired(rover)

    def _replace_expired(self, rover: Player) -> None:
        self.until(lambda: rover.state is SessionState.EXPIRED)
        self.open(rover)
        self._name(rover)

    def renew(self, player: Player) -> None:
        """Close a client's session, if it has not expired meanwhile, and open another."""
        player.session.close()
        self.until(lambda: player.state in (SessionState.CLOSED, SessionState.EXPIRED))
        self.open(player)
        self._name(player)

    def open(self, player: Player) -> None:
        player.session = self.open_session(player)
        self.until(lambda: player.state is SessionState.CONNECTED)

    def take(self) -> dict[str, list[Words]]:
        """The transcript of each client since the last call."""
        heard = {name: player.heard for name, player in self.players.items()}
        for player in self.players.values():
            player.heard = []
        return heard

    def take_logged(self) -> list[Transaction]:
        return [words for one in self.take_log() if (words := self._transaction(one))]

    def _is_away(self, player: Player) -> bool:
        return self.away and player.name == ROVER

    def _look_around(self, step: Step) -> None:
        """A client with a response has received everything before it; the others send a request to
        make sure."""
        answered = step.client if isinstance(step, Asks) and step.requests else ""
        present = [
            player
            for player in self.players.values()
            if player.name != answered and not self._is_away(player)
        ]
        for player in present:
            player.look_around()
        self.until(lambda: not any(player.waiting for player in present))

    # ---- words

    def _name(self, player: Player) -> None:
        self._names[player.session.session_id] = f"{player.name}{player.sessions}"
        player.sessions += 1

    def inside(self, path: str) -> str | None:
        """The path within the play's folder; None when it is not in it."""
        if path != self._folder and not path.startswith(self._folder + "/"):
            return None
        return path[len(self._folder) :] or "/"

    def outside(self, request: Request) -> Request:
        if isinstance(request, Multi):
            return Multi(tuple(self._op_outside(op) for op in request.ops))
        return msgspec.structs.replace(request, path=self._path(request.path))

    def _op_outside(self, op: Op) -> Op:
        return msgspec.structs.replace(op, path=self._path(op.path))

    def _path(self, path: str) -> str:
        return self._folder if path == "/" else self._folder + path

    def words_for(self, reply: Reply) -> Words:
        results = [
            (one.code.name, self.inside(one.path), self._stat(one.stat)) for one in reply.results
        ]
        return (
            reply.code.name,
            reply.zxid and reply.zxid - self._base_zxid,
            self.inside(reply.path),
            reply.data,
            self._stat(reply.stat),
            reply.children,
            results,
        )

    def _stat(self, stat: Stat | None) -> object:
        if stat is None:
            return None
        words = msgspec.structs.asdict(stat)
        for name in ("czxid", "mzxid", "pzxid"):
            words[name] -= self._base_zxid
        for name in ("ctime", "mtime"):
            words[name] = words[name] > 0
        words["ephemeral_owner"] = self._names.get(stat.ephemeral_owner, "")
        return words

    def _transaction(self, one: Transaction) -> Transaction | None:
        """In comparable form; None if it belongs to another play."""
        if one.path and self.inside(one.path) is None:
            return None
        return msgspec.structs.replace(
            one,
            zxid=one.zxid - self._base_zxid,
            session_id=0,
            path=self.inside(one.path) or "",
            ops=tuple(filter(None, (self._transaction(op) for op in one.ops))),
            timeout_ms=0,
            removed=tuple(filter(None, (self.inside(path) for path in one.removed))),
        )


class Modelled(Stage):
    """The model, made anew for each play."""

    def __init__(self, folder: str, rovers_timeout_ms: int = TIMEOUT_MS) -> None:
        super().__init__(rovers_timeout_ms)
        self._clock = VirtualClock()
        self._lane, self._rovers_lane = VirtualLane(self._clock), VirtualLane(self._clock)
        self._logged: list[Transaction] = []
        self._service = Ensemble(
            server=VirtualLane(self._clock),
            network=VirtualLane(self._clock),
            latency=lambda purpose, actor: 100,
            observer=self,
            epoch_ms=1_600_000_000_000,
            max_session_timeout_ms=TIMEOUT_MS,
        )
        for player in self.players.values():
            self.open(player)
        self.begin(folder)

    def on_request(self, at_us: int, client: str, request: Request | str) -> None: ...

    def on_transaction(self, at_us: int, transaction: Transaction) -> None:
        self._logged.append(transaction)

    def open_session(self, player: Player) -> Session:
        lane = self._rovers_lane if player.name == ROVER else self._lane
        timeout_ms = self._timeouts_ms[player.name]
        return self._service.open_session(player.name, timeout_ms, lane, player)

    def until(self, done: Callable[[], bool]) -> None:
        self._clock.run_while(lambda: not done())

    def cut(self) -> None:
        self._service.cut(ROVER)

    def heal(self) -> None:
        self._service.heal(ROVER)

    def lose(self, request: Request, when: Literal["before", "after"]) -> None:
        self._service.drop_connection(ROVER, when)
        self.players[ROVER].ask(request)
        self.until(lambda: self.players[ROVER].state is SessionState.DISCONNECTED)

    def expire(self) -> None:
        self._service.expire(ROVER)

    def stop_server(self) -> None:
        self._service.stop()

    def start_server(self) -> None:
        self._service.start()

    def pause(self) -> None:
        self._rovers_lane.pause()

    def resume(self) -> None:
        self._rovers_lane.resume()

    def take_log(self) -> list[Transaction]:
        logged, self._logged = self._logged, []
        return logged


class Real(Stage):
    """One real server and its sessions, for many plays one after the other."""

    def __init__(
        self, server: EmbeddedServer, taps: Taps, rovers_timeout_ms: int = TIMEOUT_MS
    ) -> None:
        super().__init__(rovers_timeout_ms)
        self._server = server
        self._owner = Owner()
        self._service = KazooService(server.address, ClientTimes(1, 1, 1000, 10_000))
        self._tap = taps.open(ROVER, server.address)
        self._service.route(ROVER, self._tap.address)
        self._log = LogTail(server.txn_log_dir)
        self._plays = 0
        for player in self.players.values():
            self.open(player)

    def begin_play(self) -> str:
        """The folder of the new play. All of their names have one hash code in Java, on which the
        order of children and of a closing session's ephemerals depends: a play can be repeated."""
        self._plays += 1
        folder = "/" + "".join("BB" if self._plays >> bit & 1 else "Aa" for bit in range(20))
        self.begin(folder)
        return folder

    def end_play(self) -> None:
        """Nothing of a play may be heard in the next one: ephemerals go with their sessions."""
        if self.away:
            self.do(Returns())
        for player in self.players.values():
            if player.made_ephemerals:
                self.renew(player)

    def close(self) -> None:
        self._service.close()
        self._log.close()

    def open_session(self, player: Player) -> Session:
        timeout_ms = self._timeouts_ms[player.name]
        return self._service.open_session(player.name, timeout_ms, self._owner, player)

    def until(self, done: Callable[[], bool]) -> None:
        try:
            self._owner.until(done, patience_s=60)
        except AssertionError as error:
            states = {player.name: player.state for player in self.players.values()}
            raise AssertionError(f"{error}; clients: {states}") from None

    def cut(self) -> None:
        self._tap.cut()
        self._tap.hang_up()

    def heal(self) -> None:
        self._tap.heal()

    def lose(self, request: Request, when: Literal["before", "after"]) -> None:
        self._tap.drop_connection(when)
        self.players[ROVER].ask(request)
        self.until(lambda: self.players[ROVER].state is SessionState.DISCONNECTED)

    def expire(self) -> None:
        """The client is suspended meanwhile. Otherwise it would take its session back before the
        server has closed it, since it reconnects a thousand times as fast as Java's client."""
        self._service.gate(ROVER).pause()
        self._service.expire(ROVER)
        assert self._service.expiries.settle(PATIENCE_S)
        self._service.gate(ROVER).resume()

    def stop_server(self) -> None:
        self._server.stop()

    def start_server(self) -> None:
        start_unwatched(self._server, self._service, *self.players)

    def pause(self) -> None:
        self._service.gate(ROVER).pause()

    def resume(self) -> None:
        self._service.gate(ROVER).resume()

    def take_log(self) -> list[Transaction]:
        return [entry.transaction for entry in self._log.read()]


def load_story(path: Path) -> tuple[Step, ...]:
    """`STORY` of a regression case."""
    names: dict[str, object] = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    story = names["STORY"]
    assert isinstance(story, tuple)
    return story
