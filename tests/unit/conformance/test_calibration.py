"""Ranges of latencies fitted to delays: a known factor is found, and few delays fit nothing."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.cli.calibrate import SCRIPT
from emulator.conformance import player
from emulator.conformance.calibration import (
    ENOUGH,
    PARTS,
    BadCalibration,
    Calibration,
    Fit,
    by_kind,
    calibration_from,
    measured,
    read_calibration,
    scaled,
    write_calibration,
)
from emulator.conformance.delays import Delays
from emulator.conformance.recording import Fact, Recording
from emulator.scenario.load import loads
from emulator.scenario.version import VersionOptions
from emulator.worlds import latency
from emulator.worlds.latency import TABLE, Purpose, Table

TO_METADATA = "state write to metadata"
DECIDED = "decision to state write"


def metadata(*durations_ms: int) -> Delays:
    return {f"orders-{n} v1: {TO_METADATA} of broker 1": ms for n, ms in enumerate(durations_ms)}


def fit_of(calibration: Calibration, kind: str) -> Fit:
    return next(fit for fit in calibration.fits if fit.delay == kind)


def test_every_part_of_a_delay_has_a_declared_range_and_is_part_of_one_delay_only() -> None:
    parts = [part for of_kind in PARTS.values() for part in of_kind]
    assert set(parts) <= set(TABLE)
    assert len(parts) == len(set(parts))


def test_delays_with_a_wait_in_them_are_left_out() -> None:
    assert by_kind([metadata(3, 2500, 999, -1, 1000)])[TO_METADATA] == [3, 999]


def test_three_times_as_long_is_a_factor_of_three() -> None:
    usual = [metadata(*range(10, 60))]
    slow = [metadata(*(3 * ms + 2 for ms in range(10, 60)))]  # 3 * (ms + 1) - 1
    calibration = calibration_from(["here"], slow, usual)
    assert fit_of(calibration, TO_METADATA).factor == 3
    table = calibration.table()
    assert table["net_request"].warm == tuple((p, 3 * us) for p, us in TABLE["net_request"].warm)
    assert table["roles_taken"].paced
    assert table["zk_request"] is TABLE["zk_request"]


def test_few_delays_fit_nothing() -> None:
    few = metadata(*[500] * (ENOUGH - 1))
    calibration = calibration_from(["here"], [few], [metadata(*range(50))])
    assert fit_of(calibration, TO_METADATA).observations == ENOUGH - 1
    assert all(fit.factor is None for fit in calibration.fits)
    assert calibration.table() == TABLE


@given(st.floats(0.02, 50))
def test_a_scaled_range_is_in_order_and_keeps_its_shares(factor: float) -> None:
    for purpose in TABLE.values():
        for before, after in zip(
            (purpose.warm, *(row for _, row in purpose.cold)),
            (scaled(purpose, factor).warm, *(row for _, row in scaled(purpose, factor).cold)),
            strict=True,
        ):
            assert [share for share, _ in after] == [share for share, _ in before]
            assert sorted(us for _, us in after) == [us for _, us in after]


def delays_with(latencies: Table | None, seeds: range) -> list[Delays]:
    """Of plays of the script that isr calibrate records, with latencies from these ranges."""
    scenario = loads(SCRIPT.read_text(), "calibration", chosen=VersionOptions("2.6"))
    settings = {"kind": "settings", "t": None, "kafka": "2.6.3", **scenario.settings}
    script = player.Script(settings, scenario, latencies=latencies)
    return [measured(player.simulate(script, seed)) for seed in seeds]


def slowest_us(row: Purpose) -> list[int]:
    """Warm, and in each cold stage. A row that only adds to first uses is 0 when warm."""
    return [quantiles[-1][1] for quantiles in (row.warm, *(cold for _, cold in row.cold))]


def test_a_recording_made_four_times_slower_gives_ranges_that_its_delays_fit() -> None:
    parts = PARTS[TO_METADATA]
    slower = {part: scaled(TABLE[part], 4) for part in parts}
    slow = delays_with(dict(TABLE) | slower, range(100, 109))
    usual = delays_with(None, range(9))
    calibration = calibration_from(["slow"], slow, usual)
    fit = fit_of(calibration, TO_METADATA)
    assert fit.factor is not None
    assert 3 < fit.factor < 5
    fitted = calibration.table()
    for part in parts:
        for was_us, is_us in zip(slowest_us(TABLE[part]), slowest_us(fitted[part]), strict=True):
            assert is_us > 2 * was_us or is_us == was_us == 0
    again = fit_of(calibration_from(["slow"], slow, delays_with(fitted, range(9))), TO_METADATA)
    assert again.factor is not None
    assert 0.8 < again.factor < 1.25


def test_the_file_is_read_as_it_was_written_and_refused_with_other_latencies(
    tmp_path: Path,
) -> None:
    file = tmp_path / "calibration.json"
    fits = (Fit(DECIDED, 30, (1, 2, 9), (1, 1, 3), 1.5),)
    calibration = Calibration(latency.VERSION, ("a",), fits)
    write_calibration(calibration, file)
    assert read_calibration(file) == calibration
    write_calibration(msgspec.structs.replace(calibration, latencies=1), file)
    with pytest.raises(BadCalibration, match=r"of version 1; .* run isr calibrate again"):
        read_calibration(file)


@pytest.mark.parametrize(
    ("fit", "complaint"),
    [
        (Fit("naps", 30, (), (), None), "no such delay: naps"),
        (Fit(DECIDED, 30, (), (), 0.0), "not between 1/50 and 50"),
    ],
)
def test_a_fit_that_cannot_be_used_is_refused(tmp_path: Path, fit: Fit, complaint: str) -> None:
    file = tmp_path / "calibration.json"
    write_calibration(Calibration(latency.VERSION, ("a",), (fit,)), file)
    with pytest.raises(BadCalibration, match=complaint):
        read_calibration(file)


def test_a_role_is_timed_from_the_request_or_from_the_partition_before() -> None:
    def of(t: int, kind: str, partition: int, **more: object) -> Fact:
        return {"t": t, "kind": kind, "broker": 1, "topic": "o", "partition": partition, **more}

    facts = [
        of(10, "leader_and_isr", 0, is_new=True),
        of(11, "leader_and_isr", 1, is_new=True),
        of(12, "leader_and_isr", 2, is_new=False),
        of(111, "becomes_leader", 0),
        of(150, "becomes_follower", 1),
        of(180, "becomes_follower", 2),
    ]
    durations = by_kind([measured(Recording({"kafka": "2.6.3"}, facts))])
    assert durations["LeaderAndIsr to role in a new partition"] == [100 - 1, 39]
