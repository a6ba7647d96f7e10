"""Two traces each of the invariants that hazards break: what followers have and miss, who is
refused, who may join."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from emulator.trace import events as e
from emulator.trace.values import Lagging, LoggedOp
from tests.unit.invariants.history import ORDERS, REPLICAS, History


class Case(NamedTuple):
    """Two traces of one invariant."""

    invariant: str
    keeps: Callable[[], History]
    breaks: Callable[[], History]


def quiet() -> History:
    """Three brokers, a controller, one partition; everybody knows everything."""
    history = History().started(1, 2, 3).elected().created()
    return history.shown(0, 0, *REPLICAS)


def expelled_at(leo: int) -> History:
    """Follower 2 is taken out with this log end, where the leader's is 5."""
    history = quiet().appended(1, 0, 5)
    history.tell(e.FollowerStateUpdated, 1, ORDERS, 2, leo, 5, 0)
    return shrunk(history, leo)


def shrunk(history: History, leo: int) -> History:
    lagging = (Lagging(2, leo, 5000),)
    return history.tell(
        e.IsrUpdateStarted, 1, ORDERS, "shrink", REPLICAS, (1, 3), 5, 5, 0, 0, lagging
    )


def obeying(epoch: int) -> History:
    """2 owns /controller in epoch 2; broker 1 obeys 3's UpdateMetadata of this epoch."""
    history = quiet()
    ops = (LoggedOp("delete", "/controller"), LoggedOp("create", "/controller", '{"brokerid":2}'))
    history.tell(e.ZkTransaction, 2, 1, "multi", None, None, None, False, ops)
    history.tell(e.ControllerElected, 2, 2, 2)
    return history.tell(e.MetadataCacheUpdated, 1, 3, epoch, REPLICAS, ())


CASES = [
    Case("a member that has everything stays", lambda: expelled_at(4), lambda: expelled_at(5)),
    Case("the controller is not fenced", lambda: obeying(2), lambda: obeying(3)),
]
