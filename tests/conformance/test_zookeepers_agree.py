"""The model of ZooKeeper and a real server must agree on every play: on each result, error code,
version, watch and its order, and on what the server logs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from tests.conformance.zookeeper_stages import (
    CLIENTS,
    ROVER,
    Asks,
    Closes,
    Leaves,
    Modelled,
    Real,
    Returns,
    Step,
    load_story,
)
from zk.errors import Code
from zk.ops import (
    Check,
    Create,
    CreateMode,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Multi,
    Request,
    SetData,
    Sync,
)
from zk.server import EmbeddedServer
from zk.tap import Taps

pytestmark = pytest.mark.live

PLAYS = 2000
REGRESSIONS = sorted((Path(__file__).parent / "regressions").glob("*.py"))


class Deaf:
    """An observer that does not listen."""

    def on_request(self, at_us: int, client: str, request: Request | str) -> None: ...
    def on_reply(self, client: str, request: Request | str, code: Code, us: int) -> None: ...


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    """A server whose sessions do not run out while a play is thought about."""
    folder = tmp_path_factory.mktemp("zookeeper")
    with (
        EmbeddedServer(folder, max_session_timeout_ms=60_000) as server,
        Taps(Deaf(), lambda: time.monotonic_ns() // 1000) as taps,
    ):
        stage = Real(server, taps)
        yield stage
        stage.close()


# ---- what is played ----

NAMES = ("/", "/a", "/b", "/a/x", "/a/y", "/b/x", "/a/x/1", "/s-0000000000", "/a/s-0000000001")
BAD_NAMES = ("/a/", "//a", "/a/./b", "/a/..", "/\x01", "/\uf8ff")
paths = st.sampled_from(NAMES) | st.sampled_from(NAMES + BAD_NAMES)
below = st.sampled_from(NAMES[1:]) | st.sampled_from(NAMES[1:] + BAD_NAMES)
new_paths = paths | st.sampled_from(("/s-", "/a/s-", "/b/"))
data = st.sampled_from((None, b"", b"1", b"22"))
versions = st.sampled_from((-1, -1, 0, 0, 1, 2, 3, -2))
modes = st.sampled_from(CreateMode)
ops = st.one_of(
    st.builds(Create, new_paths, data, modes),
    st.builds(SetData, paths, data, versions),
    st.builds(Delete, below, versions),
    st.builds(Check, paths, versions),
)
changes = st.one_of(
    st.builds(Create, new_paths, data, modes),
    st.builds(Create, new_paths, data, modes),
    st.builds(SetData, paths, data, versions),
    st.builds(Delete, below, versions),
    st.lists(ops, max_size=4).map(lambda parts: Multi(tuple(parts))),
)
reads = st.one_of(
    st.builds(Exists, paths, st.booleans()),
    st.builds(GetData, paths, st.booleans()),
    st.builds(GetChildren, paths, st.booleans()),
    st.builds(Sync, st.sampled_from(NAMES)),
)
bursts = st.lists(changes | reads, min_size=1, max_size=4).map(tuple)
clients = st.sampled_from(CLIENTS)


class Play(RuleBasedStateMachine):
    """One play, drawn step by step and played on both stages."""

    real: ClassVar[Real]
    played: ClassVar[int]

    def __init__(self) -> None:
        super().__init__()
        self.model = Modelled(self.real.begin_play())
        type(self).played += 1

    @rule(client=clients, requests=bursts)
    def asks(self, client: str, requests: tuple[Request, ...]) -> None:
        play(Asks(client, requests), self.real, self.model)

    @rule(client=clients, watches=st.lists(reads, min_size=2, max_size=5).map(tuple))
    def reads(self, client: str, watches: tuple[Request, ...]) -> None:
        play(Asks(client, watches), self.real, self.model)

    @precondition(lambda self: not self.model.away)
    @rule()
    def leaves(self) -> None:
        play(Leaves(), self.real, self.model)

    @precondition(lambda self: self.model.away)
    @rule()
    def returns(self) -> None:
        play(Returns(), self.real, self.model)

    @rule(client=clients)
    def closes(self, client: str) -> None:
        if not (self.model.away and client == ROVER):
            play(Closes(client), self.real, self.model)

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
            stateful_step_count=12,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.generate, Phase.shrink),
            **more,  # type: ignore[arg-type]
        ),
    )


def test_the_model_agrees_with_a_real_server(real: Real) -> None:
    """The same plays each time: a difference in CI is one that was brought in."""
    play_many(real, PLAYS, derandomize=True, database=None)
    assert Play.played >= PLAYS


@pytest.mark.soak
def test_the_model_agrees_with_a_real_server_for_long(real: Real) -> None:
    play_many(real, 20 * PLAYS)
    assert Play.played >= 20 * PLAYS


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: path.stem)
def test_a_difference_found_before(real: Real, path: Path) -> None:
    model = Modelled(real.begin_play())
    try:
        for step in load_story(path):
            play(step, real, model)
    finally:
        real.end_play()
