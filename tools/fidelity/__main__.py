"""`make fidelity`: plays every recording; writes docs/fidelity/*.csv, and the page from them.

The folder given holds `kafka-<version>/<recording>/`, and perhaps, of scripts that were recorded
several times, `repeats/kafka-<version>/<script>/<n>/`. The files are written again after each
recording, so that an interrupted measurement keeps what it has.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path

from emulator.conformance import player
from emulator.conformance.compare import Examined, Reference
from emulator.conformance.recording import read_recording
from emulator.conformance.repeatability import Near, near
from emulator.search.guided.guided import GuidedMatch, guided
from emulator.search.guided.restarts import Budget, Progress
from emulator.worlds import latency
from tools.fidelity.page import write_page
from tools.fidelity.results import (
    DelayRow,
    DistanceRow,
    Measured,
    RecordingResult,
    commit_here,
    delay_rows,
    distance_rows,
    recording_result,
    verdict_of,
    write_rows,
)
from tools.fidelity.seeds import play_seeds

NOT_TO_BE_MATCHED = ("shrink-storm",)
"""Recorded for its figures (the recordings' README): which of its partitions lost a race."""


class Measurement:
    """What is measured so far. Each recording is added whole, and written at once."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.commit = commit_here()
        self.recordings: list[RecordingResult] = []
        self.delays: list[DelayRow] = []
        self.distances: list[DistanceRow] = []

    def write(self) -> None:
        options = self.options
        measured = Measured(
            commit=self.commit,
            latencies=latency.VERSION,
            seeds=options.seeds,
            most_seeds=options.most,
            search_s=options.budget,
            jobs=options.jobs,
            load=round(os.getloadavg()[1], 1),
        )
        write_rows("measured", [measured])
        write_rows("recordings", self.recordings)
        write_rows("delays", self.delays)
        write_rows("distances", self.distances)
        write_page()

    def add(self, folder: Path, kafka: str, recording: str, run: str = "") -> None:
        """Play one recording under random seeds; search where these do not match it, and where a
        search fails as well try more seeds. One run of several of a script is one throw of the
        dice: few seeds, and always a search."""
        options = self.options
        name = f"{kafka} {recording}{f'/{run}' if run else ''}"
        reference = Reference(replace(read_recording(folder), name=name))
        script = player.script_of(reference.real)
        examined: list[Examined] = []
        verdict = play_seeds(reference, script, examined, options.seeds, options.jobs)
        result: GuidedMatch | None = None
        if run or not verdict.matched:
            result = guided(
                reference,
                script,
                Budget(options.budget, options.jobs),
                lambda _, played: reference.examine(played),
                ignore_progress,
            )
        while not (run or verdict.matched or (result and result.verdict.matched)):
            if len(examined) >= options.most:
                break
            until = min(2 * len(examined), options.most)
            verdict = play_seeds(reference, script, examined, until, options.jobs)
        row = recording_result(kafka, recording, run, verdict, result)
        print(
            f"{name}: {row.agreeing} of {row.seeds} agree, matched: {row.is_matched}",
            file=sys.stderr,
            flush=True,
        )
        self.recordings.append(row)
        timings = verdict_of(verdict, result).timings
        self.delays += delay_rows(kafka, f"{recording}{f'/{run}' if run else ''}", timings)
        self.write()

    def add_repeats(self, folder: Path, kafka: str, only: list[str]) -> None:
        for script in folders(folder / f"kafka-{kafka}", only):
            runs = folders(script, [])
            self.distances += distance_rows(kafka, script.name, self.distance(runs))
            for run in runs:
                self.add(run, kafka, script.name, run.name)

    def distance(self, runs: list[Path]) -> Near:
        """Of random seeds to all runs of one script."""
        recordings = [read_recording(run) for run in runs]
        scripts = [player.script_of(recording) for recording in recordings]
        seeds = max(1, self.options.seeds // len(runs))
        return near(recordings, scripts, seeds, self.options.jobs, lambda _: None)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.fidelity", description=__doc__)
    parser.add_argument("recordings", type=Path, help="folder with kafka-<version>/<recording>/")
    parser.add_argument("--versions", nargs="*", default=["0.8.2.2", "1.0.2", "2.6.3", "2.7.2"])
    parser.add_argument("--seeds", type=int, default=20, help="random seeds for each recording")
    parser.add_argument(
        "--most", type=int, default=1280, help="seeds for a recording that fewer do not match"
    )
    parser.add_argument("--budget", type=float, default=90.0, metavar="SECONDS")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", nargs="*", default=[], help="recordings by name")
    options = parser.parse_args()
    measurement = Measurement(options)
    for kafka in options.versions:
        for folder in folders(options.recordings / f"kafka-{kafka}", options.only):
            if folder.name not in NOT_TO_BE_MATCHED:
                measurement.add(folder, kafka, folder.name)
    for kafka in options.versions:
        measurement.add_repeats(options.recordings / "repeats", kafka, options.only)
    return 0


def folders(parent: Path, only: list[str]) -> list[Path]:
    if not parent.exists():
        return []
    return sorted(p for p in parent.iterdir() if p.is_dir() and (not only or p.name in only))


def ignore_progress(_: Progress) -> None:
    """A search reports to nobody here."""


if __name__ == "__main__":
    sys.exit(main())
