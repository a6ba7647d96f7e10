"""Any mixture of requests and faults: each request gets one answer, and all is well afterwards."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.zk.world import Client, World
from zk.ops import (
    Create,
    CreateMode,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Multi,
    Reply,
    Request,
    SessionState,
    SetData,
)

NAMES = ("a", "b", "c")
REQUESTS: tuple[Request, ...] = (
    Create("/x", b""),
    Create("/x/e", b"", CreateMode.EPHEMERAL),
    Create("/x/n_", b"", CreateMode.PERSISTENT_SEQUENTIAL),
    SetData("/x", b"1"),
    Delete("/x/e"),
    Exists("/x", watch=True),
    GetData("/x", watch=True),
    GetChildren("/x", watch=True),
    Multi((SetData("/x", b"2"), Delete("/x/e"))),
)
LATENCIES = st.sampled_from([100, 700, 3000, 90_000])


class Asker(Client):
    """Counts what it asked and what was answered; opens a new session when the old one expired."""

    asked = 0
    answered: list[int]

    def ask_for(self, request: Request) -> None:
        number, self.asked = self.asked, self.asked + 1

        def on_reply(reply: Reply) -> None:
            self.answered.append(number)

        self.session.submit(request, on_reply)

    def on_state(self, state: SessionState) -> None:
        super().on_state(state)
        if state is SessionState.EXPIRED:
            self.open()


def requester(world: World, name: str) -> Asker:
    client = Asker(world, name, 3000)
    client.answered = []
    return client


Step = tuple[str, str, int]
steps = st.lists(
    st.tuples(
        st.sampled_from(
            [
                *["ask"] * 6,
                *["run"] * 4,
                *("cut", "heal", "pause", "resume", "expire", "before", "after"),
                *("stop", "start", "stall", "go on", "lag", "catch up"),
            ]
        ),
        st.sampled_from(NAMES),
        st.integers(0, 5000),
    ),
    max_size=60,
)


def actions(world: World, client: Asker, n: int) -> dict[str, Callable[[], object]]:
    service, name = world.service, client.name
    return {
        "ask": lambda: client.ask_for(REQUESTS[n % len(REQUESTS)]),
        "run": lambda: world.run_ms(n),
        "cut": lambda: service.cut(name),
        "heal": lambda: service.heal(name),
        "pause": client.lane.pause,
        "resume": client.lane.resume,
        "expire": lambda: service.expire(name),
        "before": lambda: service.drop_connection(name, "before"),
        "after": lambda: service.drop_connection(name, "after", "setData"),
        "stop": service.stop,
        "start": service.start,
        "stall": world.server.pause,
        "go on": world.server.resume,
        "lag": lambda: service.lag(name, n * 100),
        "catch up": lambda: service.lag(name, 0),
    }


def state_of(client: Asker) -> str:
    states = ("SyncConnected", "Disconnected", "Expired")
    return next(line for line in reversed(client.heard) if line in states)


def mend(world: World, clients: dict[str, Asker]) -> None:
    world.server.resume()
    world.service.start()
    world.service._drops.clear()
    for client in clients.values():
        world.service.heal(client.name)
        world.service.lag(client.name, 0)
        client.lane.resume()
    world.run_ms(20_000)


@settings(max_examples=150, deadline=None)
@given(steps, st.lists(LATENCIES, min_size=3, max_size=3))
def test_every_request_is_answered_once_and_in_order_and_the_world_mends(
    story: list[Step], latencies: list[int]
) -> None:
    world = World()
    draws = [0]

    def latency(purpose: str, actor: str) -> int:
        draws[0] += 1
        return 700_000 if purpose == "zk_reconnect" else latencies[draws[0] % 3]

    world.service._latency = latency
    clients = {name: requester(world, name) for name in NAMES}
    for what, name, n in story:
        actions(world, clients[name], n)[what]()
    mend(world, clients)
    for client in clients.values():
        assert state_of(client) == "SyncConnected"
        client.ask_for(Exists("/x"))
    world.run_ms(1000)
    for client in clients.values():
        assert client.answered == list(range(client.asked))
    zxids = [it.zxid for it in world.log]
    assert zxids == list(range(1, len(zxids) + 1))
    owners = {it.session_id for it in world.service._sessions.values()}
    assert set(world.service.tree.sessions) == owners
    for session, paths in world.service.tree.ephemerals.items():
        assert session in owners or not paths
