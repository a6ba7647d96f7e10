"""`make fidelity`: plays every recording; writes docs/fidelity/*.csv, and the page from them.

The folders given hold `kafka-<version>/<recording>/`, and perhaps, of scripts that were recorded
several times, `repeats/kafka-<version>/<script>/<n>/`. Stories that were recorded on every version
line are in `tools/fidelity/recordings/kafka-<version>/<story>/`, random scripts, recorded by `isr
record --random`, in `tools/fidelity/recordings/random/kafka-<version>/<seed>/<n>/`.

First every recording is played under random seeds, until these match it. Where half of them do not,
the choices that an earlier search kept are played again; what these do not match is played under
the other half, and then searched for. All searches together end within `--minutes`: each gets an
equal share of the time that is left, at most `--budget`. The files are written again after each
recording, so that an interrupted measurement keeps what it has. Rows of recordings that are not
played now stay.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from emulator.conformance import player
from emulator.conformance.compare import Examined, Reference, Verdict
from emulator.conformance.distance import real_runs_too_far
from emulator.conformance.recording import Recording, read_recording
from emulator.conformance.repeatability import near
from emulator.search.guided.choices import BadChoices, inputs_of, read_choices, write_choices
from emulator.search.guided.guided import GuidedMatch, guided, judge_choices
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
    random_name,
    random_set,
    read_rows,
    recording_result,
    searched,
    verdict_of,
    write_rows,
)
from tools.fidelity.seeds import play_seeds

RECORDINGS = Path(__file__).with_name("recordings")
CHOICES = Path(__file__).with_name("choices")
"""Of the matches that searches found."""

NOT_TO_BE_MATCHED = ("shrink-storm",)
"""Recorded for its figures (the recordings' README): which of its partitions lost a race."""

FIRST_SEEDS = 5
"""So many are played at first; twice as many while these do not match, up to `--seeds`."""

LEAST_SEARCH_S = 5.0

FEWEST_RUNS = 3
"""A script that was recorded less often has no distances."""


@dataclass
class Case:
    """One recording, and what is known of it. `run`: one of several of a script. `is_repeat`: it is
    not matched, and only shows how much real runs differ. `of_set`: the set that `--sets` names.
    `before`: the row of an earlier measurement, whose seeds stay."""

    folder: Path
    kafka: str
    recording: str
    of_set: str
    run: str = ""
    is_repeat: bool = False
    before: RecordingResult | None = None
    examined: list[Examined] = field(default_factory=list)
    verdict: Verdict | None = None
    result: GuidedMatch | None = None

    @property
    def place(self) -> tuple[str, str, str]:
        return self.kafka, self.recording, self.run

    @property
    def label(self) -> str:
        return f"{self.recording}{f'/{self.run}' if self.run else ''}"

    @property
    def is_matched(self) -> bool:
        by_search = self.result is not None and self.result.is_confirmed
        return by_search or (self.verdict is not None and self.verdict.matched)

    @property
    def keeps_choices(self) -> bool:
        """Whether the choices of a match are kept, and played again by the next measurement."""
        return self.of_set not in ("kept-apart", "judged-before")

    @property
    def choices(self) -> Path:
        """Where the choices of a match are kept."""
        name = f"{self.recording}{f'-{self.run}' if self.run else ''}.json.gz"
        return CHOICES / self.of_set / f"kafka-{self.kafka}" / name

    def load(self) -> tuple[Reference, player.Script]:
        real = read_recording(self.folder)
        reference = Reference(replace(real, name=f"{self.kafka} {self.label}"))
        return reference, player.script_of(reference.real)

    def row(self) -> RecordingResult:
        if self.verdict is None:
            assert self.before is not None and self.result is not None
            return searched(self.before, self.result)
        return recording_result(*self.place, self.verdict, self.result)

    def delays(self) -> list[DelayRow]:
        """Empty if only a search is known, and it found no match."""
        verdict = verdict_of(self.verdict, self.result)
        return delay_rows(self.kafka, self.label, verdict.timings) if verdict else []


class Measurement:
    """What is measured of the recordings that share files: `name` is that of the files, which are
    renewed with each recording. `every`: all of these recordings, chosen or not; only rows of
    recordings that are gone are dropped."""

    def __init__(self, name: str, every: Iterable[Case], options: argparse.Namespace) -> None:
        self.name, self.options = name, options
        self.seeds = options.random_seeds if name == "random" else options.seeds
        every = list(every)
        known = {case.place for case in every if not case.is_repeat}
        rows = [(row.place, row) for row in read_rows(name, RecordingResult)]
        self._rows = {place: row for place, row in rows if place in known}
        chosen = [case for case in every if self._is_chosen(case)]
        self.cases = [case for case in chosen if not case.is_repeat]
        self._recorded_often = [case for case in chosen if case.run and not options.unmatched]
        self._distances = read_rows(f"{self._prefix}distances", DistanceRow)
        labels = {(case.kafka, case.label) for case in every}
        self._delays = [
            row
            for row in (read_rows("delays", DelayRow) if self._has_delays else [])
            if (row.kafka, row.recording) in labels
        ]

    def _is_chosen(self, case: Case) -> bool:
        options, row = self.options, self._rows.get(case.place)
        return (
            case.of_set in options.sets
            and (not options.only or case.recording in options.only)
            and (not options.versions or case.kafka in options.versions)
            and not (options.unmatched and row is not None and _is_up_to_date(row))
        )

    def play(self, say: Callable[[str], None]) -> None:
        """Random seeds for each recording, and the choices of an earlier match."""
        options = self.options
        for case in self.cases:
            row = self._rows.get(case.place)
            if options.unmatched and row is not None and row.latencies == latency.VERSION:
                case.before = row
                continue
            reference, script = case.load()
            until, has_replayed = min(FIRST_SEEDS, self.seeds), not case.keeps_choices
            while True:
                case.verdict = play_seeds(reference, script, case.examined, until, options.jobs)
                if case.verdict.matched:
                    break
                if 2 * until >= self.seeds and not has_replayed:
                    has_replayed = True
                    case.result = replay_choices(reference, script, case.choices, options.jobs)
                if case.is_matched or until >= self.seeds:
                    break
                until = min(2 * until, self.seeds)
            how = "not matched"
            if case.is_matched:
                how = "matched" if case.verdict.matched else "matched by kept choices"
            agree = f"{case.verdict.seeds_agreeing} of {case.verdict.seeds} agree"
            say(f"{case.kafka} {case.label}: {agree}, {how}")
            self.write(case)

    def measure_distances(self, say: Callable[[str], None]) -> None:
        """Of random seeds to all runs of a script that was recorded several times."""
        scripts: dict[tuple[str, str], list[Case]] = {}
        for case in self._recorded_often:
            scripts.setdefault((case.kafka, case.recording), []).append(case)
        for (kafka, recording), runs in scripts.items():
            if len(runs) < FEWEST_RUNS:
                continue
            reals = [read_recording(case.folder) for case in runs]
            seeds = max(1, self.seeds // len(runs))
            of_reals = [player.script_of(real) for real in reals]
            measured = near(reals, of_reals, seeds, self.options.jobs, lambda _: None)
            others = [r for r in self._distances if (r.kafka, r.script) != (kafka, recording)]
            rows = distance_rows(kafka, recording, measured, real_runs_too_far(reals))
            self._distances = [*others, *rows]
            say(f"{kafka} {recording}: p = {measured.distance.p:.3f}")
            write_rows(f"{self._prefix}distances", self._distances)

    def search(self, case: Case, seconds: float, say: Callable[[str], None]) -> None:
        reference, script = case.load()
        budget = Budget(seconds, self.options.jobs)

        def examine(_: object, played: Recording) -> Examined:
            return reference.examine(played)

        case.result = guided(reference, script, budget, examine, ignore_progress)
        row = case.row()
        if case.result.is_confirmed and case.keeps_choices:
            case.choices.parent.mkdir(parents=True, exist_ok=True)
            write_choices(case.result.choices, case.choices)
        how = "matched" if case.is_matched else f"not matched: {row.difference}"
        say(f"{case.kafka} {case.label}: searched for {row.search_s} s, {how}")
        self.write(case)

    def play_more(self, case: Case, until_s: float, say: Callable[[str], None]) -> None:
        """More seeds where a search found no match; none if it was only to be searched."""
        reference, script = case.load()
        while case.examined and not case.is_matched and time.monotonic() < until_s:
            most = max(self.seeds, self.options.most)
            if len(case.examined) >= most:
                break
            until = min(2 * len(case.examined), most)
            case.verdict = play_seeds(reference, script, case.examined, until, self.options.jobs)
            agree = f"{case.verdict.seeds_agreeing} of {case.verdict.seeds} agree"
            say(f"{case.kafka} {case.label}: {agree}")
            self.write(case)

    def write(self, case: Case) -> None:
        self._rows[case.place] = case.row()
        write_rows(self.name, [self._rows[place] for place in sorted(self._rows)])
        if self._has_delays and (delays := case.delays()):
            of_case = case.kafka, case.label
            others = [row for row in self._delays if (row.kafka, row.recording) != of_case]
            self._delays = [*others, *delays]
            self._delays.sort(key=lambda row: (row.kafka, row.recording))
            write_rows("delays", self._delays)

    def has(self, of_set: str) -> bool:
        return any(case.of_set == of_set for case in self.cases)

    @property
    def _has_delays(self) -> bool:
        """Delays are listed one by one for the recordings that were given."""
        return self.name == "recordings"

    @property
    def _prefix(self) -> str:
        return "" if self._has_delays else f"{self.name}-"


def _is_up_to_date(row: RecordingResult) -> bool:
    return row.is_matched and row.latencies == latency.VERSION


def replay_choices(
    reference: Reference, script: player.Script, file: Path, jobs: int
) -> GuidedMatch | None:
    """The match of kept choices; None: there are none for these latencies and this recording, or
    they match no more."""
    try:
        choices = read_choices(file)
    except BadChoices:
        return None
    bare = inputs_of(reference.real)
    if (choices.settings, list(choices.actions)) != (bare.settings, bare.events):
        return None  # of an earlier recording of this script

    def examine(_: object, played: Recording) -> Examined:
        return reference.examine(played)

    verdict, agreeing = judge_choices(reference, script, choices, examine, jobs)
    return GuidedMatch(True, choices, verdict, None, agreeing) if verdict.matched else None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.fidelity", description=__doc__)
    parser.add_argument(
        "recordings", type=Path, nargs="+", help="folders with kafka-<version>/<recording>/"
    )
    parser.add_argument("--versions", nargs="*", default=[], metavar="VERSION")
    parser.add_argument("--seeds", type=int, default=40, help="random seeds for each recording")
    parser.add_argument(
        "--random-seeds",
        type=int,
        default=16,
        help="the same for random scripts, which are two to four times as long",
    )
    parser.add_argument(
        "--most",
        type=int,
        default=0,
        help="seeds for a recording that neither these nor a search match",
    )
    parser.add_argument("--budget", type=float, default=120.0, metavar="SECONDS")
    parser.add_argument("--minutes", type=float, default=27.0, help="for everything together")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", nargs="*", default=[], help="recordings by name")
    parser.add_argument(
        "--unmatched",
        action="store_true",
        help="only searches, for what these latencies have not matched yet",
    )
    parser.add_argument(
        "--sets",
        nargs="*",
        default=["given", "versions", "random"],
        choices=["given", "versions", "random", "kept-apart", "judged-before"],
        help="kept-apart: random scripts that are judged when no rule changes any more;"
        " judged-before: those that have been",
    )
    options = parser.parse_args()
    until_s = time.monotonic() + options.minutes * 60
    files = {
        "recordings": chain.from_iterable(map(given_cases, options.recordings)),
        "versions": version_cases(),
        "random": random_cases(),
    }
    measurements = [Measurement(name, cases, options) for name, cases in files.items()]
    progress = Log(until_s)
    for measurement in measurements:
        measurement.play(progress.say)
        measurement.measure_distances(progress.say)
    pending = [(m, case) for m in measurements for case in m.cases if not case.is_matched]
    for number, (measurement, case) in enumerate(pending):
        share_s = (until_s - time.monotonic()) / (len(pending) - number)
        seconds = max(LEAST_SEARCH_S, min(options.budget, share_s))
        progress.say(f"search {number + 1} of {len(pending)}, {seconds:.0f} s")
        measurement.search(case, seconds, progress.say)
    for measurement, case in pending:
        measurement.play_more(case, until_s, progress.say)
    is_whole = not (options.only or options.versions or options.unmatched)
    for name in options.sets if is_whole else ():
        # The page says of a set when it was measured as a whole; each row has its own commit.
        if name != "versions":
            file = "measured" if name == "given" else f"{name}-measured"
            seeds = next(m.seeds for m in measurements if m.has(name))
            write_rows(file, [measured_now(options, seeds)])
    write_page()
    return 0


class Log:
    """What is done so far, on standard error, with the time that is left."""

    def __init__(self, until_s: float) -> None:
        self._until_s = until_s

    def say(self, text: str) -> None:
        left = max(0, round(self._until_s - time.monotonic()))
        print(f"{left // 60:2}:{left % 60:02} left  {text}", file=sys.stderr, flush=True)


def measured_now(options: argparse.Namespace, seeds: int) -> Measured:
    return Measured(
        commit=commit_here(),
        latencies=latency.VERSION,
        seeds=seeds,
        most_seeds=max(seeds, options.most),
        search_s=options.budget,
        jobs=options.jobs,
        load=round(os.getloadavg()[1], 1),
    )


def given_cases(recordings: Path) -> Iterator[Case]:
    for of_version in sorted(recordings.glob("kafka-*")):
        for folder in folders(of_version):
            if folder.name not in NOT_TO_BE_MATCHED:
                yield Case(folder, of_version.name.removeprefix("kafka-"), folder.name, "given")
    for of_version in sorted(recordings.glob("repeats/kafka-*")):
        for script in folders(of_version):
            for run in folders(script):
                kafka = of_version.name.removeprefix("kafka-")
                yield Case(run, kafka, script.name, "given", run.name)


def version_cases() -> Iterator[Case]:
    for of_version in sorted(RECORDINGS.glob("kafka-*")):
        for story in folders(of_version):
            yield Case(story, of_version.name.removeprefix("kafka-"), story.name, "versions")


def random_cases() -> Iterator[Case]:
    """Scripts that were recorded once have no `run`. Of the others the first run is matched."""
    for of_version in sorted(RECORDINGS.glob("random/kafka-*")):
        kafka = of_version.name.removeprefix("kafka-")
        for script in folders(of_version):
            of_set = random_set(int(script.name))
            name, runs = random_name(int(script.name)), folders(script)
            for number, run in enumerate(runs):
                of_several = run.name if len(runs) > 1 else ""
                yield Case(run, kafka, name, of_set, of_several, is_repeat=number > 0)


def folders(parent: Path) -> list[Path]:
    return sorted(path for path in parent.iterdir() if path.is_dir())


def ignore_progress(_: Progress) -> None:
    """A search reports to nobody here."""


if __name__ == "__main__":
    sys.exit(main())
