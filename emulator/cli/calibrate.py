"""`isr calibrate`: fit the ranges of latencies to recordings made on this machine."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from emulator.cli.parts.errors import writing
from emulator.cli.parts.options import AsJson, interrupt_on_signals, print_json
from emulator.cli.parts.progress import ProgressLine
from emulator.cli.parts.recording_session import record_shown
from emulator.conformance import calibration as fitting
from emulator.conformance import player
from emulator.conformance.actions import CannotPlay
from emulator.conformance.calibration import PERCENTILES, Calibration, calibration_from
from emulator.conformance.delays import Delays
from emulator.conformance.recording import BadRecording, Recording, read_recording
from emulator.kafka.profiles.base import profile_of
from emulator.scenario.errors import UserError
from emulator.scenario.load import loads
from emulator.scenario.version import VersionOptions
from emulator.worlds.latency import TABLE, Table
from emulator.worlds.real_kafka.release import find_release
from zk.real.server import find_java

SCRIPT = Path(fitting.__file__).with_name("calibration-script.yaml")


def command(
    recordings: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RECORDING...", help="Recordings made on this machine; none: record a script."
        ),
    ] = None,
    kafka: Annotated[
        str | None,
        typer.Option(metavar="VERSION", help="Record on this version, such as 2.6.3."),
    ] = None,
    kafka_home: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Record on an unpacked release instead.")
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=1, metavar="N", help="Emulated runs of each recording's script.")
    ] = 20,
    jobs: Annotated[
        int, typer.Option(min=1, metavar="K", help="Parallel processes; default: one per core.")
    ] = os.cpu_count() or 1,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Write the calibration to this file.")
    ] = Path("calibration.json"),
    as_json: AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress line.")] = False,
) -> None:
    """Fit the emulator's ranges of latencies to this machine, for isr conform --calibration.

    The declared ranges were measured on one machine. This command records a script of 46 s on real
    Kafka, or reads recordings, and compares their delays with those of emulated runs of the same
    scripts. It prints which ranges it fitted, from how many delays, and which stay as declared.

    \b
      isr calibrate --kafka 2.6.3
      isr calibrate runs/brief-lag/* runs/leader-crash/* --out lab.json
      isr conform runs/latest --calibration calibration.json
    """
    folders = list(recordings or ())
    if folders and (kafka or kafka_home):
        raise UserError("give recordings, or a version to record (--kafka): one of them")
    with interrupt_on_signals():
        if not folders:
            folders = [_record(kafka, kafka_home, quiet=quiet, as_json=as_json)]
        reals = [_read(folder) for folder in folders]
        recorded = [fitting.measured(real) for real in reals]
        declared = _played(reals, seeds, jobs, None, quiet=quiet)
        calibration = calibration_from(folders, recorded, declared)
        fitted = _played(reals, seeds, jobs, calibration.table(), quiet=quiet)
    with writing(out):
        fitting.write_calibration(calibration, out)
    for line in _lines(calibration, fitted, out):
        typer.echo(line, err=as_json)
    if as_json:
        print_json(calibration)


def _record(kafka: str | None, home: Path | None, *, quiet: bool, as_json: bool) -> str:
    """The run directory of the recorded script."""
    find_java()
    release = find_release(kafka, home)
    chosen = VersionOptions(profile_of(release.version))
    loaded = loads(SCRIPT.read_text(encoding="utf-8"), "calibration", chosen=chosen)
    words = ["isr", "calibrate", *(["--kafka", kafka] if kafka else [])]
    words += ["--kafka-home", str(home)] if home else []
    played = record_shown(
        loaded,
        release,
        repeat=shlex.join(words),
        base=Path("runs"),
        as_json=as_json,
        quiet=quiet,
    )
    return str(played.directory)


def _read(folder: str) -> Recording:
    try:
        return read_recording(folder)
    except BadRecording as error:
        raise UserError(str(error)) from None


def _played(
    reals: Sequence[Recording], seeds: int, jobs: int, latencies: Table | None, *, quiet: bool
) -> list[Delays]:
    """The delays of `seeds` runs of each script."""
    out: list[Delays] = []
    with ProgressLine(total=seeds * len(reals), shown=not quiet) as line:
        for real in reals:
            try:
                script = player.script_of(real, latencies=latencies)
            except CannotPlay as error:
                raise UserError(f"{real.name}: {error}") from None
            numbers = range(1, seeds + 1)
            for _, delays in player.blind_plays(script, numbers, _delays, jobs):
                out.append(delays)
                line.update(f"{len(out)} of {seeds * len(reals)} played", len(out))
    return out


def _delays(_: int, run: Recording) -> Delays:
    return fitting.measured(run)


def _lines(calibration: Calibration, fitted: Sequence[Delays], out: Path) -> Iterator[str]:
    after = fitting.by_kind(fitted)
    head = f"delay, ms ({', '.join(f'p{percent}' for percent in PERCENTILES)})"
    yield f"{head:<38}{'seen':>5}{'recorded':>16}{'declared':>16}{'fitted':>16}"
    scaled = 0
    for fit in calibration.fits:
        now = fitting.percentiles(sorted(after[fit.delay])) if fit.factor is not None else ()
        columns = "".join(
            f"{', '.join(map(str, figures)) or '-':>16}"
            for figures in (fit.recorded_ms, fit.declared_ms, now)
        )
        yield f"{fit.delay:<38}{fit.observations:>5}{columns}"
        if fit.factor is not None:
            parts = fitting.PARTS[fit.delay]
            scaled += len(parts)
            yield f"  scaled by {fit.factor:g}: {', '.join(parts)}"
        else:
            yield f"  as declared: fewer than {fitting.ENOUGH} delays"
    yield f"{scaled} ranges fitted, {len(TABLE) - scaled} as declared; written to {out}"
