"""Something that is held at a place until it is released: a thread, a message, a watch event.

The verbs for writing a race: what is held stands, everything else goes on.
"""

from __future__ import annotations

from emulator.kernel.holds import At, Place
from emulator.scenario.actions.base import Action, World

_WITH_A_PEER = ("request", "answer")


class _Hold(Action, frozen=True):
    """The place, as a scenario has it."""

    broker: int
    at: At
    of: str = ""
    which: str = ""
    peer: int | None = None
    thread: str = ""

    @property
    def place(self) -> Place:
        """For a kernel, which knows processes."""
        peer = "" if self.peer is None else f"broker-{self.peer}"
        process = f"broker-{self.broker}"
        return Place(process, self.broker, self.at, self.of, self.which, peer, self.thread)

    def wrong(self) -> str | None:
        if self.peer is not None and self.at not in _WITH_A_PEER:
            return f"a {self.at} has no peer"
        return None


class Hold(_Hold, frozen=True, tag="hold"):
    """The next that comes to a place of `broker` stands until it is released, and with it what is
    behind it on its thread or connection. `at: request` and `answer`: a message to `peer` (any, if
    none is given) of the kind `of`; `zookeeper`: a thread that is about to ask ZooKeeper for an
    operation `of` on a znode whose path begins with `which`; `zookeeper_reply`: one that has the
    answer; `watch`: the event thread at an event; `checkpoint`: a thread at a place `of` the
    core's, with what it is about. Empty words are any."""

    def apply(self, world: World) -> None:
        world.hold(self.place)

    def healed(self) -> Action:
        return Release(self.broker, self.at, self.of, self.which, self.peer, self.thread)

    def holds(self) -> tuple[object, ...]:
        return (self.name, self.place)


class Release(_Hold, frozen=True, tag="release"):
    """What was held by the same words goes on; an order that nothing has come to is called off."""

    def apply(self, world: World) -> None:
        world.release(self.place)
