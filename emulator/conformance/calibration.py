"""Ranges of latencies fitted to the machine that recorded a real cluster.

The declared ranges (emulator.worlds.latency) come from one machine. A `Fit` compares delays of
recordings with those of emulated runs of the same scripts: of each kind of delay, how many times
as long the recorded median is. The ranges of the latencies that make up this kind are multiplied
by that. Tails are not fitted: one late step of a run shows in the delays of many partitions. A
kind with few observations, and every other latency, keeps the declared range; boots take the pace
of each recording anyway. The fit uses only durations, so it cannot teach the emulator an order of
events.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from emulator.conformance.delays import Delays, delays_of
from emulator.conformance.recording import Recording, partition_of
from emulator.trace.percentiles import nearest_rank
from emulator.trace.untrusted_json import decode_untrusted
from emulator.worlds import latency
from emulator.worlds.latency import TABLE, Purpose, Quantiles, Table

PERCENTILES = (5, 50, 95)
"""What is reported; the fit uses the median."""

ENOUGH = 20
"""With fewer recorded delays of a kind, a few late ones would decide the median."""

WAITS_FROM_MS = 1000
"""A longer delay includes the wait for a periodic task or a timeout, which is a rule and no
latency."""

RESOLUTION_MS = 1
"""Recordings have whole milliseconds: added to both sides, so that 0 and 1 ms hardly differ."""

MOST = 50.0
"""A fitted factor lies between this and its inverse."""

PARTS: Mapping[str, tuple[str, ...]] = {
    "decision to state write": ("zk_request", "zk_process"),
    "state write to metadata": (
        "net_request",
        "net_produce",
        "net_response",
        "net_delayed_response",
        "net_control_request",
        "net_control_response",
        "zk_reply",
        "controller_event",
        "notification_processed",
        "leaders_elected",
        "make_follower",
        "make_leader",
        "roles_taken",
        "roles_taken.late",
        "leaders_taken.late",
        "followers_taken.early",
        "followers_taken.late",
    ),
    "LeaderAndIsr to role in a new partition": (
        "create_log",
        "create_log.early",
        "create_log.first",
    ),
}
"""The latencies that make up each kind of delay."""


class BadCalibration(Exception):
    """A file without a calibration that can be used here."""


class Fit(msgspec.Struct, frozen=True):
    """One kind of delay: its percentiles in milliseconds, recorded and with the declared ranges,
    and the factor between the medians (None: too few observations, the ranges stay)."""

    delay: str
    observations: int
    recorded_ms: tuple[int, ...]
    declared_ms: tuple[int, ...]
    factor: float | None


class Calibration(msgspec.Struct, frozen=True):
    """What was fitted, and from what. `latencies`: the version of the declared ranges, which the
    factors multiply."""

    latencies: int
    recordings: tuple[str, ...]
    fits: tuple[Fit, ...]

    def table(self) -> Table:
        """All ranges, with the fitted ones scaled."""
        table = dict(TABLE)
        for fit in self.fits:
            if fit.factor is not None:
                for purpose in PARTS[fit.delay]:
                    table[purpose] = scaled(TABLE[purpose], fit.factor)
        return table


def calibration_from(
    recordings: Sequence[str], recorded: Iterable[Delays], played: Iterable[Delays]
) -> Calibration:
    """`recorded`: the delays of each recording; `played`: those of emulated runs of its script."""
    ours = by_kind(played)
    fits = []
    for kind, durations in by_kind(recorded).items():
        theirs, declared = sorted(durations), sorted(ours[kind])
        enough = len(theirs) >= ENOUGH <= len(declared)
        fits.append(
            Fit(
                kind,
                len(theirs),
                percentiles(theirs),
                percentiles(declared),
                factor_between(theirs, declared) if enough else None,
            )
        )
    return Calibration(latency.VERSION, tuple(recordings), tuple(fits))


def measured(recording: Recording) -> Delays:
    """The delays that the judge compares, and how long each broker took for its role in each new
    partition: since the request, or since its role in the partition before."""
    out = delays_of(recording, {})
    since: dict[int, int] = {}
    new: set[tuple[int, str]] = set()
    for fact in recording.of("leader_and_isr", "becomes_leader", "becomes_follower"):
        broker, place = fact["broker"], (fact["broker"], partition_of(fact))
        if fact["kind"] == "leader_and_isr":
            since[broker] = fact["t"]
            if fact.get("is_new"):
                new.add(place)
        elif broker in since:
            if place in new:
                new.remove(place)
                what = f"{place[1]} at broker {broker}: LeaderAndIsr to role in a new partition"
                out[what] = fact["t"] - since[broker]
            since[broker] = fact["t"]
    return out


def by_kind(runs: Iterable[Delays]) -> dict[str, list[int]]:
    """The delays of all these runs that include no long wait."""
    kinds: dict[str, list[int]] = {kind: [] for kind in PARTS}
    for delays in runs:
        for what, ms in delays.items():
            kind = next((kind for kind in PARTS if f": {kind}" in what), None)
            if kind and 0 <= ms < WAITS_FROM_MS:
                kinds[kind].append(ms)
    return kinds


def percentiles(ordered: Sequence[int]) -> tuple[int, ...]:
    return tuple(nearest_rank(ordered, percent) for percent in PERCENTILES) if ordered else ()


def factor_between(theirs: Sequence[int], declared: Sequence[int]) -> float:
    """How many times as long the median of theirs is."""
    above, below = (nearest_rank(one, 50) + RESOLUTION_MS for one in (theirs, declared))
    return round(min(max(above / below, 1 / MOST), MOST), 3)


def scaled(purpose: Purpose, factor: float) -> Purpose:
    def of(quantiles: Quantiles) -> Quantiles:
        return tuple((share, round(us * factor)) for share, us in quantiles)

    cold = ((uses, of(quantiles)) for uses, quantiles in purpose.cold)
    return Purpose(of(purpose.warm), *cold, paced=purpose.paced)


# -- the file --------------------------------------------------------------------------------------

_CALIBRATION = msgspec.json.Decoder(Calibration)


def write_calibration(calibration: Calibration, file: Path) -> None:
    file.write_bytes(msgspec.json.format(msgspec.json.encode(calibration), indent=1) + b"\n")


def read_calibration(file: Path) -> Calibration:
    try:
        calibration = decode_untrusted(file.read_bytes(), _CALIBRATION)
    except (OSError, msgspec.DecodeError) as error:
        raise BadCalibration(f"{file}: {error}") from None
    if calibration.latencies != latency.VERSION:
        raise BadCalibration(
            f"{file}: fitted to latencies of version {calibration.latencies};"
            f" those here are version {latency.VERSION}: run isr calibrate again"
        )
    for fit in calibration.fits:
        if fit.delay not in PARTS:
            raise BadCalibration(f"{file}: no such delay: {fit.delay} (there are {_known()})")
        if fit.factor is not None and not 1 / MOST <= fit.factor <= MOST:
            raise BadCalibration(f"{file}: {fit.delay}: the factor is not between 1/50 and 50")
    return calibration


def _known() -> str:
    return ", ".join(PARTS)
