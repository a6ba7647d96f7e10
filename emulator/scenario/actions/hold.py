"""Holds: a thread, a message or a watch event stops at a place until it is released.

These actions express races: everything except the held thread or message continues.
"""

from __future__ import annotations

from emulator.kernel.holds import At, Place
from emulator.scenario.actions.base import Action, World

_WITH_A_PEER = ("request", "answer")


class _Hold(Action, frozen=True):
    """The place, with a scenario's field names."""

    broker: int
    at: At
    of: str = ""
    which: str = ""
    peer: int | None = None
    thread: str = ""

    @property
    def place(self) -> Place:
        """The same place with the kernel's names."""
        peer = "" if self.peer is None else f"broker-{self.peer}"
        process = f"broker-{self.broker}"
        return Place(process, self.broker, self.at, self.of, self.which, peer, self.thread)

    def wrong(self) -> str | None:
        if self.peer is not None and self.at not in _WITH_A_PEER:
            return f"a {self.at} has no peer"
        return None


class Hold(_Hold, frozen=True, tag="hold"):
    """The next thread or message of `broker` that reaches a place stops until it is released, and
    with it everything behind it on its thread or connection. `at: request` and `answer`: a message
    to `peer` (any, if empty) of the kind `of`. `zookeeper`: a thread about to send ZooKeeper an
    operation `of` on a znode whose path begins with `which`. `zookeeper_reply`: a thread that has
    the response. `watch`: the event thread at an event. `checkpoint`: a thread at a checkpoint `of`
    of the core, for `which`. Empty values match anything."""

    def apply(self, world: World) -> None:
        world.hold(self.place)

    def healed(self) -> Action:
        return Release(self.broker, self.at, self.of, self.which, self.peer, self.thread)

    def holds(self) -> tuple[object, ...]:
        return (self.name, self.place)


class Release(_Hold, frozen=True, tag="release"):
    """What was held with the same values continues. A hold that nothing has reached is
    cancelled."""

    def apply(self, world: World) -> None:
        world.release(self.place)
