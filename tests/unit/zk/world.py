"""A modelled service with clients that write down what they hear: the stage of the ensemble's
tests."""

from __future__ import annotations

from collections.abc import Callable

from tests.unit.zk.virtual_lane import VirtualClock, VirtualLane
from zk.errors import Code
from zk.model.ensemble import Ensemble
from zk.model.model_client import ModelSession
from zk.ops import Multi, Reply, Request, SessionState, Transaction, WatchedEvent, name_of

HALF_MS = {
    "zk_request": 400,
    "zk_multi": 400,
    "zk_process": 200,
    "zk_reply": 400,
    "zk_watch": 400,
    "zk_open": 0,
    "zk_connect": 1000,
    "zk_reconnect": 500_000,
}


class Client:
    """One process with one session; `heard` is its transcript."""

    def __init__(self, world: World, name: str, timeout_ms: int) -> None:
        self.world = world
        self.name = name
        self.lane = VirtualLane(world.clock)
        self.heard: list[str] = []
        self.when_ms: dict[str, int] = {}
        self.replies: list[Reply] = []
        self.timeout_ms = timeout_ms
        self.session: ModelSession
        self.open()

    def open(self) -> None:
        self.session = self.world.service.open_session(self.name, self.timeout_ms, self.lane, self)

    def note(self, line: str) -> None:
        self.heard.append(line)
        self.when_ms[line] = self.world.clock.now_us // 1000

    def on_watch(self, event: WatchedEvent) -> None:
        self.note(f"{event.type.value} {event.path}")

    def on_state(self, state: SessionState) -> None:
        self.note(state.value)

    def submit(self, request: Request, then: Callable[[Reply], None] | None = None) -> None:
        def on_reply(reply: Reply) -> None:
            what = name_of(request) if isinstance(request, Multi) else line_of(request)
            self.note(f"{what} {reply.code.name}")
            self.replies.append(reply)
            if then is not None:
                then(reply)

        self.session.submit(request, on_reply)

    def ask(self, request: Request) -> Reply:
        """Submit and wait for the answer."""
        answers: list[Reply] = []
        self.session.submit(request, answers.append)
        self.world.clock.run_while(lambda: not answers)
        return answers[0]

    def take(self) -> list[str]:
        """The transcript since the last call."""
        heard, self.heard = self.heard, []
        return heard


def line_of(request: Request) -> str:
    path = "" if isinstance(request, Multi) else f" {request.path}"
    return f"{name_of(request)}{path}"


class World:
    """A clock, a server's lane, a network with traffic at all times, and a log."""

    def __init__(
        self,
        *,
        tick_time_ms: int = 500,
        max_session_timeout_ms: int = 60_000,
        has_tracker: bool = False,
    ) -> None:
        self.clock = VirtualClock()
        self.server = VirtualLane(self.clock)
        self.tracker = VirtualLane(self.clock)
        self.latencies = dict(HALF_MS)
        self.log: list[Transaction] = []
        self.wire: list[str] = []
        self.log_ms: list[int] = []
        self.service = Ensemble(
            server=self.server,
            network=VirtualLane(self.clock),
            latency=lambda purpose, actor: self.latencies[purpose],
            observer=self,
            tick_time_ms=tick_time_ms,
            min_session_timeout_ms=1000,
            max_session_timeout_ms=max_session_timeout_ms,
            epoch_ms=1_600_000_000_000,
            tracker=self.tracker if has_tracker else None,
        )

    def client(self, name: str, timeout_ms: int = 6000) -> Client:
        """A connected client."""
        client = Client(self, name, timeout_ms)
        self.clock.run_while(lambda: not client.heard)
        assert client.take() == ["SyncConnected"]
        return client

    def run_ms(self, duration_ms: int) -> None:
        self.clock.run_ms(duration_ms)

    def on_request(self, at_us: int, client: str, request: Request | str) -> None:
        what = request if isinstance(request, str) else line_of(request)
        self.wire.append(f"{client} {what}")

    def on_transaction(self, at_us: int, transaction: Transaction) -> None:
        self.log.append(transaction)
        self.log_ms.append(at_us // 1000)

    def logged(self, op: str) -> list[Transaction]:
        return [it for it in self.log if it.op == op]

    def logged_ms(self, op: str) -> list[int]:
        return [at for it, at in zip(self.log, self.log_ms, strict=True) if it.op == op]


__all__ = ["Client", "Code", "World"]
