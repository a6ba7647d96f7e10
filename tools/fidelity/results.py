"""What `make fidelity` and `make fidelity-kafka` measured, as CSV files in docs/fidelity/.

Owns the rows. The page and its plots are made from these files and from nothing else.
"""

from __future__ import annotations

import csv
import subprocess
from collections.abc import Iterable, Mapping
from itertools import product
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from emulator.conformance.compare import Timing, Verdict
from emulator.conformance.criteria import CRITERIA
from emulator.conformance.distance import Medians
from emulator.conformance.repeatability import Near
from emulator.search.guided.guided import GuidedMatch
from emulator.worlds import latency

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "fidelity"


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """When and how: one row. `load`: of the machine at the end, None if unknown; `latencies`: their
    version."""

    commit: str
    latencies: int
    seeds: int
    most_seeds: int
    search_s: float
    jobs: int
    load: float | None = None


class RecordingResult(msgspec.Struct, frozen=True, kw_only=True):
    """One recording, or one (`run`) of several recordings of a script. `agreeing`: of `seeds`
    random seeds, those that agree in state history, controllers and control requests. A search
    tried `candidates` (none: kept choices were played again); its match is a set of `runs`.
    `difference`: what keeps it from a match. `commit`: of the emulator, with its `latencies`."""

    kafka: str
    recording: str
    run: str = ""
    commit: str
    latencies: int
    seeds: int
    agreeing: int
    by_seeds: bool
    by_search: bool = False
    candidates: int | None = None
    search_s: int | None = None
    runs: int | None = None
    difference: str = ""

    @property
    def is_matched(self) -> bool:
        return self.by_seeds or self.by_search

    @property
    def place(self) -> tuple[str, str, str]:
        """Its key among the rows."""
        return self.kafka, self.recording, self.run


class ShippedResult(msgspec.Struct, frozen=True, kw_only=True):
    """A shipped scenario, recorded on real Kafka. `equal`: seeds equal in each criterion, in their
    order; `live_equal`: criteria in which a live play is equal. `skew_ms`: what `isr import` made
    of a clock that is 1,700 ms ahead, with and without ZooKeeper's log; `skew_same`, whether the
    ISR history was the transaction log's. `load`: of the machine when it was recorded."""

    kafka: str
    scenario: str
    seeds: int
    agreeing: int
    equal: str = ""
    is_matched: bool
    recordings: int
    recordings_matched: int
    live_plays: int = 0
    live_equal: str = ""
    skew_ms: int
    skew_same: bool
    skew_without_ms: int
    skew_without_same: bool
    load: int | None = None
    difference: str = ""


class NotRecorded(msgspec.Struct, frozen=True, kw_only=True):
    """A shipped scenario without a recording. `why`: what a real cluster cannot be given (empty:
    it was not recorded yet)."""

    kafka: str
    scenario: str
    why: str = ""


class Mix(NamedTuple):
    """Which roles real Kafka plays."""

    controller: bool
    leader: bool
    follower: bool

    def __str__(self) -> str:
        return "".join("R" if is_real else "O" for is_real in self)


MIXES = [Mix(*kinds) for kinds in product((True, False), repeat=3)]


class MixedResult(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of one story with controller, leader and follower played by real Kafka (R) or by ours
    (O), against all-real runs of it (an all-real run: against the others). `propagation` of ISR
    changes: zk or rpc. `equal`: runs that have an equal in each criterion, in their order."""

    kafka: str
    propagation: str
    story: str
    mix: str
    runs: int
    matched: int
    equal: str
    delays: int
    delays_inside: int
    unusual_sentences: str = ""
    difference: str = ""

    @property
    def place(self) -> tuple[str, str, str, str]:
        """Its key among the rows."""
        return self.kafka, self.propagation, self.story, self.mix


class DistanceRow(msgspec.Struct, frozen=True, kw_only=True):
    """Median distances in one criterion of a script that was recorded several times; `p` of the
    two-sample test over all criteria; `real_runs_too_far`, and `by_chance_as_far` and
    `by_chance_too_far` of relabelings: see emulator.conformance.distance."""

    kafka: str
    script: str
    criterion: str
    real_to_real: float
    ours_to_real: float
    real_runs_too_far: int
    real_runs: int
    our_runs: int
    p: float
    by_chance_as_far: float
    by_chance_too_far: float

    @property
    def near_enough(self) -> bool:
        return Medians(self.real_to_real, self.ours_to_real).near_enough


class DelayRow(msgspec.Struct, frozen=True, kw_only=True):
    """One delay in milliseconds: recorded, and over the emulator's runs. `live_ms`: median of live
    plays."""

    kafka: str
    recording: str
    delay: str
    recorded_ms: int
    min_ms: int | None = None
    median_ms: int | None = None
    max_ms: int | None = None
    live_ms: int | None = None
    inside: bool


def random_name(seed: int) -> str:
    """The name of the script that `isr record --random` drew from this seed."""
    return f"random-{seed}"


def seed_of(random_name: str) -> int:
    return int(random_name.rpartition("-")[2])


JUDGED_BEFORE = (range(101, 190), range(201, 238))
"""Those with odd seeds among these were judged with latencies 22 to 33, and some of them looked at
since. What nobody has seen is judged once."""


def random_set(seed: int) -> str:
    """The set of a random script. Those with odd seeds are not looked at while rules change."""
    if seed % 2 == 0:
        return "random"
    return "judged-before" if any(seed in seeds for seeds in JUDGED_BEFORE) else "kept-apart"


R = TypeVar("R", bound=msgspec.Struct)
Blind = TypeVar("Blind", Verdict, None)


def commit_here() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def write_rows(name: str, rows: Iterable[msgspec.Struct], folder: Path = FOLDER) -> None:
    """Replace a file by these rows; no rows, no file."""
    values = [msgspec.to_builtins(row) for row in rows]
    if not values:
        return
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(values[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(values)


def read_rows(name: str, kind: type[R], folder: Path = FOLDER) -> list[R]:
    """The rows of a file; none where it is missing."""
    path = folder / f"{name}.csv"
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        rows = [{key: value for key, value in row.items() if value} for row in csv.DictReader(file)]
    return msgspec.convert(rows, list[kind], strict=False)  # type: ignore[valid-type]


def recording_result(
    kafka: str, recording: str, run: str, blind: Verdict, guided: GuidedMatch | None
) -> RecordingResult:
    """From the verdicts of random seeds and, where there was one, of a search."""
    row = RecordingResult(
        kafka=kafka,
        recording=recording,
        run=run,
        commit=commit_here(),
        latencies=latency.VERSION,
        seeds=blind.seeds,
        agreeing=blind.seeds_agreeing,
        by_seeds=blind.matched,
        difference="" if blind.matched else difference_of(verdict_of(blind, guided)),
    )
    return row if guided is None else searched(row, guided)


def searched(row: RecordingResult, guided: GuidedMatch) -> RecordingResult:
    """The row after a search; what seeds have shown stays."""
    progress, is_match = guided.progress, guided.is_confirmed
    return msgspec.structs.replace(
        row,
        commit=commit_here(),
        by_search=is_match,
        candidates=progress.total if progress else None,
        search_s=round(progress.seconds) if progress else None,
        runs=len(guided.choices.runs) if is_match else None,
        difference="" if is_match else row.difference,
    )


def verdict_of(blind: Blind, guided: GuidedMatch | None) -> Verdict | Blind:
    """The verdict that stands: the search's, where it has a confirmed match. `blind`: of the seeds,
    None if they were not played."""
    return guided.verdict if guided is not None and guided.is_confirmed else blind


def difference_of(verdict: Verdict) -> str:
    """What keeps a recording from being matched, in a few words."""
    missed = [CRITERIA[criterion] for criterion, is_equal in verdict.points.items() if not is_equal]
    outside = [timing.what for timing in verdict.timings if not timing.inside]
    parts = [f"no run equal in {', '.join(missed)}"] if missed else []
    if first := verdict.first_difference:
        parts.append(f"first difference: {first.key}, entry {first.entry}")
    if outside:
        parts.append(f"{len(outside)} of {len(verdict.timings)} delays outside ({outside[0]})")
    return "; ".join(parts) or "no seed agrees"


def delay_rows(
    kafka: str, recording: str, timings: Iterable[Timing], live: dict[str, int | None] | None = None
) -> list[DelayRow]:
    """`live`: medians of live plays by what they are."""
    return [
        DelayRow(
            kafka=kafka,
            recording=recording,
            delay=timing.what,
            recorded_ms=timing.recorded_ms,
            min_ms=timing.min_ms,
            median_ms=timing.p50_ms,
            max_ms=timing.max_ms,
            live_ms=(live or {}).get(timing.what),
            inside=timing.inside,
        )
        for timing in timings
    ]


def distance_rows(
    kafka: str, script: str, near: Near, too_far: Mapping[str, int]
) -> list[DistanceRow]:
    return [
        DistanceRow(
            kafka=kafka,
            script=script,
            criterion="all" if point == "all" else CRITERIA[int(point)],
            real_to_real=round(medians.real_to_real, 3),
            ours_to_real=round(medians.run_to_real, 3),
            real_runs_too_far=too_far[point],
            real_runs=len(near.recordings),
            our_runs=near.runs,
            p=round(near.distance.p, 3),
            by_chance_as_far=round(near.distance.relabelings[point].as_far, 3),
            by_chance_too_far=round(near.distance.relabelings[point].too_far, 3),
        )
        for point, medians in near.distance.points.items()
    ]
