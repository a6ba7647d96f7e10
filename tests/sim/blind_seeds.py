"""Judges a recording by blind seeds: as many as it takes, the likely ones first."""

from __future__ import annotations

from pathlib import Path

from emulator.conformance.compare import Reference, Verdict, conclude
from emulator.conformance.player import script_of, simulate
from emulator.conformance.recording import read_recording
from emulator.scenario.version import VersionOptions

RECORDINGS = Path(__file__).parents[1] / "recordings"
SEEDS_MAX = 40
AS_RECORDED = VersionOptions()

LIKELY: dict[str, tuple[int, ...]] = {
    "kafka-0.8.2.2/lag-max-messages-exceeded": (2,),
    "kafka-0.8.2.2/lag-max-messages-not-exceeded": (2,),
    "kafka-1.0.2/shrink-expand": (11,),
    "kafka-2.1.1/topic-lifecycle": (2,),
    "kafka-2.6.3/controlled-shutdown": (8, 25),
    "kafka-2.6.3/controller-shutdown": (28, 30),
    "kafka-2.6.3/quick-bounce": (4, 8),
    "kafka-2.6.3/zombie-controller": (18, 24),
    "kafka-2.8.2/leader-crash": (2, 3),
    "kafka-3.3.2/topic-lifecycle": (38, 39),
}
"""Seeds that are enough for a match, where 1, 2, 3 ... takes many. A change of a rule may need
others: then all are played, which takes longer and is no failure. To find them again:
`python -m tests.sim.blind_seeds NAME ...`."""


def judged(name: str, chosen: VersionOptions = AS_RECORDED, seeds_max: int = SEEDS_MAX) -> Verdict:
    """By `seeds_max` seeds, or fewer if these match."""
    reference = Reference(read_recording(RECORDINGS / name))
    script = script_of(reference.real, chosen)
    examined = []
    for seed in dict.fromkeys((*LIKELY.get(name, ()), *range(1, SEEDS_MAX + 1))):
        examined.append(reference.examine(simulate(script, seed)))
        verdict = conclude(reference, examined)
        if verdict.matched or len(examined) == seeds_max:
            break
    return verdict


def enough(name: str) -> tuple[int, ...]:
    """A small set of seeds that match; all of them if none do."""
    reference = Reference(read_recording(RECORDINGS / name))
    script = script_of(reference.real)
    examined = {}
    for seed in range(1, SEEDS_MAX + 1):
        examined[seed] = reference.examine(simulate(script, seed))
        if conclude(reference, list(examined.values())).matched:
            break
    for seed in list(examined):
        others = [one for other, one in examined.items() if other != seed]
        if others and conclude(reference, others).matched:
            del examined[seed]
    return tuple(examined)


if __name__ == "__main__":
    import sys

    for name in sys.argv[1:]:
        print(name, enough(name), flush=True)
