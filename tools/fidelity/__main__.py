"""`make fidelity`: plays every recording, and writes docs/fidelity.md.

The folder given holds `kafka-<version>/<recording>/`, and perhaps, of scripts that were recorded
several times, `repeats/kafka-<version>/<script>/<n>/`. The page is written again after each
recording, so that what is known is there.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from emulator.conformance import player
from emulator.conformance.compare import Examined, Reference, Verdict, conclude
from emulator.conformance.recording import Recording, read_recording
from emulator.conformance.repeatability import Near, near
from emulator.search.guided.guided import Guided, guided
from emulator.search.guided.restarts import Budget, Progress
from emulator.worlds import latency
from tools.fidelity.shipped_table import section_of
from tools.fidelity.table import Row, Scope, page

ROOT = Path(__file__).resolve().parents[2]
NOT_TO_BE_MATCHED = ("shrink-storm",)
"""Recorded for its figures (the recordings' README): which of its partitions lost a race."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.fidelity", description=__doc__)
    parser.add_argument("recordings", type=Path, help="folder with kafka-<version>/<recording>/")
    parser.add_argument("--versions", nargs="*", default=["0.8.2.2", "1.0.2", "2.6.3", "2.7.2"])
    parser.add_argument("--seeds", type=int, default=20, help="blind plays of each recording")
    parser.add_argument(
        "--most", type=int, default=1280, help="blind plays of one that so many do not match"
    )
    parser.add_argument("--budget", type=float, default=90.0, metavar="SECONDS")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", nargs="*", default=[], help="recordings by name")
    parser.add_argument("--into", type=Path, default=ROOT / "docs" / "fidelity.md")
    asked = parser.parse_args()
    at_commit = commit()
    rows: list[Row] = []
    scripts: list[tuple[str, Near]] = []

    def write() -> None:
        scope = Scope(
            asked.seeds,
            asked.most,
            asked.budget,
            asked.jobs,
            latency.VERSION,
            at_commit,
            os.getloadavg()[1],
        )
        kept = section_of(asked.into.read_text()) if asked.into.exists() else ""
        asked.into.write_text(page(scope, rows, scripts) + kept)

    for version in asked.versions:
        for folder in folders(asked.recordings / f"kafka-{version}", asked.only):
            if folder.name not in NOT_TO_BE_MATCHED:
                rows.append(held(folder, f"{version} {folder.name}", asked, repeated=False))
                write()
    for version in asked.versions:
        for script in folders(asked.recordings / "repeats" / f"kafka-{version}", asked.only):
            reals, name = folders(script, []), f"{version} {script.name}"
            told(f"{name}: against {len(reals)} real runs")
            scripts.append((name, together(reals, asked)))
            for real in reals:
                rows.append(held(real, f"{name}/{real.name}", asked, repeated=True))
                write()
    return 0


def commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return ran.stdout.strip()


def folders(parent: Path, only: list[str]) -> list[Path]:
    if not parent.exists():
        return []
    found = sorted(path for path in parent.iterdir() if path.is_dir())
    return [path for path in found if not only or path.name in only]


def told(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def held(folder: Path, name: str, asked: argparse.Namespace, *, repeated: bool) -> Row:
    """One recording under blind seeds, searched for where these do not match it, and where that
    finds nothing under more seeds. One run of several of a script is no more than one throw of the
    dice: few seeds, and always a search."""
    reference = Reference(replace(read_recording(folder), name=name))
    script = player.script_of(reference.real)
    examined: list[Examined] = []
    verdict = blind(reference, script, examined, asked.seeds, asked.jobs)
    found = None
    if repeated or not verdict.matched:
        found = searched(reference, script, asked)
    while not (repeated or verdict.matched or (found and found.verdict.matched)):
        if len(examined) >= asked.most:
            break
        until = min(2 * len(examined), asked.most)
        verdict = blind(reference, script, examined, until, asked.jobs)
    row = Row(name, verdict, found)
    told(f"{name}: {verdict.seeds_agreeing} of {verdict.seeds} agree, matched: {row.matched}")
    return row


def blind(
    reference: Reference, script: player.Script, examined: list[Examined], until: int, jobs: int
) -> Verdict:
    """Of the seeds examined before and the next ones; these are examined with them afterwards."""

    def look(_: int, run: Recording) -> Examined:
        return reference.examine(run)

    seeds = range(len(examined) + 1, until + 1)
    seen = dict(player.blind_plays(script, seeds, look, jobs))
    examined += (seen[seed] for seed in seeds)
    return conclude(reference, examined)


def searched(reference: Reference, script: player.Script, asked: argparse.Namespace) -> Guided:
    def look(_: object, run: Recording) -> Examined:
        return reference.examine(run)

    def quiet(_: Progress) -> None:
        pass

    budget = Budget(asked.budget, asked.jobs)
    result = guided(reference, script, budget, look, quiet)
    progress = result.progress
    told(f"  guided: {result.found}, {progress.total} draws, {progress.seconds:.0f} s")
    return result


def together(reals: list[Path], asked: argparse.Namespace) -> Near:
    recordings = [read_recording(real) for real in reals]
    scripts = [player.script_of(recording) for recording in recordings]
    seeds = max(1, asked.seeds // len(reals))
    return near(recordings, scripts, seeds, asked.jobs, lambda _: None)


if __name__ == "__main__":
    sys.exit(main())
