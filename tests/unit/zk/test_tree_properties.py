"""Properties that hold for any sequence of requests: versions, counters, all-or-none,
ephemerals."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from zk.errors import Code
from zk.model.tree import Tree
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
    Request,
    SetData,
)
from zk.paths import parent as parent_of

SESSIONS = (1, 2, 3)
PATHS = ["/a", "/b", "/a/x", "/a/y", "/a/x/1", "/b/z"]

paths = st.sampled_from(PATHS)
versions = st.sampled_from([-1, -1, 0, 1, 2])
data = st.sampled_from([None, b"", b"one"])
ops: st.SearchStrategy[Op] = st.one_of(
    st.builds(Create, paths, data, st.sampled_from(list(CreateMode))),
    st.builds(SetData, paths, data, versions),
    st.builds(Delete, paths, versions),
    st.builds(Check, paths, versions),
)
multis = st.builds(lambda parts: Multi(tuple(parts)), st.lists(ops, max_size=5))
reads = st.one_of(
    st.builds(Exists, paths, st.booleans()),
    st.builds(GetData, paths, st.booleans()),
    st.builds(GetChildren, paths, st.booleans()),
)
requests: st.SearchStrategy[Request] = st.one_of(
    ops.filter(lambda op: not isinstance(op, Check)),  # type: ignore[arg-type]
    multis,
    reads,
)
histories = st.lists(st.tuples(st.sampled_from(SESSIONS), requests), max_size=40)


def served(history: list[tuple[int, Request]]) -> Tree:
    tree = Tree()
    for session in SESSIONS:
        tree.create_session(session, 6000)
    for session, request in history:
        tree.apply(request, session, tree.zxid)
    return tree


def picture(tree: Tree) -> dict[str, object]:
    """Everything that a client can see of the znodes."""
    seen: dict[str, object] = {}
    for path in tree.paths():
        node = tree.node(path)
        assert node is not None
        seen[path] = (node.data, node.stat(), sorted(node.children))
    return seen


@given(histories)
def test_every_znode_hangs_below_its_parent_and_counts_its_children(
    history: list[tuple[int, Request]],
) -> None:
    tree = served(history)
    for path in tree.paths():
        node = tree.node(path)
        assert node is not None
        if path != "/":
            above = tree.node(parent_of(path))
            assert above is not None
            assert path.rpartition("/")[2] in above.children
            assert not above.ephemeral_owner
        for child in node.list_children():
            assert tree.node(f"{path.rstrip('/')}/{child}") is not None


@given(histories, st.sampled_from(SESSIONS))
def test_ephemerals_are_those_that_name_the_session_and_vanish_with_it(
    history: list[tuple[int, Request]], session: int
) -> None:
    tree = served(history)
    owned = [it for it in tree.paths() if (node := tree.node(it)) and node.ephemeral_owner]
    assert owned == sorted(path for paths in tree.ephemerals.values() for path in paths)
    before = set(tree.paths())
    mine = set(tree.ephemerals.get(session, ()))
    _, transaction, _ = tree.close_session(session)
    assert set(transaction.removed) == mine
    assert before - set(tree.paths()) == mine


@given(histories, multis, st.sampled_from(SESSIONS))
def test_a_multi_is_all_or_nothing(
    history: list[tuple[int, Request]], multi: Multi, session: int
) -> None:
    tree = served(history)
    before, expected = picture(tree), tree.copy()
    reply, logged, fired = tree.apply(multi, session, 7)
    assert logged is not None
    assert tree.zxid == expected.zxid + 1
    assert len(reply.results) == len(multi.ops) == len(logged.ops)
    if reply.code is not Code.OK:
        assert picture(tree) == before
        assert tree.ephemerals.keys() >= expected.ephemerals.keys()
        assert {s: set(p) for s, p in tree.ephemerals.items() if p} == {
            s: set(p) for s, p in expected.ephemerals.items() if p
        }
        assert fired == []
        return
    for op in multi.ops:
        if isinstance(op, Check):
            continue
        one_by_one, _, _ = expected.apply(op, session, 7)
        assert one_by_one.code is Code.OK
    assert expected.paths() == tree.paths()


@given(histories, ops, st.sampled_from(SESSIONS))
def test_a_single_write_and_a_multi_of_it_do_the_same(
    history: list[tuple[int, Request]], op: Op, session: int
) -> None:
    tree = served(history)
    twin = tree.copy()
    alone_code = Code.OK
    if not isinstance(op, Check):
        alone, _, fired = tree.apply(op, session, 9)
        together, _, fired_too = twin.apply(Multi((op,)), session, 9)
        alone_code = alone.code
        assert together.code is alone_code
        assert fired_too == fired
        assert picture(twin) == picture(tree)
        assert twin.zxid == tree.zxid


@given(histories)
def test_versions_and_counters_never_go_back_while_a_znode_lives(
    history: list[tuple[int, Request]],
) -> None:
    tree = served([])
    seen: dict[tuple[str, int], tuple[int, int]] = {}
    for session, request in history:
        before = tree.zxid
        reply, logged, _ = tree.apply(request, session, 0)
        assert tree.zxid - before == (logged is not None)
        assert reply.zxid == tree.zxid
        for path in tree.paths():
            node = tree.node(path)
            assert node is not None
            life = (path, node.czxid)
            now = (node.version, node.creations)
            assert all(a >= b for a, b in zip(now, seen.get(life, (0, 0)), strict=True))
            seen[life] = now


@given(histories)
def test_a_sequential_create_under_a_living_parent_never_repeats_a_name(
    history: list[tuple[int, Request]],
) -> None:
    tree = served([(1, Create("/p", b""))])
    names = []
    for session, request in history:
        tree.apply(request, session, 0)
        reply, _, _ = tree.apply(Create("/p/n_", None, CreateMode.PERSISTENT_SEQUENTIAL), 1, 0)
        names.append(reply.path)
        tree.apply(Delete(reply.path), 1, 0)
    assert names == [f"/p/n_{i:010d}" for i in range(len(history))]
