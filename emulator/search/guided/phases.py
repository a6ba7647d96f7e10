"""Fits the phases of a broker's periodic tasks to a recording.

From a moment of each boot on, `isr-expiration` runs every half lag time and
`isr-change-propagation` every 2.5 s, so an isolated shrink or notification reveals that moment,
modulo the period. In the same way the expiry of a session reveals the phase of ZooKeeper's ticks.
Owns the fit, and the choice of seeds whose draws from the declared ranges are close to it. A plain
search would guess them very often, because their effects show only many segments later. A choice
is always a seed, so values outside the declared range are impossible.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from emulator.conformance.processes import processes_of
from emulator.conformance.recording import Recording
from emulator.conformance.znodes import NOTIFICATIONS
from emulator.kafka.profiles.base import Profile
from emulator.kernel.rng import Chance, Choice, Stream, mix
from emulator.runs.play import (
    TO_REGISTRATION,
    UP_AFTER_FIRST_REGISTRATION_US,
    latencies_to_registration,
)
from emulator.worlds.latency import TABLE, USUAL_BOOT_US, Latencies, pace_of

PROPAGATION_PERIOD_MS = 2500
_ALONE_MS = 1200
"""After a broker has been resumed for this long, its periodic tasks are on time again."""
_TOGETHER_MS = 400
"""Shrinks within this time may belong to one run of the task: only the first is on time."""
_LATE_MS = 25
"""An effect may be seen this much later than its run began (because of the run's own writes)."""
_EARLY_MS, _APART_MS = 5, 25
"""How much earlier and later than `isr-expiration` a boot's first propagation can be seen."""
_NEAR_US = 400
_TRIES = 20_000

_STOPS_WITHIN_MS = 6000

_TICK: Choice = (0, "zookeeper", "zk_tick")
_STARTUP = "boot.replica_manager_startup"
_PROPAGATION = "boot.propagation"


@dataclass(frozen=True)
class Phase:
    """Of one process: milliseconds from its registration (so usually negative) to the latest
    possible start of each task; None if unknown from the recording."""

    broker: int
    expiration_ms: int | None
    propagation_ms: int | None
    boot_us: int = USUAL_BOOT_US
    """From launch to registration, which shows the machine's speed."""
    launched_ms: int | None = None
    registered_ms: int = 0
    is_first: bool = True
    """Whether it is the broker's first process, which starts before the cluster is up."""
    to_registration: tuple[str, ...] = TO_REGISTRATION
    """The latencies between its replica manager and its registration."""


def boots_of(real: Recording, running: Callable[[int], Profile]) -> list[Phase]:
    """The processes of each broker, in order. Each is seen from its registration to its end.
    `running`: the profile that a broker is played with."""
    period_ms = int(real.settings.get("replica.lag.time.max.ms", 30000)) // 2
    registered = [process for process in processes_of(real) if process.is_registered]
    phases: list[Phase] = []
    for process in sorted(registered, key=lambda process: process.broker):
        broker, at, end = process.broker, process.registers_ms, process.ended_ms
        assert at is not None
        is_elected = process is registered[0]
        to_registration = latencies_to_registration(running(broker), is_elected=is_elected)[
            "replica_manager"
        ]
        boot_us = USUAL_BOOT_US if process.boot_ms is None else process.boot_ms * 1000
        shrunk = [
            fact["t"]
            for fact in real.of("shrink")
            if fact["broker"] == broker and at <= fact["t"] < end
        ]
        # Only the first of several close shrinks is on time.
        before = [at - _TOGETHER_MS, *shrunk]
        shrunk = [t for t, last in zip(shrunk, before, strict=False) if t - last >= _TOGETHER_MS]
        notified = [
            op.t
            for op in real.transactions
            if op.broker == broker
            and op.op == "create"
            and op.path.startswith(NOTIFICATIONS)
            and at <= op.t < end
        ]
        expiration_ms, propagation_ms = _begin_together(
            _begins(at, to_registration, boot_us, period_ms, _alone(real, broker, shrunk)),
            _begins(
                at,
                to_registration,
                boot_us,
                PROPAGATION_PERIOD_MS,
                _alone(real, broker, notified),
            ),
        )
        is_first = all(phase.broker != broker for phase in phases)
        phases.append(
            Phase(
                broker,
                expiration_ms,
                propagation_ms,
                boot_us,
                process.launched_ms,
                at,
                is_first,
                to_registration,
            )
        )
    return phases


def _alone(real: Recording, broker: int, times: Iterable[int]) -> list[int]:
    resumed = [
        fact["t"]
        for fact in real.of("stimulus")
        if fact["do"] == "resume" and fact.get("broker") == broker
    ]
    return [t for t in times if not any(at <= t < at + _ALONE_MS for at in resumed)]


def _begins(
    registered_ms: int,
    to_registration: Sequence[str],
    boot_us: int,
    period_ms: int,
    seen: list[int],
) -> dict[int, int]:
    """The possible starts of a task, each with the number of observations that agree with it: runs
    may be late, but never early."""
    ranges_us = [_range_us(purpose, boot_us) for purpose in to_registration]
    high, low = (-sum(ends_us) // 1000 for ends_us in zip(*ranges_us, strict=True))
    since = [(t - registered_ms - low) % period_ms + low for t in seen]
    starts = [ms for ms in since if ms <= high + 2 * _LATE_MS]
    return {ms: sum(ms <= other <= ms + _LATE_MS for other in starts) for ms in starts}


def _begin_together(
    expiration: dict[int, int], propagation: dict[int, int]
) -> tuple[int | None, int | None]:
    """The starts that most observations agree with. The second task is scheduled soon after the
    first. Where the two contradict each other one of them was late: the earlier one counts."""

    def best(starts: dict[int, int]) -> int | None:
        return max(starts, key=lambda ms: (starts[ms], -ms), default=None)

    if not expiration or not propagation:
        return best(expiration), best(propagation)
    pairs = [
        (expiration[e] + propagation[p], -e, -p)
        for e in expiration
        for p in propagation
        if -_EARLY_MS <= p - e <= _APART_MS
    ]
    if pairs:
        _, e, p = max(pairs)
        return -e, -p
    if min(expiration) < min(propagation):
        return min(expiration), None
    return None, min(propagation)


@dataclass(frozen=True)
class Phases:
    """All fitted phases of a recording."""

    boots: tuple[Phase, ...]
    tick_ms: int
    """The period of ZooKeeper's ticks."""
    ticked_ms: int | None
    """The time of a tick, in milliseconds of the emulated world; None: no session expired."""
    starts_ms: tuple[int, ...] = ()
    """When each segment after the first begins."""

    def segment_at(self, ms: float) -> int:
        return bisect_right(self.starts_ms, ms)


def phases_of(
    real: Recording, running: Callable[[int], Profile], starts_ms: Sequence[int] = ()
) -> Phases:
    """`running`: the profile that a broker is played with; `starts_ms`: when each segment after the
    first begins."""
    tick_ms = int(real.settings.get("zookeeper.tickTime", 2000))
    return Phases(tuple(boots_of(real, running)), tick_ms, _ticked(real, tick_ms), tuple(starts_ms))


def _ticked(real: Recording, tick_ms: int) -> int | None:
    """The earliest moment in a period at which most sessions expired."""
    actions = list(real.of("stimulus"))
    registered = [fact["t"] for fact in actions if fact["do"] == "registered"]
    stopped = [fact["t"] for fact in actions if fact["do"] == "terminate"]
    expired = [
        op.t
        for op in real.transactions
        if op.op == "closeSession"
        and op.t >= 0
        # A broker that was stopped shortly before has closed the session itself.
        and not any(t <= op.t < t + _STOPS_WITHIN_MS for t in stopped)
    ]
    if not registered or not expired:
        return None
    up_ms = UP_AFTER_FIRST_REGISTRATION_US // 1000 - min(registered)
    seen = [(up_ms + t) % tick_ms for t in expired]
    ticked: int = max(seen, key=lambda ms: sum((o - ms) % tick_ms <= _LATE_MS for o in seen))
    return ticked


def fitted(phases: Phases, seed: int, segments: range = range(1)) -> dict[Choice, int]:
    """Choices for the processes that start in these segments, one of many: `seed` draws how late
    each run was. A single event may be late by chance, and then its fit misleads. So of four seeds
    one fits nothing, one everything, and two each phase with even odds."""
    choices: dict[Choice, int] = {}
    for phase in phases.boots:
        start = _start_segment(phase, phases)
        late = Stream(mix(seed ^ phase.broker ^ (start << 32)))
        if start in segments and is_fitted(seed, late):
            choices |= _fitted_boot(phase, phases, start, late)
    late = Stream(mix(seed))
    if 0 in segments and phases.ticked_ms is not None and is_fitted(seed, late):
        tick_ms = phases.tick_ms
        phase_ms = (late.between(0, 4) - phases.ticked_ms) % tick_ms
        # A seed that draws nearly this phase (the ensemble adds it before it rounds).
        seeds = (late.bits() for _ in range(_TRIES))
        choices[_TICK] = next(s for s in seeds if abs(Stream(s).below(tick_ms) - phase_ms) <= 2)
    return choices


def is_fitted(seed: int, stream: Stream) -> bool:
    """Of four seeds one fits nothing, one everything, and two each thing with even odds."""
    return seed % 4 == 1 or (seed % 4 != 0 and stream.below(2) == 0)


def _start_segment(phase: Phase, phases: Phases) -> int:
    """The segment that a process's start begins, in which its boot is planned."""
    if phase.is_first or phase.launched_ms is None:
        return 0
    return phases.segment_at(phase.launched_ms)


def _fitted_boot(phase: Phase, phases: Phases, start: int, late: Stream) -> dict[Choice, int]:
    begins = [ms for ms in (phase.expiration_ms, phase.propagation_ms) if ms is not None]
    if not begins:
        return {}
    # The start of isr-expiration, as far as either task shows it.
    apart_us = TABLE[_PROPAGATION].warm[-1][1] if phase.expiration_ms is None else 4000
    begin_us = min(begins) * 1000 - late.between(0, apart_us)
    actor = f"broker-{phase.broker}"
    # The tasks are scheduled later than the boot is planned, perhaps after another action.
    runs = start if phase.is_first else phases.segment_at(phase.registered_ms + begin_us / 1000)
    startup, startup_us = _near(_STARTUP, phase, 1500, late)
    chosen = {(runs, actor, _STARTUP): startup}
    wide, *others = phase.to_registration
    took_us = 0
    for purpose in others:
        seed = chosen[start, actor, purpose] = late.bits()
        took_us += _drawn(purpose, phase, seed)
    chosen[start, actor, wide], us = _near(wide, phase, startup_us - begin_us - took_us, late)
    took_us += us
    if phase.propagation_ms is not None:
        apart_us = phase.propagation_ms * 1000 - late.between(0, 4000) + took_us - startup_us
        chosen[runs, actor, _PROPAGATION], _ = _near(_PROPAGATION, phase, apart_us, late)
    return chosen


def _near(purpose: str, phase: Phase, expected_us: int, seeds: Stream) -> tuple[int, int]:
    """(seed, its draw): of these seeds the one whose draw is closest to the expected value."""
    low, high = _range_us(purpose, phase.boot_us)
    expected_us = min(max(expected_us, low), high)
    return near(seeds, expected_us, lambda seed: _drawn(purpose, phase, seed), _NEAR_US)


def near(
    seeds: Stream, expected_us: int, drawn: Callable[[int], int], enough_us: int
) -> tuple[int, int]:
    """(seed, its draw): the first of these seeds whose draw is close enough to the expected value,
    or the closest of many."""
    best = (sys.maxsize, 0, 0)
    for _ in range(_TRIES):
        seed = seeds.bits()
        us = drawn(seed)
        best = min(best, (abs(us - expected_us), seed, us))
        if best[0] <= enough_us:
            break
    return best[1], best[2]


def _drawn(purpose: str, phase: Phase, seed: int) -> int:
    """The value that the declared table draws with this seed in the boot."""
    actor = f"broker-{phase.broker}"
    latencies = Latencies(Chance(0, {(0, actor, purpose): seed}), {purpose: TABLE[purpose]})
    latencies.set_boot_time(actor, phase.boot_us)
    return latencies(purpose, actor)


def _range_us(purpose: str, boot_us: int) -> tuple[int, int]:
    row = TABLE[purpose]
    low, high = row.warm[0][1], row.warm[-1][1]
    if not row.paced:
        return low, high
    pace = pace_of(boot_us)
    return low * pace // 1000, high * pace // 1000
