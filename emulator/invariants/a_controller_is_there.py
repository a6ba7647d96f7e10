"""One broker is controller, and knows it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from emulator.invariants.base import Invariant, Violation


class _Data(msgspec.Struct):
    brokerid: int = 0


class NoController(Violation, frozen=True):
    sentence = "there is no /controller"


class AnotherController(Violation, frozen=True):
    """`broker` is whom the znode names; `elected` 0: who was elected last has resigned."""

    elected: int

    sentence = "/controller names {broker}; the one elected last is {elected} (0: it resigned)"


class AControllerIsThere(Invariant):
    """The broker that /controller names is controller, and knows it (L5)."""

    liveness = True

    def lacking(self) -> Iterator[Violation]:
        caches, znode = self.facts.caches, self.facts.znodes.all.get("/controller")
        if znode is None:
            yield NoController(facts=(-1, caches.elected_seq))
            return
        named = msgspec.json.decode(znode.data, type=_Data).brokerid
        if named != caches.controller:
            facts = znode.seq, caches.elected_seq
            yield AnotherController(caches.controller, facts=facts, broker=named)
