"""Ranges of latencies fitted to the machine that recorded a real cluster.

The declared ranges (emulator.worlds.latency) come from one machine. A `Fit` compares delays of
recordings with those of emulated runs of the same scripts: of each kind of delay, how much longer
or shorter the recorded ones are at three percentiles. The ranges of the latencies that make up this
kind are scaled accordingly. A kind with few observations, and every other latency, keeps the
declared range; boots take the pace of each recording anyway. The fit uses only durations, so it
cannot teach the emulator an order of events.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from emulator.conformance.delays import Delays
from emulator.trace.percentiles import nearest_rank
from emulator.trace.untrusted_json import decode_untrusted
from emulator.worlds import latency
from emulator.worlds.latency import TABLE, Purpose, Quantiles, Table

PERCENTILES = (5, 50, 95)

ENOUGH = 20
"""With fewer recorded delays of a kind, one late one would decide its 95th percentile."""

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
        "net_response",
        "zk_reply",
        "controller_event",
        "leaders_elected",
        "make_leader",
        "make_follower",
        "roles_taken",
        "roles_moved",
    ),
}
"""The latencies that make up each kind of delay."""


class BadCalibration(Exception):
    """A file without a calibration that can be used here."""


class Fit(msgspec.Struct, frozen=True):
    """One kind of delay: its percentiles in milliseconds, recorded and with the declared ranges,
    and the factors between them (empty: too few observations, the ranges stay)."""

    delay: str
    observations: int
    recorded_ms: tuple[int, ...]
    declared_ms: tuple[int, ...]
    factors: tuple[float, ...]

    @property
    def is_fitted(self) -> bool:
        return bool(self.factors)


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
            if fit.is_fitted:
                for purpose in PARTS[fit.delay]:
                    table[purpose] = scaled(TABLE[purpose], fit.factors)
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
                factors_between(theirs, declared) if enough else (),
            )
        )
    return Calibration(latency.VERSION, tuple(recordings), tuple(fits))


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


def factors_between(theirs: Sequence[int], declared: Sequence[int]) -> tuple[float, ...]:
    """How many times as long theirs are, at each percentile."""
    pairs = zip(percentiles(theirs), percentiles(declared), strict=True)
    ratios = ((a + RESOLUTION_MS) / (b + RESOLUTION_MS) for a, b in pairs)
    return tuple(round(min(max(ratio, 1 / MOST), MOST), 3) for ratio in ratios)


def scaled(purpose: Purpose, factors: Sequence[float]) -> Purpose:
    cold = ((uses, _scaled(quantiles, factors)) for uses, quantiles in purpose.cold)
    return Purpose(_scaled(purpose.warm, factors), *cold, paced=purpose.paced)


def _scaled(quantiles: Quantiles, factors: Sequence[float]) -> Quantiles:
    """Each quantile times the factor of its share. They stay in order where the factors fall."""
    out: list[tuple[float, int]] = []
    for share, us in quantiles:
        least = out[-1][1] if out else 0
        out.append((share, max(least, round(us * _factor_at(share * 100, factors)))))
    return tuple(out)


def _factor_at(percent: float, factors: Sequence[float]) -> float:
    """Between the fitted percentiles in proportion; outside them as at the nearest."""
    low, middle, high = PERCENTILES
    at_low, at_middle, at_high = factors
    if percent <= low:
        return at_low
    if percent <= middle:
        return at_low + (at_middle - at_low) * (percent - low) / (middle - low)
    if percent <= high:
        return at_middle + (at_high - at_middle) * (percent - middle) / (high - middle)
    return at_high


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
        if fit.factors and len(fit.factors) != len(PERCENTILES):
            raise BadCalibration(f"{file}: {fit.delay}: expected {len(PERCENTILES)} factors")
        if any(not 1 / MOST <= factor <= MOST for factor in fit.factors):
            raise BadCalibration(f"{file}: {fit.delay}: a factor is not between 1/50 and 50")
    return calibration


def _known() -> str:
    return ", ".join(PARTS)
