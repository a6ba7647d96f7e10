"""`make fidelity-versions`: the stories that were recorded on every version line, each under random
seeds and, where these do not match, searched for; writes docs/fidelity/versions.csv and the page.

The folder holds `kafka-<version>/<story>/`. The file is written again after each recording. Rows of
recordings that are not played now stay.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from emulator.conformance import player
from emulator.conformance.compare import Examined, Reference
from emulator.conformance.recording import Recording, read_recording
from emulator.search.guided.guided import guided
from emulator.search.guided.restarts import Budget
from tools.fidelity.page import write_page
from tools.fidelity.results import (
    VersionResult,
    commit_here,
    read_rows,
    recording_result,
    write_rows,
)
from tools.fidelity.seeds import play_seeds

ROOT = Path(__file__).resolve().parents[2]
RECORDINGS = ROOT / "tools" / "fidelity" / "recordings"
MORE = 4
"""So many times the seeds for a recording that these do not match."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.fidelity.versions", description=__doc__)
    parser.add_argument("--recordings", type=Path, metavar="DIR", default=RECORDINGS)
    parser.add_argument("--only", nargs="*", default=[], help="stories by name")
    parser.add_argument("--versions", nargs="*", default=[], metavar="VERSION")
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--budget", type=float, default=60.0, metavar="SECONDS", help="of a search")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    known = {(row.kafka, row.story): row for row in read_rows("versions", VersionResult)}
    for folder in sorted(options.recordings.glob("kafka-*/*")):
        kafka, story = folder.parent.name.removeprefix("kafka-"), folder.name
        if options.only and story not in options.only:
            continue
        if options.versions and kafka not in options.versions:
            continue
        row = known[kafka, story] = judge(folder, options.seeds, options.budget, options.jobs)
        how = "seeds" if row.by_seeds else "a search" if row.by_search else "nothing"
        agree = f"{row.agreeing} of {row.seeds} agree"
        print(f"{kafka} {story}: {agree}, matched by {how}", file=sys.stderr, flush=True)
        write_rows("versions", [row for _, row in sorted(known.items())])
    write_page()
    return 0


def judge(folder: Path, at_first: int, search_s: float, jobs: int) -> VersionResult:
    """Random seeds, more of them, and a search: each only where what is before does not match."""
    reference = Reference(read_recording(folder))
    script = player.script_of(reference.real)
    examined: list[Examined] = []
    # What depends on a race or on the phases of several clocks shows in few of all plays.
    for seeds in (at_first, MORE * at_first):
        verdict = play_seeds(reference, script, examined, seeds, jobs)
        if verdict.matched:
            break
    match = None
    if not verdict.matched and search_s > 0:

        def examine(_: object, run: Recording) -> Examined:
            return reference.examine(run)

        match = guided(reference, script, Budget(search_s, jobs), examine, lambda _: None)
    kafka = folder.parent.name.removeprefix("kafka-")
    result = recording_result(kafka, folder.name, "", verdict, match)
    return VersionResult(
        kafka=kafka,
        story=folder.name,
        commit=commit_here(),
        seeds=result.seeds,
        agreeing=result.agreeing,
        by_seeds=result.by_seeds,
        by_search=result.by_search,
        difference=result.difference,
    )


if __name__ == "__main__":
    sys.exit(main())
