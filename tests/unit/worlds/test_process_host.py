"""A host of a process of its own says what its process cannot: that it was paused, or killed."""

from __future__ import annotations

from typing import cast

import pytest

from emulator.kernel.scheduler import Kernel
from emulator.trace import events
from emulator.trace.sink import Sink
from emulator.worlds.processes.host import ProcessHost
from emulator.worlds.processes.local_brokers import LOOK_US
from emulator.worlds.processes.local_site import Deployment

SECOND_US = 1_000_000


class DoubledProcess:
    """A process, and the place that it is at."""

    look_us = LOOK_US

    def __init__(self) -> None:
        self.code: int | None = 0
        self.started = True
        self.stopped = False

    def process(self, broker: int) -> DoubledProcess:
        return self

    @property
    def runs(self) -> bool:
        return not self.is_dead and not self.stopped

    @property
    def is_dead(self) -> bool:
        return self.code is not None

    def exit_code(self, timeout_s: float) -> int | None:
        return self.code

    def launch(self, words: list[str]) -> None:
        self.code, self.stopped = None, False

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def join(self) -> None: ...

    def terminate(self) -> None:
        self.stopped = True

    def kill(self) -> None:
        self.code = -9


class Played:
    """A host on a kernel, and what it put on the trace."""

    def __init__(self) -> None:
        self.sink, self.process = Sink(), DoubledProcess()
        self.kernel = Kernel(self.sink)
        site = cast("Deployment", self.process)
        self.host = ProcessHost(1, site, self.kernel, "2.6", lambda *_: [])
        self.host.boot()
        self.later()

    def later(self) -> None:
        self.kernel.run(self.kernel.now + SECOND_US)

    @property
    def states(self) -> list[str]:
        changes = [e for e in self.sink.events if isinstance(e, events.ProcessStateChanged)]
        return [change.state for change in changes]

    @property
    def reasons(self) -> list[str]:
        return [e.reason for e in self.sink.events if isinstance(e, events.BrokerHalted)]


@pytest.fixture
def played() -> Played:
    return Played()


def test_a_broker_that_somebody_else_kills_is_dead_once(played: Played) -> None:
    played.process.code = -9
    played.later()
    played.later()
    assert (played.reasons, played.states) == (["SIGKILL from outside the run"], ["dead"])
    halted, dead = played.sink.events[-2:]
    assert halted.cause == -1
    assert dead.cause == halted.seq
    assert dead.t <= SECOND_US + 20_000


def test_one_that_is_paused_dies_too_and_does_not_run_on(played: Played) -> None:
    played.host.pause()
    played.process.code = -9
    played.later()
    played.host.resume()
    assert played.states == ["paused", "dead"]


def test_one_that_we_kill_is_dead_because_of_that(played: Played) -> None:
    played.kernel.emit(events.BrokerStarting, 1, "2.6")
    played.host.kill()
    played.later()
    assert (played.reasons, played.states) == ([], ["dead"])
    assert played.sink.events[-1].cause == played.sink.events[-2].seq


def test_one_that_ends_with_a_code_has_said_so_itself(played: Played) -> None:
    played.host.terminate()
    played.process.code = 0
    played.later()
    assert (played.reasons, played.states) == ([], [])


def test_sigterm_ends_one_that_has_no_handler_yet(played: Played) -> None:
    played.host.terminate()
    played.process.code = -15
    played.later()
    assert (played.reasons, played.states) == ([], ["dead"])


def test_the_next_process_starts_when_the_last_has_been_seen_dead(played: Played) -> None:
    played.process.code = -9
    played.host.when_dead(played.host.boot)
    assert played.states == ["dead"]
    played.process.code = -11
    played.later()
    assert played.states == ["dead", "dead"]
    assert played.reasons[-1] == "SIGSEGV from outside the run"
