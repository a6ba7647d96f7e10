"""A run's figures: the progress line, `summary.json`, and Kafka's metrics.

Owns the figures' names (documented in `docs/summary.md`) and units. All of them come from
`trace.state`; nothing is counted here, and the world that made the trace is unknown.
"""

from __future__ import annotations

import msgspec

from emulator.runs.broken import Broken
from emulator.scenario.expectations.base import Finding, verdict
from emulator.scenario.schema import Expectation
from emulator.trace.percentiles import nearest_rank
from emulator.trace.state import TraceState

VERDICTS = {True: "held", False: "not held", None: "unknown"}
_PERHAPS_UNKNOWN = frozenset({"conflicts", "lost", "lost_acks_1"})
_SERVER = "kafka.server:type=ReplicaManager,name="
_FETCHERS = "kafka.server:type=ReplicaFetcherManager,clientId=Replica,name="
_CONTROLLER = "kafka.controller:type=KafkaController,name="


class Spread(msgspec.Struct, frozen=True):
    """Minimum, median and maximum of times in milliseconds; None if there are none."""

    min: float | None = None
    p50: float | None = None
    max: float | None = None


class Quantiles(msgspec.Struct, frozen=True):
    """Percentiles of times in milliseconds; None if there are none."""

    count: int
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    max: float | None = None


class Judged(msgspec.Struct, frozen=True):
    """An expectation, whether it was met (null: unknown), and the observed value."""

    text: str
    held: bool | None
    seen: str


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a run that are not in its trace."""

    scenario: str
    seed: int
    profile: str
    zookeeper: str
    time_scale: int
    settings: dict[str, str]
    run_directory: str
    virtual_us: int
    wall_ms: int
    kernel_late_us_max: int
    interrupted: bool
    kernel_was_late: bool
    violations: tuple[Broken, ...] = ()


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `summary.json`. Times in milliseconds. Figures that the trace does not contain
    (None) are left out of the JSON."""

    scenario: str
    seed: int
    profile: str
    zookeeper: str
    time_scale: int
    settings: dict[str, str]
    verdict: str
    interrupted: bool
    expectations: list[Judged]
    violations: tuple[Broken, ...]
    isr_changes: int
    isr_shrinks: int
    isr_expands: int
    failed_isr_updates: int
    conflicts: int | None
    notifications: int
    notifications_per_change: float | None
    propagation_ms: Spread
    propagation_samples: int
    never_shown: int
    not_yet_shown: int
    stale_metadata_ms_max: float
    under_min_isr_ms: float
    acknowledged: int
    refused: int
    refused_by_error: dict[str, int]
    lost: int | None
    lost_acks_1: int | None
    controller_elections: int
    leader_elections: int
    unclean_elections: int
    sessions_expired: int
    control_requests_refused: int
    truncations: int
    records_truncated: int
    malformed_znodes: int
    failed_threads: int
    metrics: dict[str, dict[str, float]]
    events: int
    virtual_ms: float
    wall_ms: int
    kernel_late_ms_max: float
    kernel_was_late: bool
    run_directory: str


def summarize(
    run: RunFacts, state: TraceState, findings: list[tuple[Expectation, Finding]]
) -> Summary:
    """All figures of a finished run."""
    counts, records, end_us = state.counts, state.records, state.clock.now_us
    changes, written_us = counts.isr_changes, state.propagation.written_us
    return Summary(
        scenario=run.scenario,
        seed=run.seed,
        profile=run.profile,
        zookeeper=run.zookeeper,
        time_scale=run.time_scale,
        settings=run.settings,
        verdict=VERDICTS[_verdict(run, findings)],
        interrupted=run.interrupted,
        # The expectations of an interrupted run are unknown, because it might have met them later.
        expectations=[
            Judged(expectation.text, None if run.interrupted else finding.held, finding.seen)
            for expectation, finding in findings
        ],
        violations=run.violations,
        isr_changes=changes,
        isr_shrinks=counts.shrinks.total(),
        isr_expands=counts.expands.total(),
        failed_isr_updates=counts.failed.total(),
        conflicts=None if counts.is_logged_only else counts.conflicts,
        notifications=counts.notifications,
        notifications_per_change=round(counts.notifications / changes, 4) if changes else None,
        propagation_ms=spread(written_us),
        propagation_samples=len(written_us),
        never_shown=state.propagation.never_shown,
        not_yet_shown=state.propagation.not_yet_shown,
        stale_metadata_ms_max=_ms(state.staleness.longest_of_all_us),
        under_min_isr_ms=_ms(state.gauges.under_min_isr_us(end_us)),
        acknowledged=records.acknowledged.total(),
        refused=records.refused.total(),
        refused_by_error={
            result: records.refusals(result=result)
            for result in sorted({result for _, result in records.refused})
        },
        lost=None if records.unseen else records.lost(),
        lost_acks_1=None if records.unseen else records.lost(acks="1"),
        controller_elections=counts.controller_elections,
        leader_elections=counts.leader_elections,
        unclean_elections=counts.unclean_elections,
        sessions_expired=len(state.sessions.expired),
        control_requests_refused=counts.control_requests_refused,
        truncations=state.logs.truncations,
        records_truncated=state.logs.truncated,
        malformed_znodes=counts.malformed_znodes,
        failed_threads=counts.failed_threads,
        metrics=kafka_metrics(state),
        events=counts.events,
        virtual_ms=_ms(run.virtual_us),
        wall_ms=run.wall_ms,
        kernel_late_ms_max=_ms(run.kernel_late_us_max),
        kernel_was_late=run.kernel_was_late,
        run_directory=run.run_directory,
    )


def _verdict(run: RunFacts, findings: list[tuple[Expectation, Finding]]) -> bool | None:
    """A violated invariant is a failure of the emulator, unless it is a known hazard of this
    version. Otherwise a run that was interrupted, or whose kernel was late, proves nothing.
    """
    if any(not one.hazard for one in run.violations):
        return False
    if run.interrupted or run.kernel_was_late:
        return None
    return verdict(finding.held for _, finding in findings)


def spread(times_us: list[int]) -> Spread:
    """The median of an even number of values is the lower one."""
    if not times_us:
        return Spread()
    ordered = sorted(times_us)
    return Spread(_ms(ordered[0]), _ms(nearest_rank(ordered, 50)), _ms(ordered[-1]))


def quantiles(times_us: list[int]) -> Quantiles:
    """Percentiles by nearest rank, without interpolation."""
    if not times_us:
        return Quantiles(0)
    ordered = sorted(times_us)
    at = (_ms(nearest_rank(ordered, percent)) for percent in (50, 95, 99, 100))
    return Quantiles(len(ordered), *at)


def kafka_metrics(state: TraceState) -> dict[str, dict[str, float]]:
    """Kafka's MBeans (spec §4.7), summed over the brokers: meters with Count and MeanRate (per
    second of the run), gauges with the Value at the end and, where it matters, the Max."""
    counts, times, end_us = state.counts, state.gauges, state.clock.now_us
    lags = state.fetches.lag.values()
    fetchers: dict[str, dict[str, float]] = {}
    if not state.records.unseen:
        max_lag: dict[str, float] = {"Value": max(lags, default=0), "Max": state.fetches.lag_max}
        fetchers[f"{_FETCHERS}MaxLag"] = max_lag
        min_rate = round(state.fetches.min_rate(end_us), 3)
        fetchers[f"{_FETCHERS}MinFetchRate"] = {"Value": min_rate}
    return {
        f"{_SERVER}IsrShrinksPerSec": _meter(counts.shrinks.total(), end_us),
        f"{_SERVER}IsrExpandsPerSec": _meter(counts.expands.total(), end_us),
        f"{_SERVER}FailedIsrUpdatesPerSec": _meter(counts.failed.total(), end_us),
        f"{_SERVER}PartitionCount": {
            "Value": sum(not p.deleted for p in state.partitions.all.values())
        },
        f"{_SERVER}UnderReplicatedPartitions": {
            "Value": times.under_replicated,
            "Max": times.under_replicated_max,
        },
        f"{_SERVER}UnderMinIsrPartitionCount": {
            "Value": times.under_min_isr,
            "Max": times.under_min_isr_max,
        },
        f"{_SERVER}AtMinIsrPartitionCount": {"Value": times.at_min_isr},
        **fetchers,
        f"{_CONTROLLER}OfflinePartitionsCount": {"Value": times.offline},
    }


def _meter(count: int, end_us: int) -> dict[str, float]:
    return {"Count": count, "MeanRate": round(count * 1_000_000 / end_us, 4) if end_us else 0.0}


def _ms(us: int) -> float:
    return us // 1000 if us % 1000 == 0 else us / 1000


class Progress(msgspec.Struct, frozen=True):
    """The figures of the progress line, defined as in the summary. Brokers in separate processes
    report nothing before the end; then only the time is known.
    """

    at_us: int
    under_replicated: int
    isr_changes: int
    notifications: int
    conflicts: int
    is_known: bool = True

    @classmethod
    def of(cls, state: TraceState, now_us: int = 0) -> Progress:
        """The current figures; `now_us` is the world's time."""
        if not state.clock.now_us:
            return cls(now_us, 0, 0, 0, 0, is_known=False)
        return cls(
            state.clock.since_up(state.clock.now_us),
            state.gauges.under_replicated,
            state.counts.isr_changes,
            state.counts.notifications,
            state.counts.conflicts,
        )


def as_json(summary: Summary) -> dict[str, object]:
    """Plain values, as `summary.json` has them."""
    plain: dict[str, object] = msgspec.to_builtins(summary)
    return {k: v for k, v in plain.items() if v is not None or k not in _PERHAPS_UNKNOWN}
