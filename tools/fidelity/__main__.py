"""`make fidelity`: plays every recording; writes docs/fidelity/*.csv, and the page from them.

The folder given holds `kafka-<version>/<recording>/`, and perhaps, of scripts that were recorded
several times, `repeats/kafka-<version>/<script>/<n>/`. Random scripts, recorded by `isr record
--random`, are in `tools/fidelity/recordings/random/kafka-<version>/<seed>/<n>/`. First every
recording is played under random seeds. Then those that are not matched, and each run of a script
that was recorded several times, are searched for. All searches together end within `--minutes`:
each gets an equal share of the time that is left, at most `--budget`. The files are written again
after each recording, so that an interrupted measurement keeps what it has.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from emulator.conformance import player
from emulator.conformance.compare import Examined, Reference, Verdict
from emulator.conformance.recording import read_recording
from emulator.conformance.repeatability import near
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
    is_kept_apart,
    random_name,
    read_rows,
    recording_result,
    verdict_of,
    write_rows,
)
from tools.fidelity.seeds import play_seeds

RANDOM = Path(__file__).with_name("recordings") / "random"

NOT_TO_BE_MATCHED = ("shrink-storm",)
"""Recorded for its figures (the recordings' README): which of its partitions lost a race."""

LEAST_SEARCH_S = 5.0


@dataclass
class Case:
    """One recording, and what is known of it. `run`: one of several of a script."""

    folder: Path
    kafka: str
    recording: str
    run: str = ""
    examined: list[Examined] = field(default_factory=list)
    verdict: Verdict | None = None
    result: GuidedMatch | None = None

    @property
    def label(self) -> str:
        return f"{self.recording}{f'/{self.run}' if self.run else ''}"

    @property
    def is_searched(self) -> bool:
        """One run of several of a script is one throw of the dice: always a search."""
        return bool(self.run) or (self.verdict is not None and not self.verdict.matched)

    def load(self) -> tuple[Reference, player.Script]:
        real = read_recording(self.folder)
        reference = Reference(replace(real, name=f"{self.kafka} {self.label}"))
        return reference, player.script_of(reference.real)

    def row(self) -> RecordingResult:
        assert self.verdict is not None
        return recording_result(self.kafka, self.recording, self.run, self.verdict, self.result)

    def delays(self) -> list[DelayRow]:
        assert self.verdict is not None
        timings = verdict_of(self.verdict, self.result).timings
        return delay_rows(self.kafka, self.label, timings)


class Measurement:
    """What is measured: `name` is that of its files, which are renewed with each recording. Rows of
    recordings that are not played now stay if `keeps`."""

    def __init__(
        self, name: str, cases: list[Case], options: argparse.Namespace, *, keeps: bool
    ) -> None:
        self.name, self.cases, self.options = name, cases, options
        self.distances: list[DistanceRow] = []
        earlier = [*read_rows(name, RecordingResult)] if keeps else []
        self._earlier = {(row.kafka, row.recording, row.run): row for row in earlier}
        self._earlier_distances = read_rows(f"{name}-distances", DistanceRow) if keeps else []

    def play(self, say: Callable[[str], None]) -> None:
        """Random seeds for each recording."""
        options = self.options
        for case in self.cases:
            reference, script = case.load()
            case.verdict = play_seeds(reference, script, case.examined, options.seeds, options.jobs)
            say(f"{case.kafka} {case.label}: {_agreement(case.verdict)}")
            self.write()

    def measure_distances(self, say: Callable[[str], None]) -> None:
        """Of random seeds to all runs of a script that was recorded several times."""
        scripts: dict[tuple[str, str], list[Case]] = {}
        for case in self.cases:
            if case.run:
                scripts.setdefault((case.kafka, case.recording), []).append(case)
        for (kafka, recording), runs in scripts.items():
            if len(runs) < 2:
                continue
            reals = [read_recording(case.folder) for case in runs]
            seeds = max(1, self.options.seeds // len(runs))
            of_reals = [player.script_of(real) for real in reals]
            measured = near(reals, of_reals, seeds, self.options.jobs, lambda _: None)
            self.distances += distance_rows(kafka, recording, measured)
            say(f"{kafka} {recording}: p = {measured.distance.p:.3f}")
            self.write()

    def search(self, case: Case, seconds: float, say: Callable[[str], None]) -> None:
        reference, script = case.load()
        case.result = guided(
            reference,
            script,
            Budget(seconds, self.options.jobs),
            lambda _, played: reference.examine(played),
            ignore_progress,
        )
        row = case.row()
        how = "matched" if case.result.is_match else f"not matched: {row.difference}"
        say(f"{case.kafka} {case.label}: searched for {row.search_s} s, {how}")
        self.write()

    def play_more(self, case: Case, until_s: float, say: Callable[[str], None]) -> None:
        """More seeds where a search found no match."""
        reference, script = case.load()
        while case.verdict and not case.verdict.matched and time.monotonic() < until_s:
            if len(case.examined) >= self.options.most:
                break
            until = min(2 * len(case.examined), self.options.most)
            case.verdict = play_seeds(reference, script, case.examined, until, self.options.jobs)
            say(f"{case.kafka} {case.label}: {_agreement(case.verdict)}")
            self.write()

    def write(self) -> None:
        done = [case for case in self.cases if case.verdict is not None]
        rows = {
            **self._earlier,
            **{(case.kafka, case.recording, case.run): case.row() for case in done},
        }
        write_rows(self.name, [rows[key] for key in sorted(rows)])
        known = {(row.kafka, row.script) for row in self.distances}
        earlier = [row for row in self._earlier_distances if (row.kafka, row.script) not in known]
        write_rows(self.distances_name, [*earlier, *self.distances])

    @property
    def distances_name(self) -> str:
        return "distances" if self.name == "recordings" else f"{self.name}-distances"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.fidelity", description=__doc__)
    parser.add_argument("recordings", type=Path, help="folder with kafka-<version>/<recording>/")
    parser.add_argument("--versions", nargs="*", default=["0.8.2.2", "1.0.2", "2.6.3", "2.7.2"])
    parser.add_argument("--seeds", type=int, default=20, help="random seeds for each recording")
    parser.add_argument(
        "--most", type=int, default=640, help="seeds for a recording that fewer do not match"
    )
    parser.add_argument("--budget", type=float, default=120.0, metavar="SECONDS")
    parser.add_argument("--minutes", type=float, default=25.0, help="for everything together")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", nargs="*", default=[], help="recordings by name")
    parser.add_argument(
        "--sets",
        nargs="*",
        default=["given", "random"],
        choices=["given", "random", "kept-apart"],
        help="kept-apart: random scripts that are judged when no rule changes any more",
    )
    options = parser.parse_args()
    until_s = time.monotonic() + options.minutes * 60
    measurements = [
        Measurement(name, cases, options, keeps=name == "random")
        for name, cases in (
            ("recordings", list(given_cases(options)) if "given" in options.sets else []),
            ("random", list(random_cases(options))),
        )
        if cases
    ]
    progress = Log(until_s)
    for measurement in measurements:
        measurement.play(progress.say)
        measurement.measure_distances(progress.say)
    pending = [(m, case) for m in measurements for case in m.cases if case.is_searched]
    for number, (measurement, case) in enumerate(pending):
        share_s = (until_s - time.monotonic()) / (len(pending) - number)
        seconds = max(LEAST_SEARCH_S, min(options.budget, share_s))
        progress.say(f"search {number + 1} of {len(pending)}, {seconds:.0f} s")
        measurement.search(case, seconds, progress.say)
    for measurement, case in pending:
        if not case.run and not (case.result and case.result.is_match):
            measurement.play_more(case, until_s, progress.say)
    for measurement in measurements:
        if measurement.name == "recordings":
            write_rows("measured", [measured_now(options)])
            write_rows("delays", [row for case in measurement.cases for row in case.delays()])
    for name in ("random", "kept-apart"):
        if name in options.sets:
            write_rows(f"{name}-measured", [measured_now(options)])
    write_page()
    return 0


class Log:
    """What is done so far, on standard error, with the time that is left."""

    def __init__(self, until_s: float) -> None:
        self._until_s = until_s

    def say(self, text: str) -> None:
        left = max(0, round(self._until_s - time.monotonic()))
        print(f"{left // 60:2}:{left % 60:02} left  {text}", file=sys.stderr, flush=True)


def measured_now(options: argparse.Namespace) -> Measured:
    return Measured(
        commit=commit_here(),
        latencies=latency.VERSION,
        seeds=options.seeds,
        most_seeds=options.most,
        search_s=options.budget,
        jobs=options.jobs,
        load=round(os.getloadavg()[1], 1),
    )


def given_cases(options: argparse.Namespace) -> Iterator[Case]:
    for kafka in options.versions:
        for folder in folders(options.recordings / f"kafka-{kafka}", options.only):
            if folder.name not in NOT_TO_BE_MATCHED:
                yield Case(folder, kafka, folder.name)
    for kafka in options.versions:
        for script in folders(options.recordings / "repeats" / f"kafka-{kafka}", options.only):
            for run in folders(script, []):
                yield Case(run, kafka, script.name, run.name)


def random_cases(options: argparse.Namespace) -> Iterator[Case]:
    """Scripts that were recorded once have no `run`."""
    for of_version in sorted(RANDOM.glob("kafka-*")):
        kafka = of_version.name.removeprefix("kafka-")
        for script in folders(of_version, []):
            of_set = "kept-apart" if is_kept_apart(int(script.name)) else "random"
            name = random_name(int(script.name))
            if of_set in options.sets and (not options.only or name in options.only):
                runs = folders(script, [])
                for run in runs:
                    yield Case(run, kafka, name, run.name if len(runs) > 1 else "")


def folders(parent: Path, only: list[str]) -> list[Path]:
    if not parent.exists():
        return []
    return sorted(p for p in parent.iterdir() if p.is_dir() and (not only or p.name in only))


def ignore_progress(_: Progress) -> None:
    """A search reports to nobody here."""


def _agreement(verdict: Verdict) -> str:
    how = "matched" if verdict.matched else "not matched"
    return f"{verdict.seeds_agreeing} of {verdict.seeds} agree, {how}"


if __name__ == "__main__":
    sys.exit(main())
