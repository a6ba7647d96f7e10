"""Recordings that were matched late, each held to the whole verdict.

Each has a request, an order or a process that no other recording has; blind seeds cover all of it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.conformance.compare import Reference, conclude
from emulator.conformance.player import script_of, simulate
from emulator.conformance.recording import read_recording

RECORDINGS = Path(__file__).parents[1] / "recordings"
SEEDS_MAX = 40
MATCHED = {
    "kafka-2.6.3/admin-znodes": "a command znode is listed before it is deleted",
    "kafka-2.6.3/quick-bounce": "a process that finds its old registration exits",
}


@pytest.mark.parametrize("name", MATCHED)
def test_a_recording_is_matched_by_blind_seeds(name: str) -> None:
    reference = Reference(read_recording(RECORDINGS / name))
    script = script_of(reference.real)
    examined = []
    for seed in range(1, SEEDS_MAX + 1):
        examined.append(reference.examine(simulate(script, seed)))
        verdict = conclude(reference, examined)
        if verdict.matched:
            break
    assert verdict.matched, verdict.nearest_differences
