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
    "kafka-2.6.3/zombie-controller": "a client leaves brokers that metadata does not list",
    "kafka-2.6.3/quick-bounce": "a process that finds its old registration exits",
    "kafka-1.1.1/leader-crash": "the asynchronous client without fenced writes",
    "kafka-1.1.1/reassignment": "a completed move is taken out of a command that nobody reads",
    "kafka-2.1.1/topic-lifecycle": "a new controller deletes the command of moves",
    "kafka-2.4.1/topic-lifecycle": "one StopReplica for deletions, one for the rest",
    "kafka-2.8.2/leader-crash": "the id of a new topic is read",
    "kafka-3.3.2/topic-lifecycle": "a broker that joins hears nothing of deletions",
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
