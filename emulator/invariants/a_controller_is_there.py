"""One broker is controller, and knows it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from emulator.invariants.base import Invariant, Violation


class _Data(msgspec.Struct):
    brokerid: int = 0


class AControllerIsThere(Invariant):
    """The broker that /controller names is controller, and knows it (L5)."""

    liveness = True

    def lacking(self) -> Iterator[Violation]:
        caches, znode = self.facts.caches, self.facts.znodes.all.get("/controller")
        if znode is None:
            yield self.violation("there is no /controller", -1, caches.elected_seq)
            return
        named = msgspec.json.decode(znode.data, type=_Data).brokerid
        if named != caches.controller:
            text = f"/controller names {named}; the one elected last is {caches.controller}"
            text += " (0: it resigned)"
            yield self.violation(text, znode.seq, caches.elected_seq, None, named)
