"""`isr conform RECORDING…`: hold the emulator to recordings of real Kafka."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from emulator.cli.conform_report import verdict_lines
from emulator.cli.run import orderly_end
from emulator.conformance import player
from emulator.conformance.compare import Examined, Reference, Verdict, conclude
from emulator.conformance.recording import (
    BadRecording,
    Recording,
    read_recording,
    write_recording,
)
from emulator.conformance.stimuli import CannotPlay
from emulator.runtime.play import SIMULATED
from emulator.scenario.errors import UserError

MATCHED, NOT_MATCHED = 0, 1


@dataclass(frozen=True)
class Case:
    """One recording to be matched: the judge's side, the player's side, where runs are written."""

    reference: Reference
    script: player.Script
    into: Path | None

    def look(self, name: object, run: Recording) -> Examined:
        """Judge one run where it was played, and write it if asked to."""
        if self.into is not None:
            write_recording(run, self.into / str(name))
        return self.reference.examine(run)


def command(
    recordings: Annotated[
        list[str], typer.Argument(metavar="RECORDING...", help="Folders with a recording.jsonl.")
    ],
    seeds: Annotated[
        int, typer.Option(min=1, metavar="N", help="Blind plays of each; live: at most so many.")
    ] = 20,
    jobs: Annotated[
        int, typer.Option(min=1, metavar="K", help="Processes; default: one per core.")
    ] = os.cpu_count() or 1,
    zookeeper: Annotated[
        str,
        typer.Option(
            metavar="simulated|embedded", help="Virtual time, or live on a real server of our own."
        ),
    ] = SIMULATED,
    write: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write each emulated run to DIR/RECORDING/SEED."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object per recording and line.")
    ] = False,
) -> None:
    """Play what each recorded cluster was put through, and judge whether the runs match it.

    A recording is matched if one run agrees in points 1, 3 and 4, every part of the other points
    is equal in one of those that agree, and each recorded delay lies in the range that the runs
    span. Exit code 0: all matched; 1: one was not; 64: it cannot be played.
    """
    cases = list(_cases(recordings, write))
    missed = 0
    with orderly_end():
        for case in cases:
            verdict = _blind(case, seeds, jobs, zookeeper)
            missed += not verdict.matched
            _tell(verdict, as_json=as_json)
    raise typer.Exit(NOT_MATCHED if missed else MATCHED)


def _cases(folders: Sequence[str], write: Path | None) -> Iterator[Case]:
    names = [Path(folder).resolve().name for folder in folders]
    for folder, name in zip(folders, names, strict=True):
        with _users_mistakes(folder):
            real = read_recording(folder)
            script = player.script_of(real)
        if names.count(name) > 1:
            name = f"{Path(folder).resolve().parent.name}-{name}"
        yield Case(Reference(replace(real, name=folder)), script, write / name if write else None)


@contextmanager
def _users_mistakes(folder: str) -> Iterator[None]:
    try:
        yield
    except BadRecording as error:
        raise UserError(str(error)) from None
    except CannotPlay as error:
        text = str(error)
        raise UserError(text if text.startswith(folder) else f"{folder}: {text}") from None


def _blind(case: Case, seeds: int, jobs: int, zookeeper: str) -> Verdict:
    numbers = range(1, seeds + 1)
    if zookeeper != SIMULATED:
        return _live(case, numbers, zookeeper)
    examined: dict[int, Examined] = {}
    with _Progress(case.reference.real.name, seeds) as progress:
        for seed, seen in player.blind_plays(case.script, numbers, case.look, jobs):
            examined[seed] = seen
            progress(len(examined), sum(run.agrees for run in examined.values()))
    return conclude(case.reference, [examined[seed] for seed in numbers])


def _live(case: Case, seeds: Sequence[int], zookeeper: str) -> Verdict:
    """Up to so many plays one after the other; no more once the recording is matched."""
    examined: list[Examined] = []
    with _Progress(case.reference.real.name, len(seeds)) as progress:
        for _, seen in player.live_plays(case.script, seeds, case.look, zookeeper):
            examined.append(seen)
            verdict = conclude(case.reference, examined)
            progress(len(examined), verdict.seeds_agreeing)
            if verdict.matched:
                break
    return verdict


def _tell(verdict: Verdict, *, as_json: bool) -> None:
    if as_json:
        typer.echo(msgspec.json.encode(verdict.as_json()))
    for line in verdict_lines(verdict):
        typer.echo(line, err=as_json)


class _Progress:
    """How many plays are over: a line on standard error that is gone at the end."""

    def __init__(self, name: str, plays: int) -> None:
        self.name, self.plays = name, plays
        self._shown = sys.stderr.isatty()

    def __enter__(self) -> _Progress:
        return self

    def __call__(self, played: int, agreeing: int) -> None:
        if self._shown:
            text = f"{self.name}: {played} of {self.plays} played, {agreeing} agree"
            print(f"\r{text}\x1b[K", end="", file=sys.stderr, flush=True)

    def __exit__(self, *_: object) -> None:
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
