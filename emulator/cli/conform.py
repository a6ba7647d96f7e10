"""`isr conform RECORDING…`: compare the emulator with recordings of real Kafka."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from emulator.cli.parts.conform_report import (
    chosen_line,
    distance_lines,
    guided_lines,
    play_lines,
    verdict_lines,
)
from emulator.cli.parts.errors import writing
from emulator.cli.parts.options import (
    GuardOption,
    ProfileOption,
    PropagationOption,
    chosen_version,
    interrupt_on_signals,
    print_json,
    read_duration,
)
from emulator.cli.parts.progress import ProgressLine
from emulator.conformance import player
from emulator.conformance.actions import CannotPlay
from emulator.conformance.calibration import BadCalibration, read_calibration
from emulator.conformance.compare import Examined, Reference, Verdict, conclude
from emulator.conformance.recording import (
    BadRecording,
    Recording,
    read_recording,
    write_recording,
)
from emulator.conformance.repeatability import Near, near
from emulator.runs.play import SIMULATED
from emulator.runs.run_directory import find_run
from emulator.scenario.errors import UserError
from emulator.scenario.version import VersionOptions
from emulator.search.guided.choices import (
    BadChoices,
    Choices,
    read_choices,
    replay,
    script_from,
    write_choices,
)
from emulator.search.guided.guided import GuidedMatch, guided, judge_choices, names_of
from emulator.search.guided.preselection import AT_ONCE, PRESELECTED_MAX, are_enough, nearest_first
from emulator.search.guided.restarts import Budget, Progress
from emulator.worlds import latency
from emulator.worlds.latency import Table

MATCHED, NOT_MATCHED = 0, 1
EMBEDDED = "embedded"

Seeds = Annotated[
    int,
    typer.Option(
        min=1,
        metavar="N",
        help="Runs of each recording; live: at most this many, preselected in virtual time.",
    ),
]
Only = Annotated[
    str | None,
    typer.Option(metavar="SEED,...", help="Play only these seeds (see `agree:`)."),
]
Write = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Write each run to DIR/RECORDING/SEED.")
]


@dataclass(frozen=True)
class Case:
    """One recording to match: the judge's side, the player's side, and where runs are written."""

    name: str
    reference: Reference
    script: player.Script
    write: Path | None

    def look(self, name: object, run: Recording) -> Examined:
        """Judge one run in the process that played it, and write it if requested."""
        self.keep(name, run)
        return self.reference.examine(run)

    def keep(self, name: object, run: Recording) -> None:
        if self.write is not None:
            write_recording(run, self.write / self.name / str(name))


@dataclass(frozen=True)
class Options:
    """The options for playing and reporting."""

    seeds: int
    only: tuple[int, ...]
    """The seeds of blind plays, instead of the first `seeds`."""
    jobs: int
    zookeeper: str
    budget_s: float
    save: Path | None
    write: Path | None
    chosen: VersionOptions
    as_json: bool
    calibration: Path | None = None
    latencies: Table | None = None

    @property
    def calibrated(self) -> str:
        """What the runs' latencies were drawn from."""
        if self.calibration is None:
            return f"the declared latencies, version {latency.VERSION}"
        return str(self.calibration)

    def print_lines(self, lines: Iterator[str]) -> None:
        for line in lines:
            typer.echo(line, err=self.as_json)


def command(
    recordings: Annotated[
        list[str] | None,
        typer.Argument(metavar="RECORDING...", help="Directories with a recording.jsonl."),
    ] = None,
    seeds: Seeds = 20,
    only: Only = None,
    guide: Annotated[
        bool, typer.Option("--guided", help="Search for choices that make a run match.")
    ] = False,
    budget: Annotated[str, typer.Option(metavar="TIME", help="Time limit of --guided.")] = "120s",
    jobs: Annotated[
        int, typer.Option(min=1, metavar="K", help="Parallel processes; default: one per core.")
    ] = os.cpu_count() or 1,
    zookeeper: Annotated[
        str,
        typer.Option(
            metavar="simulated|embedded", help="Virtual time, or a real server started for the run."
        ),
    ] = SIMULATED,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="CHOICES", help="Write the choices of a match that --guided found to this file."
        ),
    ] = None,
    replayed: Annotated[
        Path | None,
        typer.Option(
            "--replay", metavar="CHOICES", help="Play the choices in this file; needs no recording."
        ),
    ] = None,
    distances: Annotated[
        bool,
        typer.Option(
            "--against",
            help="Compare emulated runs with several recordings of one scenario: are they as close"
            " to the recordings as the recordings are to each other?",
        ),
    ] = False,
    write: Write = None,
    calibration: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Play with ranges fitted by isr calibrate; default: the declared ranges.",
        ),
    ] = None,
    profile: ProfileOption = None,
    guard: GuardOption = None,
    propagation: PropagationOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per recording.")
    ] = False,
) -> None:
    """Replay the actions of recorded Kafka clusters, and check that the runs match the recordings.

    A recording is matched if some runs agree with its state history, controllers and control
    requests, these runs together cover every other criterion, and each recorded delay lies within
    the range of the runs.

    \b
      isr record brief-lag --kafka 2.6.3 --out recorded
      isr conform recorded/brief-lag/*

    Exit codes: 0 all matched; 1 one did not; 64 a recording cannot be played.
    """
    try:
        numbers = () if only is None else tuple(sorted({int(seed) for seed in only.split(",")}))
    except ValueError:
        raise UserError(f"--only {only}: seeds, as in 2,30,41") from None
    if zookeeper not in (SIMULATED, EMBEDDED):
        raise UserError(f"--zookeeper {zookeeper}: {SIMULATED} or {EMBEDDED}")
    options = Options(
        seeds,
        numbers,
        jobs,
        zookeeper,
        read_duration("--budget", budget) / 1_000_000,
        save,
        write,
        chosen_version(profile, guard, propagation),
        as_json,
        calibration,
        _latencies(calibration, has_choices=save is not None or replayed is not None),
    )
    folders = recordings or []
    # Reject contradictory options.
    simulated_only = {
        "--only": bool(numbers),
        "--guided": guide,
        "--replay": replayed is not None,
        "--against": distances,
    }
    modes = [option for option, is_set in simulated_only.items() if is_set]
    if len(modes) > 1:
        raise UserError(f"{' and '.join(modes)}: one of them")
    if modes and zookeeper != SIMULATED:
        raise UserError(f"{modes[0]} plays in virtual time: --zookeeper {SIMULATED}")
    if save is not None and (not guide or len(folders) != 1):
        raise UserError("--save keeps the choices of --guided for one recording")
    if replayed is not None and len(folders) > 1:
        raise UserError("--replay: at most one recording, to be held against the run")
    if distances and len(folders) < 2:
        raise UserError("--against: at least two recordings of one script")
    if not folders and replayed is None:
        raise UserError("a recording is missing: isr conform RECORDING...")
    with interrupt_on_signals():
        cases = list(_cases(folders, options))
        if replayed is not None:
            matched = _replay(replayed, cases, options)
        elif distances:
            matched = _compare_distances(cases, options)
        else:
            judge = _guided if guide else _blind if zookeeper == SIMULATED else _live
            matched = True
            for case in cases:
                verdict = judge(case, options)
                matched &= verdict.matched
                _report(verdict, options)
    raise typer.Exit(MATCHED if matched else NOT_MATCHED)


def _cases(folders: Sequence[str], options: Options) -> Iterator[Case]:
    names = [Path(folder).resolve().name for folder in folders]
    for folder, name in zip(folders, names, strict=True):
        with _user_errors(folder):
            real = _read_recording(folder)
            script = player.script_of(real, options.chosen, options.latencies)
        if names.count(name) > 1:
            name = f"{Path(folder).resolve().parent.name}-{name}"
        yield Case(name, Reference(replace(real, name=folder)), script, options.write)


def _read_recording(folder: str) -> Recording:
    """Raises a specific error for an emulated run. Raises BadRecording, UserError."""
    try:
        return read_recording(folder)
    except BadRecording as error:
        try:
            run = find_run(folder)
        except UserError:
            raise error from None
    raise UserError(
        f"{folder} is a run of the emulator ({run}), not a recording of real Kafka: `isr record`"
        f" makes one; `isr replay {folder}` plays a run again"
    )


def _latencies(calibration: Path | None, *, has_choices: bool) -> Table | None:
    if calibration is None:
        return None
    if has_choices:
        raise UserError("--calibration: choices (--save, --replay) are of the declared latencies")
    try:
        return read_calibration(calibration).table()
    except BadCalibration as error:
        raise UserError(f"--calibration {error}") from None


@contextmanager
def _user_errors(folder: str) -> Iterator[None]:
    try:
        yield
    except (BadRecording, BadChoices) as error:
        raise UserError(str(error)) from None
    except CannotPlay as error:
        text = str(error)
        raise UserError(text if text.startswith(folder) else f"{folder}: {text}") from None


def _report(verdict: Verdict, options: Options) -> None:
    if options.as_json:
        print_json({**verdict.as_json(), "calibration": options.calibrated})
    options.print_lines(verdict_lines(verdict))
    options.print_lines(iter([f"  calibration: {options.calibrated}"]))


# -- progress --------------------------------------------------------------------------------------


def _plays(name: str, played: int, number: int, agreeing: int | None = None) -> str:
    agree = "" if agreeing is None else f", {agreeing} agree"
    return f"{name}: {played} of {number} played{agree}"


# -- blind and live --------------------------------------------------------------------------------


def _blind(case: Case, options: Options) -> Verdict:
    seeds = options.only or range(1, options.seeds + 1)
    examined: dict[int, Examined] = {}
    with ProgressLine(total=len(seeds)) as line:
        for seed, seen in player.blind_plays(case.script, seeds, case.look, options.jobs):
            examined[seed] = seen
            agree = sum(run.agrees for run in examined.values())
            line.update(_plays(case.name, len(examined), len(seeds), agree), len(examined))
    return conclude(case.reference, [examined[seed] for seed in seeds])


def _live(case: Case, options: Options) -> Verdict:
    """Play at most `seeds` times, one after the other, until the recording is matched. Simulated
    plays select the seeds, because a live play takes as long as the recording did."""
    at_most = max(PRESELECTED_MAX, options.seeds)
    spread = case.reference.delay_gaps
    preselected: dict[int, Examined] = {}

    def examine(_: int, run: Recording) -> Examined:
        return case.reference.examine(run)

    name = f"{case.name}, preselection in virtual time"
    with ProgressLine(total=at_most) as line:
        while len(preselected) < at_most and not are_enough(preselected, options.seeds, spread):
            first = len(preselected) + 1
            numbers = range(first, min(first + AT_ONCE, at_most + 1))
            for seed, seen in player.blind_plays(case.script, numbers, examine, options.jobs):
                preselected[seed] = seen
                agree = sum(run.agrees for run in preselected.values())
                line.update(_plays(name, len(preselected), at_most, agree), len(preselected))
    seeds = nearest_first(preselected, options.seeds, spread)
    examined: list[Examined] = []
    with ProgressLine(total=len(seeds)) as line:
        for _, seen in player.live_plays(case.script, seeds, case.look, options.zookeeper):
            examined.append(seen)
            verdict = conclude(case.reference, examined)
            agree = verdict.seeds_agreeing
            line.update(_plays(case.name, len(examined), len(seeds), agree), len(examined))
            if verdict.matched:
                break
    options.print_lines(play_lines(examined, verdict))
    return verdict


# -- guided ----------------------------------------------------------------------------------------


def _guided(case: Case, options: Options) -> Verdict:
    budget = Budget(options.budget_s, options.jobs)
    with ProgressLine(total=options.budget_s) as line:

        def text(progress: Progress) -> str:
            reached = f"segment reached {progress.segment} of {progress.segments}"
            rate = f"{progress.total} candidates, {progress.draws_per_second:.0f} per second"
            agree = f", {progress.agreeing} agree, {progress.missing} parts missing"
            return (
                f"{case.name}: {progress.seconds:.0f} s, {progress.samples} samples,"
                f" {progress.searches} searches, {reached}, {rate}"
                f"{agree if progress.agreeing else ''}"
            )

        def on_progress(progress: Progress) -> None:
            line.update(lambda: text(progress), progress.seconds)

        result: GuidedMatch = guided(case.reference, case.script, budget, case.look, on_progress)
    options.print_lines(guided_lines(result))
    if options.save is not None and result.is_confirmed:
        with writing(options.save):
            write_choices(result.choices, options.save)
    elif options.save is not None:
        why = "its reruns do not confirm it" if result.is_match else "no match"
        options.print_lines(iter([f"  nothing is written to {options.save}: {why}"]))
    return result.verdict


def _replay(file: Path, cases: Sequence[Case], options: Options) -> bool:
    """Play choices and, if the recording is given, judge the run. True if it matches, or there is
    nothing to judge."""
    with _user_errors(str(file)):
        choices: Choices = read_choices(file)
        script = script_from(choices, options.chosen)
    for name, run in zip(names_of(choices), choices.runs, strict=True):
        played, _ = replay(script, run)
        if options.write is not None:
            write_recording(played, options.write / Path(choices.recording).name / name)
        options.print_lines(iter([chosen_line(choices, run, played)]))
    if not cases:
        return True
    case = cases[0]
    verdict, _ = judge_choices(case.reference, script, choices, case.look, options.jobs)
    _report(verdict, options)
    return verdict.matched


# -- distances -------------------------------------------------------------------------------------


def _compare_distances(cases: Sequence[Case], options: Options) -> bool:
    """Play each real run's actions equally often, `--seeds` times each."""
    reals = [case.reference.real for case in cases]
    scripts = [case.script for case in cases]

    def keep(script: int, seed: int, run: Recording) -> None:
        cases[script].keep(seed, run)

    number, name = options.seeds * len(cases), cases[0].name
    with ProgressLine(total=number) as line:

        def on_progress(played: int) -> None:
            line.update(_plays(name, played, number), played)

        result: Near = near(reals, scripts, options.seeds, options.jobs, on_progress, keep)
    if options.as_json:
        print_json(result.as_json())
    options.print_lines(distance_lines(result))
    return result.distance.near_enough
