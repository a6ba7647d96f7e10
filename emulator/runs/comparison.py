"""Figures of the same scenario in two variants (versions, propagation paths, settings).

Owns what is measured in one run (`Measured`, small enough to pass between processes) and how the
runs of a variant are combined: percentiles are computed over all samples, counts are summed. All of
it is derived from the trace. It must not know how the variants differ or how the figures are shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from emulator.runs.session import Played
from emulator.runs.summary import Quantiles, quantiles
from emulator.scenario.load import LoadedScenario
from emulator.trace.state import TraceState
from emulator.trace.state.zookeeper_load import Load

CURVE_POINTS = 201
SAMPLES = ("effective_us", "controller_us", "metadata_us", "produce_us")


class Variant(msgspec.Struct, frozen=True):
    """One side of the comparison: its name, its scenario, its settings on the command line, and the
    command that plays one seed of it."""

    name: str
    scenario: LoadedScenario
    sets: tuple[str, ...] = ()
    repeat: Callable[[int], str] = str


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One run; samples in microseconds, in trace order."""

    seed: int
    effective_us: list[int]
    controller_us: list[int]
    metadata_us: list[int]
    produce_us: list[int]
    stale_us: int
    stale_us_max: int
    no_answer_us: int
    counts: dict[str, int]
    leader: Load
    controller: Load
    stuck: list[str]
    hazards: list[str]
    broken: list[str]
    late: bool = False
    kernel_late_us_max: int = 0


def measure(played: Played, state: TraceState) -> Measured:
    summary, propagation, load = played.summary, state.propagation, state.zookeeper_load
    return Measured(
        seed=summary.seed,
        effective_us=propagation.leader_us,
        controller_us=propagation.controller_us,
        metadata_us=propagation.metadata_us,
        produce_us=state.answers.took_us.tolist(),
        stale_us=state.staleness.sum_of_all_us,
        stale_us_max=state.staleness.longest_of_all_us,
        no_answer_us=state.answers.gap_us_max,
        counts=_counts(state),
        leader=load.leader,
        controller=load.controller,
        stuck=[str(partition) for partition in state.isr_updates.stuck(state.clock.now_us)],
        hazards=[one.hazard for one in played.broken if one.hazard],
        broken=[one.invariant for one in played.broken if not one.hazard],
        late=summary.kernel_was_late,
        kernel_late_us_max=round(summary.kernel_late_ms_max * 1000),
    )


def _counts(state: TraceState) -> dict[str, int]:
    counts, records = state.counts, state.records
    return {
        "isr_changes": counts.isr_changes,
        "isr_shrinks": counts.shrinks.total(),
        "isr_expands": counts.expands.total(),
        "rejected_updates": state.isr_updates.rejected,
        "cas_conflicts": counts.conflicts,
        "notifications": counts.notifications,
        "alter_isr_requests": counts.alter_isr_requests,
        "update_metadata_requests": counts.update_metadata_requests,
        "changes_never_shown": state.propagation.never_shown,
        "changes_not_yet_known": state.propagation.unknown_changes,
        "sessions_expired": len(state.sessions.expired),
        "controller_elections": counts.controller_elections,
        "leader_elections": counts.leader_elections,
        "acknowledged": records.acknowledged.total(),
        "refused": records.refused.total(),
        "lost": records.lost(),
    }


# -- figures ---------------------------------------------------------------------------------------


class Traffic(msgspec.Struct, frozen=True):
    """ZooKeeper requests caused by ISR changes, in total and per ISR change."""

    writes: int
    reads: int
    watches: int
    bytes: int
    per_change: dict[str, float | None]


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """One variant over all its seeds, as in `compare.json`. Times in milliseconds."""

    profile: str
    propagation: str
    settings: dict[str, str]
    runs: int
    effective_ms: Quantiles
    controller_ms: Quantiles
    metadata_ms: Quantiles
    produce_ms: Quantiles
    stale_metadata_ms: dict[str, float]
    no_acknowledgement_ms_max: float
    counts: dict[str, int]
    zookeeper: dict[str, Traffic]
    stuck_partitions: int
    stuck: dict[str, int]
    hazards: dict[str, int]
    broken_invariants: dict[str, int]
    runs_too_late: int
    kernel_late_ms_max: float
    run_directory: str | None = None


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `compare.json`. `seeds`: the number of seeds that both sides have played."""

    scenario: str
    first_seed: int
    seeds: int
    zookeeper: str
    time_scale: int
    paths: dict[str, Figures]
    broken_off: bool
    repeat: str


def figures(variant: Variant, runs: Sequence[Measured], directory: Path | None = None) -> Figures:
    counts: Counter[str] = Counter()
    for run in runs:
        counts.update(run.counts)
    changes = counts["isr_changes"]
    profile = variant.scenario.running()
    stuck = Counter(partition for run in runs for partition in run.stuck)
    return Figures(
        profile=profile.name,
        propagation=profile.propagation,
        settings=dict(variant.scenario.settings),
        runs=len(runs),
        **{f"{name[:-3]}_ms": quantiles(samples(runs, name)) for name in SAMPLES},
        stale_metadata_ms={
            "per_run": _ms(sum(run.stale_us for run in runs) // max(len(runs), 1)),
            "max": _ms(max((run.stale_us_max for run in runs), default=0)),
        },
        no_acknowledgement_ms_max=_ms(max((run.no_answer_us for run in runs), default=0)),
        counts={name: counts[name] for name in (runs[0].counts if runs else ())},
        zookeeper={
            "leader": _traffic((run.leader for run in runs), changes),
            "controller": _traffic((run.controller for run in runs), changes),
        },
        stuck_partitions=stuck.total(),
        stuck=dict(sorted(stuck.items())),
        hazards=_count(name for run in runs for name in run.hazards),
        broken_invariants=_count(name for run in runs for name in run.broken),
        runs_too_late=sum(run.late for run in runs),
        kernel_late_ms_max=_ms(max((run.kernel_late_us_max for run in runs), default=0)),
        run_directory=None if directory is None else str(directory),
    )


def samples(runs: Iterable[Measured], name: str) -> list[int]:
    """The samples of one kind (`SAMPLES`) of all runs."""
    return [us for run in runs for us in getattr(run, name)]


def curve(runs: Iterable[Measured], name: str) -> list[float]:
    """The sorted samples in milliseconds, reduced to at most `CURVE_POINTS`."""
    ordered = sorted(samples(runs, name))
    if len(ordered) > CURVE_POINTS:
        last = len(ordered) - 1
        ordered = [ordered[i * last // (CURVE_POINTS - 1)] for i in range(CURVE_POINTS)]
    return [_ms(us) for us in ordered]


def _count(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))


def _traffic(loads: Iterable[Load], changes: int) -> Traffic:
    sums = dict.fromkeys(Load.__struct_fields__, 0)
    for load in loads:
        for name in sums:
            sums[name] += getattr(load, name)
    each = {name: round(n / changes, 3) if changes else None for name, n in sums.items()}
    return Traffic(**sums, per_change=each)


def _ms(us: int) -> float:
    return us // 1000 if us % 1000 == 0 else us / 1000
