"""In which order a replica returns to two ISRs: `python -m tools.fidelity.orders`.

Where one leader has two partitions, a broker that comes back joins one ISR soon after the other.
Which comes first depends on hash tables: the follower's, the request's and the leader's. Plays
every recording under some random seeds and lists the pairs of expansions that were recorded, those
first that the emulator shows in the other order. A pair that no seed shows in the recorded order is
probably a rule that is missing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations, pairwise
from pathlib import Path
from typing import NamedTuple

from emulator.conformance import player
from emulator.conformance.criteria import POINTS, StateWrite, lens_of
from emulator.conformance.recording import Recording, read_recording
from tools.fidelity.seeds import parser_of, play_each, seeds_of

TOGETHER_MS = 400
"""What is further apart is not decided by an order."""
NEAR_MS = 4000
"""An emulated pair is the recorded one if it comes within this time of it."""


class Pair(NamedTuple):
    """Two expansions by `leader`, which add `broker`."""

    leader: int
    broker: int
    first: str
    second: str


class Compared(NamedTuple):
    recording: str
    pair: Pair
    apart_ms: int
    same: int
    """The number of seeds with this order..."""
    other: int
    """... and with the other."""


def pairs_of(run: Recording) -> Iterator[tuple[int, int, Pair]]:
    """(time of the first, milliseconds to the second, the pair)."""
    joined: dict[tuple[int, int], list[tuple[int, str]]] = defaultdict(list)
    for partition, lane in POINTS[1].gather(run, lens_of(run)).items():
        writes = [(t, entry) for t, entry in lane if isinstance(entry, StateWrite)]
        for (_, before), (t, after) in pairwise(writes):
            for broker in set(after.isr) - set(before.isr):
                joined[after.leader, broker].append((t, partition))
    for (leader, broker), times in joined.items():
        for (t, first), (later, second) in combinations(sorted(times), 2):
            if later - t <= TOGETHER_MS and first != second:
                yield t, later - t, Pair(leader, broker, first, second)


def play(folder: Path, seeds: int) -> list[Compared]:
    real = read_recording(folder)
    script = player.script_of(real)
    runs = [list(pairs_of(player.simulate(script, seed))) for seed in seeds_of(folder, seeds)]
    compared = []
    for at_ms, apart_ms, pair in pairs_of(real):
        turned = pair._replace(first=pair.second, second=pair.first)
        near = [{it for t, _, it in run if abs(t - at_ms) <= NEAR_MS} for run in runs]
        same, other = (sum(one in run for run in near) for one in (pair, turned))
        compared.append(Compared("/".join(folder.parts[-2:]), pair, apart_ms, same, other))
    return compared


def main() -> None:
    parser = parser_of(__doc__, seeds=6)
    every = [one for compared in play_each(play, parser.parse_args()) for one in compared]
    every.sort(key=lambda it: it.same - it.other)
    print("recorded order, ms apart; seeds with the same order and with the other")
    for recording, pair, apart_ms, same, other in every:
        who = f"broker {pair.broker}, leader {pair.leader}"
        order = f"{pair.first} before {pair.second}, {apart_ms} ms"
        print(f"{recording}: {who}: {order}; {same} {other}")


if __name__ == "__main__":
    main()
