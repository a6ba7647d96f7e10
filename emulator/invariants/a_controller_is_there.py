"""A broker is the controller, and knows it."""

from __future__ import annotations

from collections.abc import Iterator

from emulator.invariants.base import Invariant, Violation


class NoController(Violation, frozen=True):
    sentence = "there is no /controller"


class AnotherController(Violation, frozen=True):
    """`broker` is the broker in the znode. `elected` 0: the last controller has resigned."""

    elected: int

    sentence = "/controller names {broker}; the one elected last is {elected} (0: it resigned)"


class AControllerIsThere(Invariant):
    """The broker that /controller names is the controller, and acts as such (L5)."""

    liveness = True

    def lacking(self) -> Iterator[Violation]:
        controller, znode = self.state.controller, self.state.znodes.all.get("/controller")
        if znode is None:
            yield NoController(facts=(-1, controller.seq))
            return
        named = self.state.znodes.controller or 0
        if named != controller.broker:
            facts = znode.seq, controller.seq
            yield AnotherController(controller.broker, facts=facts, broker=named)
