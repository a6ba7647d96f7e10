"""Transcripts: one broker's code on the virtual kernel, ZooKeeper and other brokers scripted.

In the manner of mitmproxy's Playbook: `>>` is what comes in, `<<` the line that must come out.
Whatever comes out must be asked for, in order, before anything else comes in; what must not come
out is thereby tested too. Lines are made in `lines`; a batch's lines come one after the other;
lines to one broker (`to 2: …`) are in order among themselves.

    with Playbook() as play:
        (
            play
            >> thread("registration", play.zk.register_broker(1, INFO))
            << "[create /brokers/ids/1, set /brokers/ids/1 at v0]"
            >> reply(Code.NODE_EXISTS)
            << "getData /brokers/ids/1"
        )
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from emulator.kafka.broker.context import BrokerContext
from emulator.kafka.broker.zookeeper import client_of, client_version_of
from emulator.kafka.model.config import KafkaConfig
from emulator.kafka.model.errors import Errors, KafkaError
from emulator.kafka.profiles.base import profiles
from emulator.kafka.protocol.messages import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    Request,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from emulator.kafka.protocol.transport import Disconnected
from emulator.kernel.scheduler import Kernel, Lane, Task
from emulator.kernel.sync import Promise
from emulator.trace.sink import Sink
from tests.interaction.lines import line_of_event, line_of_message, line_of_request
from zk.client import codec
from zk.client.codec import ReplicaAssignment
from zk.client.kafka_zk_client import KafkaZkClient
from zk.errors import Code, ControllerMoved, ZooKeeperError
from zk.ops import (
    Create,
    EventType,
    Multi,
    OpResult,
    Reply,
    SessionState,
    SetData,
    Stat,
    WatchedEvent,
)
from zk.ops import Request as ZkRequest
from zk.wire import Listener, OnReply

ME = 1
WALL_MS = 1_600_000_000_000

Incoming = Callable[["Playbook"], None]


class ScriptedSession:
    """zk.wire.Session: records each request; the script sends the responses."""

    def __init__(self, zookeeper: ScriptedZooKeeper, session_id: int, lane: Lane) -> None:
        self._zookeeper, self.session_id, self.lane = zookeeper, session_id, lane
        self.listener: Listener | None = None
        self.linked = False

    def turn(self, state: SessionState) -> None:
        """The session's state; one that is disconnected is connecting again."""
        assert self.listener is not None
        self.linked = state is SessionState.CONNECTED
        self.listener.on_state(state)

    def submit(self, request: ZkRequest, on_reply: OnReply) -> None:
        self._zookeeper.submitted(self, request, on_reply)

    def close(self) -> None:
        self._zookeeper.say("closeSession")

    def abandon(self) -> None: ...


class ScriptedZooKeeper:
    """zk.wire.Service: sessions 0x100, 0x101 …, each connected at once unless `connects` is off."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say
        self.connects = True
        self.sessions: list[ScriptedSession] = []
        self.open: deque[tuple[ScriptedSession, ZkRequest, OnReply]] = deque()
        self.presets: dict[str, Reply] = {}

    def open_session(
        self, client: str, timeout_ms: int, lane: Lane, listener: Listener
    ) -> ScriptedSession:
        session = ScriptedSession(self, 0x100 + len(self.sessions), lane)
        session.listener = listener
        self.sessions.append(session)
        if self.connects:
            lane.post(lambda: session.turn(SessionState.CONNECTED))
        return session

    def submitted(self, session: ScriptedSession, request: ZkRequest, on_reply: OnReply) -> None:
        preset = self.presets.get(getattr(request, "path", ""))
        if preset is not None:
            session.lane.post(lambda: on_reply(preset))
            return
        self.say(line_of_request(request))
        self.open.append((session, request, on_reply))

    def answer(self, answer: Reply) -> None:
        session, _, on_reply = self.open.popleft()
        session.lane.post(lambda: on_reply(answer))


class ScriptedConnection:
    """kafka.protocol.transport.Connection: records each request. Control requests are answered
    without error unless the other end is silent; others wait for the script."""

    def __init__(self, network: ScriptedNetwork, broker: int) -> None:
        self._network, self._broker = network, broker
        self.open = True
        self.waiting: deque[Promise[Any]] = deque()

    async def send(self, request: Request, timeout_ms: int) -> Any:
        self._network.sent.append((self._broker, request))
        self._network.say(f"to {self._broker}: {line_of_message(request)}")
        answered: Promise[Any] = Promise(self._network.kernel)
        answer = None if self._broker in self._network.silent else _answer_to(request)
        if answer is None:
            self.waiting.append(answered)
        else:
            answered.resolve(answer)
        answer = await answered.wait()
        if isinstance(answer, Disconnected):
            raise answer
        return answer

    def close(self) -> None:
        """Requests in flight fail."""
        self.open = False
        while self.waiting:
            self.waiting.popleft().resolve(Disconnected("closed"))


def _answer_to(request: Request) -> Any:
    match request:
        case LeaderAndIsrRequest():
            return LeaderAndIsrResponse(Errors.NONE)
        case UpdateMetadataRequest():
            return UpdateMetadataResponse(Errors.NONE)
        case StopReplicaRequest():
            return StopReplicaResponse(Errors.NONE)
    return None


class ScriptedNetwork:
    """emulator.kafka.protocol.transport.Network; broker n listens on port 9090 + n."""

    def __init__(self, kernel: Kernel, say: Callable[[str], None]) -> None:
        self.kernel, self.say = kernel, say
        self.silent: set[int] = set()
        self.unreachable: set[int] = set()
        self.connections: dict[int, ScriptedConnection] = {}
        self.sent: list[tuple[int, Request]] = []

    async def connect(
        self, client: str, host: str, port: int, timeout_ms: int
    ) -> ScriptedConnection:
        broker = port - 9090
        if broker in self.unreachable:
            self.say(f"to {broker}: connection refused")
            raise Disconnected("refused")
        connection = self.connections[broker] = ScriptedConnection(self, broker)
        return connection


class Playbook:
    """The script and the stage."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """The attributes of a stage: `controller`, `hosted`, `fetchers`."""

    def __init__(
        self,
        profile: str = "2.6",
        guards: Mapping[str, bool] | None = None,
        propagation: str = "",
        **settings: object,
    ) -> None:
        """`settings` are Kafka's, with underscores; `guards` are switched on or off."""
        self.said: deque[str] = deque()
        self.sink = Sink()
        self.sink.listen(self._hear)
        self.kernel = Kernel(self.sink)
        self.process = self.kernel.process("broker-1")
        version = profiles()[profile].altered(guards or {}, propagation)
        texts = {key.replace("_", "."): str(value) for key, value in settings.items()}
        config = KafkaConfig.of(version.values, texts)
        self.context = BrokerContext(ME, self.kernel, self.process, config, version)
        self.zookeeper = ScriptedZooKeeper(self.say)
        self.network = ScriptedNetwork(self.kernel, self.say)
        self.client = client_of(self.context, self.zookeeper)
        self.zk = KafkaZkClient(self.client, lambda: WALL_MS, client_version_of(version))
        self.settle()

    # -- the script --------------------------------------------------------------------------------

    def __rshift__(self, incoming: Incoming) -> Playbook:
        """An input; all outputs so far must have been expected."""
        self.nothing_else()
        incoming(self)
        self.settle()
        return self

    def __lshift__(self, expected: str) -> Playbook:
        """This is the next line that came out; of the lines to one broker the next of those, since
        Kafka has no order across brokers."""
        lane = _lane(expected)
        said = next((line for line in self.said if _lane(line) == lane), None)
        assert said is not None, f"silence, where this should have come out: {expected}"
        assert said == expected, f"\n  came out: {said}\n  expected: {expected}"
        self.said.remove(said)
        return self

    def nothing_else(self) -> None:
        """All outputs were expected."""
        assert not self.said, "came out unasked:\n  " + "\n  ".join(self.said)

    def __enter__(self) -> Playbook:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        try:
            if error is None:
                self.nothing_else()
        finally:
            self.kernel.close()

    def topic_written(self) -> dict[int, ReplicaAssignment]:
        """The assignment in the topic's znode that the oldest open request writes."""
        request = self.zookeeper.open[0][1]
        (op,) = [
            op
            for op in (request.ops if isinstance(request, Multi) else (request,))
            if isinstance(op, Create | SetData)
        ]
        return codec.decode_topic(op.path, op.data)

    # -- the stage ---------------------------------------------------------------------------------

    def take(self, **steps_ms: int) -> None:
        """A task that reaches the core's checkpoint of this name takes this long there."""

        async def step(name: str, task: Task) -> None:
            await task.process.kernel.sleep(steps_ms[name] * 1000)

        self.kernel.checkpoints |= {name: partial(step, name) for name in steps_ms}

    def say(self, line: str) -> None:
        self.said.append(line)

    def _hear(self, event: Any) -> None:
        line = line_of_event(event)
        if line is not None:
            self.said.append(line)

    def settle(self) -> None:
        """Let everything run that can without time going on."""
        self.kernel.run(self.kernel.now)

    def forget(self) -> None:
        """Ignore the outputs of the set-up."""
        self.said.clear()

    def run(self, body: Coroutine[Any, Any, Any]) -> Any:
        """Run something to its end that needs no answer, while the stage is set."""
        results: list[Any] = []

        async def collect() -> None:
            results.append(await body)

        self.process.spawn("stage", collect())
        self.settle()
        assert results, "it waits for something"
        return results[0]


def _lane(line: str) -> str:
    return line.partition(":")[0] if line.startswith("to ") else ""


# -- what comes in ---------------------------------------------------------------------------------


def thread(name: str, body: Coroutine[Any, Any, Any]) -> Incoming:
    """A thread of the broker does something; its end comes out as a line."""

    def start(play: Playbook) -> None:
        async def run() -> None:
            try:
                result = await body
            except KafkaError as error:
                result = error.error.name
            except (ZooKeeperError, ControllerMoved) as error:
                result = f"{type(error).__name__} {error}"
            play.say(f"{name}: {'done' if result is None else result}")

        play.process.spawn(name, run())

    return start


def at_once(*incoming: Incoming) -> Incoming:
    """Several things, at the same instant, in this order."""

    def start(play: Playbook) -> None:
        for one in incoming:
            one(play)

    return start


def after_ms(duration_ms: int) -> Incoming:
    """Time passes."""
    return lambda play: play.kernel.run(play.kernel.now + duration_ms * 1000)


def stat(version: int = 0, *, owner: int = 0, czxid: int = 1) -> Stat:
    return Stat(czxid, 1, WALL_MS, WALL_MS, version, 0, 0, owner, 0, 0, 1)


def answer(what: Reply) -> Incoming:
    """ZooKeeper answers the oldest request that is open."""
    return lambda play: play.zookeeper.answer(what)


def reply(code: Code) -> Incoming:
    """ZooKeeper answers with a code."""
    return answer(Reply(code))


no_node = reply(Code.NO_NODE)
lost = reply(Code.CONNECTION_LOSS)


def ok(version: int = 0) -> Incoming:
    """ZooKeeper did it: the znode's version is this now."""
    return answer(Reply(Code.OK, stat=stat(version)))


def created(path: str) -> Incoming:
    return answer(Reply(Code.OK, path=path))


def data(payload: bytes | str, version: int = 0, *, owner: int = 0, czxid: int = 1) -> Incoming:
    """ZooKeeper shows what is in a znode."""
    content = payload.encode() if isinstance(payload, str) else payload
    return answer(Reply(Code.OK, data=content, stat=stat(version, owner=owner, czxid=czxid)))


def children(*names: str) -> Incoming:
    return answer(Reply(Code.OK, stat=stat(), children=names))


def multi_ok(version: int = 0, *, czxid: int = 1) -> Incoming:
    """Both operations of a multi were done; the second one's znode has this version now."""
    results = (OpResult(Code.OK), OpResult(Code.OK, stat=stat(version, czxid=czxid)))
    return answer(Reply(Code.OK, results=results))


def multi_failed(first: Code, second: Code) -> Incoming:
    """A multi was rolled back: the codes of its two operations."""
    code = next(c for c in (first, second) if c not in (Code.OK, Code.RUNTIME_INCONSISTENCY))
    return answer(Reply(code, results=(OpResult(first), OpResult(second))))


def watch(kind: EventType, path: str) -> Incoming:
    """A watch fires."""

    def fire(play: Playbook) -> None:
        session = play.zookeeper.sessions[-1]
        listener = session.listener
        assert listener is not None
        session.lane.post(lambda: listener.on_watch(WatchedEvent(kind, path)))

    return fire


def session_is(state: SessionState) -> Incoming:
    """The client learns a state of its session."""

    def tell(play: Playbook) -> None:
        session = play.zookeeper.sessions[-1]
        session.lane.post(lambda: session.turn(state))

    return tell


def breaks(broker: int) -> Incoming:
    """The connection to a broker breaks while a request is on its way."""

    def fail(play: Playbook) -> None:
        play.network.connections[broker].close()

    return fail


def answers_and_closes(broker: int, what: Any) -> Incoming:
    """A broker answers and closes the connection."""

    def act(play: Playbook) -> None:
        connection = play.network.connections[broker]
        connection.waiting.popleft().resolve(what)
        connection.open = False

    return act


def answers(broker: int, what: Any) -> Incoming:
    """A broker that was made silent answers after all."""
    return lambda play: play.network.connections[broker].waiting.popleft().resolve(what)
