"""`make fidelity-versions`: the stories that were recorded on every version line, each under random
seeds; writes docs/fidelity/versions.csv and the page.

The folder holds `kafka-<version>/<story>/`. The file is written again after each recording. Rows of
recordings that are not played now stay.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from emulator.conformance import player
from emulator.conformance.compare import Reference
from emulator.conformance.recording import read_recording
from tools.fidelity.page import write_page
from tools.fidelity.results import (
    VersionResult,
    commit_here,
    difference_of,
    read_rows,
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
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    known = {(row.kafka, row.story): row for row in read_rows("versions", VersionResult)}
    for folder in sorted(options.recordings.glob("kafka-*/*")):
        kafka, story = folder.parent.name.removeprefix("kafka-"), folder.name
        if options.only and story not in options.only:
            continue
        if options.versions and kafka not in options.versions:
            continue
        reference = Reference(read_recording(folder))
        script = player.script_of(reference.real)
        # What depends on a race or on the phases of several clocks shows in few of all plays.
        for seeds in (options.seeds, MORE * options.seeds):
            verdict = play_seeds(reference, script, [], seeds, options.jobs)
            if verdict.matched:
                break
        known[kafka, story] = VersionResult(
            kafka=kafka,
            story=story,
            commit=commit_here(),
            seeds=verdict.seeds,
            agreeing=verdict.seeds_agreeing,
            is_matched=verdict.matched,
            difference="" if verdict.matched else difference_of(verdict),
        )
        agree = f"{verdict.seeds_agreeing} of {verdict.seeds} agree"
        print(f"{kafka} {story}: {agree}, matched: {verdict.matched}", file=sys.stderr, flush=True)
        write_rows("versions", [row for _, row in sorted(known.items())])
    write_page()
    return 0


if __name__ == "__main__":
    sys.exit(main())
