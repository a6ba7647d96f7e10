"""The model of ZooKeeper and a real server must agree on every play: on each result, error code,
version, watch and its order, and on what the server logs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from tests.conformance.zookeeper_stages import (
    CLIENTS,
    ROVER,
    TIMEOUT_MS,
    Asks,
    Closes,
    Expires,
    Leaves,
    Loses,
    Modelled,
    Real,
    Restarts,
    Returns,
    Sleeps,
    Step,
    load_story,
)
from tests.live.zk.owner import Deaf
from zk.ops import (
    Check,
    Create,
    CreateMode,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Multi,
    Op,
    Reply,
    Request,
    SetData,
    Sync,
)
from zk.real.server import EmbeddedServer
from zk.real.tap import Taps

pytestmark = pytest.mark.live

PLAYS = 1000
REGRESSIONS = sorted((Path(__file__).parent / "regressions").glob("*.py"))


@contextmanager
def _real(folder: Path, rovers_timeout_ms: int, tick_ms: int = 2000) -> Iterator[Real]:
    with (
        EmbeddedServer(folder, tick_ms, max_session_timeout_ms=TIMEOUT_MS) as server,
        Taps(Deaf(), lambda: time.monotonic_ns() // 1000) as taps,
    ):
        stage = Real(server, taps, rovers_timeout_ms)
        yield stage
        stage.close()


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    """A server whose sessions do not run out while a play is thought about."""
    with _real(tmp_path_factory.mktemp("zookeeper"), TIMEOUT_MS) as stage:
        yield stage


# ---- what is played ----

FIRST = (Create("/a", b"0"), Create("/b", None), Create("/a/x", b""), Create("/a/x/1", b"1"))
NAMES = ("/a", "/b", "/a/x", "/a/y", "/b/x", "/a/x/1", "/b/s-0000000000")
BAD_NAMES = ("/a/", "//a", "/a/./b", "/a/..", "/\x01", "/\uf8ff")
WATCHES = tuple(
    kind(name, True) for name in (*NAMES, "/") for kind in (Exists, GetData, GetChildren)
)
FIRST_WATCHES: tuple[Request, ...] = (
    *(Exists(name, True) for name in NAMES),
    *(GetChildren(name, True) for name in ("/", "/a", "/b", "/a/x")),
)
paths = st.sampled_from((*NAMES * 12, *BAD_NAMES, "/"))
below = st.sampled_from((*NAMES * 12, *BAD_NAMES))
new_paths = st.sampled_from((*NAMES * 6, *("/s-", "/a/s-", "/b/s-") * 6, *BAD_NAMES, "/", "/b/"))
data = st.sampled_from((b"1", b"22", b"", None))
versions = st.sampled_from((-1, -1, -1, -1, 0, 0, 1, 2, 3, -2))


def weighted(*strategies: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Each as often as it is named, which `one_of` does not do."""
    return st.sampled_from(strategies).flatmap(lambda strategy: strategy)


creates = st.builds(Create, new_paths, data, st.sampled_from(CreateMode))
writes = st.builds(SetData, paths, data, versions)
deletes = st.builds(Delete, below, versions)
checks = st.builds(Check, paths, versions)
op: st.SearchStrategy[Op] = weighted(creates, writes, writes, deletes, checks)
multis = st.lists(op, max_size=4).map(lambda ops: Multi(tuple(ops)))
change: st.SearchStrategy[Request]
change = weighted(creates, creates, writes, writes, deletes, deletes, multis)
read = st.builds(
    lambda make, path: make(path), st.sampled_from((Exists, GetData, GetChildren)), paths
)
sync = st.builds(Sync, paths)
clients = st.sampled_from(CLIENTS)


class Play(RuleBasedStateMachine):
    """One play, drawn step by step and played on both stages."""

    real: ClassVar[Real]
    played: ClassVar[int]

    def __init__(self) -> None:
        super().__init__()
        self.model = Modelled(self.real.begin_play())
        type(self).played += 1
        self.play(Asks("a", FIRST))
        self.play(Asks("b", FIRST_WATCHES))
        self.play(Asks(ROVER, FIRST_WATCHES))

    def play(self, step: Step) -> None:
        play(step, self.real, self.model)

    @rule(client=clients, requests=st.lists(change, min_size=2, max_size=6).map(tuple))
    def changes(self, client: str, requests: tuple[Request, ...]) -> None:
        self.play(Asks(client, requests))

    @rule(client=clients, chosen=st.integers(0, 2 ** len(WATCHES) - 1))
    def watches(self, client: str, chosen: int) -> None:
        self.play(Asks(client, tuple(w for n, w in enumerate(WATCHES) if chosen >> n & 1)))

    @rule(client=clients, requests=st.lists(weighted(change, read, sync), max_size=5).map(tuple))
    def asks(self, client: str, requests: tuple[Request, ...]) -> None:
        self.play(Asks(client, requests))

    @precondition(lambda self: not self.model.away)
    @rule(client=st.sampled_from(("a", "b")), missed=st.lists(change, min_size=1, max_size=4))
    def misses(self, client: str, missed: list[Request]) -> None:
        self.play(Leaves())
        self.play(Asks(client, tuple(missed)))
        self.play(Returns())

    @precondition(lambda self: not self.model.away)
    @rule(request=change, when=st.sampled_from(("before", "after")))
    def loses(self, request: Request, when: Literal["before", "after"]) -> None:
        self.play(Loses(request, when))

    @precondition(lambda self: not self.model.away)
    @rule(requests=st.lists(change, max_size=4).map(tuple))
    def expires(self, requests: tuple[Request, ...]) -> None:
        self.play(Expires(requests))

    @rule(closes=st.sampled_from((None, None, *CLIENTS)))
    def comes_and_goes(self, closes: str | None) -> None:
        away = self.model.away
        if closes is None or (away and closes == ROVER):
            self.play(Returns() if away else Leaves())
        else:
            self.play(Closes(closes))

    def teardown(self) -> None:
        self.real.end_play()


def play(step: Step, real: Real, model: Modelled) -> None:
    """Take a step on both stages: they must agree on what follows from it."""
    real.do(step)
    model.do(step)
    assert model.take() == real.take()
    assert model.take_logged() == real.take_logged()


def play_many(real: Real, plays: int, **more: object) -> None:
    Play.real, Play.played = real, 0
    run_state_machine_as_test(
        Play,
        settings=settings(
            max_examples=plays,
            stateful_step_count=10,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.generate, Phase.shrink),
            **more,  # type: ignore[arg-type]
        ),
    )


def test_the_model_agrees_with_a_real_server(real: Real) -> None:
    play_the_same(real, PLAYS // 4)


@pytest.mark.slow
def test_the_model_agrees_with_a_real_server_in_a_thousand_plays(real: Real) -> None:
    play_the_same(real, PLAYS)


def play_the_same(real: Real, plays: int) -> None:
    """The same plays each time: a difference in CI is one that was brought in."""
    play_many(real, plays, derandomize=True, database=None)
    assert Play.played >= plays


@pytest.mark.soak
def test_the_model_agrees_with_a_real_server_for_long(real: Real) -> None:
    play_many(real, 10 * PLAYS)
    assert Play.played >= 10 * PLAYS


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: path.stem)
def test_a_difference_found_before(real: Real, path: Path) -> None:
    _play_all(load_story(path), real, TIMEOUT_MS)


# ---- sessions that run out ----

SLEEPER_MS = 2000


@pytest.fixture(scope="module")
def short_lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    with _real(tmp_path_factory.mktemp("zookeeper"), SLEEPER_MS, tick_ms=100) as stage:
        yield stage


EPHEMERALS = tuple(
    Create(path, b"", CreateMode.EPHEMERAL) for path in ("/a/y", "/b/x", "/a/x/e", "/q", "/b/w")
)
SLEEPS: dict[str, tuple[Step, ...]] = {
    "ephemerals go in one transaction, and everyone's watches fire": (
        Asks(ROVER, EPHEMERALS),
        Asks("b", (*WATCHES, Exists("/q", True), Exists("/a/x/e", True))),
        Sleeps(()),
    ),
    "what came while it stood still is not read by one that wakes too late": (
        Asks(ROVER, (Create("/q", b"", CreateMode.EPHEMERAL), GetData("/a", True))),
        Asks(ROVER, (GetChildren("/a", True), Exists("/b/x", True))),
        Sleeps((SetData("/a", b"x"), Create("/a/s-", b"", CreateMode.PERSISTENT_SEQUENTIAL))),
        Asks(ROVER, (Create("/q", b""), Exists("/q", True))),
    ),
    "the watches of a session end with it": (
        Asks(ROVER, WATCHES),
        Sleeps(()),
        Asks("a", (SetData("/a", b"x"), Delete("/a/x/1"), Create("/b/x", None))),
    ),
}


@pytest.mark.parametrize("title", SLEEPS)
def test_sessions_that_run_out(short_lived: Real, title: str) -> None:
    _play_all((Asks("a", FIRST), *SLEEPS[title]), short_lived, SLEEPER_MS)


def test_a_server_that_restarts(tmp_path: Path) -> None:
    """Sessions, ephemerals, watches, counters and versions are as before. No session is short:
    on a busy machine it can take many seconds until all clients have found the server again."""
    story = (
        Asks("a", (*FIRST, Create("/b/s-", b"", CreateMode.PERSISTENT_SEQUENTIAL))),
        Asks("b", (*WATCHES, *EPHEMERALS)),
        Asks(ROVER, WATCHES),
        Restarts(),
        Asks(ROVER, (Create("/b/s-", b"", CreateMode.PERSISTENT_SEQUENTIAL), SetData("/a", b"1"))),
        Asks("a", (Delete("/b/x"), SetData("/a", b"2", 1), GetChildren("/a"), GetData("/a/x/e"))),
        Closes("b"),
    )
    with _real(tmp_path, TIMEOUT_MS) as stage:
        _play_all(story, stage, TIMEOUT_MS)


SPECIAL: tuple[Request, ...] = (
    *(
        make(path)
        for path in ("/", "/zookeeper", "/zookeeper/config")
        for make in (Exists, GetData)
    ),
    *(Delete(path, 5) for path in ("/", "/zookeeper", "/zookeeper/config", "/zookeeper/nothing")),
    *(Create(path, b"") for path in ("/", "/zookeeper", "/zookeeper/config/x", "/no/parent", "x")),
    *(SetData(path, b"", 99) for path in ("/zookeeper", "/zookeeper/config", "/zookeeper/nothing")),
    Multi((Check("/zookeeper", 0), Check("/", 0), Check("/", 7))),
)


def test_the_servers_own_znodes(real: Real) -> None:
    codes = []
    for stage in (real, Modelled(real.begin_play())):
        replies: list[Reply] = []
        for request in SPECIAL:
            stage.players["a"].session.submit(request, replies.append)
        stage.until(lambda replies=replies: len(replies) == len(SPECIAL))  # type: ignore[misc]
        codes.append([reply.code for reply in replies])
    assert codes[0] == codes[1]


def _play_all(story: tuple[Step, ...], real: Real, rovers_timeout_ms: int) -> None:
    model = Modelled(real.begin_play(), rovers_timeout_ms)
    try:
        for step in story:
            play(step, real, model)
    finally:
        real.end_play()
