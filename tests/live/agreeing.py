"""Runs of shipped scenarios in a target that has real time, beside those in virtual time.

What must agree of a scenario that is free of races, and with what: the judge of recordings, and ISR
histories and notifications byte for byte. A play that the machine was too slow for is played again.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from emulator.conformance.compare import judge
from emulator.conformance.export import export
from emulator.conformance.recording import Recording
from emulator.runs.play import PlayOptions, play
from emulator.scenario import shipped
from emulator.scenario.load import load
from emulator.trace.events import AnyEvent, IsrChangeNotified
from emulator.trace.reader import read_events
from emulator.trace.sink import Sink
from tests.sim.shipped_runs import RACE_FREE, scenario

ROOT = Path(__file__).resolve().parents[2]
ISR = (sys.executable, "-c", "from emulator.cli import main; main()")

PLAYS = 3
"""On a busy machine threads of a live run wait for the processor for longer than any seed draws."""

SEEDS = range(3)
BOOT_US = 10_000_000
"""A run in which a broker restarts is longer by this: a process takes seconds to boot on a busy
machine, and the consequences are propagated five seconds later."""

SETTINGS = {"kind": "settings", "kafka": "2.6.3"}
POINTS = range(1, 8)
TOLD = 4
QUIET_MS = 5_000
UNKNOWN = 2


def longer(name: str, folder: Path) -> Path:
    """The scenario, with time for who starts again."""
    text = shipped.shipped()[name].read_text()
    loaded = scenario(name)
    starts = any(step.action.name == "start" for step in loaded.steps)
    until_ms = (loaded.duration_us + BOOT_US * starts) // 1000
    found, count = re.subn(r"(?m)^run: .*$", f"run: {until_ms}ms", text)
    assert count == 1
    folder.mkdir()
    (folder / f"{name}.yaml").write_text(found)
    return folder / f"{name}.yaml"


@dataclass(frozen=True)
class LiveRun:
    """A run directory, read back."""

    code: int
    said: str
    summary: dict[str, Any]
    directory: Path
    events: list[AnyEvent]
    source: str
    """A shipped scenario's name, or a file."""

    @property
    def recording(self) -> Recording:
        return export(self.events, SETTINGS, "live")

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


def isr_run(name: str, out: Path, *words: str) -> LiveRun:
    """A run by its name or file; repeated if the machine was too slow to judge, or until the judge
    agrees."""
    for _ in range(PLAYS):
        command = (*ISR, "run", name, *words, "--out", str(out), "--json")
        told = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
        )
        assert told.stdout, told.stderr
        summary = json.loads(told.stdout)
        directory = Path(summary["run_directory"])
        events = list(read_events(directory / "trace.ndjson"))
        played_live = LiveRun(told.returncode, told.stderr, summary, directory, events, name)
        if told.returncode != UNKNOWN and not differences(played_live):
            break
    return played_live


def differences(run: LiveRun) -> dict[int, object]:
    """The differences of the live run and the nearest simulated one, in the comparable points."""
    points = comparable(run)
    if not points:
        return {}
    runs = [simulated(run.source, seed) for seed in SEEDS]
    nearest = judge(run.recording, runs).nearest_differences
    return {point: nearest[point] for point in points if nearest[point] is not None}


@cache
def simulated(source: str, seed: int) -> Recording:
    sink = Sink()
    loaded = load(Path(source)) if source.endswith(".yaml") else scenario(source)
    play(loaded, PlayOptions(seed=seed), sink)
    return export(sink.events, SETTINGS, f"seed {seed}")


def comparable(run: LiveRun) -> list[int]:
    if run.summary["scenario"] not in RACE_FREE:
        return []
    by_60_s = any(e.quiet_ms < QUIET_MS for e in run.of(IsrChangeNotified))
    return [point for point in POINTS if point != TOLD or not by_60_s]


def written(recording: Recording) -> dict[str, list[tuple[object, ...]]]:
    """By state znode, and for the notifications as one."""
    found: dict[str, list[tuple[object, ...]]] = {}
    for one in recording.transactions:
        notified = one.path.startswith("/isr_change_notification/")
        if notified or one.path.endswith("/state"):
            row = (one.broker, one.op, one.path, one.data, one.version)
            found.setdefault("notifications" if notified else one.path, []).append(row)
    return found
