"""Seeds for live plays: the nearest first, then those that have what the others lack."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from emulator.conformance.compare import Difference, Examined
from emulator.search.guided.preselection import are_enough, nearest_first

ALL = range(1, 8)


def run(*lacks: tuple[int, str]) -> Examined:
    """A run that differs in these keys of these points."""
    differences = {
        point: tuple(Difference(point, key, 0, (), (), ()) for at, key in lacks if at == point)
        for point in ALL
    }
    return Examined("run", differences, {})


def test_a_run_that_agrees_goes_before_one_that_lacks_less_but_does_not() -> None:
    runs = {1: run((1, "orders-0")), 2: run((6, "a"), (6, "b"))}
    assert nearest_first(runs, 1) == [2]


def test_the_next_one_has_what_the_first_one_lacks() -> None:
    runs = {1: run((6, "a")), 2: run((6, "a")), 3: run((6, "b"), (5, "c"))}
    assert nearest_first(runs, 2) == [1, 3]


def test_a_run_that_lacks_nothing_is_first_whatever_its_seed() -> None:
    assert nearest_first({1: run((6, "a")), 9: run()}, 2) == [9, 1]


keys = st.tuples(st.sampled_from([1, 2, 5, 6, 7]), st.sampled_from("abc"))


@given(st.dictionaries(st.integers(1, 40), st.sets(keys).map(lambda lacks: run(*lacks))))
def test_as_many_as_there_are_each_once(runs: dict[int, Examined]) -> None:
    chosen = nearest_first(runs, 5)
    assert len(set(chosen)) == len(chosen) == min(5, len(runs))
    assert set(chosen) <= runs.keys()
    if runs:
        assert runs[chosen[0]].distance == min(one.distance for one in runs.values())


def test_the_next_one_has_the_delays_that_the_first_one_has_not() -> None:
    runs = {1: run(), 2: run(), 3: run()}
    apart = {id(runs[1]): ["long"], id(runs[2]): ["long", "short"], id(runs[3]): ["short", "odd"]}
    assert nearest_first(runs, 2, lambda one: apart[id(one)]) == [1, 3]


def test_one_that_would_do_alone_is_enough_once_there_are_as_many_as_wanted() -> None:
    alone = run()
    runs = {1: run((6, "a")), 2: alone}
    assert are_enough(runs, 2, lambda one: ())
    assert not are_enough(runs, 3, lambda one: ())
    assert not are_enough(runs, 2, lambda one: ["late"] if one is alone else [])
    assert not are_enough({1: run((6, "a")), 2: run((5, "b"))}, 2, lambda one: ())
