"""Holds: a world stops a thread, a message or a watch event at a place.

A *hold* is requested for a place. The first arrival there is held until the release. What follows
it on the same thread or connection waits; everything else continues. Without a request, a place
costs nothing. This module does not depend on Kafka.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from emulator.kernel.places import At, Place
from emulator.kernel.scheduler import SUSPEND, Callback, HeldHere, Kernel, Runnable, Task
from emulator.trace import events
from zk.wire import labelled

__all__ = ["At", "Hold", "HoldPoint", "Holds", "Place"]


class Hold:
    """One requested hold. `reached`: something is or was held here. `lane`: the lane of the
    callbacks that wait behind it."""

    __slots__ = ("_behind", "_kernel", "_tasks", "lane", "place", "reached", "released")

    def __init__(self, kernel: Kernel, place: Place) -> None:
        self._kernel, self.place = kernel, place
        self.reached = self.released = False
        self._tasks: list[Task] = []
        self._behind: list[Callback] = []
        self.lane = kernel.world.lane("network")

    async def stand(self) -> None:
        """Block this thread until the release; it then resumes with its own cause."""
        task = self._kernel.this_task()
        task.waiting_for = f"held at {self.place.at} {self.place.of}".rstrip()
        self._tasks.append(task)
        while not self.released:
            await SUSPEND

    def behind(self, call: Callable[[], object]) -> None:
        """Hold something that is not a thread: `call` runs after the release, in order of arrival,
        with its present cause. The first call is the held item itself; when it runs, nothing waits
        here any more.
        """
        callback = self.lane.callback(call, self._kernel.cause)
        if self.released:
            self._kernel.make_ready(callback)
        else:
            self._behind.append(callback)

    def release(self) -> None:
        """Release everything that is held; a paused process gets it when it resumes."""
        self.released = True
        standing: list[Runnable] = [*self._tasks, *self._behind]
        # Tasks before callbacks: a held thread came before what queued up behind it.
        for item in standing:
            self._kernel.make_ready(item)
        self._tasks.clear()
        self._behind.clear()


class Holds:
    """All holds of one world."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._ordered: list[Hold] = []

    def order(self, place: Place) -> Hold:
        """Hold the next arrival at this place."""
        hold = Hold(self._kernel, place)
        self._ordered.append(hold)
        return hold

    def release(self, place: Place) -> int:
        """Release all holds requested for this place, reached or not, and return their number."""
        holds = [hold for hold in self._ordered if hold.place == place]
        for hold in holds:
            self._ordered.remove(hold)
            hold.release()
        return len(holds)

    def caught(
        self, process: str, at: At, of: str, which: tuple[str, ...] = ("",), *, peer: str = ""
    ) -> Hold | None:
        """The hold for an arrival at this place, if there is one; it counts as reached from now
        on."""
        current = self._kernel.current
        thread = current.thread if current is not None else ""
        for hold in self._ordered:
            place = hold.place
            # A hold stops one arrival: later ones pass.
            is_here = not hold.reached and place.at == at and place.process == process
            if is_here and place.fits(of, which, peer, thread):
                hold.reached = True
                kernel = self._kernel
                cause = kernel.cause
                name = next(n for n in which if n.startswith(place.which))
                kernel.emit(events.Parked, place.broker, place.at, of, name, place.peer)
                # The event must not become a cause: what resumes later keeps its present cause.
                kernel.cause = cause
                return hold
        return None


class HoldPoint:
    """One direction of a connection: a held message delays the messages behind it."""

    __slots__ = ("_at", "_hold", "_kernel", "_peer", "_process")

    def __init__(self, kernel: Kernel, at: At, process: str, peer: str) -> None:
        self._kernel, self._at, self._process, self._peer = kernel, at, process, peer
        self._hold: HeldHere | None = None

    def stops(self, of: str, pass_on: Callable[[], None]) -> bool:
        """Whether this message waits here; if so, `pass_on` is called when its turn comes. The
        message has already left its sender, so the sender's later death does not affect it."""
        # TCP keeps the order: every message behind a held one waits too.
        if self._hold is not None:
            self._hold.behind(pass_on)
            return True
        assert self._kernel.holds is not None
        self._hold = self._kernel.holds.caught(self._process, self._at, of, peer=self._peer)
        if self._hold is not None:
            self._hold.behind(partial(self._resume_held, pass_on))
        return self._hold is not None

    @labelled("goes_on")
    def _resume_held(self, pass_on: Callable[[], None]) -> None:
        self._hold = None
        pass_on()
