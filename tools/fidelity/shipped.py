"""`make fidelity-kafka`: every shipped scenario that real Kafka can be given, recorded by our own
command and held to the emulator; renews its section of docs/fidelity.md.

For each version and scenario: `isr record` (unless DIR has a recording of it), blind seeds in
virtual time, plays on a real ZooKeeper server (`--live`), and its logs given to `isr import` as a
stranger's. Of a scenario that DIR has several recordings of each is judged, and the newest that is
matched is shown (where none is, the nearest to it). What is known is kept in DIR/held.json, so that
a part can be renewed. Real time: about a minute for a recording, and as much for a live play.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import msgspec

from emulator.conformance import player
from emulator.conformance.compare import Examined, Reference, Verdict, conclude
from emulator.conformance.recording import Recording, read_recording
from emulator.scenario import shipped
from emulator.scenario.errors import UserError
from emulator.scenario.load import load
from emulator.worlds.real_kafka.capabilities import check_supported
from emulator.worlds.real_kafka.release import numbers_of
from tests.unit.forensics.strangers import Stranger, as_a_strangers
from tools.fidelity.shipped_table import Delay, Held, Without, with_section

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
    parser.add_argument("--page", action="store_true", help="only write what is known")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--into", type=Path, default=ROOT / "docs" / "fidelity.md")
    asked = parser.parse_args()
    known = read_known(asked.recorded)
    for version in [] if asked.page else asked.kafka:
        for name in scenarios(version, asked.only):
            held = one(version, name, asked, known.get(f"{version}/{name}"))
            if held is not None:
                known[f"{version}/{name}"] = held
                keep(asked.recorded, known)
    page = with_section(asked.into.read_text(), list(known.values()), without(known))
    asked.into.write_text(page)
    return 0


def scenarios(version: str, only: list[str]) -> list[str]:
    """Those that real Kafka can be given."""
    return [name for name in sorted(shipped.shipped()) if not only or name in only
            if can_be_given(name, version)]  # fmt: skip


def can_be_given(name: str, version: str) -> bool:
    return not why_not(name, version)


def why_not(name: str, version: str) -> str:
    """What a real cluster cannot be given of it."""
    try:
        check_supported(load(shipped.find(name)), numbers_of(version))
    except UserError as error:
        return str(error).rpartition(": ")[2]
    return ""


def without(known: dict[str, Held]) -> list[Without]:
    """Every other shipped scenario, and why it is not there."""
    return [
        Without(name, version, why_not(name, version))
        for version in VERSIONS
        for name in sorted(shipped.shipped())
        if f"{version}/{name}" not in known
    ]


def read_known(folder: Path) -> dict[str, Held]:
    file = folder / "held.json"
    return msgspec.json.decode(file.read_bytes(), type=dict[str, Held]) if file.exists() else {}


def keep(folder: Path, known: dict[str, Held]) -> None:
    text = msgspec.json.format(msgspec.json.encode(dict(sorted(known.items()))))
    (folder / "held.json").write_bytes(text)


def told(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def one(version: str, name: str, asked: argparse.Namespace, before: Held | None) -> Held | None:
    """Recorded, played, judged; None where it could not be recorded."""
    out = asked.recorded / f"kafka-{version}"
    load_before = os.getloadavg()[0]
    load_of_it = before.load if before else load_before
    if asked.again or not recordings(out, name):
        told(f"{version} {name}: recording")
        if record(version, name, out) is None:
            return None
        load_of_it = load_before
    judged = [(run, *judge(run, name, asked)) for run in recordings(out, name)]
    matched = [one for one in judged if one[2].matched]
    run, reference, blind = matched[-1] if matched else min(judged[::-1], key=distance)
    live = live_verdict(reference, player.script_of(reference.real), asked.live)
    missed = [str(point) for point, fine in blind.points.items() if not fine]
    return Held(
        scenario=name,
        kafka=version,
        load=load_of_it,
        seeds=blind.seeds,
        agreeing=blind.seeds_agreeing,
        matched=blind.matched,
        recorded=len(judged),
        recorded_and_matched=len(matched),
        equal={str(point): count for point, count in blind.agreeing_by_point.items()},
        missed=missed,
        live_plays=live.seeds if live else (before.live_plays if before else 0),
        live_points=points_of(live) if live else (before.live_points if before else []),
        stranger=stranger(run),
        delays=delays(blind, live, before),
    )


def judge(run: Path, name: str, asked: argparse.Namespace) -> tuple[Reference, Verdict]:
    reference = Reference(replace(read_recording(run), name=name))
    blind = blind_verdict(reference, player.script_of(reference.real), asked)
    told(
        f"{name}, {run.name}: {blind.seeds_agreeing} of {blind.seeds} agree,"
        f" matched: {blind.matched}"
    )
    return reference, blind


def distance(judged: tuple[Path, Reference, Verdict]) -> tuple[int, int]:
    """How far a recording is from being matched: points, and delays."""
    verdict = judged[2]
    missed = sum(not fine for fine in verdict.points.values())
    return missed, sum(not timing.inside for timing in verdict.timings)


def recordings(out: Path, name: str) -> list[Path]:
    """Oldest first."""
    found = (out / name).glob("*/recording.jsonl")
    return sorted(file.parent for file in found if not file.parent.is_symlink())


def newest(out: Path, name: str) -> Path | None:
    return next(reversed(recordings(out, name)), None)


def record(version: str, name: str, out: Path) -> Path | None:
    command = [*ISR, "record", name, "--kafka", version, "--out", str(out), "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 2):
        told(f"{version} {name}: {done.stderr.strip() or done.stdout.strip()}")
        return None
    return newest(out, name)


def blind_verdict(
    reference: Reference, script: player.Script, asked: argparse.Namespace
) -> Verdict:
    def look(_: int, run: Recording) -> Examined:
        return reference.examine(run)

    seeds = range(1, asked.seeds + 1)
    seen = dict(player.blind_plays(script, seeds, look, asked.jobs))
    return conclude(reference, [seen[seed] for seed in seeds])


def live_verdict(reference: Reference, script: player.Script, plays: int) -> Verdict | None:
    if not plays:
        return None

    def look(_: int, run: Recording) -> Examined:
        return reference.examine(run)

    seeds = range(1, plays + 1)
    return conclude(reference, [seen for _, seen in player.live_plays(
        script, seeds, look, "embedded")])  # fmt: skip


def points_of(live: Verdict) -> list[str]:
    """In which points at least one live play is equal as a whole."""
    return [str(point) for point, count in live.agreeing_by_point.items() if count]


def delays(blind: Verdict, live: Verdict | None, before: Held | None) -> list[Delay]:
    of_live = {it.what: it.p50_ms for it in live.timings} if live else {}
    if not live and before:
        of_live = {it.what: it.live_ms for it in before.delays}
    return [
        Delay(it.what, it.recorded_ms, of_live.get(it.what), it.min_ms, it.p50_ms, it.max_ms,
              it.inside)
        for it in blind.timings
    ]  # fmt: skip


def stranger(run: Path) -> Stranger:
    """Its logs, mangled, imported with ZooKeeper's log and without."""
    with tempfile.TemporaryDirectory(prefix="isr-stranger-") as scratch:
        return as_a_strangers(run, Path(scratch))


if __name__ == "__main__":
    sys.exit(main())
