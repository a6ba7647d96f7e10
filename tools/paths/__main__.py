"""`make paths`: measures both propagation paths, and writes the tables of docs/zk-vs-rpc.md.

The words of the page are written by hand; each table stands between two comments that name it, and
is made here: from `isr compare --json` as a user types it, and from recordings of both versions
beside emulated runs of their scripts. What is not arguments for stays as it is.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from emulator.conformance import player
from emulator.conformance.recording import read_recording
from tools.paths.measured import Delays
from tools.paths.tables import Both, comparison, delays, storm, with_table

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "zk-vs-rpc.md"
ISR = (sys.executable, "-c", "from emulator.cli import main; main()")
VERSIONS = ("2.6.3", "2.7.2")
RECORDED = {"latency": 10, "controller-paused": 20, "shrink-storm": 2}
"""Recordings of both versions, and how many seeds are played beside each."""

COMPARED = ("flapping", "zookeeper-jitter", "controller-link-jitter", "controller-paused")
LIVE = ("flapping", "zookeeper-jitter")
PLAYED = (0, 2)
"""Also where a live kernel was too late for a verdict: the table says by how much."""

SEED, SEEDS = "0x1", "20"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.paths", description=__doc__)
    parser.add_argument("recordings", type=Path, help="folder with kafka-<version>/<recording>/")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=[], help="tables by name")
    arguments = parser.parse_args()
    for name in [f"simulated {one}" for one in COMPARED] + [f"live {one}" for one in LIVE]:
        if not arguments.only or name in arguments.only:
            write(name, comparison(compared(name, arguments.jobs)))
    for name in RECORDED:
        if not arguments.only or f"recorded {name}" in arguments.only:
            both = [side for version in VERSIONS for side in beside(arguments, version, name)]
            write(f"recorded {name}", storm(both) if name == "shrink-storm" else delays(both))
    return 0


def write(name: str, table: str) -> None:
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), name, table), encoding="utf-8")
    print(f"{name}: written", file=sys.stderr, flush=True)


def compared(name: str, jobs: int) -> dict[str, Any]:
    """What `isr compare --json` says."""
    where, scenario = name.split()
    words = ["compare", scenario, "--seed", SEED, "--json", "--quiet"]
    words += ["--zookeeper", "embedded"] if where == "live" else ["--seeds", SEEDS]
    command = [*ISR, *words, "--jobs", str(jobs)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode in PLAYED, ran.stderr
    report: dict[str, Any] = json.loads(ran.stdout)
    return report


def beside(arguments: argparse.Namespace, version: str, name: str) -> list[Both]:
    """The real one, and emulated runs of its script."""
    real = read_recording(arguments.recordings / f"kafka-{version}" / name)
    recorded, emulated = Delays(), Delays()
    recorded.add(real)
    seeds = range(1, RECORDED[name] + 1)
    script = player.script_of(real)
    for _, one in player.blind_plays(script, seeds, lambda _, run: measured(run), arguments.jobs):
        emulated.take(one)
    return [
        Both(f"Kafka {version}, recorded", recorded, 1),
        Both("emulated", emulated, len(seeds)),
    ]


def measured(run: Any) -> Delays:
    delays = Delays()
    delays.add(run)
    return delays


if __name__ == "__main__":
    sys.exit(main())
