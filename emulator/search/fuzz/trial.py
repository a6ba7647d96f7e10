"""One random world, played and judged in memory.

Owns what counts as a failure: an invariant that broke and is no known hazard of Kafka's, a cluster
that did not converge, a run without end, an exception. The play stops when the cluster has
converged; nothing is written.
"""

from __future__ import annotations

import hashlib
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import msgspec

from emulator.invariants.base import Monitor, Violation
from emulator.invariants.known.base import recognise
from emulator.runs.play import Run
from emulator.scenario.load import loads
from emulator.scenario.schema import Scenario
from emulator.scenario.version import Chosen
from emulator.search.fuzz.worlds import AS_USUAL, draw_world, healed_us
from emulator.trace.sink import Sink
from emulator.worlds.gc_tuning import rare_collections
from emulator.worlds.simulated import SimulatedWorld

EVENTS_MAX = 1_000_000
CPU_S_MAX = 120
"""On the processor: a machine that is busy with something else makes no run endless."""
SLICE_US = 1_000_000
ENDLESS = "a run without end"


class Endless(Exception):
    """A run that does not end: too many events, or too much computing."""


class Failure(msgspec.Struct, frozen=True):
    """One thing that went wrong; `hazard`: what Kafka itself gets wrong there (empty: the fault is
    ours)."""

    what: str
    text: str
    hazard: str = ""
    partition: str = ""
    broker: int = 0


class Trial(msgspec.Struct, frozen=True):
    """What came of one seed; times in microseconds of the world, `wall_ms` on the wall clock."""

    seed: int
    failures: tuple[Failure, ...]
    events: int
    virtual_us: int
    wall_ms: int
    digest: str = ""

    @property
    def ours(self) -> tuple[Failure, ...]:
        """Failures that no hazard of Kafka's explains."""
        return tuple(failure for failure in self.failures if not failure.hazard)


class Played(msgspec.Struct, frozen=True):
    """A trial with what was played (None: it could not be loaded) and all that happened."""

    trial: Trial
    scenario: Scenario | None
    events: list[Any]


Keep = Callable[[Played], None]


def try_seed(
    seed: int, chosen: Chosen = AS_USUAL, keep: Keep | None = None, *, digest: bool = False
) -> Trial:
    """Draw a world and play it; `keep` is given what was played."""
    return try_world(draw_world(seed, chosen), seed, keep, digest=digest)


def try_world(
    text: str,
    seed: int,
    keep: Keep | None = None,
    *,
    digest: bool = False,
    healed_at_us: int | None = None,
) -> Trial:
    """Play a world's scenario under a seed. `healed_at_us`: from when on it may end as soon as it
    has converged; of a world that was drawn, that is known."""
    began = time.monotonic()
    sink, monitor = Sink(), Monitor(liveness=True)
    sink.listen(monitor)
    sink.listen(_bound)
    failures: list[Failure] = []
    scenario: Scenario | None = None
    try:
        with alarm(), rare_collections():
            scenario = loads(text, "random", f"random-{seed:#x}.yaml")
            world = SimulatedWorld(scenario, seed, sink)
            try:
                _play(world, monitor, healed_us(text) if healed_at_us is None else healed_at_us)
            finally:
                world.close()
    except Exception as error:  # noqa: BLE001
        failures.append(_failed(error))
    else:
        failures += [_broken(violation, sink.events) for violation in monitor.lacking()]
    failures[:0] = [_broken(violation, sink.events) for violation in monitor.violations]
    trial = Trial(
        seed,
        tuple(failures),
        len(sink.events),
        sink.events[-1].t if sink.events else 0,
        int((time.monotonic() - began) * 1000),
        _digest(sink.events) if digest else "",
    )
    if keep is not None:
        keep(Played(trial, scenario, sink.events))
    return trial


def _play(world: SimulatedWorld, monitor: Monitor, healed_at_us: int) -> None:
    """From boot until the healed cluster has converged, or the time is over."""
    run = Run(world)
    run.bring_up()
    end_us = world.scenario.duration_us
    at_us = 0
    while at_us < end_us and not (at_us > healed_at_us and monitor.converged):
        at_us = min(at_us + SLICE_US, end_us)
        while not run.over and run.scenario.steps[run.stretch].at_us <= at_us:
            run.next_stimulus()
        run.run_to(at_us)


def _bound(event: Any) -> None:
    if event.seq >= EVENTS_MAX:
        raise Endless(f"more than {EVENTS_MAX:,} events")


@contextmanager
def alarm(cpu_s: float = CPU_S_MAX) -> Iterator[None]:
    """A loop that emits nothing is ended too."""

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise Endless(f"no end within {cpu_s} s of computing")

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, cpu_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _failed(error: Exception) -> Failure:
    """Where it was raised, and what it says."""
    inner: BaseException = getattr(error, "error", error)
    frames = traceback.extract_tb(inner.__traceback__)
    where = f"{frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}" if frames else "?"
    what = ENDLESS if isinstance(inner, Endless) else "an exception"
    return Failure(what, f"{type(inner).__name__} at {where}: {error}")


def _broken(violation: Violation, events: list[Any]) -> Failure:
    return Failure(
        violation.invariant,
        violation.text,
        recognise(violation, events),
        str(violation.partition or ""),
        violation.broker,
    )


def _digest(events: list[Any]) -> str:
    found = hashlib.sha256()
    for event in events:
        found.update(msgspec.json.encode(event))
    return found.hexdigest()
