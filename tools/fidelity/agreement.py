"""Whether a recording could be one of ours: `python -m tools.fidelity.agreement`.

Plays every recording under some random seeds. A lane is what one criterion compares, in order,
about one partition, broker or znode. If the emulator is right, a recorded lane is one more draw:
plays are equal to it as often as they are to each other. Where they are equal to each other more
often, something is missing here, or too rare. Lists both shares for each criterion, and for the
kinds of lanes that lose most, with the recordings that lose most of it. A kind that loses in many
recordings is probably a rule.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from itertools import chain
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from emulator.conformance import player
from emulator.conformance.criteria import CRITERIA, POINTS, entries_of, lens_of
from emulator.conformance.recording import read_recording
from tools.fidelity.seeds import parser_of, play_each, seeds_of

FEWEST = 2
"""Only two plays can be equal to each other."""
SHOWN = 20
LOSERS = 4


class Shares(NamedTuple):
    """Of plays that are equal to the recording, and of pairs of plays that are equal."""

    to_recording: float
    to_each_other: float

    @property
    def lost(self) -> float:
        return self.to_each_other - self.to_recording


class Lane(NamedTuple):
    recording: str
    point: int
    kind: str
    shares: Shares


def shares_of(recorded: Hashable, emulated: Sequence[Hashable]) -> Shares:
    plays, times = len(emulated), Counter(emulated)
    pairs = sum(n * (n - 1) for n in times.values())
    return Shares(times[recorded] / plays, pairs / (plays * (plays - 1)))


def kind_of(lane: str) -> str:
    """Without numbers, as partitions, brokers and topics have them."""
    return re.sub(r"\d+", "N", lane)


def play(folder: Path, seeds: int) -> list[Lane]:
    real = read_recording(folder)
    script, lens = player.script_of(real), lens_of(real, requests_from_ms=0)
    runs = [player.simulate(script, seed) for seed in seeds_of(folder, seeds)]
    name = "/".join(folder.parts[-2:])
    lanes = []
    for point in POINTS:
        recorded, *emulated = (
            {key: tuple(entries) for key, entries in entries_of(point, run, lens).items()}
            for run in (real, *runs)
        )
        for key in sorted(recorded.keys() | set(chain.from_iterable(emulated))):
            shares = shares_of(recorded.get(key, ()), [run.get(key, ()) for run in emulated])
            lanes.append(Lane(name, point, kind_of(key), shares))
    return lanes


def shown(lanes: Sequence[Lane]) -> str:
    to_recording = mean(lane.shares.to_recording for lane in lanes)
    to_each_other = mean(lane.shares.to_each_other for lane in lanes)
    return f"{to_recording:.3f} {to_each_other:.3f} ({len(lanes)})"


def lost(lane: Lane) -> float:
    return lane.shares.lost


def main() -> None:
    parser = parser_of(__doc__, seeds=6)
    chosen = parser.parse_args()
    if chosen.seeds < FEWEST:
        parser.error(f"--seeds: at least {FEWEST}")
    of_point: dict[int, list[Lane]] = defaultdict(list)
    of_kind: dict[tuple[int, str], list[Lane]] = defaultdict(list)
    for lane in chain.from_iterable(play_each(play, chosen)):
        of_point[lane.point].append(lane)
        of_kind[lane.point, lane.kind].append(lane)
    print("share of plays equal to the recording, share equal to another play, and lanes")
    for point, lanes in sorted(of_point.items()):
        print(f"{CRITERIA[point]}: {shown(lanes)}")
    print("\nkinds of lanes that lose, those first that lose most")
    by_loss = sorted(of_kind.items(), key=lambda it: sum(map(lost, it[1])), reverse=True)
    for (point, kind), lanes in by_loss[:SHOWN]:
        losers = sorted((it for it in lanes if lost(it) > 0), key=lost, reverse=True)
        if losers:
            print(f"{CRITERIA[point]}, {kind}: {shown(lanes)}")
            print(f"    {', '.join(f'{it.recording} {lost(it):.2f}' for it in losers[:LOSERS])}")


if __name__ == "__main__":
    main()
