"""`make hazards`: plays the whole catalogue, and writes down what was seen.

Owns the order and the progress; what is written is `emulator/hazards/catalogue/seen.json` and,
made from it, docs/hazards.md. Exit code 1: a hazard is not reproduced, or its cure does not hold.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from emulator.hazards.entry import Entry, catalogue, find
from emulator.hazards.minimal import Schedule, needless, shortest
from emulator.hazards.reproduce import actions_of, play_side, play_side_in_memory
from emulator.hazards.state import Live, Seen, keep, seen
from tools.documents.hazards import document

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "hazards.md"
EMBEDDED = "embedded"
PLAYS = 3


def main() -> int:
    parser = argparse.ArgumentParser(prog="make hazards", description=__doc__)
    parser.add_argument("names", nargs="*", help="these alone; all if none is named")
    parser.add_argument("--live", action="store_true", help="on a real server too, where it can")
    parser.add_argument(
        "--shortest", action="store_true", help="search for shorter schedules again"
    )
    arguments = parser.parse_args()
    chosen = [find(name) for name in arguments.names] or list(catalogue().values())
    records = {name: one for name, one in seen().items() if name in catalogue()}
    began = time.monotonic()
    for place, entry in enumerate(chosen, 1):
        records[entry.name] = one = _try(entry, records.get(entry.name), arguments)
        keep(dict(sorted(records.items())))
        word = "as it should be" if one.is_as_expected else "NOT AS IT SHOULD BE"
        took = time.monotonic() - began
        print(f"{place:3} of {len(chosen)}  {took:6.1f} s  {entry.name:24} {word}", flush=True)
    PAGE.write_text(document(), encoding="utf-8")
    return 0 if all(records[entry.name].is_as_expected for entry in chosen) else 1


def _try(entry: Entry, before: Seen | None, arguments: argparse.Namespace) -> Seen:
    """Both sides, and each entry left out. The search for a shorter schedule takes longest: what
    it found stays, until it is asked for or the schedule has other entries."""
    broken, cured = play_side_in_memory(entry), play_side_in_memory(entry, cured=True)
    messages, entries = broken.messages or ["nothing"], len(Schedule(entry).places)
    searched = before is not None and before.entries == entries and not arguments.shortest
    return Seen(
        reproduced=broken.is_as_expected,
        cured=cured.is_as_expected,
        message=messages[0],
        steps=len(actions_of(entry.scenario())),
        entries=entries,
        needless=len(needless(entry)),
        shortest=before.shortest if before and searched else shortest(entry),
        wall_ms=broken.wall_ms + cured.wall_ms,
        commit=_commit(),
        live=_live(entry) if arguments.live and entry.live else before.live if before else None,
    )


def _live(entry: Entry) -> Live:
    """Each side on a real server until it is as it should be: the first `PLAYS` plays are all that
    it gets, and the broken side has to be seen in one, the cured one held in one. A play that was
    late says nothing."""
    plays, seen_of = 0, {False: False, True: False}
    for cured in (False, True):
        for _ in range(PLAYS):
            plays += 1
            side = play_side(entry, cured=cured, zookeeper=EMBEDDED, base=ROOT / "runs")
            if side.is_as_expected and not side.late:
                seen_of[cured] = True
                break
            lost = "late" if side.late else ", ".join(side.messages) or "nothing broke"
            print(f"     {entry.name} live, {'cured' if cured else 'broken'}: {lost}", flush=True)
    return Live(seen=all(seen_of.values()), plays=plays, commit=_commit())


def _commit() -> str:
    """The last commit that others have, with a + where this is not it."""
    base = (
        _git("merge-base", "HEAD", "origin/main") if _git("remote") else _git("rev-parse", "HEAD")
    )
    seen_elsewhere = ("emulator", "zk", ":!emulator/hazards/catalogue/seen.json")
    return base[:7] + "+" * bool(_git("diff", "--stat", base, "--", *seen_elsewhere))


def _git(*words: str) -> str:
    run = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return run.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
