"""Work in forked children: its results come back, its errors too, and no child is left."""

import os
import select
import signal
from collections.abc import Iterator

import pytest

from emulator.runs.forks import Child, Failed, in_child, in_children


@pytest.fixture(autouse=True)
def _no_child_is_left() -> Iterator[None]:
    yield
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


class Unportable(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


def stand_still() -> None:
    """Waits until a signal ends it. `signal.pause` would miss one that arrives just before."""
    while True:
        select.select([], [], [], 0.05)


def test_a_child_computes_in_a_copy() -> None:
    seen: list[int] = []

    def work() -> list[int]:
        seen.append(1)
        return seen

    assert in_child(work) == [1]
    assert seen == []


@pytest.mark.parametrize("jobs", [1, 2, 9])
def test_every_item_has_its_result_whatever_the_jobs(jobs: int) -> None:
    squares = dict(in_children([3, 1, 2], lambda n: n * n, jobs))
    assert squares == {0: 9, 1: 1, 2: 4}


def test_a_result_may_be_larger_than_a_pipe() -> None:
    assert len(in_child(lambda: bytes(3_000_000))) == 3_000_000


def test_what_a_child_raises_is_raised_here() -> None:
    with pytest.raises(ValueError, match="no such thing"):
        in_child(lambda: _raise(ValueError("no such thing")))
    with pytest.raises(Failed, match="Unportable: 1 and 2"):
        in_child(lambda: _raise(Unportable(1, 2)))


def _raise(error: Exception) -> None:
    raise error


def test_a_child_that_dies_is_noticed() -> None:
    with pytest.raises(Failed, match="died"):
        in_child(lambda: os.kill(os.getpid(), signal.SIGKILL))


def test_who_stops_asking_leaves_no_child() -> None:
    results = in_children(range(5), lambda n: n or stand_still(), 3)
    assert next(results)[1] in (1, 2)
    results.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("nth", range(20))
def test_ending_a_child_ends_its_children(nth: int) -> None:
    """At any moment, even just after one of them was forked."""
    reads, writes = os.pipe()

    def grandchild() -> None:
        os.write(writes, b"%d" % os.getpid())
        stand_still()

    child = Child(lambda: in_child(lambda: in_child(grandchild)))
    os.close(writes)
    pid = int(os.read(reads, 20))
    os.kill(pid, 0)
    child.end()
    assert os.read(reads, 1) == b""  # The other end is closed everywhere.
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    os.close(reads)


def test_an_interrupt_from_the_terminal_is_for_the_first_parent() -> None:
    def work() -> str:
        os.kill(os.getpid(), signal.SIGINT)
        return "went on"

    assert in_child(work) == "went on"
