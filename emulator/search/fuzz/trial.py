"""One random world, played and judged in memory.

Owns what counts as a failure: a violated invariant that no known hazard explains, a cluster that
does not converge, an endless run, an exception. The play stops when the cluster has converged;
nothing is written.
"""

from __future__ import annotations

import signal
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import msgspec

from emulator.runs.broken import Broken
from emulator.runs.play import PlayOptions
from emulator.runs.session import Session
from emulator.scenario.load import loads
from emulator.scenario.schema import Scenario
from emulator.scenario.version import VersionOptions
from emulator.search.fuzz.worlds import AS_USUAL, draw_world, healed_us
from emulator.trace.difference import digest_of
from emulator.trace.events import AnyEvent
from emulator.worlds.gc_tuning import rare_collections

EVENTS_MAX = 1_000_000
CPU_S_MAX = 120
"""CPU time, so that a busy machine does not make a run count as endless."""
SLICE_US = 1_000_000
ENDLESS = "a run without end"
EXCEPTION = "an exception"


class Endless(Exception):
    """A run with too many events or too much computation."""


class Trial(msgspec.Struct, frozen=True):
    """The result of one seed; times in microseconds of the world, `wall_ms` on the wall clock.
    `failures`: violated invariants, finally ENDLESS or EXCEPTION. `chosen`: the version for which
    the world was drawn; `storage`: logs are in files."""

    seed: int
    failures: tuple[Broken, ...]
    events: int
    virtual_us: int
    wall_ms: int
    digest: str = ""
    chosen: VersionOptions = AS_USUAL
    storage: bool = False

    @property
    def ours(self) -> tuple[Broken, ...]:
        """Failures that no known hazard of Kafka explains."""
        return tuple(failure for failure in self.failures if not failure.hazard)


class PlayedTrial(msgspec.Struct, frozen=True):
    """A trial with its play (None: the world could not be loaded) and all events."""

    trial: Trial
    scenario: Scenario | None
    events: list[AnyEvent]


Keep = Callable[[PlayedTrial], None]


def try_seed(
    seed: int,
    chosen: VersionOptions = AS_USUAL,
    keep: Keep | None = None,
    *,
    digest: bool = False,
    storage: bool = False,
) -> Trial:
    """Draw a world and play it; `keep` is called with the play."""
    text = draw_world(seed, chosen, storage=storage)
    return try_world(text, seed, keep, digest=digest, chosen=chosen, storage=storage)


def try_world(
    text: str,
    seed: int,
    keep: Keep | None = None,
    *,
    digest: bool = False,
    healed_at_us: int | None = None,
    chosen: VersionOptions = AS_USUAL,
    storage: bool = False,
) -> Trial:
    """Play a world's scenario with a seed. It may end as soon as it has converged after
    `healed_at_us`, which is known for drawn worlds."""
    began = time.monotonic()
    session: Session | None = None
    scenario: Scenario | None = None
    failed: tuple[Broken, ...] = ()

    def end_when_too_many(event: AnyEvent) -> None:
        if event.seq >= EVENTS_MAX:
            raise Endless(f"more than {EVENTS_MAX:,} events")

    try:
        with alarm(), rare_collections():
            scenario = loads(text, "random", f"random-{seed:#x}.yaml")
            with Session(scenario, PlayOptions(seed=seed), liveness=True) as session:
                session.listeners.sink.listen(end_when_too_many)
                _play(session, healed_us(text) if healed_at_us is None else healed_at_us)
    except Exception as error:  # noqa: BLE001
        failed = (_failed(error),)
    events = session.events if session else []
    # After a failure the liveness at the end is unknown.
    broken = session.listeners.broken(at_end=not failed) if session else ()
    trial = Trial(
        seed,
        (*broken, *failed),
        len(events),
        events[-1].t if events else 0,
        int((time.monotonic() - began) * 1000),
        digest_of(events) if digest else "",
        chosen,
        storage,
    )
    if keep is not None:
        keep(PlayedTrial(trial, scenario, events))
    return trial


def _play(session: Session, healed_at_us: int) -> None:
    """Play from boot until the healed cluster has converged, or the time is over."""
    run, monitor = session.run, session.monitor
    run.bring_up()
    end_us = run.scenario.duration_us
    at_us = 0
    while at_us < end_us and not (at_us > healed_at_us and monitor.converged):
        at_us = min(at_us + SLICE_US, end_us)
        run.run_through(at_us)


@contextmanager
def alarm(cpu_s: float = CPU_S_MAX) -> Iterator[None]:
    """Also ends loops that emit no events."""

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise Endless(f"no end within {cpu_s} s of computing")

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, cpu_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _failed(error: Exception) -> Broken:
    """The place and the text of the exception."""
    inner: BaseException = getattr(error, "error", error)
    frames = traceback.extract_tb(inner.__traceback__)
    where = f"{frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}" if frames else "?"
    what = ENDLESS if isinstance(inner, Endless) else EXCEPTION
    return Broken(what, f"{type(inner).__name__} at {where}: {error}")
