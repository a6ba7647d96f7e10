"""Where recorded delays lie among emulated ones: `python -m tools.fidelity.ranks`.

A delay leads from a cause to an effect, for example from a state's write to the UpdateMetadata that
announces it. Plays every recording under some random seeds. The rank of a recorded delay is the
share of emulated ones that are shorter. If the ranges of `emulator.worlds.latency` are right, ranks
are 0.5 on average: more means that the emulator is too fast. Delays above a second are mostly waits
for a timeout or a period, so they are listed separately.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from emulator.conformance import player
from emulator.conformance.compare import Reference
from emulator.conformance.recording import read_recording
from tools.fidelity.seeds import parser_of, play_each, seeds_of

WAIT_MS = 1000
FEWEST = 3
"""A rank among fewer emulated delays shows nothing."""


class Delay(NamedTuple):
    kafka: str
    kind: str
    rank: float


def rank(recorded: float, emulated: Sequence[float]) -> float:
    """The share of emulated delays that are shorter. Equal ones count half."""
    shorter = sum(ms < recorded for ms in emulated)
    equal = sum(ms == recorded for ms in emulated)
    return (shorter + equal / 2) / len(emulated)


def kind_of(what: str, ms: float) -> str:
    """Without its partition, and without numbers."""
    kind = re.sub(r"\d+", "N", what.rpartition(": ")[2])
    return f"{kind}, above 1 s" if ms > WAIT_MS else kind


def play(folder: Path, seeds: int) -> list[Delay]:
    real = read_recording(folder)
    script, reference = player.script_of(real), Reference(real)
    runs = [reference.examine(player.simulate(script, seed)) for seed in seeds_of(folder, seeds)]
    delays = []
    for what, recorded_ms in reference.delays.items():
        emulated = [run.delays[what] for run in runs if what in run.delays]
        if len(emulated) >= FEWEST:
            kind = kind_of(what, recorded_ms)
            delays.append(Delay(str(real.settings["kafka"]), kind, rank(recorded_ms, emulated)))
    return delays


def main() -> None:
    parser = parser_of(__doc__, seeds=5)
    chosen = parser.parse_args()
    if chosen.seeds < FEWEST:
        parser.error(f"--seeds: at least {FEWEST}")
    ranks: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for delays in play_each(play, chosen):
        for kafka, kind, of_delay in delays:
            ranks[kind][kafka].append(of_delay)
    print("average rank, and number, of recorded delays among emulated ones")
    for kind, by_version in sorted(ranks.items()):
        every = [one for of_version in by_version.values() for one in of_version]
        print(f"{kind}: {mean(every):.2f} ({len(every)})")
        shown = (f"{kafka} {mean(by_version[kafka]):.2f}" for kafka in sorted(by_version))
        print(f"    {', '.join(shown)}")


if __name__ == "__main__":
    main()
