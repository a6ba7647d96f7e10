"""Hazards: how long each takes from a cold start, as anyone runs it.

Processor time of `isr hazards NAME` in a process of its own: start of the program, both plays, what
is written and the lane table. The slowest is the figure.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile

from emulator.hazards.entry import catalogue
from tools.bench.figures import Figure, median
from tools.bench.processor import children_s

MOST_S = 10
PROGRAM = "import sys; from emulator.cli import main; main()"


def hazard_figures(most: int | None = None) -> list[Figure]:
    """Each of the catalogue once, or the first ones."""
    times = {name: _processor_s(name) for name in list(catalogue())[:most]}
    slowest = max(times, key=times.__getitem__)
    middle = median(times.values())
    return [
        Figure(
            what="hazards: the slowest, from a cold start",
            value=times[slowest],
            unit="s",
            scope=f"processor time of isr hazards {slowest}, both plays and the lane table; of all "
            f"{len(times)} the middle one takes {middle:.1f} s",
            reference="what issue 15 asks for",
            of=MOST_S,
            most=MOST_S,
        )
    ]


def _processor_s(name: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", PROGRAM, "hazards", name, "--out", folder]
        began = children_s()
        subprocess.run(command, check=True, capture_output=True)
        return children_s() - began
