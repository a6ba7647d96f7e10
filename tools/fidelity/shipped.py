"""`make fidelity-kafka`: every shipped scenario that real Kafka can be given, recorded by our own
command and held to the emulator; renews its files in docs/fidelity/ and the page.

For each version and scenario: `isr record` (unless DIR has a recording of it), blind seeds in
virtual time, plays on a real ZooKeeper server (`--live`), and its logs given to `isr import` as a
stranger's. Of a scenario that DIR has several recordings of each is judged, and the newest that is
matched is shown (where none is, the nearest to it). What is known stays in the files, so that a
part can be renewed. Real time: about a minute for a recording, and as much for a live play.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from emulator.conformance import player
from emulator.conformance.compare import Reference, Verdict
from emulator.conformance.criteria import CRITERIA
from emulator.conformance.recording import read_recording
from emulator.scenario import shipped
from emulator.scenario.errors import UserError
from emulator.scenario.load import load
from emulator.worlds.real_kafka.capabilities import check_supported
from emulator.worlds.real_kafka.release import numbers_of
from tests.unit.forensics.strangers import Stranger, as_a_strangers
from tools.fidelity.page import write_page
from tools.fidelity.results import (
    DelayRow,
    NotRecorded,
    ShippedResult,
    delay_rows,
    difference_of,
    read_rows,
    write_rows,
)
from tools.fidelity.seeds import play_live, play_seeds

ROOT = Path(__file__).resolve().parents[2]
ISR = [sys.executable, "-c", "from emulator.cli import main; main()"]
VERSIONS = ("2.6.3", "2.7.2")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.fidelity.shipped", description=__doc__)
    parser.add_argument("--recorded", type=Path, metavar="DIR", default=ROOT / "runs" / "fidelity")
    parser.add_argument("--kafka", nargs="*", default=VERSIONS)
    parser.add_argument("--only", nargs="*", default=[], help="scenarios by name")
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--live", type=int, default=0, metavar="N", help="live plays of each")
    parser.add_argument("--again", action="store_true", help="record anew")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    known = {(row.kafka, row.scenario): row for row in read_rows("shipped", ShippedResult)}
    delays = read_rows("shipped-delays", DelayRow)
    for version in options.kafka:
        for name in scenarios(version, options.only):
            before = [row for row in delays if (row.kafka, row.recording) == (version, name)]
            result = measure(version, name, options, known.get((version, name)), before)
            if result is not None:
                known[version, name] = result[0]
                delays = [row for row in delays if row not in before] + result[1]
                write(known, delays)
    return 0


def write(known: dict[tuple[str, str], ShippedResult], delays: list[DelayRow]) -> None:
    write_rows("shipped", [row for _, row in sorted(known.items())])
    write_rows("shipped-delays", delays)
    others = [
        NotRecorded(kafka=version, scenario=name, why=unsupported_reason(name, version))
        for version in VERSIONS
        for name in sorted(shipped.shipped())
        if (version, name) not in known
    ]
    write_rows("not-recorded", others)
    write_page()


def scenarios(version: str, only: list[str]) -> list[str]:
    """Those that real Kafka can be given."""
    return [name for name in sorted(shipped.shipped()) if not only or name in only
            if can_be_given(name, version)]  # fmt: skip


def can_be_given(name: str, version: str) -> bool:
    return not unsupported_reason(name, version)


def unsupported_reason(name: str, version: str) -> str:
    """What a real cluster cannot be given of it."""
    try:
        check_supported(load(shipped.find(name)), numbers_of(version))
    except UserError as error:
        return str(error).rpartition(": ")[2]
    return ""


def measure(
    version: str,
    name: str,
    options: argparse.Namespace,
    before: ShippedResult | None,
    delays_before: list[DelayRow],
) -> tuple[ShippedResult, list[DelayRow]] | None:
    """Recorded, played, judged; None where it could not be recorded. Without live plays now, those
    of before count."""
    out = options.recorded / f"kafka-{version}"
    load = before.load if before else round(os.getloadavg()[0])
    if options.again or not recordings(out, name):
        load = round(os.getloadavg()[0])
        print(f"{version} {name}: recording", file=sys.stderr, flush=True)
        if record(version, name, out) is None:
            return None
    judged = [(run, *judge(run, name, options)) for run in recordings(out, name)]
    matched = [one for one in judged if one[2].matched]
    run, reference, blind = matched[-1] if matched else min(judged[::-1], key=distance)
    live = play_live(reference, player.script_of(reference.real), options.live)
    live_plays, live_equal = (before.live_plays, before.live_equal) if before else (0, "")
    live_ms = {row.delay: row.live_ms for row in delays_before}
    if live is not None:
        equal = [str(one) for one in CRITERIA if live.agreeing_by_point[one]]
        live_plays, live_equal = live.seeds, ", ".join(equal)
        live_ms = {timing.what: timing.p50_ms for timing in live.timings}
    with tempfile.TemporaryDirectory(prefix="isr-stranger-") as scratch:
        stranger: Stranger = as_a_strangers(run, Path(scratch))
    result = ShippedResult(
        kafka=version,
        scenario=name,
        seeds=blind.seeds,
        agreeing=blind.seeds_agreeing,
        equal=", ".join(str(blind.agreeing_by_point[one]) for one in CRITERIA),
        is_matched=blind.matched,
        recordings=len(judged),
        recordings_matched=len(matched),
        live_plays=live_plays,
        live_equal=live_equal,
        skew_ms=stranger.found_ms,
        skew_same=stranger.same,
        skew_without_ms=stranger.found_without_ms,
        skew_without_same=stranger.same_without,
        load=load,
        difference="" if blind.matched else difference_of(blind),
    )
    return result, delay_rows(version, name, blind.timings, live_ms)


def judge(run: Path, name: str, options: argparse.Namespace) -> tuple[Reference, Verdict]:
    reference = Reference(replace(read_recording(run), name=name))
    script = player.script_of(reference.real)
    blind = play_seeds(reference, script, [], options.seeds, options.jobs)
    agree = f"{blind.seeds_agreeing} of {blind.seeds} agree"
    print(f"{name}, {run.name}: {agree}, matched: {blind.matched}", file=sys.stderr, flush=True)
    return reference, blind


def distance(judged: tuple[Path, Reference, Verdict]) -> tuple[int, int]:
    """How far a recording is from being matched: points, and delays."""
    verdict = judged[2]
    missed = sum(not is_equal for is_equal in verdict.points.values())
    return missed, sum(not timing.inside for timing in verdict.timings)


def recordings(out: Path, name: str) -> list[Path]:
    """Oldest first."""
    files = (out / name).glob("*/recording.jsonl")
    return sorted(file.parent for file in files if not file.parent.is_symlink())


def newest(out: Path, name: str) -> Path | None:
    return next(reversed(recordings(out, name)), None)


def record(version: str, name: str, out: Path) -> Path | None:
    command = [*ISR, "record", name, "--kafka", version, "--out", str(out), "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 2):
        reason = done.stderr.strip() or done.stdout.strip()
        print(f"{version} {name}: {reason}", file=sys.stderr, flush=True)
        return None
    return newest(out, name)


if __name__ == "__main__":
    sys.exit(main())
